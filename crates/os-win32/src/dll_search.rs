//! The folders in which Windows looks for a DLL that is loaded by its name.

use std::io;

use windows_sys::Win32::System::LibraryLoader::{LOAD_LIBRARY_SEARCH_SYSTEM32, SetDefaultDllDirectories};

/// Limits the search to System32 from now on: not the folder of the program, the current directory or the PATH.
///
/// DLLs that the program imports are loaded before any of its code runs. What they find is decided by the linker's
/// option `/DEPENDENTLOADFLAG`. A DLL that is loaded by its path, as COM does, may still import those beside it.
/// <https://learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-setdefaultdlldirectories>
pub fn system_only() -> io::Result<()> {
    // SAFETY: the function has only a number as parameter.
    let limited = unsafe { SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_SYSTEM32) };
    if limited == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
