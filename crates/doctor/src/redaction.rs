//! Redaction: names such as `serial-1` in place of serial numbers, shares, targets and accounts.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// A kind of value that is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameKind {
    /// A serial number or another identifier of a device.
    Serial,
    /// A share of a server.
    Share,
    /// An iSCSI target.
    Target,
    /// An account.
    Account,
}

impl NameKind {
    fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Share => "share",
            Self::Target => "target",
            Self::Account => "account",
        }
    }
}

/// The names that stand for values so far.
#[derive(Debug)]
pub(crate) struct Names {
    shown: bool,
    given: RefCell<BTreeMap<NameKind, Vec<String>>>,
}

impl Names {
    /// Returns names that hide the values, or with `shown` the values themselves.
    pub(crate) fn new(shown: bool) -> Self {
        Self {
            shown,
            given: RefCell::default(),
        }
    }

    /// Returns the name of a value: the same one each time. An empty value has no name.
    pub(crate) fn of(&self, kind: NameKind, value: &str) -> String {
        if self.shown || value.trim().is_empty() {
            return value.to_owned();
        }
        let mut given = self.given.borrow_mut();
        let values = given.entry(kind).or_default();
        let at = values
            .iter()
            .position(|known| known == value)
            .unwrap_or_else(|| {
                values.push(value.to_owned());
                values.len() - 1
            });
        format!("{}-{}", kind.name(), at + 1)
    }

    /// Returns whether a value has been hidden.
    pub(crate) fn has_hidden(&self) -> bool {
        !self.given.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{NameKind, Names};

    #[test]
    fn a_value_has_the_same_name_each_time_and_no_other_value_has_it() {
        let names = Names::new(false);
        let of = |text| names.of(NameKind::Serial, text);
        assert_eq!(
            [of("abc"), of("ABC"), of("abc"), of(" ")],
            ["serial-1", "serial-2", "serial-1", " "]
        );
        assert_eq!(names.of(NameKind::Share, "abc"), "share-1");
        assert_eq!(Names::new(true).of(NameKind::Serial, "abc"), "abc");
    }
}
