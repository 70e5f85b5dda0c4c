//! Who may connect to a pipe.

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
    /// LocalSystem and the members of Administrators may do everything, nobody else anything. The process-isolated
    /// container of a driver that runs as ContainerAdministrator is such a member.
    ///
    /// "Everything" is what it takes: a client that asks for `GENERIC_WRITE`, as all do, asks with it for the right
    /// to make instances.
    pub fn administrators() -> io::Result<Self> {
        Self::with_accounts::<&str>(&[])
    }

    /// As [`Self::administrators`], and the accounts or groups with these SIDs (`S-1-5-...`) too. Whoever is let in
    /// can do to the node what csi-proxy can.
    pub fn with_accounts<S: AsRef<str>>(sids: &[S]) -> io::Result<Self> {
        // P: not what the parent object might pass down.
        let mut sddl = "D:P(A;;GA;;;SY)(A;;GA;;;BA)".to_owned();
        for sid in sids {
            // Also keeps anything but a SID from becoming part of the descriptor.
            check_sid(sid.as_ref())?;
            write!(sddl, "(A;;GA;;;{})", sid.as_ref()).map_err(io::Error::other)?;
        }
        Ok(Self { descriptor: parse(&sddl)? })
    }

    /// For one call that makes an object; refers to this descriptor.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: buffer::size::<SECURITY_ATTRIBUTES>(),
            lpSecurityDescriptor: self.descriptor.0,
            bInheritHandle: 0,
        }
    }
}

/// Memory that Windows has allocated for us with `LocalAlloc`.
#[derive(Debug)]
struct Local(*mut c_void);

// SAFETY: plain memory, that nobody else has and nobody writes to.
unsafe impl Send for Local {}
// SAFETY: as above.
unsafe impl Sync for Local {}

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the memory came from LocalAlloc and nobody else has it.
        unsafe { LocalFree(self.0) };
    }
}

fn parse(sddl: &str) -> io::Result<Local> {
    let text = U16CString::from_str(sddl).map_err(io::Error::other)?;
    let mut descriptor = ptr::null_mut();
    // SAFETY: the text ends with a zero; `descriptor` outlives the call; the size is not wanted.
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
    // Windows would also take SDDL's two-letter names, and Wine whatever begins like a SID.
    let is_numeric =
        text.strip_prefix("S-").is_some_and(|rest| rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-')));
    if !is_numeric {
        return Err(invalid());
    }
    let wide = U16CString::from_str(text).map_err(|_| invalid())?;
    let mut sid = ptr::null_mut();
    // SAFETY: the text ends with a zero; `sid` outlives the call.
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
    use widestring::U16CStr;
    use windows_sys::Win32::Security::Authorization::{
        ConvertSecurityDescriptorToStringSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1, SE_KERNEL_OBJECT,
    };
    use windows_sys::Win32::Security::{DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR};

    use crate::pipe::Listener;

    /// The descriptor's access list as text.
    fn sddl(descriptor: PSECURITY_DESCRIPTOR) -> String {
        let mut text = ptr::null_mut();
        // SAFETY: the descriptor is live; `text` outlives the call; the length is not wanted.
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
        // SAFETY: the string ends with a zero and is live until `text` is dropped.
        unsafe { U16CStr::from_ptr_str(text.1) }.to_string_lossy()
    }

    #[test]
    fn administrators_and_the_system_are_let_in_and_nobody_else() {
        assert_eq!(sddl(Security::administrators().unwrap().descriptor.0), "D:P(A;;GA;;;SY)(A;;GA;;;BA)");
    }

    #[test]
    fn an_account_that_was_named_is_let_in_too() {
        let security = Security::with_accounts(&["S-1-5-93-2-1"]).unwrap();
        assert_eq!(sddl(security.descriptor.0), "D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;S-1-5-93-2-1)");
    }

    #[test]
    fn what_is_not_a_sid_never_gets_into_the_descriptor() {
        for sid in ["", "S-", "WD", "Everyone", "S-1-5-93-2-1)(A;;GA;;;WD", "S-1-5\0-1"] {
            assert_eq!(Security::with_accounts(&[sid]).unwrap_err().kind(), std::io::ErrorKind::InvalidInput, "{sid}");
        }
    }

    #[tokio::test]
    async fn contract_04_a_pipe_has_the_security_descriptor_asked_for() {
        let security = Arc::new(Security::administrators().unwrap());
        let mut listener = Listener::bind(r"\\.\pipe\csi-proxy-test-security", security).unwrap();
        let _client = crate::pipe::connect(listener.path(), std::time::Duration::ZERO).await.unwrap();
        let server = listener.accept().await.unwrap();
        let mut descriptor = ptr::null_mut();
        // SAFETY: the handle is open; `descriptor` outlives the call; the parts are not wanted.
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
        // "All" becomes what it means for a pipe, FILE_ALL_ACCESS; Wine leaves it as it is.
        assert_eq!(sddl(descriptor.0).replace("FA", "GA"), "D:P(A;;GA;;;SY)(A;;GA;;;BA)");
    }
}
