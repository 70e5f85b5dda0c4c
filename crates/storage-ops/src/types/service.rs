//! Windows services.

use std::fmt;

use crate::error::{OperationError, OperationResult};

/// The short name of a Windows service, such as `MSiSCSI`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceName(String);

impl ServiceName {
    /// Checks a name by the rules of `CreateServiceW`.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let long = text.encode_utf16().count() > 256;
        if text.is_empty() || long || text.contains(['/', '\\']) || text.contains(char::is_control) {
            return Err(OperationError::invalid(format!("{:?} is not the name of a service", crate::excerpt(text))));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A service as it is. The numbers are those of Windows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceInfo {
    /// The name shown to people.
    pub display_name: String,
    /// `SERVICE_BOOT_START` 0 to `SERVICE_DISABLED` 4.
    pub start_type: u32,
    /// `SERVICE_STOPPED` 1 to `SERVICE_PAUSED` 7.
    pub state: u32,
}
