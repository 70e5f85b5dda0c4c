//! Services, through the service control manager.

use std::ptr;

use os::{OsError, OsResult, Service, ServiceAccess, ServiceConfig, U16Str, U16String};
use widestring::U16CStr;
use windows_sys::Win32::System::Services::{
    CloseServiceHandle, ControlService, ENUM_SERVICE_STATUS_PROCESSW, ENUM_SERVICE_STATUSW,
    EnumDependentServicesW, EnumServicesStatusExW, OpenSCManagerW, OpenServiceW,
    QUERY_SERVICE_CONFIGW, QueryServiceConfigW, QueryServiceStatusEx, SC_ENUM_PROCESS_INFO,
    SC_HANDLE, SC_MANAGER_CONNECT, SC_MANAGER_ENUMERATE_SERVICE, SC_STATUS_PROCESS_INFO,
    SERVICE_ACTIVE, SERVICE_CONTROL_STOP, SERVICE_ENUMERATE_DEPENDENTS, SERVICE_QUERY_CONFIG,
    SERVICE_QUERY_STATUS, SERVICE_START, SERVICE_STATE_ALL, SERVICE_STATUS, SERVICE_STATUS_PROCESS,
    SERVICE_STOP, SERVICE_WIN32, SERVICE_WIN32_SHARE_PROCESS, StartServiceW,
};
use zerocopy::IntoBytes as _;

use crate::{buffer, error};

/// The size of the buffer for a part of the list of services.
const LIST_SIZE: usize = 64 << 10;

/// A handle of the service control manager or of a service.
struct ScHandle(SC_HANDLE);

// SAFETY: the handle is an RPC context, which any thread may use.
unsafe impl Send for ScHandle {}
// SAFETY: the service control manager serializes concurrent calls.
unsafe impl Sync for ScHandle {}

impl ScHandle {
    /// Takes ownership of the handle that an open call returned.
    fn new(handle: SC_HANDLE) -> OsResult<Self> {
        if handle.is_null() {
            Err(error::last())
        } else {
            Ok(Self(handle))
        }
    }
}

impl Drop for ScHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is from an open call and has no other owner.
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
    // SAFETY: null pointers select this machine and its active database.
    let manager =
        ScHandle::new(unsafe { OpenSCManagerW(ptr::null(), ptr::null(), SC_MANAGER_CONNECT) })?;
    // SAFETY: the handle of the manager is open; the name is zero-terminated.
    ScHandle::new(unsafe { OpenServiceW(manager.0, name.as_ptr(), rights) }).map(OpenService)
}

/// A service in the list of all services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the service.
    pub name: U16String,
    /// The id of its process, 0 if it does not run.
    pub process: u32,
    /// Whether other services may run in that process.
    pub shares_process: bool,
}

/// Returns all services, except drivers.
///
/// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumservicesstatusexw>
pub fn list() -> OsResult<Vec<Listed>> {
    const RIGHTS: u32 = SC_MANAGER_CONNECT | SC_MANAGER_ENUMERATE_SERVICE;
    // SAFETY: null pointers select this machine and its active database.
    let manager = ScHandle::new(unsafe { OpenSCManagerW(ptr::null(), ptr::null(), RIGHTS) })?;
    let mut buffer = vec![0_u64; LIST_SIZE / size_of::<u64>()];
    let mut services = Vec::new();
    let mut next = 0;
    loop {
        let (mut needed, mut count) = (0, 0);
        // SAFETY: the handle is open; the pointer and the size are those of `buffer`, which outlives
        // the call, as the numbers do; the null pointer selects the services of all groups.
        let result = error::check(unsafe {
            EnumServicesStatusExW(
                manager.0,
                SC_ENUM_PROCESS_INFO,
                SERVICE_WIN32,
                SERVICE_STATE_ALL,
                buffer.as_mut_ptr().cast(),
                buffer::length(buffer.as_bytes())?,
                &raw mut needed,
                &raw mut count,
                &raw mut next,
                ptr::null(),
            )
        });
        let first = buffer.as_ptr().cast::<ENUM_SERVICE_STATUS_PROCESSW>();
        services.extend((0..count as usize).map(|index| {
            // SAFETY: the call has written `count` of these structures at the start of the buffer,
            // which is aligned, also if it could not write all.
            let service = unsafe { first.add(index).read() };
            let status = service.ServiceStatusProcess;
            Listed {
                // SAFETY: the name is a zero-terminated string in `buffer`.
                name: unsafe { copy_string(service.lpServiceName) },
                process: status.dwProcessId,
                shares_process: status.dwServiceType & SERVICE_WIN32_SHARE_PROCESS != 0,
            }
        }));
        match result {
            Ok(()) => return Ok(services),
            Err(OsError::MORE_DATA) if count > 0 => {}
            Err(error) => return Err(error),
        }
    }
}

