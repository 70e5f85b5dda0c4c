//! Privileges of the process.

use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle, RawHandle};
use std::ptr;

use os::{OsError, OsResult};
use windows_sys::Win32::Foundation::LUID;
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW,
    SE_CREATE_SYMBOLIC_LINK_NAME, SE_LOAD_DRIVER_NAME, SE_MANAGE_VOLUME_NAME, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};
use windows_sys::core::PCWSTR;

use crate::error;

/// The name of a privilege, which is one of Windows' own constants.
#[derive(Clone, Copy)]
pub(crate) struct Name(PCWSTR);

/// The privilege to create symbolic links.
pub(crate) const CREATE_SYMBOLIC_LINK: Name = Name(SE_CREATE_SYMBOLIC_LINK_NAME);

/// The privilege to enumerate the children of a device again.
pub(crate) const LOAD_DRIVER: Name = Name(SE_LOAD_DRIVER_NAME);

/// The privilege to extend a volume.
pub(crate) const MANAGE_VOLUME: Name = Name(SE_MANAGE_VOLUME_NAME);

/// Enables a privilege for the whole process, permanently.
pub(crate) fn enable(privilege: Name) -> OsResult<()> {
    let mut luid = LUID::default();
    // SAFETY: the name is a zero-terminated constant; `luid` outlives the call.
    error::check(unsafe { LookupPrivilegeValueW(ptr::null(), privilege.0, &raw mut luid) })?;
    let token = own_token()?;
    let wanted = TOKEN_PRIVILEGES {
        PrivilegeCount: 1,
        Privileges: [LUID_AND_ATTRIBUTES {
            Luid: luid,
            Attributes: SE_PRIVILEGE_ENABLED,
        }],
    };
    // SAFETY: the token is open, `wanted` outlives the call, and a null pointer means that the
    // previous state is not returned.
    error::check(unsafe {
        AdjustTokenPrivileges(
            token.as_raw_handle(),
            0,
            &raw const wanted,
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    })?;
    // The call also succeeds if the token does not have the privilege. Only the last error shows
    // that.
    match error::last() {
        OsError(0) => Ok(()),
        error => Err(error),
    }
}

fn own_token() -> OsResult<OwnedHandle> {
    let mut token: RawHandle = ptr::null_mut();
    // SAFETY: the pseudo-handle of the process is always valid; `token` outlives the call.
    error::check(unsafe {
        OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES, &raw mut token)
    })?;
    // SAFETY: the call succeeded, so this is an open handle that has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}

#[cfg(test)]
mod tests {
    use super::{Name, enable};
    use os::OsError;
    use windows_sys::Win32::Security::{SE_BACKUP_NAME, SE_TRUSTED_CREDMAN_ACCESS_NAME};

    #[test]
    fn a_privilege_that_the_account_has_is_enabled() {
        assert_eq!(enable(Name(SE_BACKUP_NAME)), Ok(()));
    }

    #[test]
    fn a_privilege_that_no_account_has_is_refused() {
        let refused = enable(Name(SE_TRUSTED_CREDMAN_ACCESS_NAME)).unwrap_err();
        let unknown_to_wine = OsError(1313);
        assert!(
            [OsError(1300), unknown_to_wine].contains(&refused),
            "{refused}"
        );
    }
}
