//! The identifiers of a disk.

/// What names a disk wherever it is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiskIds {
    /// The page-83 identifier; empty if it has none.
    pub page83: String,
    /// The serial number, untrimmed; empty if it has none.
    pub serial: String,
}
