//! A system without Windows services.

use std::io::Write;

use super::Installation;
use crate::flags::Flags;
pub use crate::unsupported::WindowsOnly as ServiceError;

/// Returns an error: this system is not Windows.
pub fn run(_flags: Flags) -> Result<(), ServiceError> {
    Err(ServiceError)
}

/// Returns an error: this system is not Windows.
pub fn install(_installation: &Installation, _out: impl Write) -> Result<(), ServiceError> {
    Err(ServiceError)
}

/// Returns an error: this system is not Windows.
pub fn uninstall(_out: impl Write) -> Result<(), ServiceError> {
    Err(ServiceError)
}

/// Returns an error: this system is not Windows.
pub fn status(_out: impl Write) -> Result<(), ServiceError> {
    Err(ServiceError)
}
