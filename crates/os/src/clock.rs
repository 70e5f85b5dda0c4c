//! The clock: the time, and the ways to wait.

mod watchdog;

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

/// The interval at which a future is polled if it is not woken.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Work for [`Clock::run_watched`]. It calls its argument at the end of each step. The argument
/// returns false if the step was too late; the work then returns.
pub type WatchedWork = Box<dyn FnOnce(&dyn Fn() -> bool) + Send>;

/// A monotonic clock, and the ways to wait.
///
/// The storage operations neither read the system's clock nor park a thread themselves. On a
/// simulated node all time is therefore simulated.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Returns how long ago Windows started.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-gettickcount64>
    fn since_start_of_windows(&self) -> Duration;

    /// Blocks this thread for the duration `span`.
    fn sleep(&self, span: Duration);

    /// Blocks this thread until `wait` is ready, for a thread outside an async runtime. Polls
    /// `wait` when it is woken, and at intervals, because it may also become ready when time has
    /// passed.
    fn block_on(&self, wait: Pin<&mut dyn Future<Output = ()>>) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut wait = pin!(wait);
        while wait.as_mut().poll(&mut context).is_pending() {
            thread::park_timeout(POLL_INTERVAL);
        }
    }

    /// Runs `work` on a new thread and waits until it has returned. If a step takes longer than
    /// `patience`, returns false and abandons the thread, which ends when that step ends.
    ///
    /// If the system cannot create a thread, runs `work` on this thread, without the limit. Panics
    /// if `work` panics.
    fn run_watched(&self, patience: Duration, work: WatchedWork) -> bool {
        watchdog::run(patience, work)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{Clock, Time};

    struct StoppedClock;

    impl Clock for StoppedClock {
        fn now(&self) -> Time {
            Time::default()
        }

        fn since_start_of_windows(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _span: Duration) {}
    }

    #[test]
    fn work_whose_steps_end_in_time_is_waited_for() {
        let (send, receive) = mpsc::channel();
        let has_ended = StoppedClock.run_watched(
            Duration::from_hours(1),
            Box::new(move |step_ended| {
                (0..3).for_each(|step| send.send((step, step_ended())).unwrap());
            }),
        );
        assert!(has_ended);
        assert_eq!(
            receive.try_iter().collect::<Vec<_>>(),
            [(0, true), (1, true), (2, true)]
        );
    }

    #[test]
    fn work_that_hangs_is_left_behind_and_told_so() {
        let (let_go, hang) = mpsc::channel::<()>();
        let (send, receive) = mpsc::channel();
        let has_ended = StoppedClock.run_watched(
            Duration::from_millis(1),
            Box::new(move |step_ended| {
                hang.recv().unwrap();
                send.send(step_ended()).unwrap();
            }),
        );
        assert!(!has_ended);
        let_go.send(()).unwrap();
        assert!(!receive.recv().unwrap());
    }

    #[test]
    #[should_panic(expected = "a defect")]
    fn a_panic_of_the_work_reaches_its_caller() {
        StoppedClock.run_watched(Duration::from_hours(1), Box::new(|_| panic!("a defect")));
    }
}
