//! A system that is not Windows.

use ::doctor::System;

use crate::unsupported::WindowsOnly;

/// Returns an error: this system is not Windows.
pub fn system() -> Result<Box<dyn System>, WindowsOnly> {
    Err(WindowsOnly)
}
