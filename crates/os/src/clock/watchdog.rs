//! A watchdog: the caller of work on another thread stops waiting if a step of it takes too long.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::WatchedWork;

/// What is known of the work.
enum State {
    /// Its current step began at this time.
    Running(Instant),
    Ended,
    /// A step has taken too long, and the caller has stopped waiting.
    GivenUp,
}

struct Watchdog {
    state: Mutex<State>,
    ended: Condvar,
}

impl Watchdog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a step. Returns whether the caller still waits.
    fn step(&self) -> bool {
        let mut state = self.state();
        if matches!(*state, State::Running(_)) {
            *state = State::Running(Instant::now());
        }
        matches!(*state, State::Running(_))
    }

    fn end(&self) {
        *self.state() = State::Ended;
        self.ended.notify_one();
    }

    /// Waits until the work has ended. Gives it up when a step has taken `patience`, and returns false.
    fn wait(&self, patience: Duration) -> bool {
        let mut state = self.state();
        loop {
            let left = match *state {
                State::Running(since) => patience.saturating_sub(since.elapsed()),
                State::Ended => return true,
                State::GivenUp => return false,
            };
            if left.is_zero() {
                *state = State::GivenUp;
                return false;
            }
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// See [`super::Clock::run_watched`].
pub(super) fn run(patience: Duration, work: WatchedWork) -> bool {
    let watchdog = Arc::new(Watchdog { state: Mutex::new(State::Running(Instant::now())), ended: Condvar::new() });
    let work = Arc::new(Mutex::new(Some(work)));
    let take = |work: &Mutex<Option<WatchedWork>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let body = {
        let (watchdog, work) = (Arc::clone(&watchdog), Arc::clone(&work));
        move || {
            let work = take(&work);
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| work.map(|work| work(&|| watchdog.step()))));
            watchdog.end();
            outcome
        }
    };
    let Ok(thread) = thread::Builder::new().name("device-query".to_owned()).spawn(body) else {
        // A node that cannot create a thread still gets its answer, without the limit on the time.
        if let Some(work) = take(&work) {
            work(&|| true);
        }
        return true;
    };
    let has_ended = watchdog.wait(patience);
    if has_ended && let Err(panicked) = thread.join().and_then(|outcome| outcome) {
        panic::resume_unwind(panicked);
    }
    has_ended
}
