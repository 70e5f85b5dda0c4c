//! iSCSI target portals.

use std::fmt;

use crate::error::{OperationError, OperationResult, quoted};

/// The registered port of iSCSI.
const DEFAULT_PORT: u16 = 3260;

/// The address and port at which iSCSI targets can be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetPortal {
    /// An IP address or host name.
    pub address: String,
    /// The TCP port; never 0.
    pub port: u16,
}

impl TargetPortal {
    /// Parses an address and a port; port 0 means 3260.
    pub fn parse(address: &str, port: u32) -> OperationResult<Self> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_' | '%' | '[' | ']');
        if address.is_empty() || address.len() > 255 || !address.chars().all(is_allowed) {
            return Err(OperationError::invalid(format!("{} is not a valid target portal address", quoted(address))));
        }
        let port =
            u16::try_from(port).map_err(|_| OperationError::invalid(format!("{port} is not a valid TCP port")))?;
        Ok(Self { address: address.to_owned(), port: if port == 0 { DEFAULT_PORT } else { port } })
    }
}

impl fmt::Display for TargetPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}
