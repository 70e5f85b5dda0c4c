//! The names of iSCSI targets.

use std::fmt;

use crate::error::{OperationError, OperationResult};

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
            let text = crate::error::excerpt(text);
            return Err(OperationError::invalid(format!("{text:?} is not a valid iSCSI target name")));
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
