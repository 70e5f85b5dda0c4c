//! The clock: the time, and the ways to wait.

use std::future::Future;
use std::ops::{Add, Sub};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A point in time, as the duration since the clock started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Returns the duration from `earlier` to this time, or zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// How often a future is polled that is not woken.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A monotonic clock, and the ways to wait.
///
/// The storage operations neither read the system's clock nor park a thread themselves. On a simulated node all time is
/// therefore simulated.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Returns how long ago Windows started.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-gettickcount64>
    fn since_start_of_windows(&self) -> Duration;

    /// Blocks this thread for the duration `span`.
    fn sleep(&self, span: Duration);

    /// Blocks this thread until `wait` is ready, for a thread that waits outside an async runtime. Polls it when it is woken,
    /// and from time to time, so that it can become ready because time has passed.
    fn block_on(&self, wait: Pin<&mut dyn Future<Output = ()>>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut wait = pin!(wait);
        while wait.as_mut().poll(&mut context).is_pending() {
            thread::park_timeout(POLL_INTERVAL);
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
