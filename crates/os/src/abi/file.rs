//! Files and directories: attributes, deletion, directory entries, reparse points.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The file may not be written to or deleted.
pub const FILE_ATTRIBUTE_READONLY: u32 = 0x1;
/// The file is a directory.
pub const FILE_ATTRIBUTE_DIRECTORY: u32 = 0x10;
/// No attribute at all, where 0 would mean "leave as it is".
pub const FILE_ATTRIBUTE_NORMAL: u32 = 0x80;
/// The file has a reparse point.
pub const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x400;

/// The tag of symbolic links.
pub const REPARSE_TAG_SYMLINK: u32 = 0xa000_000c;
/// The tag of volume mount points and junctions.
pub const REPARSE_TAG_MOUNT_POINT: u32 = 0xa000_0003;
/// The link's target is relative to the link.
pub const SYMLINK_RELATIVE: u32 = 1;

/// Delete the file.
pub const FILE_DISPOSITION_DELETE: u32 = 0x1;
/// Take its name away at once, though others have it open.
pub const FILE_DISPOSITION_POSIX: u32 = 0x2;
/// Together with [`FILE_DISPOSITION_DELETE`], or without it to keep the file, changes what happens when the handle
/// is closed that was opened with [`crate::Options::DELETE_ON_CLOSE`].
pub const FILE_DISPOSITION_ON_CLOSE: u32 = 0x8;
/// Even if it is read-only.
pub const FILE_DISPOSITION_IGNORE_READONLY: u32 = 0x10;

/// `FILE_BASIC_INFO`: times in 100 ns since 1601 and attributes; 0 leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileBasicInfo {
    /// Created.
    pub creation_time: i64,
    /// Last read.
    pub last_access_time: i64,
    /// Last written to.
    pub last_write_time: i64,
    /// Last changed in any way.
    pub change_time: i64,
    /// `FILE_ATTRIBUTE_*`.
    pub attributes: u32,
    /// Padding.
    pub padding: u32,
}

/// `FILE_ATTRIBUTE_TAG_INFO`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileAttributeTagInfo {
    /// `FILE_ATTRIBUTE_*`.
    pub attributes: u32,
    /// The reparse tag, if there is a reparse point.
    pub reparse_tag: u32,
}

/// `FILE_ID_INFO`: no two files that exist at one time have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileIdInfo {
    /// The serial number of the volume the file is on.
    pub volume_serial_number: u64,
    /// The file's id on that volume.
    pub file_id: [u8; 16],
}

/// `FILE_DISPOSITION_INFO`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileDispositionInfo {
    /// Not 0: the file goes when its last handle is closed.
    pub delete_file: u8,
}

/// `FILE_DISPOSITION_INFO_EX`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileDispositionInfoEx {
    /// `FILE_DISPOSITION_*`.
    pub flags: u32,
}

/// The head of `FILE_ID_BOTH_DIR_INFO`; the name, `file_name_length` bytes of UTF-16, follows at
/// [`Self::NAME_OFFSET`].
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileIdBothDirInfo {
    /// Distance to the next entry, 8-aligned; 0 for the last one in the buffer.
    pub next_entry_offset: u32,
    /// The place in the directory.
    pub file_index: u32,
    /// Created.
    pub creation_time: i64,
    /// Last read.
    pub last_access_time: i64,
    /// Last written to.
    pub last_write_time: i64,
    /// Last changed.
    pub change_time: i64,
    /// The file's size in bytes.
    pub end_of_file: i64,
    /// The space it takes in bytes.
    pub allocation_size: i64,
    /// `FILE_ATTRIBUTE_*`.
    pub attributes: u32,
    /// The name's length in bytes.
    pub file_name_length: u32,
    /// The size of its extended attributes, or its reparse tag.
    pub ea_size: u32,
    /// The 8.3 name's length in bytes.
    pub short_name_length: u8,
    /// Padding.
    pub padding: u8,
    /// The 8.3 name.
    pub short_name: [u16; 12],
    /// Padding.
    pub padding2: [u8; 2],
    /// The file's id.
    pub file_id: i64,
}

impl FileIdBothDirInfo {
    /// Where the name begins.
    pub const NAME_OFFSET: usize = 104;
}

/// What every reparse point begins with; `data_length` bytes follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReparseHead {
    /// The tag, which says what the data are.
    pub tag: u32,
    /// The length of the data in bytes.
    pub data_length: u16,
    /// Zero.
    pub reserved: u16,
}

/// The data of a symbolic link after [`ReparseHead`]; both names follow it, their offsets counted from there.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SymlinkReparse {
    /// Offset of the name that NT resolves, in bytes.
    pub substitute_offset: u16,
    /// Its length in bytes.
    pub substitute_length: u16,
    /// Offset of the name that is shown, in bytes.
    pub print_offset: u16,
    /// Its length in bytes.
    pub print_length: u16,
    /// [`SYMLINK_RELATIVE`] or 0.
    pub flags: u32,
}

/// The data of a mount point or junction after [`ReparseHead`]; both names follow it, each with a final zero
/// that its length does not count.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MountPointReparse {
    /// Offset of the name that NT resolves, in bytes.
    pub substitute_offset: u16,
    /// Its length in bytes.
    pub substitute_length: u16,
    /// Offset of the name that is shown, in bytes.
    pub print_offset: u16,
    /// Its length in bytes.
    pub print_length: u16,
}
