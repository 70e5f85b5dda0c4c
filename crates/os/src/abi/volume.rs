//! Volumes: their extents on disks, and the name and size of their file system.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The head of `VOLUME_DISK_EXTENTS`; `count` [`DiskExtent`]s follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VolumeDiskExtents {
    /// The number of extents that follow.
    pub count: u32,
    /// Padding.
    pub padding: u32,
}

/// `DISK_EXTENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DiskExtent {
    /// The disk number.
    pub disk_number: u32,
    /// Padding.
    pub padding: u32,
    /// The offset on the disk in bytes.
    pub offset: i64,
    /// The length in bytes.
    pub length: i64,
}

/// `FILE_FS_FULL_SIZE_INFORMATION`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FsFullSizeInformation {
    /// The number of allocation units of the file system.
    pub total_units: u64,
    /// The number of free units that the caller's quota allows it to use.
    pub caller_available_units: u64,
    /// The number of free units.
    pub available_units: u64,
    /// The number of sectors in an allocation unit.
    pub sectors_per_unit: u32,
    /// The number of bytes in a sector.
    pub bytes_per_sector: u32,
}

/// The head of `FILE_FS_ATTRIBUTE_INFORMATION`; the file system's name follows at
/// [`Self::NAME_OFFSET`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FsAttributeInformation {
    /// The attributes of the file system, such as [`Self::READ_ONLY_VOLUME`].
    pub attributes: u32,
    /// The maximum length of a file name, in UTF-16 units.
    pub maximum_component_length: i32,
    /// The length of the name in bytes.
    pub name_length: u32,
}

impl FsAttributeInformation {
    /// The offset of the name, which is in UTF-16.
    pub const NAME_OFFSET: usize = 12;
    /// `FILE_SUPPORTS_REPARSE_POINTS`.
    pub const SUPPORTS_REPARSE_POINTS: u32 = 0x0000_0080;
    /// `FILE_NAMED_STREAMS`.
    pub const NAMED_STREAMS: u32 = 0x0004_0000;
    /// `FILE_READ_ONLY_VOLUME`.
    pub const READ_ONLY_VOLUME: u32 = 0x0008_0000;
}
