//! The clock: `QueryPerformanceCounter`, through the standard library.

use std::thread;
use std::time::{Duration, Instant};

use os::{Clock, Time};

/// A clock that starts when it is created. Its copies show the same time.
#[derive(Clone, Copy)]
pub(crate) struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Time {
        Time(self.origin.elapsed())
    }

    fn sleep(&self, span: Duration) {
        thread::sleep(span);
    }
}
