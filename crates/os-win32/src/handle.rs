//! Handles: `NtCreateFile`, and the calls on the handle that it returns.

use std::os::windows::io::{
    AsHandle as _, AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle, RawHandle,
};
use std::ptr;
use std::time::Duration;

use os::abi::{AccessEntry, ControlCode, SecurityDescriptor};
use os::{
    Disposition, FileInfo, FsInfo, Handle, NtPath, Open, OsError, OsResult, PathForm, U16Str,
    U16String,
};
use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_CREATE, FILE_NETWORK_OPEN_INFORMATION, FILE_OPEN, FILE_SYNCHRONOUS_IO_NONALERT,
    NtCreateFile, NtQueryFullAttributesFile, NtQueryVolumeInformationFile,
};
use windows_sys::Win32::Foundation::{
    OBJ_CASE_INSENSITIVE, OBJ_DONT_REPARSE, OBJECT_ATTRIBUTE_FLAGS,
    STATUS_OPLOCK_BREAK_IN_PROGRESS, UNICODE_STRING,
};
use windows_sys::Win32::Security::{SECURITY_QUALITY_OF_SERVICE, SecurityAnonymous};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_NORMAL, FILE_INFO_BY_HANDLE_CLASS, FileIdBothDirectoryInfo,
    FileIdBothDirectoryRestartInfo, FlushFileBuffers, GetFileInformationByHandleEx,
    GetFinalPathNameByHandleW, ReadFile, SYNCHRONIZE, SetFileInformationByHandle,
};
use windows_sys::Win32::System::IO::{
    DeviceIoControl, IO_STATUS_BLOCK, OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0,
};

use crate::{buffer, cancellation, error, security_descriptor};

/// An open file, directory, volume or disk, opened for synchronous I/O.
///
/// The calls below are sound only because the handle is synchronous: on an asynchronous one,
/// Windows may write to the caller's buffer after the call has returned.
pub(crate) struct NtHandle(OwnedHandle);

/// How long a deletion waits for the owner of an oplock.
const OPLOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Returns the lower half of a 64-bit number.
fn low(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}

/// Forbids the server of a pipe to impersonate csi-proxy. A container can make a link to a pipe;
/// without this, the owner of the pipe could act as LocalSystem when csi-proxy opens the link. .NET
/// opens every file in the same way, also on servers.
static ANONYMOUS: SECURITY_QUALITY_OF_SERVICE = SECURITY_QUALITY_OF_SERVICE {
    Length: buffer::size::<SECURITY_QUALITY_OF_SERVICE>(),
    ImpersonationLevel: SecurityAnonymous,
    // SECURITY_STATIC_TRACKING
    ContextTrackingMode: 0,
    EffectiveOnly: false,
};

/// Calls `call` with the attributes of the object `name`: an absolute NT path or, with `root`, the
/// name of an entry or a path below that directory. `flags` are added to `OBJ_CASE_INSENSITIVE`.
/// Everything that the attributes point to outlives the call.
fn with_object<T>(
    root: Option<BorrowedHandle<'_>>,
    name: &U16Str,
    flags: OBJECT_ATTRIBUTE_FLAGS,
    call: impl FnOnce(*const OBJECT_ATTRIBUTES) -> T,
) -> OsResult<T> {
    let bytes = u16::try_from(name.len() * 2).map_err(|_| OsError::FILENAME_EXCED_RANGE)?;
    // Windows does not write to the name, although the field of the structure is not const.
    let object_name = UNICODE_STRING {
        Length: bytes,
        MaximumLength: bytes,
        Buffer: name.as_ptr().cast_mut(),
    };
    let attributes = OBJECT_ATTRIBUTES {
        Length: buffer::size::<OBJECT_ATTRIBUTES>(),
        RootDirectory: root.map_or(ptr::null_mut(), |root| root.as_raw_handle()),
        ObjectName: &raw const object_name,
        Attributes: OBJ_CASE_INSENSITIVE | flags,
        SecurityDescriptor: ptr::null(),
        SecurityQualityOfService: &raw const ANONYMOUS,
    };
    Ok(call(&raw const attributes))
}

