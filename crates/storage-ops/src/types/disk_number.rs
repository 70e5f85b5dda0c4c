//! Disk numbers.

use std::fmt;

use crate::error::{OperationError, OperationResult, quoted};

/// The number of a disk, as in `\\.\PhysicalDrive2`. Windows may assign another number when the disk is attached again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskNumber(pub u32);

impl DiskNumber {
    /// Parses the decimal form that old API versions use.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        decimal
            .then(|| text.parse().ok())
            .flatten()
            .map(Self)
            .ok_or_else(|| OperationError::invalid(format!("{} is not a disk number", quoted(text))))
    }
}

impl fmt::Display for DiskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {}", self.0)
    }
}
