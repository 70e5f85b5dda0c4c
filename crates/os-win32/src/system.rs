//! The system: the version and the folder of Windows, and the tables of the firmware.

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt as _;
use std::path::PathBuf;

use os::OsResult;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Foundation::{MAX_PATH, SYSTEMTIME};
use windows_sys::Win32::System::SystemInformation::{
    GetLocalTime, GetSystemDirectoryW, GetSystemFirmwareTable, OSVERSIONINFOW,
};

use crate::{buffer, error};

/// Returns the build number of Windows, such as 20348. Unlike `GetVersionExW`, the call does not
/// depend on the program's manifest.
///
/// <https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/nf-wdm-rtlgetversion>
pub fn build() -> OsResult<u32> {
    let mut version = OSVERSIONINFOW {
        dwOSVersionInfoSize: buffer::size::<OSVERSIONINFOW>(),
        ..Default::default()
    };
    // SAFETY: the structure has its size and outlives the call.
    error::check_status(unsafe { RtlGetVersion(&raw mut version) })?;
    Ok(version.dwBuildNumber)
}

/// Returns the folder of Windows' own programs, such as `C:\Windows\System32`.
///
/// <https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getsystemdirectoryw>
pub fn directory() -> io::Result<PathBuf> {
    let mut path = [0; MAX_PATH as usize];
    // SAFETY: the pointer and the capacity are those of `path`, which outlives the call.
    let length = unsafe { GetSystemDirectoryW(path.as_mut_ptr(), MAX_PATH) };
    match path.get(..length as usize) {
        Some(path) if length > 0 => Ok(OsString::from_wide(path).into()),
        Some(_) => Err(io::Error::last_os_error()),
        None => Err(io::Error::other(format!(
            "the path of the system directory has {length} characters"
        ))),
    }
}

/// Returns the absolute path of a program of Windows, such as `sc.exe`. Windows searches for a
/// program without a path in the folder of the running program first, where an ordinary user may
/// have put another one.
pub fn program(name: &str) -> io::Result<PathBuf> {
    Ok(directory()?.join(name))
}

/// Returns the time in the time zone of the node: month, day, hour, minute, second, millisecond.
///
/// <https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getlocaltime>
pub fn local_time() -> [u16; 6] {
    let mut time = SYSTEMTIME::default();
    // SAFETY: the structure outlives the call.
    unsafe { GetLocalTime(&raw mut time) };
    [
        time.wMonth,
        time.wDay,
        time.wHour,
        time.wMinute,
        time.wSecond,
        time.wMilliseconds,
    ]
}

/// Reads a firmware table and returns its size, which may be larger than `output`.
pub(crate) fn firmware_table(provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
    let capacity = buffer::length(output)?;
    // SAFETY: the pointer and the capacity are those of `output`, which outlives the call.
    let size = unsafe { GetSystemFirmwareTable(provider, table, output.as_mut_ptr(), capacity) };
    if size == 0 {
        Err(error::last())
    } else {
        Ok(size as usize)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn windows_has_a_build_number() {
        assert!(super::build().unwrap() > 1000);
    }

    #[test]
    fn a_program_of_windows_has_an_absolute_path() {
        let program = super::program("cmd.exe").unwrap();
        assert!(program.is_absolute() && program.is_file(), "{program:?}");
    }

    #[test]
    fn windows_has_a_date_and_a_time_of_day() {
        let [month, day, hour, minute, second, millisecond] = super::local_time();
        assert!(
            (1..=12).contains(&month) && (1..=31).contains(&day),
            "{month} {day}"
        );
        assert!(
            hour < 24 && minute < 60 && second < 61 && millisecond < 1000,
            "{hour}:{minute}:{second}"
        );
    }
}
