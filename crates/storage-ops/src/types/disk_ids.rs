//! The identifiers of a disk.

/// The identifiers of a disk that do not depend on where it is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiskIds {
    /// The SCSI page 83 identifier; empty if the disk has none.
    pub page83: String,
    /// The serial number, untrimmed; empty if the disk has none.
    pub serial: String,
}
