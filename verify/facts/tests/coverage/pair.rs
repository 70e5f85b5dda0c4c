//! A primitive and how a call of it ended.

use std::fmt;

use faults::{Call, Outcome, Record};
use os::OsError;

/// A primitive and how a call of it ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pair {
    /// The primitive with what selects its work: the kind of object, the control code, the class of information, the WMI
    /// class and method.
    primitive: String,
    /// Success, the code of the error, or the `ReturnValue` of a WMI method.
    outcome: String,
}

impl Pair {
    pub(crate) fn of(record: &Record) -> Self {
        let outcome = match record.outcome {
            Outcome::Failed(code) => text_of(code),
            outcome => format!("{outcome:?}"),
        };
        Self { primitive: primitive(&record.call), outcome }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.primitive, self.outcome)
    }
}

fn text_of(code: OsError) -> String {
    format!("{code:?} ({})", code.0)
}

fn primitive(call: &Call) -> String {
    let kind = match &*call.primitive {
        "open" => kind_of_object(&call.object),
        "wmi query" => class(&call.object),
        "firmware_table" => &call.object,
        _ => return call.primitive.to_string(),
    };
    format!("{} {kind}", call.primitive)
}

/// Returns the kind of object that an NT path names.
fn kind_of_object(path: &str) -> &'static str {
    let name = path.trim_start_matches(r"\??\");
    if name.starts_with("PhysicalDrive") {
        "disk"
    } else if name.starts_with(r"UNC\") {
        "path on a server"
    } else if name.starts_with("Volume{") && name.ends_with('}') {
        "volume"
    } else {
        "path"
    }
}

/// Returns the class of the objects that a query finds.
fn class(wql: &str) -> &str {
    let words = |keyword: &str| wql.split_once(keyword).map(|(_, rest)| rest);
    let rest = words("ResultClass = ").or_else(|| words(" FROM ")).unwrap_or(wql);
    rest.split_whitespace().next().unwrap_or_default()
}

#[test]
fn a_query_is_named_by_the_class_that_it_finds() {
    assert_eq!(class("SELECT * FROM MSFT_Disk WHERE Number = 1"), "MSFT_Disk");
    assert_eq!(class("ASSOCIATORS OF {A.B=\"1\"} WHERE AssocClass = C ResultClass = MSFT_Disk"), "MSFT_Disk");
}

#[test]
fn a_device_is_not_a_path() {
    let id = "Volume{00000000-0000-0000-0000-000000000001}";
    assert_eq!(kind_of_object(r"\??\PhysicalDrive1"), "disk");
    assert_eq!(kind_of_object(&format!(r"\??\{id}")), "volume");
    assert_eq!(kind_of_object(&format!(r"\??\{id}\directory")), "path");
    assert_eq!(kind_of_object(r"\??\UNC\files\one"), "path on a server");
}
