//! Conversion of Windows' kinds of error codes to [`OsError`].

use os::{OsError, OsResult, U16Str};
use widestring::U16CString;
use windows_sys::Win32::Foundation::{
    ERROR_DELETE_PENDING, GetLastError, NTSTATUS, RtlNtStatusToDosError, STATUS_DELETE_PENDING,
};

/// Returns the last error of the calling thread.
pub(crate) fn last() -> OsError {
    // SAFETY: the function has no parameters and reads a value of the calling thread.
    OsError(unsafe { GetLastError() })
}

/// Converts the result of a Win32 call that returns a `BOOL`.
pub(crate) fn check(succeeded: i32) -> OsResult<()> {
    if succeeded == 0 { Err(last()) } else { Ok(()) }
}

/// Converts the result of a native API call. A warning, such as `STATUS_BUFFER_OVERFLOW`, is an
/// error.
pub(crate) fn check_status(status: NTSTATUS) -> OsResult<()> {
    match status {
        0.. => Ok(()),
        // RtlNtStatusToDosError returns "access denied" for it, which would suggest missing
        // permissions.
        STATUS_DELETE_PENDING => Err(OsError(ERROR_DELETE_PENDING)),
        // SAFETY: the function looks the number up in a table and accepts any number.
        _ => Err(OsError(unsafe { RtlNtStatusToDosError(status) })),
    }
}

/// Converts a failed `HRESULT`: one of `FACILITY_WIN32` to its Win32 code, any other unchanged.
pub(crate) fn from_hresult(code: i32) -> OsError {
    OsError::from_hresult(code.cast_unsigned())
}

/// Returns `text` with a terminating zero. A text that contains a zero is not a valid name.
pub(crate) fn terminated(text: &U16Str) -> OsResult<U16CString> {
    U16CString::from_ustr(text).map_err(|_| OsError::INVALID_NAME)
}

#[cfg(test)]
mod tests {
    use super::check_status;
    use os::OsError;
    use windows_sys::Win32::Foundation::{
        STATUS_BUFFER_OVERFLOW, STATUS_DELETE_PENDING, STATUS_OBJECT_NAME_NOT_FOUND,
        STATUS_OBJECT_PATH_NOT_FOUND,
    };

    #[test]
    fn an_ntstatus_is_converted_to_its_win32_code() {
        assert_eq!(check_status(0), Ok(()));
        assert_eq!(
            check_status(STATUS_OBJECT_NAME_NOT_FOUND),
            Err(OsError::FILE_NOT_FOUND)
        );
        assert_eq!(
            check_status(STATUS_OBJECT_PATH_NOT_FOUND),
            Err(OsError::PATH_NOT_FOUND)
        );
        assert_eq!(
            check_status(STATUS_BUFFER_OVERFLOW),
            Err(OsError::MORE_DATA)
        );
        assert_eq!(
            check_status(STATUS_DELETE_PENDING),
            Err(OsError::DELETE_PENDING)
        );
    }
}
