//! A system that is not Windows.

use super::Backend;
use crate::unsupported::WindowsOnly;

/// Returns an error: this system is not Windows.
pub fn windows() -> Result<Backend, WindowsOnly> {
    Err(WindowsOnly)
}
