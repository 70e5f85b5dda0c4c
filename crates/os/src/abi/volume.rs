//! Volumes: where they lie, and their file system's name and size.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The head of `VOLUME_DISK_EXTENTS`; `count` [`DiskExtent`]s follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct VolumeDiskExtents {
    /// How many extents follow.
    pub count: u32,
    /// Padding.
    pub padding: u32,
}

/// `DISK_EXTENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DiskExtent {
    /// The disk's number.
    pub disk_number: u32,
    /// Padding.
    pub padding: u32,
    /// Where the extent begins on the disk, in bytes.
    pub offset: i64,
    /// Its length in bytes.
    pub length: i64,
}

/// `FILE_FS_FULL_SIZE_INFORMATION`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FsFullSizeInformation {
    /// Allocation units of the file system.
    pub total_units: u64,
    /// Those free to the caller, whose quota may be less.
    pub caller_available_units: u64,
    /// Those free.
    pub available_units: u64,
    /// Sectors in an allocation unit.
    pub sectors_per_unit: u32,
    /// Bytes in a sector.
    pub bytes_per_sector: u32,
}

/// The head of `FILE_FS_ATTRIBUTE_INFORMATION`; the file system's name follows at [`Self::NAME_OFFSET`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FsAttributeInformation {
    /// `FILE_READ_ONLY_VOLUME` and others.
    pub attributes: u32,
    /// The longest name of a component.
    pub maximum_component_length: i32,
    /// The length of the name in bytes.
    pub name_length: u32,
}

impl FsAttributeInformation {
    /// Where the name, in UTF-16, begins.
    pub const NAME_OFFSET: usize = 12;
    /// `FILE_READ_ONLY_VOLUME`.
    pub const READ_ONLY_VOLUME: u32 = 0x0008_0000;
}
