//! Time, and every way of waiting for it.

use std::future::Future;
use std::ops::{Add, Sub};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// A moment, as the time that has passed since the clock's own beginning.
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

    /// The span from `earlier` to this moment; zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A monotonic clock, and the ways to wait.
///
/// The node's logic never asks the system for the time and never parks a thread by itself, so on a simulated
/// node simulated time is the only time there is.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;

    /// Lets `span` pass on this thread.
    fn sleep(&self, span: Duration);

    /// Blocks this thread until `wait` is ready: how a lock is waited for where nobody polls.
    fn block_on(&self, wait: Pin<&mut dyn Future<Output = ()>>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut wait = pin!(wait);
        while wait.as_mut().poll(&mut context).is_pending() {
            thread::park();
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
