//! Windows services: names and state.

use std::fmt;

use crate::error::{OperationError, OperationResult, quoted};

/// The short name of a Windows service, such as `MSiSCSI`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceName(String);

impl ServiceName {
    /// Parses a name by the rules of `CreateServiceW`.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let is_too_long = text.encode_utf16().count() > 256;
        if text.is_empty() || is_too_long || text.contains(['/', '\\']) || text.contains(char::is_control) {
            return Err(OperationError::invalid(format!("{} is not a valid service name", quoted(text))));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The configuration and state of a service, with the numbers that Windows uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceInfo {
    /// The display name.
    pub display_name: String,
    /// From `SERVICE_BOOT_START` (0) to `SERVICE_DISABLED` (4).
    pub start_type: u32,
    /// From `SERVICE_STOPPED` (1) to `SERVICE_PAUSED` (7).
    pub state: u32,
}
