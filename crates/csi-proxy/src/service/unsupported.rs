//! A system without Windows services.

use std::error::Error;
use std::fmt;
use std::io::Write;

use crate::flags::Flags;

/// There are no Windows services here.
#[derive(Clone, Copy, Debug)]
pub struct ServiceError;

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("services are for Windows; here csi-proxy serves when it is started without -windows-service")
    }
}

impl Error for ServiceError {}

/// Refuses.
pub fn run(_flags: Flags) -> Result<(), ServiceError> {
    Err(ServiceError)
}

/// Refuses.
pub fn install(_flags: &[String], _out: impl Write) -> Result<(), ServiceError> {
    Err(ServiceError)
}

/// Refuses.
pub fn uninstall(_out: impl Write) -> Result<(), ServiceError> {
    Err(ServiceError)
}

/// Refuses.
pub fn status(_out: impl Write) -> Result<(), ServiceError> {
    Err(ServiceError)
}
