//! The names of iSCSI targets.

use std::fmt;

use crate::error::{OperationError, OperationResult};

/// The iSCSI qualified name of a target (or its EUI or NAA name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iqn(String);

impl Iqn {
    /// Checks a target's name.
    pub fn parse(text: &str) -> OperationResult<Self> {
        // RFC 3720, 3.2.6: at most 223 bytes; letters compare without case, targets are shown in lower case.
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
        let kind = ["iqn.", "eui.", "naa."].iter().any(|kind| text.to_ascii_lowercase().starts_with(kind));
        if !kind || text.len() > 223 || !text.chars().all(plain) {
            let text = crate::excerpt(text);
            return Err(OperationError::invalid(format!("{text:?} is not the name of an iSCSI target")));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Iqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
