//! What a run has found, without anything that names a machine, a disk or an account.

use std::collections::{BTreeMap, BTreeSet};

use facts::AFTER;
use os::{Os, OsError, U16String};
use serde::{Deserialize, Serialize};

use crate::DisksOfNode;

/// The key of the registry with the version of Windows.
const KEY: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

/// The longest number that is kept, such as `0x80070005`.
const LONGEST_NUMBER: usize = 10;

/// The kinds of the errors of operations.
const KINDS: [&str; 10] = [
    "InvalidArgument",
    "NotFound",
    "AlreadyExists",
    "FailedPrecondition",
    "PermissionDenied",
    "Busy",
    "StillRunning",
    "Unavailable",
    "Cancelled",
    "Internal",
];

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The content of a file in docs/evidence.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The version of csi-proxy.
    pub version: String,
    /// Windows, Wine or Simulator.
    pub system: String,
    /// The build of Windows, such as 20348.
    pub build: String,
    /// The edition, such as `ServerStandard`.
    pub edition: String,
    /// The kind of installation: `Server` or `Server Core`.
    pub installation: String,
    /// How long the run took.
    pub seconds: u64,
    /// The checks that succeeded.
    pub holds: BTreeSet<String>,
    /// The checks that failed, each with the line of its assertion and the codes of Windows.
    pub fails: BTreeMap<String, String>,
    /// The checks that did not run, by what they lacked.
    pub not_run: BTreeMap<String, BTreeSet<String>>,
    /// The disks for tests that are missing, each with the reason.
    #[serde(default)]
    pub no_disks: BTreeMap<String, String>,
    /// The steps of the run that failed, except its checks.
    #[serde(default)]
    pub errors: Vec<String>,
    /// The disks of the machine before the run.
    #[serde(default)]
    pub disks_of_node: DisksOfNode,
    /// The fallbacks that the acceptance used, each as its call and the code of Windows. Those that
    /// the nodes of a cluster have used are added by hand if the issue has them.
    pub fallbacks: BTreeSet<String>,
}

impl Evidence {
    /// Creates an evidence without results about a system.
    pub fn new(system: &str, os: &dyn Os) -> Self {
        let read =
            |value: &str| os.registry_text(&U16String::from_str(KEY), &U16String::from_str(value));
        let text =
            |value: &str| read(value).map_or("unknown".to_owned(), |text| text.to_string_lossy());
        Self {
            version: option_env!("CSI_PROXY_COMMIT")
                .map_or(VERSION.to_owned(), |commit| format!("{VERSION}+{commit}")),
            system: system.to_owned(),
            build: text("CurrentBuildNumber"),
            edition: text("EditionID"),
            installation: text("InstallationType"),
            ..Self::default()
        }
    }

    /// Returns the content of selftest.json.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("an object of texts") + "\n"
    }

    /// Returns whether each check that ran holds, and no step failed.
    pub fn is_complete(&self) -> bool {
        self.fails.is_empty() && self.no_disks.is_empty() && self.errors.is_empty()
    }

    /// Adds what a check printed, in place of an earlier result: the fallbacks that it used, and in
    /// the last line its outcome.
    pub fn add(&mut self, id: &str, printed: &str) {
        self.not_run.retain(|_, checks| {
            checks.remove(id);
            !checks.is_empty()
        });
        let outcome = printed.lines().last().unwrap_or_default();
        self.fallbacks.extend(
            printed
                .lines()
                .filter_map(|line| line.strip_prefix("fallback "))
                .map(str::to_owned),
        );
        let after = printed.lines().filter_map(|line| line.strip_prefix(AFTER));
        self.errors
            .extend(after.map(|failure| format!("end {id}: the program {failure}")));
        match outcome.split_once(": ") {
            Some(("missing" | "differs", what)) => {
                self.not_run
                    .entry(what.to_owned())
                    .or_default()
                    .insert(id.to_owned());
            }
            Some(("FAILS", why)) => {
                self.fails.insert(id.to_owned(), anonymous(why));
            }
            _ if outcome == "holds" => {
                self.holds.insert(id.to_owned());
            }
            _ => {
                self.fails
                    .insert(id.to_owned(), "printed no outcome".to_owned());
            }
        }
    }
}

/// Returns the parts of a failure that cannot name anything: the line of the assertion, the codes
/// and kinds of errors, and short numbers that are a side of the assertion or an exit code. A check
/// that crashed or hung has only said so.
fn anonymous(why: &str) -> String {
    if why.starts_with("the check ") {
        return why.to_owned();
    }
    // What is in quotes is a text, also if it looks like a number.
    let why = why.replace('"', " \" ");
    let words: Vec<&str> = why
        .split(|c: char| !(c.is_ascii_alphanumeric() || ['_', '.', ':', '"'].contains(&c)))
        .filter(|word| !word.is_empty())
        .collect();
    let place = words
        .first()
        .map(|place| place.trim_end_matches(':'))
        .filter(|place| place.contains(".rs:"));
    let kept = words.windows(2).filter(|pair| {
        let is_number = pair[1].len() <= LONGEST_NUMBER
            && pair[1]
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'x')
            && pair[1].starts_with(|c: char| c.is_ascii_digit());
        pair[0] == "OsError"
            || OsError::named(pair[1]).is_some()
            || KINDS.contains(&pair[1])
            || (["left:", "right:", "code:"].contains(&pair[0]) && is_number)
    });
    place
        .into_iter()
        .chain(kept.map(|pair| pair[1]))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::anonymous;

    #[test]
    fn a_failure_keeps_its_place_and_codes_and_nothing_else() {
        for (why, kept) in [
            (
                r#"disk.rs:120: assertion failed left: Err(ACCESS_DENIED) right: Ok("SN-4711") on FILESERVER1"#,
                "disk.rs:120 ACCESS_DENIED",
            ),
            (
                r"open.rs:7: Err(OsError(0x57)) at C:\Users\anna: [83, 78]",
                "open.rs:7 0x57",
            ),
            (
                "the check did not end within 120 s",
                "the check did not end within 120 s",
            ),
            ("SECRET", ""),
            (
                r#"disk.rs:99: assertion failed left: "4711" right: 4712"#,
                "disk.rs:99 4712",
            ),
            (
                "wmi_volume.rs:44: assertion `left == right` failed left: 42008 right: 0 (4711)",
                "wmi_volume.rs:44 42008 0",
            ),
            (
                r#"windows.rs:267: the disk is prepared: Ended { failure: Some("ended with exit code: 0x80070005"), printed: "anna" }"#,
                "windows.rs:267 0x80070005",
            ),
            (
                "acceptance.rs:70: FailedPrecondition Some(ACCESS_DENIED) the volume of anna 17",
                "acceptance.rs:70 FailedPrecondition ACCESS_DENIED",
            ),
        ] {
            assert_eq!(anonymous(why), kept);
        }
    }
}
