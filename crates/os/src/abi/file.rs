//! Files and directories: attributes, deletion, directory entries, reparse points.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The file may not be written to or deleted.
pub const FILE_ATTRIBUTE_READONLY: u32 = 0x1;
/// The file is a directory.
pub const FILE_ATTRIBUTE_DIRECTORY: u32 = 0x10;
/// No attribute. A value of 0 would leave the attributes unchanged.
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
/// Remove the name when this handle is closed, even if others have the file open (POSIX semantics).
pub const FILE_DISPOSITION_POSIX: u32 = 0x2;
/// Set or, without [`FILE_DISPOSITION_DELETE`], clear the delete-on-close state of a handle that
/// was opened with [`crate::Options::DELETE_ON_CLOSE`].
pub const FILE_DISPOSITION_ON_CLOSE: u32 = 0x8;
/// Delete the file even if it is read-only.
pub const FILE_DISPOSITION_IGNORE_READONLY: u32 = 0x10;

/// `FILE_BASIC_INFO`: attributes, and times in units of 100 ns since 1601. Setting a value of 0
/// leaves it unchanged.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileBasicInfo {
    /// The time of creation.
    pub creation_time: i64,
    /// The time of the last read.
    pub last_access_time: i64,
    /// The time of the last write.
    pub last_write_time: i64,
    /// The time of the last change of any kind.
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
    /// The reparse tag, if the file has a reparse point.
    pub reparse_tag: u32,
}

/// `FILE_ID_INFO`: identifies a file among all files that exist at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileIdInfo {
    /// The serial number of the file's volume.
    pub volume_serial_number: u64,
    /// The id of the file on its volume.
    pub file_id: [u8; 16],
}

/// `FILE_DISPOSITION_INFO`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileDispositionInfo {
    /// Not 0: the file is deleted when its last handle is closed.
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
    /// The offset of the next entry from this one, a multiple of 8; 0 for the last entry in the
    /// buffer.
    pub next_entry_offset: u32,
    /// The position in the directory.
    pub file_index: u32,
    /// The time of creation.
    pub creation_time: i64,
    /// The time of the last read.
    pub last_access_time: i64,
    /// The time of the last write.
    pub last_write_time: i64,
    /// The time of the last change of any kind.
    pub change_time: i64,
    /// The size of the file in bytes.
    pub end_of_file: i64,
    /// The space that the file occupies in bytes.
    pub allocation_size: i64,
    /// `FILE_ATTRIBUTE_*`.
    pub attributes: u32,
    /// The length of the name in bytes.
    pub file_name_length: u32,
    /// The size of the extended attributes or, for a reparse point, the tag.
    pub ea_size: u32,
    /// The length of the 8.3 name in bytes.
    pub short_name_length: u8,
    /// Padding.
    pub padding: u8,
    /// The 8.3 name.
    pub short_name: [u16; 12],
    /// Padding.
    pub padding2: [u8; 2],
    /// The id of the file on its volume.
    pub file_id: i64,
}

impl FileIdBothDirInfo {
    /// The offset of the name.
    pub const NAME_OFFSET: usize = 104;
}

/// The head of `FILE_STREAM_INFO`; the name, `name_length` bytes of UTF-16 such as `:name:$DATA`,
/// follows at [`Self::NAME_OFFSET`].
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FileStreamInfo {
    /// The offset of the next stream from this one, a multiple of 8; 0 for the last stream.
    pub next_entry_offset: u32,
    /// The length of the name in bytes.
    pub name_length: u32,
    /// The size of the stream in bytes.
    pub size: i64,
    /// The space that the stream occupies in bytes.
    pub allocation_size: i64,
}

impl FileStreamInfo {
    /// The offset of the name.
    pub const NAME_OFFSET: usize = 24;
}

/// The head of every reparse point (`REPARSE_DATA_BUFFER`); `data_length` bytes follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ReparseHead {
    /// The tag, which determines the format of the data.
    pub tag: u32,
    /// The length of the data in bytes.
    pub data_length: u16,
    /// Zero.
    pub reserved: u16,
}

/// The data of a symbolic link after [`ReparseHead`]; both names follow, and their offsets are
/// counted from its end.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SymlinkReparse {
    /// The offset in bytes of the substitute name, which Windows resolves.
    pub substitute_offset: u16,
    /// The length of the substitute name in bytes.
    pub substitute_length: u16,
    /// The offset in bytes of the print name, which is displayed.
    pub print_offset: u16,
    /// The length of the print name in bytes.
    pub print_length: u16,
    /// [`SYMLINK_RELATIVE`] or 0.
    pub flags: u32,
}

/// The data of a mount point or junction after [`ReparseHead`]; both names follow, and their
/// offsets are counted from its end. Each name is terminated by a zero that its length does not
/// include.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MountPointReparse {
    /// The offset in bytes of the substitute name, which Windows resolves.
    pub substitute_offset: u16,
    /// The length of the substitute name in bytes.
    pub substitute_length: u16,
    /// The offset in bytes of the print name, which is displayed.
    pub print_offset: u16,
    /// The length of the print name in bytes.
    pub print_length: u16,
}
