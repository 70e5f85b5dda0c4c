//! The size of a file system.

/// The size of a file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VolumeStats {
    /// All of it.
    pub total: u64,
    /// What is not free.
    pub used: u64,
}
