//! Services, by the service control manager.

use std::ptr;

use os::{OsError, OsResult, Service, ServiceAccess, ServiceConfig, U16Str, U16String};
use widestring::U16CStr;
use windows_sys::Win32::System::Services::{
    CloseServiceHandle, ControlService, ENUM_SERVICE_STATUSW, EnumDependentServicesW, OpenSCManagerW, OpenServiceW,
    QUERY_SERVICE_CONFIGW, QueryServiceConfigW, QueryServiceStatusEx, SC_HANDLE, SC_MANAGER_CONNECT,
    SC_STATUS_PROCESS_INFO, SERVICE_ACTIVE, SERVICE_CONTROL_STOP, SERVICE_ENUMERATE_DEPENDENTS, SERVICE_QUERY_CONFIG,
    SERVICE_QUERY_STATUS, SERVICE_START, SERVICE_STATUS, SERVICE_STATUS_PROCESS, SERVICE_STOP, StartServiceW,
};
use zerocopy::IntoBytes as _;

use crate::{buffer, error};

/// A handle of the service control manager: of the manager itself or of a service.
struct ScHandle(SC_HANDLE);

// SAFETY: such a handle is an RPC context that any thread may use; the manager orders concurrent calls itself.
unsafe impl Send for ScHandle {}
// SAFETY: as above.
unsafe impl Sync for ScHandle {}

impl ScHandle {
    /// Takes over what an open call returned.
    fn new(handle: SC_HANDLE) -> OsResult<Self> {
        if handle.is_null() { Err(error::last()) } else { Ok(Self(handle)) }
    }
}

impl Drop for ScHandle {
    fn drop(&mut self) {
        // SAFETY: the handle came from an open call and nobody else has it.
        unsafe { CloseServiceHandle(self.0) };
    }
}

/// An open service.
pub(crate) struct OpenService(ScHandle);

/// Opens the service `name`.
pub(crate) fn open(name: &U16Str, access: ServiceAccess) -> OsResult<OpenService> {
    const QUERY: u32 = SERVICE_QUERY_CONFIG | SERVICE_QUERY_STATUS;
    let rights = match access {
        ServiceAccess::Query => QUERY,
        ServiceAccess::Start => QUERY | SERVICE_START,
        ServiceAccess::Stop => QUERY | SERVICE_STOP | SERVICE_ENUMERATE_DEPENDENTS,
    };
    let name = error::terminated(name)?;
    // SAFETY: null means this machine and its active database.
    let manager = ScHandle::new(unsafe { OpenSCManagerW(ptr::null(), ptr::null(), SC_MANAGER_CONNECT) })?;
    // SAFETY: the manager's handle is open; the name ends with a zero.
    ScHandle::new(unsafe { OpenServiceW(manager.0, name.as_ptr(), rights) }).map(OpenService)
}

/// Calls `call(buffer, its size, the size it wants)` with larger buffers until one is large enough.
///
/// A buffer of `u64` is aligned for the structures of pointers and numbers that these calls write.
fn grown(mut call: impl FnMut(*mut u64, u32, &mut u32) -> i32) -> OsResult<Vec<u64>> {
    let mut buffer = vec![0_u64; 64];
    loop {
        let mut wanted = 0;
        match error::check(call(buffer.as_mut_ptr(), buffer::length(buffer.as_bytes())?, &mut wanted)) {
            Ok(()) => return Ok(buffer),
            Err(OsError::INSUFFICIENT_BUFFER | OsError::MORE_DATA) => {
                // Twice what it wants, for what may come before the next call; and always more than there was.
                let larger = (wanted as usize / 8).max(buffer.len()) * 2;
                buffer = vec![0; larger];
            }
            Err(error) => return Err(error),
        }
    }
}

/// A copy of a string that such a call has left behind; null is empty.
///
/// # Safety
///
/// `text` is null, or points to units that end with a zero and are live now.
unsafe fn copied(text: *const u16) -> U16String {
    if text.is_null() {
        return U16String::new();
    }
    // SAFETY: not null, and the rest is the caller's promise.
    unsafe { U16CStr::from_ptr_str(text) }.to_ustring()
}

impl Service for OpenService {
    fn config(&self) -> OsResult<ServiceConfig> {
        let buffer = grown(|buffer, size, wanted| {
            // SAFETY: the handle is open; the pointer and the size are one live buffer's.
            unsafe { QueryServiceConfigW(self.0.0, buffer.cast(), size, wanted) }
        })?;
        // SAFETY: the call succeeded, so the aligned buffer begins with this structure of plain numbers and
        // pointers.
        let config = unsafe { buffer.as_ptr().cast::<QUERY_SERVICE_CONFIGW>().read() };
        Ok(ServiceConfig {
            // SAFETY: the string is in `buffer`, which is live.
            display_name: unsafe { copied(config.lpDisplayName) },
            start_type: config.dwStartType,
        })
    }

    fn state(&self) -> OsResult<u32> {
        let mut status = SERVICE_STATUS_PROCESS::default();
        let mut wanted = 0;
        // SAFETY: the handle is open; the pointer and the size are one live structure's, which any bytes make valid.
        error::check(unsafe {
            QueryServiceStatusEx(
                self.0.0,
                SC_STATUS_PROCESS_INFO,
                (&raw mut status).cast(),
                buffer::size::<SERVICE_STATUS_PROCESS>(),
                &raw mut wanted,
            )
        })?;
        Ok(status.dwCurrentState)
    }

    fn start(&self) -> OsResult<()> {
        // SAFETY: the handle is open; there are no arguments.
        error::check(unsafe { StartServiceW(self.0.0, 0, ptr::null()) })
    }

    fn stop(&self) -> OsResult<()> {
        let mut status = SERVICE_STATUS::default();
        // SAFETY: the handle is open; `status` outlives the call.
        error::check(unsafe { ControlService(self.0.0, SERVICE_CONTROL_STOP, &raw mut status) })
    }

    fn active_dependents(&self) -> OsResult<Vec<U16String>> {
        let mut count = 0;
        let buffer = grown(|buffer, size, wanted| {
            // SAFETY: the handle is open; the pointer and the size are one live buffer's; `count` outlives the call.
            unsafe { EnumDependentServicesW(self.0.0, SERVICE_ACTIVE, buffer.cast(), size, wanted, &raw mut count) }
        })?;
        let first = buffer.as_ptr().cast::<ENUM_SERVICE_STATUSW>();
        let names = (0..count as usize).map(|index| {
            // SAFETY: the call succeeded, so the aligned buffer begins with `count` of these, of plain numbers and
            // pointers to strings in it.
            unsafe { copied((*first.add(index)).lpServiceName) }
        });
        Ok(names.collect())
    }
}
