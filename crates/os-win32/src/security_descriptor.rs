//! Security descriptors, and the accounts in them.
//!
//! A descriptor is made from SDDL text. Those that Windows returns are decoded by
//! `os::abi::SecurityDescriptor`.

use std::ffi::c_void;
use std::io;
use std::os::windows::io::RawHandle;
use std::ptr;

use os::abi::AccessEntry;
use os::{OsError, OsResult, U16String};
use widestring::U16CString;
use windows_sys::Wdk::Storage::FileSystem::NtSetSecurityObject;
use windows_sys::Win32::Foundation::{ERROR_INVALID_SECURITY_DESCR, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, ConvertStringSidToSidW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, LookupAccountSidW,
    OWNER_SECURITY_INFORMATION, SECURITY_ATTRIBUTES,
};

use crate::{buffer, error};

/// The size of the largest descriptor: a list of 64 KiB, and the SIDs of the owner and the group
/// with 68 bytes each.
const LARGEST: usize = 0x1_1000;

/// A security descriptor for an object that is to be created.
#[derive(Debug)]
pub(crate) struct SecurityDescriptor(Local);

impl SecurityDescriptor {
    /// Makes a descriptor from its text.
    pub(crate) fn from_sddl(sddl: &str) -> io::Result<Self> {
        let text = U16CString::from_str(sddl).map_err(io::Error::other)?;
        let mut descriptor = ptr::null_mut();
        // SAFETY: the text is zero-terminated; `descriptor` outlives the call; a null pointer means
        // that the size is not returned.
        let parsed = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                ptr::null_mut(),
            )
        };
        if parsed == 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self(Local(descriptor)))
        }
    }

    /// Returns the attributes for a call that creates an object. They point to this descriptor.
    pub(crate) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: buffer::size::<SECURITY_ATTRIBUTES>(),
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: 0,
        }
    }
}

/// Returns the owner and the access control list of an open object. The handle needs
/// `READ_CONTROL`.
///
/// Errors: `ERROR_INVALID_SECURITY_DESCR` if the list has an entry of an unknown kind.
pub(crate) fn of_handle(handle: RawHandle) -> OsResult<os::abi::SecurityDescriptor> {
    os::abi::SecurityDescriptor::parse(&read(handle)?).ok_or(OsError(ERROR_INVALID_SECURITY_DESCR))
}

/// Replaces the access control list of an open object, and of no other object. The handle needs
/// `WRITE_DAC`.
///
/// Errors: `NOT_SUPPORTED` for an entry with a condition, which [`of_handle`] does not decode.
pub(crate) fn set_list(handle: RawHandle, entries: &[AccessEntry]) -> OsResult<()> {
    let descriptor = SecurityDescriptor::from_sddl(&sddl_of_list(entries)?);
    let descriptor = descriptor.map_err(|_| OsError(ERROR_INVALID_SECURITY_DESCR))?;
    // SAFETY: the handle is open; the descriptor is valid and outlives the call.
    error::check_status(unsafe {
        NtSetSecurityObject(handle, DACL_SECURITY_INFORMATION, descriptor.0.0)
    })
}

