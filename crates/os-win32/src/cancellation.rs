//! A time limit for calls that would otherwise wait for another process without a limit.

use std::cell::RefCell;
use std::ffi::c_void;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::ptr;
use std::time::Duration;

use os::OsResult;
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::IO::CancelSynchronousIo;
use windows_sys::Win32::System::Threading::{
    CloseThreadpoolTimer, CreateThreadpoolTimer, GetCurrentThreadId, OpenThread,
    PTP_CALLBACK_INSTANCE, PTP_TIMER, SetThreadpoolTimer, THREAD_TERMINATE,
    WaitForThreadpoolTimerCallbacks,
};

use crate::error;

/// The interval at which a late call is cancelled again: a cancellation has no effect on a call
/// that is not waiting at that moment.
const AGAIN_MS: u32 = 500;

/// Makes `call`, which makes one synchronous request for I/O, and cancels the request if it takes
/// longer than `limit`. It then fails with `OPERATION_ABORTED`.
///
/// <https://learn.microsoft.com/windows/win32/fileio/cancelsynchronousio-func>
pub(crate) fn limited<T>(limit: Duration, call: impl FnOnce() -> OsResult<T>) -> OsResult<T> {
    thread_local! {
        /// Made once for each thread, because a removal makes many calls.
        static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    }
    WATCH.with_borrow_mut(|watch| {
        let watch = match watch {
            Some(watch) => watch,
            None => watch.insert(Watch::of_this_thread()?),
        };
        let _running = watch.start(limit);
        call()
    })
}

/// A timer that cancels the synchronous I/O of a thread.
struct Watch {
    timer: PTP_TIMER,
    /// The context of the timer.
    _thread: OwnedHandle,
}

/// A timer that runs until this is dropped.
struct Running<'a>(&'a Watch);

impl Watch {
    fn of_this_thread() -> OsResult<Self> {
        // SAFETY: both functions have no pointers.
        let thread = unsafe { OpenThread(THREAD_TERMINATE, 0, GetCurrentThreadId()) };
        if thread.is_null() {
            return Err(error::last());
        }
        // SAFETY: the call succeeded, so this is an open handle that has no other owner.
        let thread = unsafe { OwnedHandle::from_raw_handle(thread) };
        // SAFETY: `cancel` uses the context as the handle of a thread, which stays open until the
        // timer is closed.
        let timer =
            unsafe { CreateThreadpoolTimer(Some(cancel), thread.as_raw_handle(), ptr::null()) };
        if timer == 0 {
            return Err(error::last());
        }
        Ok(Self {
            timer,
            _thread: thread,
        })
    }

    /// Watches the thread for a call that may take `limit`.
    fn start(&self, limit: Duration) -> Running<'_> {
        // A negative time is relative, in units of 100 ns.
        let due = i64::try_from(limit.as_nanos() / 100)
            .unwrap_or(i64::MAX)
            .wrapping_neg()
            .cast_unsigned();
        let due = FILETIME {
            dwLowDateTime: (due & 0xffff_ffff) as u32,
            dwHighDateTime: (due >> 32) as u32,
        };
        // SAFETY: the timer is open, and the time outlives the call.
        unsafe { SetThreadpoolTimer(self.timer, &raw const due, AGAIN_MS, 0) };
        Running(self)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // SAFETY: the timer is open. After the calls no callback runs or begins, so that none
        // cancels a later call of the thread or uses its handle after that is closed.
        unsafe {
            SetThreadpoolTimer(self.0.timer, ptr::null(), 0, 0);
            WaitForThreadpoolTimerCallbacks(self.0.timer, 1);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: the timer is open, and its callback does not run.
        unsafe { CloseThreadpoolTimer(self.timer) };
    }
}

/// Cancels the synchronous I/O of `thread`.
///
/// # Safety
///
/// `thread` is an open handle of a thread with `THREAD_TERMINATE`.
unsafe extern "system" fn cancel(_: PTP_CALLBACK_INSTANCE, thread: *mut c_void, _: PTP_TIMER) {
    // SAFETY: the caller guarantees it. Without a pending request the call changes nothing.
    unsafe { CancelSynchronousIo(thread) };
}

#[cfg(test)]
mod tests {
    use std::os::windows::io::{FromRawHandle as _, OwnedHandle};
    use std::time::{Duration, Instant};

    use os::OsError;
    use windows_sys::Win32::Storage::FileSystem::ReadFile;
    use windows_sys::Win32::System::Pipes::CreatePipe;

    use super::limited;
    use crate::error;

    #[test]
    fn a_request_that_waits_for_another_process_is_cancelled() {
        let (mut reader, mut writer) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: both pointers are to values that outlive the call.
        error::check(unsafe { CreatePipe(&raw mut reader, &raw mut writer, std::ptr::null(), 0) })
            .unwrap();
        // SAFETY: the call succeeded, so these are open handles that have no other owner.
        let _writer = unsafe { OwnedHandle::from_raw_handle(writer) };
        // SAFETY: as above.
        let _reader = unsafe { OwnedHandle::from_raw_handle(reader) };
        let (began, mut byte, mut read) = (Instant::now(), 0_u8, 0);
        let outcome = limited(Duration::from_millis(100), || {
            // SAFETY: the handle is open, and one byte can be written at the pointer.
            error::check(unsafe {
                ReadFile(
                    reader,
                    &raw mut byte,
                    1,
                    &raw mut read,
                    std::ptr::null_mut(),
                )
            })
        });
        assert_eq!(outcome, Err(OsError::OPERATION_ABORTED));
        assert!(began.elapsed() >= Duration::from_millis(90));
        assert_eq!(limited(Duration::from_mins(1), || Ok(1)), Ok(1));
    }
}
