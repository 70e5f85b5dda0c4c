//! The security descriptor of a pipe: the accounts that may connect.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::io;
use std::ptr;

use widestring::U16CString;
use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, ConvertStringSidToSidW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;

use crate::buffer;

/// The security descriptor of a pipe.
#[derive(Debug)]
pub struct Security {
    descriptor: Local,
}

impl Security {
    /// Grants all access to LocalSystem and the members of Administrators, and no access to other accounts.
    /// ContainerAdministrator, the account of a driver in a process-isolated container, is such a member.
    ///
    /// Less than all access is not enough: every client requests `GENERIC_WRITE`, which for a pipe includes the right to
    /// create instances.
    pub fn administrators() -> io::Result<Self> {
        Self::with_accounts::<&str>(&[])
    }

    /// Grants the same access as [`Self::administrators`], and all access to the accounts or groups with these SIDs
    /// (`S-1-5-...`). Each of them can then do everything to the node that csi-proxy can do.
    pub fn with_accounts<S: AsRef<str>>(sids: &[S]) -> io::Result<Self> {
        // P: no access control entries are inherited.
        let mut sddl = "D:P(A;;GA;;;SY)(A;;GA;;;BA)".to_owned();
        for sid in sids {
            // Also ensures that a text which is not a SID cannot add entries to the descriptor.
            check_sid(sid.as_ref())?;
            write!(sddl, "(A;;GA;;;{})", sid.as_ref()).map_err(io::Error::other)?;
        }
        Ok(Self { descriptor: parse(&sddl)? })
    }

    /// Returns the attributes for a call that creates an object. They point to this descriptor.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: buffer::size::<SECURITY_ATTRIBUTES>(),
            lpSecurityDescriptor: self.descriptor.0,
            bInheritHandle: 0,
        }
    }
}

/// Memory that Windows has allocated with `LocalAlloc`.
#[derive(Debug)]
struct Local(*mut c_void);

// SAFETY: the memory has no other owner and no ties to a thread.
unsafe impl Send for Local {}
// SAFETY: the memory is never written to while it is shared.
unsafe impl Sync for Local {}

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the memory is from LocalAlloc and has no other owner.
        unsafe { LocalFree(self.0) };
    }
}

fn parse(sddl: &str) -> io::Result<Local> {
    let text = U16CString::from_str(sddl).map_err(io::Error::other)?;
    let mut descriptor = ptr::null_mut();
    // SAFETY: the text is zero-terminated; `descriptor` outlives the call; a null pointer means that the size is not
    // returned.
    let parsed = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text.as_ptr(),
            SDDL_REVISION_1,
            &raw mut descriptor,
            ptr::null_mut(),
        )
    };
    if parsed == 0 { Err(io::Error::last_os_error()) } else { Ok(Local(descriptor)) }
}

fn check_sid(text: &str) -> io::Result<()> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("not a SID: {text}"));
    // Windows also accepts the two-letter names of SDDL, and Wine any text that begins like a SID.
    let is_numeric =
        text.strip_prefix("S-").is_some_and(|rest| rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-')));
    if !is_numeric {
        return Err(invalid());
    }
    let wide = U16CString::from_str(text).map_err(|_| invalid())?;
    let mut sid = ptr::null_mut();
    // SAFETY: the text is zero-terminated; `sid` outlives the call.
    if unsafe { ConvertStringSidToSidW(wide.as_ptr(), &raw mut sid) } == 0 {
        return Err(invalid());
    }
    drop(Local(sid));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Local, Security};
    use std::ptr;
    use std::sync::Arc;

    use std::os::windows::io::AsRawHandle as _;
    use tokio::net::windows::named_pipe::ClientOptions;
    use widestring::U16CStr;
    use windows_sys::Win32::Security::Authorization::{
        ConvertSecurityDescriptorToStringSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1, SE_KERNEL_OBJECT,
    };
    use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR};

    use crate::pipe::Listener;

    /// Returns the access control list of the descriptor as text.
    fn sddl(descriptor: PSECURITY_DESCRIPTOR) -> String {
        let mut text = ptr::null_mut();
        // SAFETY: the descriptor is valid; `text` outlives the call; a null pointer means that the length is not
        // returned.
        let made = unsafe {
            ConvertSecurityDescriptorToStringSecurityDescriptorW(
                descriptor,
                SDDL_REVISION_1,
                DACL_SECURITY_INFORMATION,
                &raw mut text,
                ptr::null_mut(),
            )
        };
        assert_ne!(made, 0);
        let text = (Local(text.cast()), text);
        // SAFETY: the string is zero-terminated and valid until `text` is dropped.
        unsafe { U16CStr::from_ptr_str(text.1) }.to_string_lossy()
    }

    #[test]
    fn only_administrators_and_the_system_have_access() {
        assert_eq!(sddl(Security::administrators().unwrap().descriptor.0), "D:P(A;;GA;;;SY)(A;;GA;;;BA)");
    }

    #[test]
    fn an_account_with_a_listed_sid_has_access() {
        let security = Security::with_accounts(&["S-1-5-93-2-1"]).unwrap();
        assert_eq!(sddl(security.descriptor.0), "D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;S-1-5-93-2-1)");
    }

    #[test]
    fn a_text_that_is_not_a_sid_is_refused() {
        for sid in ["", "S-", "WD", "Everyone", "S-1-5-93-2-1)(A;;GA;;;WD", "S-1-5\0-1"] {
            assert_eq!(Security::with_accounts(&[sid]).unwrap_err().kind(), std::io::ErrorKind::InvalidInput, "{sid}");
        }
    }

    #[tokio::test]
    async fn contract_04_a_pipe_has_the_requested_security_descriptor() {
        let security = Arc::new(Security::administrators().unwrap());
        let mut listener = Listener::bind(r"\\.\pipe\csi-proxy-test-security", security).unwrap();
        let _client = ClientOptions::new().open(listener.path()).unwrap();
        let server = listener.accept().await.unwrap();
        let mut descriptor = ptr::null_mut();
        // SAFETY: the handle is open; `descriptor` outlives the call; null pointers mean that the parts are not returned.
        let code = unsafe {
            GetSecurityInfo(
                server.as_raw_handle(),
                SE_KERNEL_OBJECT,
                DACL_SECURITY_INFORMATION,
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
                &raw mut descriptor,
            )
        };
        assert_eq!(code, 0);
        let descriptor = Local(descriptor);
        // Windows maps GENERIC_ALL (GA) to FILE_ALL_ACCESS (FA) for a pipe; Wine does not.
        assert_eq!(sddl(descriptor.0).replace("FA", "GA"), "D:P(A;;GA;;;SY)(A;;GA;;;BA)");
    }
}
