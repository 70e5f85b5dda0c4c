//! The size and usage of a file system.

/// The size of a file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VolumeStats {
    /// The size.
    pub total: u64,
    /// The size minus the free space.
    pub used: u64,
}
