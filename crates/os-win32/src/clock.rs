//! The clock: `QueryPerformanceCounter`, through the standard library, and `GetTickCount64`.

use std::thread;
use std::time::{Duration, Instant};

use os::{Clock, Time};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;

/// A clock that starts when it is created. Its copies show the same time.
#[derive(Clone, Copy)]
pub(crate) struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    pub(crate) fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Time {
        Time(self.origin.elapsed())
    }

    fn since_start_of_windows(&self) -> Duration {
        // SAFETY: the function has no parameters and reads a counter.
        Duration::from_millis(unsafe { GetTickCount64() })
    }

    fn sleep(&self, span: Duration) {
        thread::sleep(span);
    }
}
