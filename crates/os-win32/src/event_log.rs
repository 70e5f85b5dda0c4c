//! The event log, where an administrator looks when a service does not start.

use std::io;
use std::os::raw::c_void;
use std::ptr;

use widestring::{U16CStr, U16CString, u16cstr};
use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_SUCCESS, HANDLE};
use windows_sys::Win32::System::EventLog::{
    DeregisterEventSource, EVENTLOG_ERROR_TYPE, EVENTLOG_INFORMATION_TYPE, EVENTLOG_WARNING_TYPE,
    RegisterEventSourceW, ReportEventW,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, REG_DWORD, REG_EXPAND_SZ, RegDeleteTreeW, RegSetKeyValueW,
};

/// A program of Windows whose messages 1 to 1000 consist of the text that is reported with the
/// event.
const MESSAGE_FILE: &U16CStr = u16cstr!(r"%SystemRoot%\System32\EventCreate.exe");
const EVENT_ID: u32 = 1;

/// Registers `source`, so that the event viewer can show the text of its events. Succeeds if the
/// source exists.
pub fn add_source(source: &str) -> io::Result<()> {
    let key = key(source)?;
    let types = u32::from(EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE);
    let message_file: Vec<u8> = MESSAGE_FILE
        .as_slice_with_nul()
        .iter()
        .flat_map(|unit| unit.to_le_bytes())
        .collect();
    set(
        &key,
        u16cstr!("EventMessageFile"),
        REG_EXPAND_SZ,
        &message_file,
    )?;
    set(
        &key,
        u16cstr!("TypesSupported"),
        REG_DWORD,
        &types.to_le_bytes(),
    )
}

/// Removes the registration of `source`. Succeeds if the source does not exist.
pub fn remove_source(source: &str) -> io::Result<()> {
    let key = key(source)?;
    // SAFETY: the text is zero-terminated and outlives the call.
    match unsafe { RegDeleteTreeW(HKEY_LOCAL_MACHINE, key.as_ptr()) } {
        ERROR_FILE_NOT_FOUND => Ok(()),
        code => checked(code),
    }
}

/// Reports an error event with the message `text`.
pub fn error(source: &str, text: &str) -> io::Result<()> {
    let log = Log::open(source)?;
    let text = wide(text)?;
    let texts = [text.as_ptr()];
    // SAFETY: the handle is open; the array has one zero-terminated text, and the count is 1; the
    // account and the data are null.
    let reported = unsafe {
        ReportEventW(
            log.0,
            EVENTLOG_ERROR_TYPE,
            0,
            EVENT_ID,
            ptr::null_mut(),
            1,
            0,
            texts.as_ptr(),
            ptr::null(),
        )
    };
    if reported == 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The open event log.
struct Log(HANDLE);

impl Log {
    fn open(source: &str) -> io::Result<Self> {
        let source = wide(source)?;
        // SAFETY: the text is zero-terminated and outlives the call; a null name selects this
        // machine.
        let log = unsafe { RegisterEventSourceW(ptr::null(), source.as_ptr()) };
        if log.is_null() {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self(log))
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // SAFETY: the handle is open and has no other owner.
        unsafe { DeregisterEventSource(self.0) };
    }
}

fn set(key: &U16CStr, name: &U16CStr, kind: u32, value: &[u8]) -> io::Result<()> {
    let length = u32::try_from(value.len()).map_err(io::Error::other)?;
    let value = value.as_ptr().cast::<c_void>();
    // SAFETY: both texts are zero-terminated; the pointer and the length are those of the slice,
    // which outlives the call.
    checked(unsafe {
        RegSetKeyValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            name.as_ptr(),
            kind,
            value,
            length,
        )
    })
}

fn key(source: &str) -> io::Result<U16CString> {
    wide(&format!(
        r"SYSTEM\CurrentControlSet\Services\EventLog\Application\{source}"
    ))
}

fn wide(text: &str) -> io::Result<U16CString> {
    U16CString::from_str(text).map_err(io::Error::other)
}

fn checked(code: u32) -> io::Result<()> {
    if code == ERROR_SUCCESS {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(code.cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::{add_source, error, remove_source};

    #[test]
    fn a_source_can_be_added_and_removed_repeatedly() {
        let source = format!("csi-proxy-test-{}", std::process::id());
        add_source(&source).unwrap();
        add_source(&source).unwrap();
        error(&source, "a test's event").unwrap();
        remove_source(&source).unwrap();
        remove_source(&source).unwrap();
    }
}
