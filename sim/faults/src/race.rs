//! A probe that lets another actor change the node between two calls of a process.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::probe::{Call, FaultAction, Probe};

/// A probe that runs a step once, right before a chosen call. The step may replace a directory with a junction or
/// detach a disk.
pub struct Race {
    nth: u64,
    matches: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    state: Mutex<State>,
}

struct State {
    seen: u64,
    step: Option<Box<dyn FnOnce() + Send>>,
    taken_before: Option<Call>,
}

impl Race {
    /// Runs `step` before the call number `nth`, counted from 0.
    pub fn before(nth: u64, step: impl FnOnce() + Send + 'static) -> Self {
        let state = State { seen: 0, step: Some(Box::new(step)), taken_before: None };
        Self { nth, matches: Box::new(|_| true), state: Mutex::new(state) }
    }

    /// Counts only calls for which `matches` returns true.
    #[must_use]
    pub fn among(mut self, matches: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.matches = Box::new(matches);
        self
    }

    /// Returns the call before which the step ran, or `None` if there were too few calls.
    pub fn taken_before(&self) -> Option<Call> {
        self.state().taken_before.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "before call {}, taken before {:?}", self.nth, self.taken_before())
    }
}

impl Probe for Race {
    fn before(&self, call: &Call) -> FaultAction {
        let mut state = self.state();
        if !(self.matches)(call) {
            return FaultAction::Go;
        }
        let number = state.seen;
        state.seen += 1;
        if number != self.nth {
            return FaultAction::Go;
        }
        let step = state.step.take();
        state.taken_before = Some(call.clone());
        // Release the lock: the step may make calls through the same probe.
        drop(state);
        if let Some(step) = step {
            step();
        }
        FaultAction::Go
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use os::Os;

    use super::Race;
    use crate::probe::Call;
    use crate::probe::tests::{Counted, probed};

    #[test]
    fn the_step_runs_once_right_before_its_call() {
        let node = Arc::new(Counted::new());
        let (seen, at) = (Arc::clone(&node), Arc::new(AtomicU64::new(u64::MAX)));
        let when = Arc::clone(&at);
        let race = Arc::new(Race::before(1, move || when.store(seen.calls(), Ordering::SeqCst)));
        let probed = node.process(Arc::clone(&race));
        for _ in 0..3 {
            probed.volumes().expect("volumes");
        }
        assert_eq!(at.load(Ordering::SeqCst), 1, "one call had reached the node");
        assert_eq!(race.taken_before().map(|call| call.sequence), Some(1));
    }

    #[test]
    fn a_step_whose_call_is_not_made_does_not_run() {
        let race = Arc::new(Race::before(0, || panic!("the step ran")).among(Call::is_wmi));
        probed(Arc::clone(&race)).volumes().expect("volumes");
        assert_eq!(race.taken_before(), None);
    }
}
