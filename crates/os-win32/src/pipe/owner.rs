//! Whose a pipe is.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::windows::ffi::OsStringExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::path::PathBuf;

use windows_sys::Win32::Storage::FileSystem::SECURITY_ANONYMOUS;
use windows_sys::Win32::System::Pipes::GetNamedPipeServerProcessId;
use windows_sys::Win32::System::Threading::{
    OpenProcess, PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};

use super::normalised;

/// The process that serves a pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id.
    pub process: u32,
    /// Its program, where Windows tells.
    pub program: Option<PathBuf>,
}

/// Who serves the pipe at `path`, for a person to read: another process may have the id by then.
///
/// Asking takes a connection. Errors: `NotFound`; `ERROR_PIPE_BUSY` (231); `PermissionDenied`.
pub fn owner(path: &str) -> io::Result<Owner> {
    let pipe = OpenOptions::new().read(true).security_qos_flags(SECURITY_ANONYMOUS).open(normalised(path)?)?;
    let mut process = 0;
    // SAFETY: the handle is open; `process` outlives the call.
    if unsafe { GetNamedPipeServerProcessId(pipe.as_raw_handle(), &raw mut process) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Owner { process, program: program(process).ok() })
}

fn program(process: u32) -> io::Result<PathBuf> {
    // SAFETY: takes numbers only.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, process) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is an open handle that nobody else has.
    let handle = unsafe { OwnedHandle::from_raw_handle(handle) };
    let mut length = 32 * 1024;
    let mut path = vec![0_u16; length as usize];
    // SAFETY: the handle is open; the pointer and the length are one live buffer's.
    let told = unsafe {
        QueryFullProcessImageNameW(handle.as_raw_handle(), PROCESS_NAME_WIN32, path.as_mut_ptr(), &raw mut length)
    };
    if told == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(PathBuf::from(OsString::from_wide(&path[..length as usize])))
}