/// Returns the attributes of the object at a path without opening it or following a link.
pub(crate) fn attributes(path: &NtPath) -> OsResult<u32> {
    let mut information = FILE_NETWORK_OPEN_INFORMATION::default();
    error::check_status(with_object(
        None,
        path.as_u16str(),
        OBJ_DONT_REPARSE,
        |object| {
            // SAFETY: the attributes of the object and the structure for the answer outlive the
            // call.
            unsafe { NtQueryFullAttributesFile(object, &raw mut information) }
        },
    )?)?;
    Ok(information.FileAttributes)
}

/// Opens or creates the object `name`, as in [`with_object`].
///
/// A single component does not need `OBJ_DONT_REPARSE`: opened with `FILE_OPEN_REPARSE_POINT` it
/// follows no link, and without that option the caller wants the link to be followed.
pub(crate) fn open(
    root: Option<BorrowedHandle<'_>>,
    name: &U16Str,
    how: &Open,
    flags: OBJECT_ATTRIBUTE_FLAGS,
) -> OsResult<NtHandle> {
    let disposition = match how.disposition {
        Disposition::Open => FILE_OPEN,
        Disposition::Create => FILE_CREATE,
    };
    let mut handle: RawHandle = ptr::null_mut();
    let mut status_block = IO_STATUS_BLOCK::default();
    let status = with_object(root, name, flags, |object| {
        // SAFETY: every pointer is null or to a value that outlives the call.
        unsafe {
            NtCreateFile(
                &raw mut handle,
                // CreateFileW adds the same right: a handle is not synchronous without it.
                how.access.bits() | SYNCHRONIZE,
                object,
                &raw mut status_block,
                ptr::null(),
                FILE_ATTRIBUTE_NORMAL,
                how.share.bits(),
                disposition,
                how.options.bits() | FILE_SYNCHRONOUS_IO_NONALERT,
                ptr::null(),
                0,
            )
        }
    })?;
    error::check_status(status)?;
    // SAFETY: the call succeeded, so this is an open handle that has no other owner.
    let opened = NtHandle(unsafe { OwnedHandle::from_raw_handle(handle) });
    // The object was opened, but later calls on the handle would wait for the owner of the oplock.
    // The handle is closed.
    if status == STATUS_OPLOCK_BREAK_IN_PROGRESS {
        Err(OsError::OPLOCK_BREAK_IN_PROGRESS)
    } else {
        Ok(opened)
    }
}

impl NtHandle {
    fn raw(&self) -> RawHandle {
        self.0.as_raw_handle()
    }

    fn information(&self, class: FILE_INFO_BY_HANDLE_CLASS, output: &mut [u8]) -> OsResult<()> {
        buffer::fill(output, |pointer, length| {
            // SAFETY: the handle is open and synchronous; `length` bytes at the pointer can be
            // written.
            error::check(unsafe {
                GetFileInformationByHandleEx(self.raw(), class, pointer, length)
            })
        })
    }
}

