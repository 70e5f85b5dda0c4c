//! The error of `csi-proxy` on a system that is not Windows.

use std::error::Error;
use std::{fmt, io};

/// The error if `csi-proxy` is to serve a Windows node, or to manage its service, on another system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowsOnly;

impl fmt::Display for WindowsOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this program runs on Windows only; on this system use csi-proxy-sim, \
             which serves a simulated Windows node (cargo sim)",
        )
    }
}

impl Error for WindowsOnly {}

impl From<WindowsOnly> for io::Error {
    fn from(error: WindowsOnly) -> Self {
        Self::new(io::ErrorKind::Unsupported, error)
    }
}
