//! What the executor uses of the domain types.

use std::fmt;

/// Volumes occur in no scenario.
pub type VolumeId = DiskNumber;

/// The number of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskNumber(pub u32);

impl fmt::Display for DiskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {}", self.0)
    }
}
