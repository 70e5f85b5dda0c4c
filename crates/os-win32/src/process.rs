//! What a process has of the system, for tests that run it for long.
//!
//! It comes from the system's own lists of processes and of handles, which need no right to the process.

use std::mem::offset_of;

use os::{OsError, OsResult};
use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS, SystemProcessInformation,
};
use windows_sys::Win32::Foundation::STATUS_INFO_LENGTH_MISMATCH;
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESS_INFORMATION;
use zerocopy::IntoBytes as _;

use crate::{buffer, error};

/// The list of all handles, `SystemExtendedHandleInformation`: as old as Windows XP, and in no header of Microsoft's.
///
/// A process's own count, in the list of processes, would do on Windows; Wine's is how long its table is, in powers of
/// two, and moves only when that is full.
const HANDLES: SYSTEM_INFORMATION_CLASS = 64;

/// What comes before the first handle: how many there are, and a reserved word.
const HANDLES_HEAD: usize = 2 * size_of::<usize>();

/// One handle: its object, its process, its value, and 16 octets of rights, type and attributes.
const HANDLE: usize = 3 * size_of::<usize>() + 16;
const HANDLE_PROCESS: usize = size_of::<usize>();

/// What one process has, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory in use, in octets: the working set.
    pub memory: usize,
    /// Open handles.
    pub handles: usize,
    /// Threads.
    pub threads: u32,
}

/// What the process `id` has.
///
/// Errors: `INVALID_PARAMETER`, as `OpenProcess` says it, where there is no such process.
/// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation>
pub fn usage(id: u32) -> OsResult<Usage> {
    let (memory, threads) = find(&list(SystemProcessInformation)?, id).ok_or(OsError::INVALID_PARAMETER)?;
    Ok(Usage { memory, handles: count(&list(HANDLES)?, id), threads })
}

/// One of the system's lists.
fn list(class: SYSTEM_INFORMATION_CLASS) -> OsResult<Vec<u8>> {
    let mut list = vec![0_u64; 1 << 14];
    loop {
        let bytes = list.as_mut_bytes();
        let mut needed = 0;
        let status = buffer::fill(bytes, |pointer, length| {
            // SAFETY: the pointer is good for `length` bytes of writing; `needed` outlives the call.
            Ok(unsafe { NtQuerySystemInformation(class, pointer, length, &raw mut needed) })
        })?;
        if status != STATUS_INFO_LENGTH_MISMATCH {
            error::check_status(status)?;
            return Ok(bytes.to_vec());
        }
        // More come between two calls, so what was needed may not be enough.
        list.resize(2 * list.len().max(needed as usize / size_of::<u64>()), 0);
    }
}

/// Memory and threads of the process `id`; nothing where there is none, or the list is cut off before it.
fn find(mut processes: &[u8], id: u32) -> Option<(usize, u32)> {
    // Each entry says how far it is to the next.
    const NEXT: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, NextEntryOffset);
    const THREADS: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, NumberOfThreads);
    const ID: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, UniqueProcessId);
    const MEMORY: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, WorkingSetSize);
    let id = usize::try_from(id).ok()?;
    while word(processes, ID)? != id {
        let next = usize::try_from(number(processes, NEXT)?).ok().filter(|next| *next > 0)?;
        processes = processes.get(next..)?;
    }
    Some((word(processes, MEMORY)?, number(processes, THREADS)?))
}

/// How many handles the process `id` has, of those that are in the list.
fn count(handles: &[u8], id: u32) -> usize {
    let total = word(handles, 0).unwrap_or_default();
    let entries = handles.get(HANDLES_HEAD..).unwrap_or_default().chunks_exact(HANDLE).take(total);
    entries.filter(|handle| word(handle, HANDLE_PROCESS) == usize::try_from(id).ok()).count()
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], offset: usize) -> Option<usize> {
    bytes.get(offset..)?.first_chunk().map(|bytes| usize::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::{Arc, Barrier};
    use std::{env, iter, process, thread};

    use os::OsError;

    use windows_sys::Wdk::System::SystemInformation::SystemProcessInformation;

    use super::{HANDLE, HANDLES, HANDLES_HEAD, count, find, list, usage};

    fn own() -> super::Usage {
        usage(process::id()).unwrap()
    }

    #[test]
    fn a_process_is_seen_to_grow_and_to_shrink() {
        // Far more than other tests of this program may take or give back meanwhile.
        const MANY: usize = 200;
        const LARGE: usize = 64 << 20;
        let before = own();
        let program = env::current_exe().unwrap();
        let files: Vec<_> = (0..MANY).map(|_| File::open(&program).unwrap()).collect();
        let memory = vec![1_u8; LARGE];
        let end = Arc::new(Barrier::new(51));
        let threads: Vec<_> =
            iter::repeat_n(&end, 50).map(Arc::clone).map(|end| thread::spawn(move || end.wait().is_leader())).collect();
        let grown = own();
        assert!(grown.handles >= before.handles + MANY / 2, "{before:?} {grown:?}");
        assert!(grown.threads >= before.threads + 25, "{before:?} {grown:?}");
        assert!(grown.memory >= before.memory + memory.len() / 2, "{before:?} {grown:?}");
        drop((files, memory));
        end.wait();
        for thread in threads {
            thread.join().unwrap();
        }
        let shrunk = own();
        assert!(shrunk.handles <= grown.handles - MANY / 2, "{grown:?} {shrunk:?}");
        assert!(shrunk.threads <= grown.threads - 25, "{grown:?} {shrunk:?}");
        assert!(shrunk.memory <= grown.memory - LARGE / 2, "{grown:?} {shrunk:?}");
    }

    #[test]
    fn a_process_that_is_none_has_nothing() {
        assert_eq!(usage(u32::MAX), Err(OsError::INVALID_PARAMETER));
    }

    #[test]
    fn a_list_that_is_cut_off_is_read_to_where_it_ends() {
        let list = list(SystemProcessInformation).unwrap();
        assert!(find(&list, process::id()).is_some());
        for length in 0..400 {
            assert_eq!(find(&list[..length], u32::MAX), None);
        }
    }

    #[test]
    fn handles_are_counted_one_by_one() {
        let program = env::current_exe().unwrap();
        let all = list(HANDLES).unwrap();
        let own = count(&all, process::id());
        assert!(own > 0 && count(&all, u32::MAX) == 0);
        // Other tests come and go: so few at a time that one of many tries sees no more than its own.
        let alone = |_| {
            let before = usage(process::id()).unwrap().handles;
            let file = File::open(&program).unwrap();
            let with_it = usage(process::id()).unwrap().handles;
            drop(file);
            with_it == before + 1 && usage(process::id()).unwrap().handles == before
        };
        assert!((0..1000).any(alone));
        assert_eq!(count(&all[..HANDLES_HEAD + HANDLE - 1], process::id()), 0, "cut off within the first");
        assert_eq!(count(&[], process::id()), 0);
    }
}
