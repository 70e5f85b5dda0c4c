//! Firmware tables.

use os::OsResult;
use windows_sys::Win32::System::SystemInformation::GetSystemFirmwareTable;

use crate::{buffer, error};

/// Reads a firmware table and returns its size, which may be larger than `output`.
pub(crate) fn table(provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
    let capacity = buffer::length(output)?;
    // SAFETY: the pointer and the capacity are those of `output`, which outlives the call.
    let size = unsafe { GetSystemFirmwareTable(provider, table, output.as_mut_ptr(), capacity) };
    if size == 0 { Err(error::last()) } else { Ok(size as usize) }
}
