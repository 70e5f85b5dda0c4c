//! This process: the resources that it uses, where Windows looks for its DLLs, and the end of its
//! children.

use std::time::Duration;
use std::{io, ptr};

use os::OsResult;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::LibraryLoader::{
    LOAD_LIBRARY_SEARCH_SYSTEM32, SetDefaultDllDirectories,
};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessHandleCount, GetProcessTimes,
};

use crate::{buffer, error};

/// Returns the processor time that this process has used.
///
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocesstimes>
pub fn cpu_time() -> OsResult<Duration> {
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the pseudo handle of this process needs no right and is not closed; the four
    // structures outlive the call.
    let done = unsafe {
        GetProcessTimes(
            GetCurrentProcess(),
            &raw mut created,
            &raw mut ended,
            &raw mut kernel,
            &raw mut user,
        )
    };
    error::check(done)?;
    // In units of 100 ns.
    let span = |time: FILETIME| {
        (u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)).saturating_mul(100)
    };
    Ok(Duration::from_nanos(
        span(kernel).saturating_add(span(user)),
    ))
}

/// Returns the bytes of the working set.
///
/// <https://learn.microsoft.com/windows/win32/api/psapi/nf-psapi-getprocessmemoryinfo>
pub fn working_set() -> OsResult<usize> {
    let mut counters = PROCESS_MEMORY_COUNTERS {
        cb: buffer::size::<PROCESS_MEMORY_COUNTERS>(),
        ..Default::default()
    };
    // SAFETY: the pseudo handle of this process needs no right and is not closed; `counters` has
    // `cb` bytes.
    let done =
        unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, counters.cb) };
    error::check(done)?;
    Ok(counters.WorkingSetSize)
}

/// Returns the number of open handles.
///
/// <https://learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocesshandlecount>
pub fn handle_count() -> OsResult<u32> {
    let mut count = 0;
    // SAFETY: the pseudo handle of this process needs no right and is not closed; `count` outlives
    // the call.
    let done = unsafe { GetProcessHandleCount(GetCurrentProcess(), &raw mut count) };
    error::check(done)?;
    Ok(count)
}

/// Lets Windows end the processes that this one starts from now on, and theirs, when this one ends
/// or is killed.
///
/// <https://learn.microsoft.com/windows/win32/procthread/job-objects>
pub fn end_children_with_this_process() -> OsResult<()> {
    // SAFETY: both parameters may be null. The handle stays open until Windows closes it with this
    // process.
    let job = unsafe { CreateJobObjectW(ptr::null(), ptr::null()) };
    if job.is_null() {
        return Err(error::last());
    }
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
    let (pointer, size) = (
        (&raw const limits).cast(),
        buffer::size::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
    );
    // SAFETY: the handle is open; `size` bytes at the pointer, which outlive the call, are the
    // structure of this class.
    error::check(unsafe {
        SetInformationJobObject(job, JobObjectExtendedLimitInformation, pointer, size)
    })?;
    // SAFETY: the handle is open; the pseudo handle of this process needs no right and is not
    // closed.
    error::check(unsafe { AssignProcessToJobObject(job, GetCurrentProcess()) })
}

/// Limits the search for a DLL that is loaded by its name to System32 from now on: not the folder
/// of the program, the current directory or the PATH.
///
/// DLLs that the program imports are loaded before any of its code runs. Where Windows finds those
/// is decided by the linker's option `/DEPENDENTLOADFLAG`. A DLL that is loaded by its path, as COM
/// does, may still import those beside it.
/// <https://learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-setdefaultdlldirectories>
pub fn limit_dll_search() -> io::Result<()> {
    // SAFETY: the function has only a number as parameter.
    let limited = unsafe { SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_SYSTEM32) };
    if limited == 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
