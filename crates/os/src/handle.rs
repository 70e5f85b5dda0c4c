//! Handles of files, directories, volumes and disks: the parameters that open them, and their
//! operations.

use bitflags::bitflags;
use widestring::{U16Str, U16String};

use crate::OsResult;
use crate::abi::{AccessEntry, ControlCode, SecurityDescriptor};

bitflags! {
    /// The access rights of a handle (`ACCESS_MASK`).
    ///
    /// No right at all is enough to query a device. Every handle also has `SYNCHRONIZE`, because
    /// every call on a handle is synchronous.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// Read a file's data, or list a directory.
        const READ_DATA = 0x0001;
        /// Write a file's data, or add a file to a directory.
        const WRITE_DATA = 0x0002;
        /// Read the attributes and the reparse point.
        const READ_ATTRIBUTES = 0x0080;
        /// Write the attributes, or set a reparse point.
        const WRITE_ATTRIBUTES = 0x0100;
        /// Delete the object.
        const DELETE = 0x0001_0000;
        /// Read the security descriptor.
        const READ_CONTROL = 0x0002_0000;
        /// Change the access control list.
        const WRITE_DAC = 0x0004_0000;
        /// Every right to read the object (`GENERIC_READ`).
        const GENERIC_READ = 0x8000_0000;
        /// Every right to write to the object (`GENERIC_WRITE`).
        const GENERIC_WRITE = 0x4000_0000;
    }

    /// What other handles may do with the object while the handle is open (`ShareAccess` of
    /// `NtCreateFile`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Share: u32 {
        /// Read it.
        const READ = 1;
        /// Write to it.
        const WRITE = 2;
        /// Delete or rename it.
        const DELETE = 4;
    }

    /// The options of an open call (`CreateOptions` of `NtCreateFile`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Options: u32 {
        /// `FILE_DIRECTORY_FILE`: fails unless the object is a directory.
        const DIRECTORY = 0x0000_0001;
        /// `FILE_NON_DIRECTORY_FILE`: fails if the object is a directory.
        const NON_DIRECTORY = 0x0000_0040;
        /// `FILE_COMPLETE_IF_OPLOCKED`: if the open breaks an opportunistic lock of another
        /// process, fails with `OPLOCK_BREAK_IN_PROGRESS` instead of waiting without a limit until
        /// the process has given up the lock.
        const COMPLETE_IF_OPLOCKED = 0x0000_0100;
        /// `FILE_DELETE_ON_CLOSE`: the object is deleted when this handle is closed.
        const DELETE_ON_CLOSE = 0x0000_1000;
        /// `FILE_OPEN_REPARSE_POINT`: if the last component is a link, opens the link and not its
        /// target.
        const REPARSE_POINT = 0x0020_0000;
    }
}

/// Whether the object must exist (`CreateDisposition` of `NtCreateFile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Open an object that exists (`FILE_OPEN`).
    Open,
    /// Create an object that does not exist yet (`FILE_CREATE`).
    Create,
}

/// The parameters of an open call, besides the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Open {
    /// The requested access rights.
    pub access: Access,
    /// What other handles may do with the object while the handle is open.
    pub share: Share,
    /// Whether to open or to create.
    pub disposition: Disposition,
    /// The options.
    pub options: Options,
}

impl Open {
    /// Returns the parameters that open an existing object with full sharing.
    pub const fn existing(access: Access, options: Options) -> Self {
        Self {
            access,
            share: Share::all(),
            disposition: Disposition::Open,
            options,
        }
    }

    /// Returns the parameters that create a file or directory with full sharing.
    pub const fn new(access: Access, options: Options) -> Self {
        Self {
            access,
            share: Share::all(),
            disposition: Disposition::Create,
            options,
        }
    }

    /// Returns the parameters that create a directory with full sharing.
    pub const fn new_directory(access: Access) -> Self {
        Self::new(access, Options::DIRECTORY)
    }
}

/// A class of information about a file (`FILE_INFO_BY_HANDLE_CLASS`); [`crate::abi`] has the
/// structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileInfo {
    /// [`crate::abi::FileBasicInfo`]: times and attributes; can also be set.
    Basic = 0,
    /// [`crate::abi::FileDispositionInfo`]: delete when the last handle is closed; set only.
    Disposition = 4,
    /// [`crate::abi::FileStreamInfo`] for each data stream, followed by its name.
    Stream = 7,
    /// [`crate::abi::FileAttributeTagInfo`]: attributes and reparse tag.
    AttributeTag = 9,
    /// [`crate::abi::FileIdInfo`]: volume serial number and file id, which together identify the file.
    Id = 18,
    /// [`crate::abi::FileDispositionInfoEx`]: delete with flags, such as POSIX semantics; set only.
    DispositionEx = 21,
}

/// A class of information about the file system of a handle (`FS_INFORMATION_CLASS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FsInfo {
    /// [`crate::abi::FsAttributeInformation`]: the file system's name.
    Attribute = 5,
    /// [`crate::abi::FsFullSizeInformation`]: total and free allocation units.
    FullSize = 7,
}

/// A form of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathForm {
    /// `\\?\C:\dir\file`, normalized (`VOLUME_NAME_DOS`).
    Dos = 0,
    /// `\\?\Volume{...}\dir\file`, normalized (`VOLUME_NAME_GUID`).
    VolumeGuid = 1,
    /// `\Device\HarddiskVolume3\dir\file`, normalized: the NT path from the device
    /// (`VOLUME_NAME_NT`).
    Device = 2,
}

