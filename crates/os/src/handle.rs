//! Handles: NT's one idea of an open file, directory, volume or disk.

use bitflags::bitflags;
use widestring::{U16Str, U16String};

use crate::{OsResult, abi::ControlCode};

bitflags! {
    /// The rights a handle is opened with (`ACCESS_MASK`). None at all is enough to query a device. All calls on a
    /// handle are synchronous, so `SYNCHRONIZE` goes without saying.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// Read a file's data, or list a directory.
        const READ_DATA = 0x0001;
        /// Write a file's data, or add a file to a directory.
        const WRITE_DATA = 0x0002;
        /// Read attributes, the reparse point and the like.
        const READ_ATTRIBUTES = 0x0080;
        /// Write attributes, or set a reparse point.
        const WRITE_ATTRIBUTES = 0x0100;
        /// Delete the object.
        const DELETE = 0x0001_0000;
        /// All that reading can mean for the object.
        const GENERIC_READ = 0x8000_0000;
        /// All that writing can mean for the object.
        const GENERIC_WRITE = 0x4000_0000;
    }

    /// What others may do with the object while the handle is open.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Share: u32 {
        /// Read it.
        const READ = 1;
        /// Write to it.
        const WRITE = 2;
        /// Delete or rename it.
        const DELETE = 4;
    }

    /// How the object is opened (`CreateOptions` of `NtCreateFile`, and one object attribute).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Options: u32 {
        /// `FILE_DIRECTORY_FILE`: a directory or nothing.
        const DIRECTORY = 0x0000_0001;
        /// `FILE_NON_DIRECTORY_FILE`: anything but a directory.
        const NON_DIRECTORY = 0x0000_0040;
        /// `FILE_DELETE_ON_CLOSE`: the object goes when this handle is closed.
        const DELETE_ON_CLOSE = 0x0000_1000;
        /// `FILE_OPEN_REPARSE_POINT`: a last component that is a link is opened itself.
        const REPARSE_POINT = 0x0020_0000;
    }
}

/// Whether the object must exist or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// It must exist.
    Open,
    /// It must not exist and is made.
    Create,
}

/// How to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Open {
    /// The rights wanted.
    pub access: Access,
    /// What others may do meanwhile.
    pub share: Share,
    /// Exist or be made.
    pub disposition: Disposition,
    /// Further options.
    pub options: Options,
}

impl Open {
    /// Opens what exists, sharing everything.
    pub const fn existing(access: Access, options: Options) -> Self {
        Self { access, share: Share::all(), disposition: Disposition::Open, options }
    }

    /// Makes a directory that must not exist yet, sharing everything.
    pub const fn new_directory(access: Access) -> Self {
        Self { access, share: Share::all(), disposition: Disposition::Create, options: Options::DIRECTORY }
    }
}

/// A class of information about a file (`FILE_INFO_BY_HANDLE_CLASS`); [`crate::abi`] has the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileInfo {
    /// [`crate::abi::FileBasicInfo`]: times and attributes; can be set.
    Basic = 0,
    /// [`crate::abi::FileDispositionInfo`]: delete on close; set only.
    Disposition = 4,
    /// [`crate::abi::FileAttributeTagInfo`]: attributes and reparse tag.
    AttributeTag = 9,
    /// [`crate::abi::FileIdInfo`]: volume serial number and file id, which together are the file's identity.
    Id = 18,
    /// [`crate::abi::FileDispositionInfoEx`]: delete at once; set only.
    DispositionEx = 21,
}

/// A class of information about the file system behind a handle (`FS_INFORMATION_CLASS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsInfo {
    /// [`crate::abi::FsAttributeInformation`]: the file system's name.
    Attribute = 5,
    /// [`crate::abi::FsFullSizeInformation`]: total and free allocation units.
    FullSize = 7,
}

/// Which form of a path to answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathForm {
    /// `\\?\C:\dir\file`, normalised (`VOLUME_NAME_DOS`).
    Dos = 0,
    /// `\\?\Volume{...}\dir\file`, normalised (`VOLUME_NAME_GUID`).
    VolumeGuid = 1,
}

/// An open file, directory, volume or disk; closed when dropped.
pub trait Handle: Send + Sync {
    /// Opens or makes `name` in this directory (`NtCreateFile` relative to this handle).
    ///
    /// `name` is one component: never empty, `.` or `..`, never with a separator.
    /// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile>
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>>;

    /// Sends `code` to the device or file system and returns how many bytes of `output` it filled.
    ///
    /// Errors: the Win32 code as it came; `INSUFFICIENT_BUFFER` and `MORE_DATA` are not retried here, and after
    /// `MORE_DATA` the output is filled as far as it goes.
    /// <https://learn.microsoft.com/windows/win32/api/ioapiset/nf-ioapiset-deviceiocontrol>
    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize>;

    /// Reads information about the file into `output`.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getfileinformationbyhandleex>
    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()>;

    /// Changes information about the file.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-setfileinformationbyhandle>
    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()>;

    /// Reads information about the file system and returns how many bytes of `output` it filled.
    ///
    /// <https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-ntqueryvolumeinformationfile>
    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize>;

    /// Fills `output` with as many of this directory's next entries as fit, each an
    /// [`crate::abi::FileIdBothDirInfo`] and its name; `restart` begins again with the first.
    ///
    /// Errors: `NO_MORE_FILES` after the last entry.
    /// <https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_id_both_dir_info>
    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()>;

    /// The object's own path, all links resolved.
    ///
    /// Errors: `PATH_NOT_FOUND` where the object has no path of that form.
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfinalpathnamebyhandlew>
    fn final_path(&self, form: PathForm) -> OsResult<U16String>;

    /// Reads from `offset` bytes on and returns how many bytes of `output` were filled; of a volume only whole sectors
    /// can be read.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-readfile>
    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize>;

    /// Writes all that is cached for the file, or for a whole volume, to the medium.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers>
    fn flush(&self) -> OsResult<()>;
}
