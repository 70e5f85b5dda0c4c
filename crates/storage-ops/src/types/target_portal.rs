//! iSCSI target portals.

use std::fmt;

use crate::error::{OperationError, OperationResult};

/// The port of iSCSI, which is meant where 0 is given.
const PORT: u16 = 3260;

/// Where an iSCSI target can be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetPortal {
    /// An address or host name.
    pub address: String,
    /// The TCP port, never 0.
    pub port: u16,
}

impl TargetPortal {
    /// Checks an address and a port, of which 0 means 3260.
    pub fn parse(address: &str, port: u32) -> OperationResult<Self> {
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_' | '%' | '[' | ']');
        if address.is_empty() || address.len() > 255 || !address.chars().all(named) {
            let address = crate::excerpt(address);
            return Err(OperationError::invalid(format!("{address:?} is not the address of a target portal")));
        }
        let port = u16::try_from(port).map_err(|_| OperationError::invalid(format!("{port} is not a TCP port")))?;
        Ok(Self { address: address.to_owned(), port: if port == 0 { PORT } else { port } })
    }
}

impl fmt::Display for TargetPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}
