//! Who has access to files and folders.

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

use widestring::U16CString;
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, FILE_FLAG_BACKUP_SEMANTICS, READ_CONTROL,
};

use crate::security_descriptor::{self, SecurityDescriptor, Sid};

/// LocalSystem and Administrators have all access, also to what is created in the folder; no one
/// else has any, and nothing is inherited from the folder above.
pub const ADMINISTRATORS_ONLY: &str = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/// Creates a folder with the access that `sddl` describes. Errors: `AlreadyExists`.
///
/// <https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createdirectoryw>
pub fn create_folder(path: &Path, sddl: &str) -> io::Result<()> {
    let path = U16CString::from_os_str(path).map_err(io::Error::other)?;
    let security = SecurityDescriptor::from_sddl(sddl)?;
    let attributes = security.attributes();
    // SAFETY: the path is zero-terminated; the descriptor that the attributes point to outlives the
    // call.
    let created = unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) };
    if created == 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Returns the owner and the access control list of a file or folder. A link is followed.
///
/// <https://learn.microsoft.com/windows/win32/api/securitybaseapi/nf-securitybaseapi-getkernelobjectsecurity>
pub fn security_descriptor(path: &Path) -> io::Result<os::abi::SecurityDescriptor> {
    let file = OpenOptions::new()
        .access_mode(READ_CONTROL)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)?;
    let descriptor = security_descriptor::of_handle(file.as_raw_handle());
    descriptor.map_err(|code| io::Error::from_raw_os_error(code.0.cast_signed()))
}

/// Returns the name of the account or group with this SID (`S-1-5-...`), such as
/// `NT AUTHORITY\Authenticated Users`.
///
/// Errors: `ERROR_NONE_MAPPED` (1332) if it does not exist.
/// <https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-lookupaccountsidw>
pub fn account(sid: &str) -> io::Result<String> {
    Sid::parse(sid)?.account()
}