/// Returns an access control list as SDDL.
fn sddl_of_list(entries: &[AccessEntry]) -> OsResult<String> {
    const FLAGS: [(u8, &str); 5] = [(1, "OI"), (2, "CI"), (4, "NP"), (8, "IO"), (0x10, "ID")];
    let ace = |AccessEntry {
                   kind,
                   flags,
                   rights,
                   sid,
               }: &AccessEntry| {
        let kind = ["A", "D"]
            .get(*kind as usize)
            .ok_or(OsError::NOT_SUPPORTED)?;
        let flags: String = FLAGS
            .iter()
            .filter(|(bit, _)| flags & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        Ok(format!("({kind};{flags};{rights:#x};;;{sid})"))
    };
    Ok(format!(
        "D:{}",
        entries.iter().map(ace).collect::<OsResult<String>>()?
    ))
}

/// Returns the descriptor of an open object as Windows lays it out.
fn read(handle: RawHandle) -> OsResult<Vec<u8>> {
    let mut bytes = vec![0; LARGEST];
    let parts = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    let mut needed = 0;
    buffer::fill(&mut bytes, |output, length| {
        // SAFETY: the handle is open; `length` bytes at the pointer can be written; `needed`
        // outlives the call.
        error::check(unsafe {
            GetKernelObjectSecurity(handle, parts, output, length, &raw mut needed)
        })
    })?;
    bytes.truncate(needed as usize);
    Ok(bytes)
}

/// A security identifier: an account or a group.
#[derive(Debug)]
pub(crate) struct Sid(Local);

impl Sid {
    /// Parses the numeric form, `S-1-5-...`. Errors: `InvalidInput` for any other text.
    pub(crate) fn parse(text: &str) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("not a SID: {text}"));
        // Windows also accepts the two-letter names of SDDL, and Wine any text that begins like a
        // SID.
        text.parse::<os::abi::Sid>().map_err(|_| invalid())?;
        let wide = U16CString::from_str(text).map_err(|_| invalid())?;
        let mut sid = ptr::null_mut();
        // SAFETY: the text is zero-terminated; `sid` outlives the call.
        if unsafe { ConvertStringSidToSidW(wide.as_ptr(), &raw mut sid) } == 0 {
            return Err(invalid());
        }
        Ok(Self(Local(sid)))
    }

    /// Returns the name of the account, such as `NT AUTHORITY\Authenticated Users`, in the language
    /// of this system.
    ///
    /// Errors: `ERROR_NONE_MAPPED` (1332) if the account does not exist.
    pub(crate) fn account(&self) -> io::Result<String> {
        // Longer than any name of an account or of a domain.
        let (mut name, mut domain) = ([0_u16; 512], [0_u16; 512]);
        let (mut name_length, mut domain_length) = (512, 512);
        let mut kind = 0;
        // SAFETY: the SID is valid; a null name selects this machine; the pointers and lengths are
        // those of the buffers; all of them outlive the call.
        let found = unsafe {
            LookupAccountSidW(
                ptr::null(),
                self.0.0,
                name.as_mut_ptr(),
                &raw mut name_length,
                domain.as_mut_ptr(),
                &raw mut domain_length,
                &raw mut kind,
            )
        };
        if found == 0 {
            return Err(io::Error::last_os_error());
        }
        // The lengths are those without the terminating zeros.
        let text = |units: &[u16], length: u32| {
            U16String::from_vec(&units[..length as usize]).to_string_lossy()
        };
        let (name, domain) = (text(&name, name_length), text(&domain, domain_length));
        Ok(if domain.is_empty() {
            name
        } else {
            format!(r"{domain}\{name}")
        })
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

#[cfg(test)]
pub(crate) mod tests {
    use std::ffi::c_void;
    use std::os::windows::io::RawHandle;
    use std::ptr;

    use os::OsError;
    use os::abi::{AccessEntry, EntryKind};
    use widestring::U16CStr;
    use windows_sys::Win32::Security::Authorization::{
        ConvertSecurityDescriptorToStringSecurityDescriptorW, SDDL_REVISION_1,
    };
    use windows_sys::Win32::Security::DACL_SECURITY_INFORMATION;

    use super::{Local, SecurityDescriptor, Sid, read, sddl_of_list};

    /// Returns the access control list of a valid descriptor as SDDL.
    fn sddl(descriptor: *mut c_void) -> String {
        let mut text = ptr::null_mut();
        // SAFETY: the descriptor is valid; `text` outlives the call; a null pointer means that the
        // length is not returned.
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

    impl SecurityDescriptor {
        /// Returns the access control list as SDDL.
        pub(crate) fn sddl(&self) -> String {
            sddl(self.0.0)
        }
    }

    /// Returns the access control list of an open object as SDDL.
    pub(crate) fn sddl_of(handle: RawHandle) -> String {
        let descriptor = read(handle).unwrap();
        let mut aligned = vec![0_u64; descriptor.len().div_ceil(8)];
        zerocopy::IntoBytes::as_mut_bytes(aligned.as_mut_slice())[..descriptor.len()]
            .copy_from_slice(&descriptor);
        sddl(aligned.as_mut_ptr().cast())
    }

    #[test]
    fn a_list_is_written_as_sddl_unless_an_entry_has_a_condition() {
        let entry = |kind, flags, sid: &str| AccessEntry {
            kind,
            flags,
            rights: 0x13_01bf,
            sid: sid.parse().unwrap(),
        };
        let plain = [
            entry(EntryKind::Allow, 3, "S-1-5-93-2-2"),
            entry(EntryKind::Deny, 0x1e, "S-1-5-32-545"),
        ];
        let text = sddl_of_list(&plain).unwrap();
        assert_eq!(
            text,
            "D:(A;OICI;0x1301bf;;;S-1-5-93-2-2)(D;CINPIOID;0x1301bf;;;S-1-5-32-545)"
        );
        SecurityDescriptor::from_sddl(&text).unwrap();
        for kind in [EntryKind::AllowIf, EntryKind::DenyIf] {
            assert_eq!(
                sddl_of_list(&[entry(kind, 0, "S-1-1-0")]),
                Err(OsError::NOT_SUPPORTED)
            );
        }
    }

    #[test]
    fn a_well_known_account_has_a_name_and_an_unknown_one_none() {
        // The name is that of the system's language.
        assert!(
            !Sid::parse("S-1-5-32-544")
                .unwrap()
                .account()
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            Sid::parse("S-1-5-93-2-1")
                .unwrap()
                .account()
                .unwrap_err()
                .raw_os_error(),
            Some(1332)
        );
    }
}
