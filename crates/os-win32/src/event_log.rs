//! The event log: what an administrator looks at when a service does not start.

use std::io;
use std::os::raw::c_void;
use std::ptr;

use widestring::{U16CStr, U16CString, u16cstr};
use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_SUCCESS, HANDLE};
use windows_sys::Win32::System::EventLog::{
    DeregisterEventSource, EVENTLOG_ERROR_TYPE, EVENTLOG_INFORMATION_TYPE, EVENTLOG_WARNING_TYPE, RegisterEventSourceW,
    ReportEventW,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, REG_DWORD, REG_EXPAND_SZ, RegDeleteTreeW, RegSetKeyValueW,
};

/// The program of Windows' own whose messages 1 to 1000 are the text that comes with the event, and nothing else.
const MESSAGES: &U16CStr = u16cstr!(r"%SystemRoot%\System32\EventCreate.exe");
const MESSAGE: u32 = 1;

/// Makes `source` known, so that the event viewer shows its events without a complaint. May be repeated.
pub fn add_source(source: &str) -> io::Result<()> {
    let key = key(source)?;
    let types = u32::from(EVENTLOG_ERROR_TYPE | EVENTLOG_WARNING_TYPE | EVENTLOG_INFORMATION_TYPE);
    let messages: Vec<u8> = MESSAGES.as_slice_with_nul().iter().flat_map(|unit| unit.to_le_bytes()).collect();
    set(&key, u16cstr!("EventMessageFile"), REG_EXPAND_SZ, &messages)?;
    set(&key, u16cstr!("TypesSupported"), REG_DWORD, &types.to_le_bytes())
}

/// Forgets `source`. One that is not known is none to forget.
pub fn remove_source(source: &str) -> io::Result<()> {
    let key = key(source)?;
    // SAFETY: the text ends with a zero and outlives the call.
    match unsafe { RegDeleteTreeW(HKEY_LOCAL_MACHINE, key.as_ptr()) } {
        ERROR_FILE_NOT_FOUND => Ok(()),
        code => checked(code),
    }
}

/// Writes an error event that says `text`.
pub fn error(source: &str, text: &str) -> io::Result<()> {
    let log = Log::open(source)?;
    let text = wide(text)?;
    let texts = [text.as_ptr()];
    // SAFETY: the handle is open; the array has the one text that it is said to have, which ends with a zero; there is
    // neither an account nor data.
    let reported = unsafe {
        ReportEventW(log.0, EVENTLOG_ERROR_TYPE, 0, MESSAGE, ptr::null_mut(), 1, 0, texts.as_ptr(), ptr::null())
    };
    if reported == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The open event log.
struct Log(HANDLE);

impl Log {
    fn open(source: &str) -> io::Result<Self> {
        let source = wide(source)?;
        // SAFETY: the text ends with a zero and outlives the call; no name means this machine.
        let log = unsafe { RegisterEventSourceW(ptr::null(), source.as_ptr()) };
        if log.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self(log)) }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // SAFETY: the handle is open and nobody else has it.
        unsafe { DeregisterEventSource(self.0) };
    }
}

fn set(key: &U16CStr, name: &U16CStr, kind: u32, value: &[u8]) -> io::Result<()> {
    let length = u32::try_from(value.len()).map_err(io::Error::other)?;
    let value = value.as_ptr().cast::<c_void>();
    // SAFETY: both texts end with a zero; the pointer and the length are one live slice's.
    checked(unsafe { RegSetKeyValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), name.as_ptr(), kind, value, length) })
}

fn key(source: &str) -> io::Result<U16CString> {
    wide(&format!(r"SYSTEM\CurrentControlSet\Services\EventLog\Application\{source}"))
}

fn wide(text: &str) -> io::Result<U16CString> {
    U16CString::from_str(text).map_err(io::Error::other)
}

fn checked(code: u32) -> io::Result<()> {
    if code == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(code.cast_signed())) }
}

#[cfg(test)]
mod tests {
    use super::{add_source, error, remove_source};

    #[test]
    fn a_source_comes_and_goes() {
        let source = format!("csi-proxy-test-{}", std::process::id());
        add_source(&source).unwrap();
        add_source(&source).unwrap();
        error(&source, "a test's event").unwrap();
        remove_source(&source).unwrap();
        remove_source(&source).unwrap();
    }
}
