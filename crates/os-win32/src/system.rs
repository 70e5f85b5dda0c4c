//! The system: the version of Windows, and the tables of the firmware.

use os::OsResult;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::SystemInformation::{GetSystemFirmwareTable, OSVERSIONINFOW};

use crate::{buffer, error};

/// Returns the build number of Windows, such as 20348. Unlike `GetVersionExW`, the call does not depend on the program's
/// manifest.
///
/// <https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/nf-wdm-rtlgetversion>
pub fn build() -> OsResult<u32> {
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: buffer::size::<OSVERSIONINFOW>(), ..Default::default() };
    // SAFETY: the structure has its size and outlives the call.
    error::check_status(unsafe { RtlGetVersion(&raw mut version) })?;
    Ok(version.dwBuildNumber)
}

/// Reads a firmware table and returns its size, which may be larger than `output`.
pub(crate) fn firmware_table(provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
    let capacity = buffer::length(output)?;
    // SAFETY: the pointer and the capacity are those of `output`, which outlives the call.
    let size = unsafe { GetSystemFirmwareTable(provider, table, output.as_mut_ptr(), capacity) };
    if size == 0 { Err(error::last()) } else { Ok(size as usize) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn windows_has_a_build_number() {
        assert!(super::build().unwrap() > 1000);
    }
}
