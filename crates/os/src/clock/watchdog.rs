//! A watchdog: the caller of work on another thread stops waiting if a step of it takes too long.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::WatchedWork;

/// The state of the work.
enum State {
    /// Its current step began at this time.
    Running(Instant),
    /// It has returned, or panicked with this.
    Ended(thread::Result<()>),
    /// A step has taken too long, and the caller has stopped waiting.
    GivenUp,
}

struct Watchdog {
    state: Mutex<State>,
    ended: Condvar,
}

impl Watchdog {
    fn state(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.state)
    }

    /// Ends a step. Returns whether the caller still waits.
    fn step(&self) -> bool {
        let mut state = self.state();
        if matches!(*state, State::Running(_)) {
            *state = State::Running(Instant::now());
        }
        matches!(*state, State::Running(_))
    }

    fn end(&self, outcome: thread::Result<()>) {
        *self.state() = State::Ended(outcome);
        self.ended.notify_one();
    }

    /// Waits until the work has ended. Gives it up when a step has taken `patience`, and returns
    /// `None`.
    fn wait(&self, patience: Duration) -> Option<thread::Result<()>> {
        let mut state = self.state();
        loop {
            let State::Running(since) = *state else { break };
            let left = patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                break;
            }
            state = self
                .ended
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        match std::mem::replace(&mut *state, State::GivenUp) {
            State::Ended(outcome) => Some(outcome),
            State::Running(_) | State::GivenUp => None,
        }
    }
}

/// See [`super::Clock::run_watched`].
pub(super) fn run(patience: Duration, work: WatchedWork) -> bool {
    let watchdog = Arc::new(Watchdog {
        state: Mutex::new(State::Running(Instant::now())),
        ended: Condvar::new(),
    });
    let watched = Arc::clone(&watchdog);
    let work = Arc::new(Mutex::new(Some(work)));
    let job = move || {
        let work = crate::lock(&work).take();
        let Some(work) = work else { return };
        watched.end(panic::catch_unwind(AssertUnwindSafe(|| {
            work(&|| watched.step());
        })));
    };
    if thread::Builder::new()
        .name("device-query".to_owned())
        .spawn(job.clone())
        .is_err()
    {
        // A node that cannot create a thread still gets its answer, without the limit on the time.
        job();
    }
    match watchdog.wait(patience) {
        Some(Ok(())) => true,
        Some(Err(panicked)) => panic::resume_unwind(panicked),
        None => false,
    }
}