/// Calls `call(buffer, size, &mut needed)`, with sizes in bytes, until the buffer is large enough,
/// and returns it.
///
/// A buffer of `u64` is aligned for the structures of numbers and pointers that these calls write.
fn with_growing_buffer(mut call: impl FnMut(*mut u64, u32, &mut u32) -> i32) -> OsResult<Vec<u64>> {
    let mut buffer = vec![0_u64; 64];
    loop {
        let mut needed = 0;
        match error::check(call(
            buffer.as_mut_ptr(),
            buffer::length(buffer.as_bytes())?,
            &mut needed,
        )) {
            Ok(()) => return Ok(buffer),
            Err(OsError::INSUFFICIENT_BUFFER | OsError::MORE_DATA) => {
                // More than needed, because services may be added before the next call, and more
                // than before.
                let larger = (needed as usize / 8).max(buffer.len()) * 2;
                buffer = vec![0; larger];
            }
            Err(error) => return Err(error),
        }
    }
}

/// Copies a string that such a call has written. A null pointer is the empty string.
///
/// # Safety
///
/// `text` is null or points to a zero-terminated string that is valid during the call.
unsafe fn copy_string(text: *const u16) -> U16String {
    if text.is_null() {
        return U16String::new();
    }
    // SAFETY: the pointer is not null, and so by the caller's promise it is a valid string.
    unsafe { U16CStr::from_ptr_str(text) }.to_ustring()
}

impl Service for OpenService {
    fn config(&self) -> OsResult<ServiceConfig> {
        let buffer = with_growing_buffer(|buffer, size, needed| {
            // SAFETY: the handle is open; the pointer and the size are those of one buffer, which
            // outlives the call.
            unsafe { QueryServiceConfigW(self.0.0, buffer.cast(), size, needed) }
        })?;
        // SAFETY: the call succeeded, so the buffer, which is aligned, begins with this structure
        // of numbers and pointers.
        let config = unsafe { buffer.as_ptr().cast::<QUERY_SERVICE_CONFIGW>().read() };
        Ok(ServiceConfig {
            // SAFETY: the pointer is null or to a zero-terminated string in `buffer`, which is
            // still allocated.
            display_name: unsafe { copy_string(config.lpDisplayName) },
            start_type: config.dwStartType,
        })
    }

    fn state(&self) -> OsResult<u32> {
        let mut status = SERVICE_STATUS_PROCESS::default();
        let mut needed = 0;
        // SAFETY: the handle is open; the pointer and the size are those of `status`, for which any
        // bytes are valid.
        error::check(unsafe {
            QueryServiceStatusEx(
                self.0.0,
                SC_STATUS_PROCESS_INFO,
                (&raw mut status).cast(),
                buffer::size::<SERVICE_STATUS_PROCESS>(),
                &raw mut needed,
            )
        })?;
        Ok(status.dwCurrentState)
    }

    fn start(&self) -> OsResult<()> {
        // SAFETY: the handle is open; the count of arguments is 0, so the null pointer is not read.
        error::check(unsafe { StartServiceW(self.0.0, 0, ptr::null()) })
    }

    fn stop(&self) -> OsResult<()> {
        let mut status = SERVICE_STATUS::default();
        // SAFETY: the handle is open; `status` outlives the call.
        error::check(unsafe { ControlService(self.0.0, SERVICE_CONTROL_STOP, &raw mut status) })
    }

    fn active_dependents(&self) -> OsResult<Vec<U16String>> {
        let mut count = 0;
        let buffer = with_growing_buffer(|buffer, size, needed| {
            // SAFETY: the handle is open; the pointer and the size are those of one buffer, which
            // outlives the call, as `count` does.
            unsafe {
                EnumDependentServicesW(
                    self.0.0,
                    SERVICE_ACTIVE,
                    buffer.cast(),
                    size,
                    needed,
                    &raw mut count,
                )
            }
        })?;
        let first = buffer.as_ptr().cast::<ENUM_SERVICE_STATUSW>();
        let names = (0..count as usize).map(|index| {
            // SAFETY: the call succeeded, so the buffer, which is aligned, begins with `count` of
            // these structures, and their names are zero-terminated strings in it.
            unsafe { copy_string((*first.add(index)).lpServiceName) }
        });
        Ok(names.collect())
    }
}
