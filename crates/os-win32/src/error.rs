//! Windows' three kinds of codes, each made an [`OsError`] as that type promises.

use os::{OsError, OsResult, U16Str};
use widestring::U16CString;
use windows_sys::Win32::Foundation::{
    ERROR_DELETE_PENDING, GetLastError, NTSTATUS, RtlNtStatusToDosError, STATUS_DELETE_PENDING,
};

/// The calling thread's last error.
pub(crate) fn last() -> OsError {
    // SAFETY: reads a field of the thread's own block.
    OsError(unsafe { GetLastError() })
}

/// What a call says that answers TRUE or FALSE.
pub(crate) fn check(succeeded: i32) -> OsResult<()> {
    if succeeded == 0 { Err(last()) } else { Ok(()) }
}

/// What a call of the native API says. Only success is success: a warning, such as "buffer overflow", is an error.
pub(crate) fn check_status(status: NTSTATUS) -> OsResult<()> {
    match status {
        0.. => Ok(()),
        // Translated, it would be "access denied", which sends the reader looking for permissions.
        STATUS_DELETE_PENDING => Err(OsError(ERROR_DELETE_PENDING)),
        // SAFETY: a table look-up on a number; any number will do.
        _ => Err(OsError(unsafe { RtlNtStatusToDosError(status) })),
    }
}

/// An `HRESULT` that says no: Win32's own as the Win32 code, any other as it is.
pub(crate) fn from_hresult(code: i32) -> OsError {
    const FACILITY_WIN32: u32 = 0x8007_0000;
    match code.cast_unsigned() {
        win32 if win32 & 0xffff_0000 == FACILITY_WIN32 => OsError(win32 & 0xffff),
        other => OsError(other),
    }
}

/// `text` with the final zero that Win32 wants. Text with a zero inside is no name at all.
pub(crate) fn terminated(text: &U16Str) -> OsResult<U16CString> {
    U16CString::from_ustr(text).map_err(|_| OsError::INVALID_NAME)
}

#[cfg(test)]
mod tests {
    use super::{check_status, from_hresult};
    use os::OsError;
    use windows_sys::Win32::Foundation::{
        STATUS_BUFFER_OVERFLOW, STATUS_DELETE_PENDING, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_PATH_NOT_FOUND,
    };

    #[test]
    fn a_status_becomes_its_win32_code() {
        assert_eq!(check_status(0), Ok(()));
        assert_eq!(check_status(STATUS_OBJECT_NAME_NOT_FOUND), Err(OsError::FILE_NOT_FOUND));
        assert_eq!(check_status(STATUS_OBJECT_PATH_NOT_FOUND), Err(OsError::PATH_NOT_FOUND));
        assert_eq!(check_status(STATUS_BUFFER_OVERFLOW), Err(OsError::MORE_DATA));
        assert_eq!(check_status(STATUS_DELETE_PENDING), Err(OsError::DELETE_PENDING));
    }

    #[test]
    fn an_hresult_of_win32_becomes_its_win32_code_and_others_stay() {
        assert_eq!(from_hresult(0x8007_06ba_u32.cast_signed()), OsError::RPC_SERVER_UNAVAILABLE);
        assert_eq!(from_hresult(0x8004_1010_u32.cast_signed()), OsError::WBEM_INVALID_CLASS);
    }
}
