//! The resources that this process uses, for its metrics.

use std::mem::size_of;
use std::time::Duration;

use os::OsResult;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessHandleCount, GetProcessTimes};

use crate::error;

/// Returns the processor time that this process has used.
///
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocesstimes>
pub fn cpu_time() -> OsResult<Duration> {
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the pseudo handle of this process needs no right and is not closed; the four structures outlive the call.
    let done = unsafe {
        GetProcessTimes(GetCurrentProcess(), &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user)
    };
    error::check(done)?;
    // In units of 100 ns.
    let span =
        |time: FILETIME| (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)).saturating_mul(100);
    Ok(Duration::from_nanos(span(kernel).saturating_add(span(user))))
}

/// Returns the bytes of the working set.
///
/// <https://learn.microsoft.com/windows/win32/api/psapi/nf-psapi-getprocessmemoryinfo>
pub fn working_set() -> OsResult<usize> {
    let size = size_of::<PROCESS_MEMORY_COUNTERS>();
    let mut counters = PROCESS_MEMORY_COUNTERS { cb: u32::try_from(size).unwrap_or(u32::MAX), ..Default::default() };
    // SAFETY: the pseudo handle of this process needs no right and is not closed; `counters` has `cb` bytes.
    let done = unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, counters.cb) };
    error::check(done)?;
    Ok(counters.WorkingSetSize)
}

/// Returns the number of open handles.
///
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocesshandlecount>
pub fn handle_count() -> OsResult<u32> {
    let mut count = 0;
    // SAFETY: the pseudo handle of this process needs no right and is not closed; `count` outlives the call.
    let done = unsafe { GetProcessHandleCount(GetCurrentProcess(), &raw mut count) };
    error::check(done)?;
    Ok(count)
}
