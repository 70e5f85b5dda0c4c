//! The resources of a process: memory, handles and threads. For the soak test, which watches the
//! daemon for hours.
//!
//! The numbers are from the system's lists of processes and handles (`NtQuerySystemInformation`),
//! which need no right to the process. The list of handles is not documented by Microsoft. The
//! feature `process-usage` therefore keeps this module out of the program that is shipped.

use std::mem::offset_of;

use os::{OsError, OsResult};
use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SYSTEM_INFORMATION_CLASS, SystemProcessInformation,
};
use windows_sys::Win32::Foundation::STATUS_INFO_LENGTH_MISMATCH;
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESS_INFORMATION;
use zerocopy::IntoBytes as _;

use crate::{buffer, error};

/// `SystemExtendedHandleInformation`, the list of all handles: in Windows since XP, but in no
/// header of Microsoft's.
///
/// On Windows, the count of handles in the list of processes would be enough. Wine's count is the
/// capacity of the handle table, a power of two.
const EXTENDED_HANDLE_INFORMATION: SYSTEM_INFORMATION_CLASS = 64;

/// The size of the header, which has the number of handles and a reserved field.
const HANDLE_LIST_HEADER: usize = 2 * size_of::<usize>();

/// The size of a handle's entry: its object, its process, its value, and 16 bytes of access rights,
/// type and attributes.
const HANDLE_ENTRY: usize = 3 * size_of::<usize>() + 16;
const HANDLE_PROCESS_ID: usize = size_of::<usize>();

/// The resources of a process at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The working set in bytes.
    pub memory: usize,
    /// The number of open handles.
    pub handles: usize,
    /// The number of threads.
    pub threads: u32,
}

/// Returns the resources of the process `id`.
///
/// Errors: `INVALID_PARAMETER` if the process does not exist, as from `OpenProcess`.
/// <https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation>
pub fn usage(id: u32) -> OsResult<Usage> {
    let (memory, threads) =
        find(&list(SystemProcessInformation)?, id).ok_or(OsError::INVALID_PARAMETER)?;
    Ok(Usage {
        memory,
        handles: count(&list(EXTENDED_HANDLE_INFORMATION)?, id),
        threads,
    })
}

/// Reads one of the system's lists.
fn list(class: SYSTEM_INFORMATION_CLASS) -> OsResult<Vec<u8>> {
    let mut list = vec![0_u64; 1 << 14];
    loop {
        let bytes = list.as_mut_bytes();
        let mut needed = 0;
        let status = buffer::fill(bytes, |pointer, length| {
            // SAFETY: `length` bytes at the pointer can be written; `needed` outlives the call.
            Ok(unsafe { NtQuerySystemInformation(class, pointer, length, &raw mut needed) })
        })?;
        if status != STATUS_INFO_LENGTH_MISMATCH {
            error::check_status(status)?;
            return Ok(bytes.to_vec());
        }
        // The list may grow between two calls, so a buffer of the needed size may be too small.
        list.resize(2 * list.len().max(needed as usize / size_of::<u64>()), 0);
    }
}

/// Returns the memory and the threads of the process `id`, or `None` if the list does not have all
/// of its entry.
fn find(mut processes: &[u8], id: u32) -> Option<(usize, u32)> {
    // Each entry has the offset of the next one, 0 for the last.
    const NEXT: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, NextEntryOffset);
    const THREADS: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, NumberOfThreads);
    const ID: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, UniqueProcessId);
    const MEMORY: usize = offset_of!(SYSTEM_PROCESS_INFORMATION, WorkingSetSize);
    let id = usize::try_from(id).ok()?;
    while word(processes, ID)? != id {
        let next = usize::try_from(number(processes, NEXT)?)
            .ok()
            .filter(|next| *next > 0)?;
        processes = processes.get(next..)?;
    }
    Some((word(processes, MEMORY)?, number(processes, THREADS)?))
}

/// Counts the handles of the process `id` in the list.
fn count(handles: &[u8], id: u32) -> usize {
    let total = word(handles, 0).unwrap_or_default();
    let entries = handles
        .get(HANDLE_LIST_HEADER..)
        .unwrap_or_default()
        .chunks_exact(HANDLE_ENTRY)
        .take(total);
    entries
        .filter(|handle| word(handle, HANDLE_PROCESS_ID) == usize::try_from(id).ok())
        .count()
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

fn word(bytes: &[u8], offset: usize) -> Option<usize> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| usize::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::{Arc, Barrier};
    use std::{env, iter, process, thread};

    use os::OsError;

    use windows_sys::Wdk::System::SystemInformation::SystemProcessInformation;

    use super::{HANDLE_ENTRY, HANDLE_LIST_HEADER, count, find, list, usage};

    fn own() -> super::Usage {
        usage(process::id()).unwrap()
    }

    #[test]
    fn usage_follows_a_process_that_grows_and_shrinks() {
        // Far more than the other tests of this program open or close at the same time.
        const MANY: usize = 200;
        const LARGE: usize = 64 << 20;
        let before = own();
        let program = env::current_exe().unwrap();
        let files: Vec<_> = (0..MANY).map(|_| File::open(&program).unwrap()).collect();
        let memory = vec![1_u8; LARGE];
        let end = Arc::new(Barrier::new(51));
        let threads: Vec<_> = iter::repeat_n(&end, 50)
            .map(Arc::clone)
            .map(|end| thread::spawn(move || end.wait().is_leader()))
            .collect();
        let grown = own();
        assert!(
            grown.handles >= before.handles + MANY / 2,
            "{before:?} {grown:?}"
        );
        assert!(grown.threads >= before.threads + 25, "{before:?} {grown:?}");
        assert!(
            grown.memory >= before.memory + memory.len() / 2,
            "{before:?} {grown:?}"
        );
        drop((files, memory));
        end.wait();
        for thread in threads {
            thread.join().unwrap();
        }
        let shrunk = own();
        assert!(
            shrunk.handles <= grown.handles - MANY / 2,
            "{grown:?} {shrunk:?}"
        );
        assert!(shrunk.threads <= grown.threads - 25, "{grown:?} {shrunk:?}");
        assert!(
            shrunk.memory <= grown.memory - LARGE / 2,
            "{grown:?} {shrunk:?}"
        );
    }

    #[test]
    fn a_truncated_list_is_not_read_beyond_its_end() {
        let list = list(SystemProcessInformation).unwrap();
        assert!(find(&list, process::id()).is_some());
        assert_eq!(
            usage(u32::MAX),
            Err(OsError::INVALID_PARAMETER),
            "the process does not exist"
        );
        assert_eq!(
            count(&[0xff; HANDLE_LIST_HEADER + HANDLE_ENTRY - 1], u32::MAX),
            0
        );
        for length in 0..400 {
            assert_eq!(find(&list[..length], u32::MAX), None);
        }
    }
}
