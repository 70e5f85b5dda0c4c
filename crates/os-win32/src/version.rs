//! The version of Windows.

use os::OsResult;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;

use crate::{buffer, error};

/// Returns the build number, such as 20348. Unlike `GetVersionExW`, the call does not depend on the program's manifest.
///
/// <https://learn.microsoft.com/windows-hardware/drivers/ddi/wdm/nf-wdm-rtlgetversion>
pub fn build() -> OsResult<u32> {
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: buffer::size::<OSVERSIONINFOW>(), ..Default::default() };
    // SAFETY: the structure has its size and outlives the call.
    error::check_status(unsafe { RtlGetVersion(&raw mut version) })?;
    Ok(version.dwBuildNumber)
}

#[cfg(test)]
mod tests {
    #[test]
    fn windows_has_a_build_number() {
        assert!(super::build().unwrap() > 1000);
    }
}
