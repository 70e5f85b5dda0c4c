//! Storage devices: numbers, descriptors and page-83 identifiers.
//!
//! <https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_storage_query_property>

use uuid::{Uuid, uuid};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The device interface class of disks (`GUID_DEVINTERFACE_DISK`).
pub const DISK_INTERFACE: Uuid = uuid!("53f56307-b6bf-11d0-94f2-00a0c91efb8b");

/// The device interface class of storage ports (`GUID_DEVINTERFACE_STORAGEPORT`).
pub const STORAGE_PORT_INTERFACE: Uuid = uuid!("2accfe60-c130-11d2-b082-00a0c91efb8b");

/// `FILE_DEVICE_DISK`.
pub const DEVICE_TYPE_DISK: u32 = 7;

/// The identifier is binary.
pub const CODE_SET_BINARY: u32 = 1;
/// The identifier is ASCII.
pub const CODE_SET_ASCII: u32 = 2;
/// The identifier is the device's, not that of a port or target.
pub const ASSOCIATION_DEVICE: u32 = 0;

/// `STORAGE_BUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusType(pub u32);

impl BusType {
    /// SCSI.
    pub const SCSI: Self = Self(1);
    /// iSCSI.
    pub const ISCSI: Self = Self(9);
    /// SAS, which Azure and Google Cloud report too.
    pub const SAS: Self = Self(10);
    /// SATA.
    pub const SATA: Self = Self(11);
    /// A mounted VHD or VHDX file.
    pub const FILE_BACKED_VIRTUAL: Self = Self(15);
    /// Storage Spaces.
    pub const SPACES: Self = Self(16);
    /// NVMe.
    pub const NVME: Self = Self(17);
}

/// `STORAGE_DEVICE_NUMBER`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDeviceNumber {
    /// The type of the device; [`DEVICE_TYPE_DISK`].
    pub device_type: u32,
    /// The disk number; `0xffff_ffff` for a device without a number.
    pub device_number: u32,
    /// The partition number; 0 for the whole disk, `0xffff_ffff` for a device that cannot be
    /// partitioned.
    pub partition_number: u32,
}

/// `STORAGE_PROPERTY_QUERY` for a standard query.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StoragePropertyQuery {
    /// [`Self::DEVICE`] or [`Self::DEVICE_ID`].
    pub property_id: u32,
    /// 0 for a standard query.
    pub query_type: u32,
    /// Unused, with padding.
    pub additional: [u8; 4],
}

impl StoragePropertyQuery {
    /// Queries a [`StorageDeviceDescriptor`].
    pub const DEVICE: u32 = 0;
    /// Queries a [`StorageDeviceIdDescriptor`].
    pub const DEVICE_ID: u32 = 2;
}

/// The head of every descriptor (`STORAGE_DESCRIPTOR_HEADER`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDescriptorHead {
    /// The version of the structure, which is its fixed size.
    pub version: u32,
    /// The size of the whole descriptor in bytes. A smaller buffer has the first bytes of it.
    pub size: u32,
}

/// The head of `STORAGE_DEVICE_DESCRIPTOR`; the strings that its offsets point to follow, each
/// terminated by a zero.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDeviceDescriptor {
    /// Version and size.
    pub head: StorageDescriptorHead,
    /// The SCSI device type.
    pub device_type: u8,
    /// The SCSI device type modifier.
    pub device_type_modifier: u8,
    /// Not 0: the media is removable.
    pub removable_media: u8,
    /// Not 0: the device queues commands.
    pub command_queueing: u8,
    /// The offset of the vendor id from the start of the descriptor; 0 for none.
    pub vendor_id_offset: u32,
    /// The offset of the product id; 0 for none.
    pub product_id_offset: u32,
    /// The offset of the product revision; 0 for none.
    pub product_revision_offset: u32,
    /// The offset of the serial number; 0 or `0xffff_ffff` for none.
    pub serial_number_offset: u32,
    /// [`BusType`].
    pub bus_type: u32,
    /// The number of bytes of bus-specific data that follow.
    pub raw_properties_length: u32,
}

/// The head of `STORAGE_DEVICE_ID_DESCRIPTOR`; `number_of_identifiers` [`StorageIdentifier`]s
/// follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDeviceIdDescriptor {
    /// Version and size.
    pub head: StorageDescriptorHead,
    /// The number of identifiers that follow.
    pub number_of_identifiers: u32,
}

/// The head of `STORAGE_IDENTIFIER`; `identifier_size` bytes follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageIdentifier {
    /// [`CODE_SET_BINARY`], [`CODE_SET_ASCII`] or another code set.
    pub code_set: u32,
    /// `STORAGE_IDENTIFIER_TYPE`; 3 is NAA, 8 a SCSI name string.
    pub identifier_type: u32,
    /// The length of the identifier in bytes.
    pub identifier_size: u16,
    /// The offset of the next identifier from the start of this one; 0 for the last one.
    pub next_offset: u16,
    /// [`ASSOCIATION_DEVICE`] or another association.
    pub association: u32,
}