impl Handle for NtHandle {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Box::new(open(Some(self.0.as_handle()), name, how, 0)?))
    }

    fn open_below(&self, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Box::new(open(
            Some(self.0.as_handle()),
            path,
            how,
            OBJ_DONT_REPARSE,
        )?))
    }

    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        let mut filled = 0;
        buffer::read(input, |input, input_length| {
            buffer::fill(output, |output, output_length| {
                // SAFETY: the handle is open and synchronous, so nothing is written after the call
                // has returned; the input can be read and the output written for their lengths.
                error::check(unsafe {
                    DeviceIoControl(
                        self.raw(),
                        code.0,
                        input,
                        input_length,
                        output,
                        output_length,
                        &raw mut filled,
                        ptr::null_mut(),
                    )
                })
            })
        })?;
        Ok(filled as usize)
    }

    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        self.information(class as FILE_INFO_BY_HANDLE_CLASS, output)
    }

    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()> {
        let set = || {
            buffer::read(input, |pointer, length| {
                // SAFETY: the handle is open and synchronous; `length` bytes at the pointer can be
                // read.
                error::check(unsafe {
                    SetFileInformationByHandle(
                        self.raw(),
                        class as FILE_INFO_BY_HANDLE_CLASS,
                        pointer,
                        length,
                    )
                })
            })
        };
        // A deletion waits for the owner of an oplock even on a handle that was opened with
        // FILE_COMPLETE_IF_OPLOCKED.
        let deletes = matches!(class, FileInfo::Disposition | FileInfo::DispositionEx);
        match if deletes {
            cancellation::limited(OPLOCK_PATIENCE, set)
        } else {
            set()
        } {
            Err(OsError::OPERATION_ABORTED) if deletes => Err(OsError::OPLOCK_BREAK_IN_PROGRESS),
            outcome => outcome,
        }
    }

    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        let mut status_block = IO_STATUS_BLOCK::default();
        buffer::fill(output, |pointer, length| {
            // SAFETY: the handle is open and synchronous; the status block outlives the call;
            // `length` bytes at the pointer can be written.
            error::check_status(unsafe {
                NtQueryVolumeInformationFile(
                    self.raw(),
                    &raw mut status_block,
                    pointer,
                    length,
                    class as i32,
                )
            })
        })?;
        Ok(status_block.Information)
    }

    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()> {
        let class = if restart {
            FileIdBothDirectoryRestartInfo
        } else {
            FileIdBothDirectoryInfo
        };
        self.information(class, output)
            .map_err(|error| match error {
                // The first call returns this for a directory without entries. That can only be the
                // root of a volume, which has no `.` and `..`.
                OsError::FILE_NOT_FOUND => OsError::NO_MORE_FILES,
                other => other,
            })
    }

    fn final_path(&self, form: PathForm) -> OsResult<U16String> {
        let mut path = vec![0_u16; 512];
        loop {
            let capacity = u32::try_from(path.len()).map_err(|_| OsError::FILENAME_EXCED_RANGE)?;
            // SAFETY: the handle is open; the pointer and the capacity are those of `path`, which
            // outlives the call.
            let length = unsafe {
                GetFinalPathNameByHandleW(self.raw(), path.as_mut_ptr(), capacity, form as u32)
            } as usize;
            if length == 0 {
                return Err(error::last());
            }
            // The length includes the terminating zero only if the path did not fit.
            let fits = length < path.len();
            path.resize(length, 0);
            if fits {
                return Ok(U16String::from_vec(path));
            }
        }
    }

    fn security_descriptor(&self) -> OsResult<SecurityDescriptor> {
        security_descriptor::of_handle(self.raw())
    }

    fn set_access_list(&self, entries: &[AccessEntry]) -> OsResult<()> {
        security_descriptor::set_list(self.raw(), entries)
    }

    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        let halves = OVERLAPPED_0_0 {
            Offset: low(offset),
            OffsetHigh: low(offset >> 32),
        };
        let mut position = OVERLAPPED {
            Anonymous: OVERLAPPED_0 { Anonymous: halves },
            ..OVERLAPPED::default()
        };
        let read = buffer::fill(output, |output, length| {
            let mut read = 0;
            // SAFETY: the handle is open and synchronous; `length` bytes at the pointer can be
            // written; `read` and `position` outlive the call.
            error::check(unsafe {
                ReadFile(
                    self.raw(),
                    output.cast(),
                    length,
                    &raw mut read,
                    &raw mut position,
                )
            })?;
            Ok(read)
        });
        match read {
            Err(OsError::HANDLE_EOF) => Ok(0),
            read => Ok(read? as usize),
        }
    }

    fn flush(&self) -> OsResult<()> {
        // SAFETY: the handle is open.
        error::check(unsafe { FlushFileBuffers(self.raw()) })
    }
}
