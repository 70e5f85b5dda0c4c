//! What a process has of the system, for tests that run it for long.
//!
//! Three numbers out of one call, that behind the Task Manager. It needs no right to the process, and counts what the
//! system has given it rather than what it thinks it has.

use std::mem::offset_of;

use os::{OsError, OsResult};
use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemProcessInformation};
use windows_sys::Win32::Foundation::STATUS_INFO_LENGTH_MISMATCH;
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESS_INFORMATION;
use zerocopy::IntoBytes as _;

use crate::{buffer, error};

/// What one process has, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Memory in use, in octets: the working set.
    pub memory: usize,
    /// Open handles.
    pub handles: u32,
    /// Threads.
    pub threads: u32,
}

/// What the process `id` has.
///
/// Errors: `INVALID_PARAMETER`, as `OpenProcess` says it, where there is no such process.
/// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation>
pub fn usage(id: u32) -> OsResult<Usage> {
    let all = processes()?;
    find(&all, id).ok_or(OsError::INVALID_PARAMETER)
}

/// The list of all processes, as the system writes it: each entry says how far it is to the next.
fn processes() -> OsResult<Vec<u8>> {
    let mut list = vec![0_u64; 1 << 14];
    loop {
        let bytes = list.as_mut_bytes();
        let mut needed = 0;
        let status = buffer::fill(bytes, |pointer, length| {
            // SAFETY: the pointer is good for `length` bytes of writing; `needed` outlives the call.
            Ok(unsafe { NtQuerySystemInformation(SystemProcessInformation, pointer, length, &raw mut needed) })
        })?;
        if status != STATUS_INFO_LENGTH_MISMATCH {
            error::check_status(status)?;
            return Ok(bytes.to_vec());
        }
        // Processes come and go between two calls, so what was needed may not be enough.
        list.resize(2 * list.len().max(needed as usize / size_of::<u64>()), 0);
    }
}

/// The entry of the process `id`; nothing where there is none, or the list is cut off before it.
fn find(mut list: &[u8], id: u32) -> Option<Usage> {
    const NEXT: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, NextEntryOffset);
    const THREADS: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, NumberOfThreads);
    const ID: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, UniqueProcessId);
    const HANDLES: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, HandleCount);
    const MEMORY: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, WorkingSetSize);
    loop {
        if word(list, ID)? == usize::try_from(id).ok()? {
            return Some(Usage {
                memory: word(list, MEMORY)?,
                handles: number(list, HANDLES)?,
                threads: number(list, THREADS)?,
            });
        }
        let next = usize::try_from(number(list, NEXT)?).ok().filter(|next| *next > 0)?;
        list = list.get(next..)?;
    }
}

fn number(entry: &[u8], offset: usize) -> Option<u32> {
    entry.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn word(entry: &[u8], offset: usize) -> Option<usize> {
    entry.get(offset..)?.first_chunk().map(|bytes| usize::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::{Arc, Barrier};
    use std::{env, iter, process, thread};

    use os::OsError;

    use super::{find, processes, usage};

    fn own() -> super::Usage {
        usage(process::id()).unwrap()
    }

    #[test]
    fn a_process_is_seen_to_grow_and_to_shrink() {
        // Far more than other tests of this program may take or give back meanwhile.
        const MANY: u32 = 200;
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
        let list = processes().unwrap();
        assert!(find(&list, process::id()).is_some());
        for length in 0..400 {
            assert_eq!(find(&list[..length], u32::MAX), None);
        }
    }
}
