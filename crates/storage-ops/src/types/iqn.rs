//! The names of iSCSI targets.

use std::fmt;

use crate::error::{OperationError, OperationResult, quoted};

/// The iSCSI qualified name of a target (or its EUI or NAA name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iqn(String);

impl Iqn {
    /// Parses the name of a target.
    pub fn parse(text: &str) -> OperationResult<Self> {
        // RFC 3720, 3.2.6: at most 223 bytes; names are compared without case.
        let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
        let has_type = ["iqn.", "eui.", "naa."].iter().any(|prefix| text.to_ascii_lowercase().starts_with(prefix));
        if !has_type || text.len() > 223 || !text.chars().all(is_allowed) {
            return Err(OperationError::invalid(format!("{} is not a valid iSCSI target name", quoted(text))));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Iqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
