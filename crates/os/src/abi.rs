//! The ABI of Windows on x64: control codes, and the little-endian structures in the buffers.
//!
//! Any bytes are a valid value of each structure, so a buffer that the kernel filled can be read
//! without trusting it: padding is explicit, and a flag is a `u8` and not a `bool`. A structure of
//! variable length is defined by its fixed head, whose documentation describes what follows. On the
//! Windows target, `os-win32` compares every offset, size and code with those of windows-sys.

mod codes;
mod disk;
mod file;
mod security;
mod storage;
mod volume;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use codes::ControlCode;
pub use disk::{
    BASIC_DATA, DiskAttributes, DiskGeometryEx, DriveLayout, LengthInformation, MSFT_RESERVED,
    PartitionEntry, PartitionStyle, SetDiskAttributes, gpt_entry, gpt_layout,
};
pub use file::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_DISPOSITION_DELETE, FILE_DISPOSITION_IGNORE_READONLY,
    FILE_DISPOSITION_ON_CLOSE, FILE_DISPOSITION_POSIX, FileAttributeTagInfo, FileBasicInfo,
    FileDispositionInfo, FileDispositionInfoEx, FileIdBothDirInfo, FileIdInfo, FileStreamInfo,
    MountPointReparse, REPARSE_TAG_MOUNT_POINT, REPARSE_TAG_SYMLINK, ReparseHead, SYMLINK_RELATIVE,
    SymlinkReparse,
};
pub use security::{
    AccessEntry, DELETE, ENTRY_INHERIT_ONLY, EntryKind, FILE_APPEND_DATA, FILE_DELETE_CHILD,
    FILE_WRITE_ATTRIBUTES, FILE_WRITE_DATA, GENERIC_ALL, GENERIC_WRITE, NotASid,
    SecurityDescriptor, Sid, WRITE_DAC, WRITE_OWNER,
};
pub use storage::{
    ASSOCIATION_DEVICE, BusType, CODE_SET_ASCII, CODE_SET_BINARY, DEVICE_TYPE_DISK, DISK_INTERFACE,
    STORAGE_PORT_INTERFACE, StorageDescriptorHead, StorageDeviceDescriptor,
    StorageDeviceIdDescriptor, StorageDeviceNumber, StorageIdentifier, StoragePropertyQuery,
};
pub use volume::{DiskExtent, FsAttributeInformation, FsFullSizeInformation, VolumeDiskExtents};

/// `'RSMB'`: the firmware table provider of SMBIOS.
pub const FIRMWARE_SMBIOS: u32 = 0x5253_4d42;

/// The head of `RawSMBIOSData`, which [`crate::Os::firmware_table`] writes; `length` bytes of
/// tables follow.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RawSmbios {
    /// The calling method.
    pub calling_method: u8,
    /// The major version of SMBIOS.
    pub major: u8,
    /// The minor version of SMBIOS.
    pub minor: u8,
    /// The DMI revision.
    pub dmi_revision: u8,
    /// The length of the tables in bytes.
    pub length: u32,
}

const _: () = {
    assert!(size_of::<RawSmbios>() == 8);
    assert!(size_of::<DriveLayout>() == 48 && size_of::<PartitionEntry>() == 144);
    assert!(size_of::<SetDiskAttributes>() == 40 && size_of::<DiskAttributes>() == 16);
    assert!(size_of::<StorageDeviceDescriptor>() == 36 && size_of::<StorageIdentifier>() == 16);
    assert!(size_of::<VolumeDiskExtents>() == 8 && size_of::<DiskExtent>() == 24);
    assert!(size_of::<FileIdBothDirInfo>() == 104 && size_of::<FsFullSizeInformation>() == 32);
    assert!(size_of::<SymlinkReparse>() == 12 && size_of::<MountPointReparse>() == 8);
};
