//! Disks: their size, attributes and partition table.
//!
//! <https://learn.microsoft.com/windows/win32/api/winioctl/>

use uuid::{Uuid, uuid};
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout};

/// The GPT partition type of basic data partitions.
pub const BASIC_DATA: Uuid = uuid!("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7");

/// The GPT partition type of the Microsoft reserved partition, which has no volume.
pub const MSFT_RESERVED: Uuid = uuid!("e3c9e316-0b5c-4db8-817d-f92df00215ae");

/// `PARTITION_STYLE`. WMI has other numbers, in which 0 is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionStyle(pub u32);

impl PartitionStyle {
    /// A master boot record.
    pub const MBR: Self = Self(0);
    /// A GUID partition table.
    pub const GPT: Self = Self(1);
    /// No partition table.
    pub const RAW: Self = Self(2);
}

/// `GET_LENGTH_INFORMATION`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct LengthInformation {
    /// The disk's or volume's length in bytes.
    pub length: i64,
}

/// `DISK_GEOMETRY_EX`, without the partition and detection data that may follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DiskGeometryEx {
    /// The number of cylinders. Not meaningful, as for all geometry of modern disks.
    pub cylinders: i64,
    /// `MEDIA_TYPE`; 12 is a fixed disk.
    pub media_type: u32,
    /// Not meaningful.
    pub tracks_per_cylinder: u32,
    /// Not meaningful.
    pub sectors_per_track: u32,
    /// The size of a logical sector in bytes.
    pub bytes_per_sector: u32,
    /// The disk's size in bytes.
    pub disk_size: i64,
}

/// `GET_DISK_ATTRIBUTES`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DiskAttributes {
    /// The structure's size.
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// [`Self::OFFLINE`], [`Self::READ_ONLY`].
    pub attributes: u64,
}

impl DiskAttributes {
    /// `DISK_ATTRIBUTE_OFFLINE`.
    pub const OFFLINE: u64 = 1;
    /// `DISK_ATTRIBUTE_READ_ONLY`.
    pub const READ_ONLY: u64 = 2;
}

/// `SET_DISK_ATTRIBUTES`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetDiskAttributes {
    /// The structure's size.
    pub version: u32,
    /// 1: the attributes persist across restarts.
    pub persist: u8,
    /// Zero.
    pub reserved1: [u8; 3],
    /// The new values of the attributes.
    pub attributes: u64,
    /// The attributes to change.
    pub attributes_mask: u64,
    /// Zero.
    pub reserved2: [u32; 4],
}

/// The head of `DRIVE_LAYOUT_INFORMATION_EX`; `partition_count` [`PartitionEntry`]s follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DriveLayout {
    /// [`PartitionStyle`].
    pub style: u32,
    /// The number of entries that follow. An MBR has a multiple of four, some of which may be
    /// empty.
    pub partition_count: u32,
    /// GPT: the disk's id. MBR: the signature in the first four bytes.
    pub disk_id: [u8; 16],
    /// GPT: the first usable byte.
    pub usable_offset: i64,
    /// GPT: the number of usable bytes.
    pub usable_length: i64,
    /// GPT: the number of partitions that fit into the table.
    pub max_partition_count: u32,
    /// Padding.
    pub padding: u32,
}

/// `PARTITION_INFORMATION_EX`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PartitionEntry {
    /// [`PartitionStyle`].
    pub style: u32,
    /// Padding.
    pub padding: u32,
    /// The offset on the disk in bytes.
    pub offset: i64,
    /// The length in bytes.
    pub length: i64,
    /// The number, from 1; 0 for an empty MBR entry.
    pub number: u32,
    /// Whether to rewrite the entry. Only for setting a layout.
    pub rewrite: u8,
    /// Whether it is a service partition.
    pub is_service: u8,
    /// Padding.
    pub padding2: [u8; 2],
    /// GPT: the type, a GUID. MBR: the type in byte 0 (0 for an empty entry), the boot indicator in
    /// byte 1, whether Windows recognizes the type in byte 2.
    pub partition_type: [u8; 16],
    /// GPT: the partition's id.
    pub id: [u8; 16],
    /// GPT: attributes.
    pub attributes: u64,
    /// GPT: the name, zero-filled.
    pub name: [u16; 36],
}

impl PartitionEntry {
    /// Returns the type of a GPT partition.
    pub fn gpt_type(&self) -> Uuid {
        Uuid::from_bytes_le(self.partition_type)
    }

    /// Returns the type of an MBR partition.
    pub fn mbr_type(&self) -> u8 {
        self.partition_type[0]
    }

    /// Returns whether an MBR partition is the one from which a BIOS starts the computer.
    pub fn mbr_is_active(&self) -> bool {
        self.partition_type[1] != 0
    }
}

/// Makes the head of the layout of a GPT disk.
pub fn gpt_layout(
    disk_id: Uuid,
    usable_offset: i64,
    usable_length: i64,
    partition_count: u32,
) -> DriveLayout {
    DriveLayout {
        style: PartitionStyle::GPT.0,
        partition_count,
        disk_id: disk_id.to_bytes_le(),
        usable_offset,
        usable_length,
        max_partition_count: 128,
        padding: 0,
    }
}

/// Makes the entry of a GPT partition.
pub fn gpt_entry(
    number: u32,
    partition_type: Uuid,
    id: Uuid,
    offset: i64,
    length: i64,
) -> PartitionEntry {
    PartitionEntry {
        style: PartitionStyle::GPT.0,
        offset,
        length,
        number,
        partition_type: partition_type.to_bytes_le(),
        id: id.to_bytes_le(),
        ..PartitionEntry::new_zeroed()
    }
}
