//! The search for DLLs, in a process of its own, since it concerns the whole process.
#![cfg(windows)]
#![allow(unsafe_code, reason = "the test loads a library")]

use std::{env, fs, process};

use csi_proxy_os_win32::own_process::limit_dll_search;
use widestring::U16CString;
use windows_sys::Win32::Foundation::{ERROR_MOD_NOT_FOUND, FreeLibrary, GetLastError};
use windows_sys::Win32::System::LibraryLoader::LoadLibraryW;

/// Loads a library by its name and frees it again. Returns the code of the error.
fn load(name: &str) -> Result<(), u32> {
    let name = U16CString::from_str(name).unwrap();
    // SAFETY: the name is zero-terminated. The library is a copy of this program, whose entry point
    // is not called, or one of Windows.
    let library = unsafe { LoadLibraryW(name.as_ptr()) };
    if library.is_null() {
        // SAFETY: the function has no parameters.
        return Err(unsafe { GetLastError() });
    }
    // SAFETY: the handle is that of a library which was just loaded, and is not used again.
    unsafe { FreeLibrary(library) };
    Ok(())
}

#[test]
fn only_libraries_of_the_system_are_found_by_name() {
    let program = env::current_exe().unwrap();
    let name = format!("csi-proxy-test-planted-{}.exe", process::id());
    let planted = program.with_file_name(&name);
    fs::copy(&program, &planted).unwrap();
    let before = load(&name);
    limit_dll_search().unwrap();
    let after = load(&name);
    // A virus scanner may hold the new program open.
    let _ = fs::remove_file(&planted);
    assert_eq!(before, Ok(()), "beside the program");
    assert_eq!(after, Err(ERROR_MOD_NOT_FOUND));
    assert_eq!(load("version.dll"), Ok(()));
}