/// An open file, directory, volume or disk. Dropping it closes it.
pub trait Handle: Send + Sync {
    /// `NtCreateFile` with this handle as the root directory: opens or creates `name` in this
    /// directory.
    ///
    /// `name` is a single component: it has no separator and is not empty, `.` or `..`.
    ///
    /// Errors: as [`crate::Os::open`].
    /// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntcreatefile>
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>>;

    /// `NtCreateFile` with this handle as the root directory and `OBJ_DONT_REPARSE`: opens or
    /// creates `path` below this directory without following a link. With
    /// [`Options::REPARSE_POINT`], a link in the last component is opened itself.
    ///
    /// `path` has one or more components, separated by backslashes. Each is a name as in
    /// [`Self::open_child`].
    ///
    /// A system that does not know the flag may follow links, or answer `INVALID_PARAMETER`.
    ///
    /// Errors: as [`crate::Os::open`]; `REPARSE_POINT_ENCOUNTERED` if a link would have to be
    /// followed. <https://learn.microsoft.com/windows/win32/api/ntdef/ns-ntdef-_object_attributes>
    fn open_below(&self, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>>;

    /// `DeviceIoControl`: sends `code` to the device or file system and returns the number of bytes
    /// written to `output`.
    ///
    /// Errors: those of the device. `INSUFFICIENT_BUFFER` and `MORE_DATA` are not retried; with
    /// `MORE_DATA`, `output` has the part of the answer that fits.
    /// <https://learn.microsoft.com/windows/win32/api/ioapiset/nf-ioapiset-deviceiocontrol>
    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize>;

    /// `GetFileInformationByHandleEx`: reads information about the file into `output`.
    ///
    /// Errors: `ACCESS_DENIED` without [`Access::READ_ATTRIBUTES`]; `INVALID_PARAMETER` or
    /// `NOT_SUPPORTED` if the file system does not have the class; `HANDLE_EOF` if a directory has
    /// no data streams, for which no document names a code.
    /// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getfileinformationbyhandleex>
    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()>;

    /// `SetFileInformationByHandle`: changes information about the file. If a deletion breaks an
    /// opportunistic lock, waits at most two seconds for the process that has the lock.
    ///
    /// Errors: `OPLOCK_BREAK_IN_PROGRESS` if the process has not given up the lock by then;
    /// `ACCESS_DENIED` without the right that the class needs; `DIR_NOT_EMPTY` for the deletion of
    /// a directory with entries; `INVALID_PARAMETER`, `INVALID_FUNCTION` or `NOT_SUPPORTED` if the
    /// file system does not have the class.
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-setfileinformationbyhandle>
    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()>;

    /// `NtQueryVolumeInformationFile`: reads information about the file system and returns the
    /// number of bytes written to `output`.
    ///
    /// Errors: `MORE_DATA` if the file system's name does not fit.
    /// <https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-ntqueryvolumeinformationfile>
    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize>;

    /// `GetFileInformationByHandleEx` with `FileIdBothDirectoryInfo`: writes as many of this
    /// directory's next entries to `output` as fit, each an [`crate::abi::FileIdBothDirInfo`]
    /// followed by its name. With `restart`, begins again at the first entry.
    ///
    /// Errors: `NO_MORE_FILES` after the last entry.
    /// <https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_id_both_dir_info>
    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()>;

    /// `GetFinalPathNameByHandleW`: returns the path of the object, with all links resolved.
    ///
    /// Errors: `PATH_NOT_FOUND` if the object has no path of that form.
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfinalpathnamebyhandlew>
    fn final_path(&self, form: PathForm) -> OsResult<U16String>;

    /// `GetKernelObjectSecurity`: returns the owner and the access control list of the object.
    ///
    /// Errors: `ACCESS_DENIED` without [`Access::READ_CONTROL`]; `ERROR_INVALID_SECURITY_DESCR`
    /// (1338) if the list has an entry of an unknown kind.
    /// <https://learn.microsoft.com/windows/win32/api/securitybaseapi/nf-securitybaseapi-getkernelobjectsecurity>
    fn security_descriptor(&self) -> OsResult<SecurityDescriptor>;

    /// `NtSetSecurityObject`: replaces the access control list of the object. The lists of the
    /// objects in a directory stay.
    ///
    /// Errors: `ACCESS_DENIED` without [`Access::WRITE_DAC`]; `NOT_SUPPORTED` for an entry with a
    /// condition.
    /// <https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/nf-ntifs-ntsetsecurityobject>
    fn set_access_list(&self, entries: &[AccessEntry]) -> OsResult<()>;

    /// `ReadFile`: reads at `offset`, in bytes from the start, and returns the number of bytes
    /// written to `output`; 0 at the end of the file.
    ///
    /// Errors: `INVALID_PARAMETER` if the object is a volume or disk and the offset or length is
    /// not a multiple of its sector size.
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-readfile>
    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize>;

    /// `FlushFileBuffers`: writes everything cached for the file, or for the whole volume, to the
    /// device.
    ///
    /// Errors: `ACCESS_DENIED` if the handle was opened without a right to write.
    /// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers>
    fn flush(&self) -> OsResult<()>;
}
