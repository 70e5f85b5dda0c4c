//! Text values of the registry, below `HKEY_LOCAL_MACHINE`.

use std::ptr;

use os::{OsError, OsResult, U16Str, U16String};
use windows_sys::Win32::Foundation::{ERROR_MORE_DATA, ERROR_SUCCESS};
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_LOCAL_MACHINE, KEY_SET_VALUE, REG_OPTION_VOLATILE, REG_SZ, RRF_RT_REG_SZ,
    RegCloseKey, RegCreateKeyExW, RegDeleteKeyValueW, RegGetValueW, RegSetValueExW,
};
use zerocopy::IntoBytes as _;

use crate::{buffer, error};

/// The size of the first buffer for a text, in UTF-16 code units.
const FIRST_SIZE: usize = 512;

/// Returns the text `value` of `key`.
pub(crate) fn text(key: &U16Str, value: &U16Str) -> OsResult<U16String> {
    let (key, value) = (error::terminated(key)?, error::terminated(value)?);
    let mut units = vec![0_u16; FIRST_SIZE];
    loop {
        let mut size = buffer::length(units.as_bytes())?;
        // SAFETY: both texts are zero-terminated; `size` is the number of bytes in `units`; both
        // outlive the call.
        let code = unsafe {
            RegGetValueW(
                HKEY_LOCAL_MACHINE,
                key.as_ptr(),
                value.as_ptr(),
                RRF_RT_REG_SZ,
                ptr::null_mut(),
                units.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        if code == ERROR_MORE_DATA {
            // Another process may have made the value longer than `size` says.
            units = vec![0; units.len().saturating_mul(2).max(size as usize / 2 + 1)];
            continue;
        }
        checked(code)?;
        let end = units
            .iter()
            .position(|unit| *unit == 0)
            .unwrap_or(units.len());
        units.truncate(end);
        return Ok(U16String::from_vec(units));
    }
}

/// Sets the text `value` of `key`. A key that does not exist is created as a volatile one.
pub(crate) fn set_volatile_text(key: &U16Str, value: &U16Str, text: &U16Str) -> OsResult<()> {
    let (key, value, text) = (
        Key::create_volatile(key)?,
        error::terminated(value)?,
        error::terminated(text)?,
    );
    let bytes = text.as_slice_with_nul().as_bytes();
    let length = buffer::length(bytes)?;
    // SAFETY: the key is open; the name is zero-terminated; the pointer and the length are those of
    // `bytes`; all outlive the call.
    checked(unsafe { RegSetValueExW(key.0, value.as_ptr(), 0, REG_SZ, bytes.as_ptr(), length) })
}

/// Deletes `value` of `key`.
pub(crate) fn delete(key: &U16Str, value: &U16Str) -> OsResult<()> {
    let (key, value) = (error::terminated(key)?, error::terminated(value)?);
    // SAFETY: both texts are zero-terminated and outlive the call.
    checked(unsafe { RegDeleteKeyValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr()) })
}

/// An open key.
struct Key(HKEY);

impl Key {
    /// Opens a key for setting values, and creates it if it does not exist.
    fn create_volatile(path: &U16Str) -> OsResult<Self> {
        let path = error::terminated(path)?;
        let mut key: HKEY = ptr::null_mut();
        // SAFETY: the path is zero-terminated, and `key` outlives the call; null selects no class,
        // the default security descriptor and no report of whether the key existed.
        checked(unsafe {
            RegCreateKeyExW(
                HKEY_LOCAL_MACHINE,
                path.as_ptr(),
                0,
                ptr::null(),
                REG_OPTION_VOLATILE,
                KEY_SET_VALUE,
                ptr::null(),
                &raw mut key,
                ptr::null_mut(),
            )
        })?;
        Ok(Self(key))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the key is open and has no other owner.
        unsafe { RegCloseKey(self.0) };
    }
}

fn checked(code: u32) -> OsResult<()> {
    if code == ERROR_SUCCESS {
        Ok(())
    } else {
        Err(OsError(code))
    }
}
