//! Storage devices: numbers, descriptors and page-83 identifiers.
//!
//! <https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_storage_query_property>

use uuid::{Uuid, uuid};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The class of disk interfaces (`GUID_DEVINTERFACE_DISK`).
pub const DISK_INTERFACE: Uuid = uuid!("53f56307-b6bf-11d0-94f2-00a0c91efb8b");

/// The class of storage port interfaces (`GUID_DEVINTERFACE_STORAGEPORT`).
pub const STORAGE_PORT_INTERFACE: Uuid = uuid!("2accfe60-c130-11d2-b082-00a0c91efb8b");

/// `FILE_DEVICE_DISK`.
pub const DEVICE_TYPE_DISK: u32 = 7;

/// The identifier is binary.
pub const CODE_SET_BINARY: u32 = 1;
/// The identifier is ASCII.
pub const CODE_SET_ASCII: u32 = 2;
/// The identifier is that of the device, not of a port or target.
pub const ASSOCIATION_DEVICE: u32 = 0;

/// `STORAGE_BUS_TYPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusType(pub u32);

impl BusType {
    /// SCSI.
    pub const SCSI: Self = Self(1);
    /// iSCSI.
    pub const ISCSI: Self = Self(9);
    /// SAS, which is also what Azure and Google show.
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
    /// The device's type; [`DEVICE_TYPE_DISK`].
    pub device_type: u32,
    /// The disk's number; `0xffff_ffff` for what has none.
    pub device_number: u32,
    /// The partition's number, 0 for the whole disk, `0xffff_ffff` where there are none.
    pub partition_number: u32,
}

/// `STORAGE_PROPERTY_QUERY` of a standard query.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StoragePropertyQuery {
    /// [`Self::DEVICE`] or [`Self::DEVICE_ID`].
    pub property_id: u32,
    /// 0: a standard query.
    pub query_type: u32,
    /// Unused, with padding.
    pub additional: [u8; 4],
}

impl StoragePropertyQuery {
    /// Asks for a [`StorageDeviceDescriptor`].
    pub const DEVICE: u32 = 0;
    /// Asks for a [`StorageDeviceIdDescriptor`].
    pub const DEVICE_ID: u32 = 2;
}

/// What every descriptor begins with (`STORAGE_DESCRIPTOR_HEADER`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDescriptorHead {
    /// The structure's version, which is its fixed size.
    pub version: u32,
    /// The size of the whole, in bytes; a buffer that held less was filled as far as it went.
    pub size: u32,
}

/// The head of `STORAGE_DEVICE_DESCRIPTOR`; the strings it points to follow, each ending with a zero byte.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDeviceDescriptor {
    /// Version and size.
    pub head: StorageDescriptorHead,
    /// The SCSI device type.
    pub device_type: u8,
    /// The SCSI device type modifier.
    pub device_type_modifier: u8,
    /// Not 0: removable media.
    pub removable_media: u8,
    /// Not 0: queues commands.
    pub command_queueing: u8,
    /// Offset of the vendor's name from the descriptor's begin, 0 for none.
    pub vendor_id_offset: u32,
    /// Offset of the product's name, 0 for none.
    pub product_id_offset: u32,
    /// Offset of the revision, 0 for none.
    pub product_revision_offset: u32,
    /// Offset of the serial number, 0 or `0xffff_ffff` for none.
    pub serial_number_offset: u32,
    /// [`BusType`].
    pub bus_type: u32,
    /// How many bytes of the device's own data follow.
    pub raw_properties_length: u32,
}

/// The head of `STORAGE_DEVICE_ID_DESCRIPTOR`; `number_of_identifiers` [`StorageIdentifier`]s follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageDeviceIdDescriptor {
    /// Version and size.
    pub head: StorageDescriptorHead,
    /// How many identifiers follow.
    pub number_of_identifiers: u32,
}

/// The head of `STORAGE_IDENTIFIER`; `identifier_size` bytes follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct StorageIdentifier {
    /// [`CODE_SET_BINARY`], [`CODE_SET_ASCII`] or others.
    pub code_set: u32,
    /// `STORAGE_IDENTIFIER_TYPE`; 3 is NAA, 8 a SCSI name string.
    pub identifier_type: u32,
    /// The identifier's length in bytes.
    pub identifier_size: u16,
    /// Distance from this identifier's begin to the next one's; 0 for the last.
    pub next_offset: u16,
    /// [`ASSOCIATION_DEVICE`] or others.
    pub association: u32,
}
