//! The simulated time that a step of watched work has left.

use std::cell::RefCell;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use os::WatchedWork;

thread_local! {
    /// The step that this thread runs, if it is watched.
    static STEP: RefCell<Option<Step>> = RefCell::default();
}

struct Step {
    /// How long it may still wait.
    left: Duration,
    is_late: bool,
    /// Receives a message when the step is late. It is dropped when the thread ends.
    late: Sender<()>,
}

/// Runs `work` on a thread of its own. The receiver gets a message when a step has waited for
/// longer than `patience`, and is closed when the thread has ended.
pub(super) fn spawn(patience: Duration, work: WatchedWork) -> (JoinHandle<()>, Receiver<()>) {
    let (late, receiver) = mpsc::channel();
    let body = move || {
        STEP.set(Some(Step {
            left: patience,
            is_late: false,
            late,
        }));
        work(&|| {
            STEP.with_borrow_mut(|step| {
                let step = step.as_mut().expect("set above");
                step.left = patience;
                !step.is_late
            })
        });
    };
    (thread::spawn(body), receiver)
}

/// Begins a wait on this thread.
pub(super) fn begin_wait(now: Duration) -> Wait {
    let left = STEP.with_borrow(|step| {
        step.as_ref()
            .filter(|step| !step.is_late)
            .map(|step| step.left)
    });
    Wait {
        begin: now,
        limit: left.map_or(Duration::MAX, |left| now.saturating_add(left)),
    }
}

/// A wait on this thread.
pub(super) struct Wait {
    begin: Duration,
    limit: Duration,
}

impl Wait {
    /// Returns when the step becomes late.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Marks the step as late if it has waited for longer than its patience. Ignores a wait that
    /// `deadline` ends in time.
    pub(super) fn check(&mut self, now: Duration, deadline: Duration) {
        if now < self.limit || deadline <= self.limit {
            return;
        }
        self.limit = Duration::MAX;
        STEP.with_borrow_mut(|step| {
            if let Some(step) = step {
                step.is_late = true;
                // The receiver reads only the first message.
                let _ = step.late.send(());
            }
        });
    }

    /// Ends the wait.
    pub(super) fn end(self, now: Duration) {
        STEP.with_borrow_mut(|step| {
            if let Some(step) = step {
                step.left = step.left.saturating_sub(now.saturating_sub(self.begin));
            }
        });
    }
}
