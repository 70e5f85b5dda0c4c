//! The error of a connection.

use std::{error, fmt, io};

/// The client violated HTTP/2, or a rule of it that the filter depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub(crate) &'static str);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the client violated HTTP/2: {}", self.0)
    }
}

impl error::Error for ProtocolError {}

impl From<ProtocolError> for io::Error {
    fn from(error: ProtocolError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
