//! The processes at the two ends of a pipe.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsRawHandle, FromRawHandle as _, OwnedHandle};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use os::OsResult;
use os::abi::SecurityDescriptor;
use windows_sys::Win32::Storage::FileSystem::SECURITY_ANONYMOUS;
use windows_sys::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeServerProcessId};
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};

use crate::security_descriptor;

/// All instances of the pipe are connected.
const PIPE_BUSY: i32 = 231;

/// The process that serves a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The id of the process.
    pub process: u32,
    /// The path of its program, if Windows returns it.
    pub program: Option<PathBuf>,
}

/// Returns the process that serves the pipe at `path`. Only for messages: the id may already belong
/// to another process.
///
/// Connects to the pipe. Errors: `NotFound` if no process serves it; `ERROR_PIPE_BUSY` (231) if all
/// its instances stay connected for 100 ms; `PermissionDenied`.
pub fn owner(path: &str) -> io::Result<Owner> {
    owner_of(&connect(path)?)
}

/// Returns the process that serves the pipe at `path`, and the owner and the access control list of
/// the pipe.
///
/// Errors: as [`owner`].
pub fn owner_and_access(path: &str) -> io::Result<(Owner, OsResult<SecurityDescriptor>)> {
    let pipe = connect(path)?;
    Ok((
        owner_of(&pipe)?,
        security_descriptor::of_handle(pipe.as_raw_handle()),
    ))
}

/// Connects for reading, which includes the right to read the security descriptor.
fn connect(path: &str) -> io::Result<File> {
    // Right after another client has connected, the server has no free instance for a moment.
    let mut attempts = 10;
    loop {
        let opened = OpenOptions::new()
            .read(true)
            .security_qos_flags(SECURITY_ANONYMOUS)
            .open(path);
        attempts -= 1;
        match opened {
            Err(error) if error.raw_os_error() == Some(PIPE_BUSY) && attempts > 0 => {
                thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

fn owner_of(pipe: &File) -> io::Result<Owner> {
    let mut process = 0;
    // SAFETY: the handle is open; `process` outlives the call.
    if unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut process) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Owner {
        process,
        program: program(process).ok(),
    })
}

/// Returns the id of the process that opened the client's end of a connected pipe.
///
/// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeclientprocessid>
pub fn client_process(pipe: &impl AsRawHandle) -> io::Result<u32> {
    let mut process = 0;
    // SAFETY: the handle is open as long as `pipe` is borrowed; `process` outlives the call.
    if unsafe { GetNamedPipeClientProcessId(pipe.as_raw_handle(), &raw mut process) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(process)
}

fn program(process: u32) -> io::Result<PathBuf> {
    // SAFETY: the function has only numbers as parameters.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is an open handle that has no other owner.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    let mut length = 32 * 1024;
    let mut path = vec![0_u16; length as usize];
    // SAFETY: the handle is open; the pointer and the length are those of `path`, which outlives
    // the call.
    let succeeded = unsafe {
        QueryFullProcessImageNameW(
            handle.as_raw_handle(),
            PROCESS_NAME_WIN32,
            path.as_mut_ptr(),
            &raw mut length,
        )
    };
    if succeeded == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(PathBuf::from(OsString::from_wide(&path[..length as usize])))
}
