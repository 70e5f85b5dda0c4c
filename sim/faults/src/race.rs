//! Letting somebody else act between two calls of a process.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::probe::{Call, FaultAction, Probe};

/// A probe that takes a step, once, right before a chosen call: a directory becomes a junction, a disk vanishes.
pub struct Race {
    nth: u64,
    of: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    state: Mutex<State>,
}

struct State {
    seen: u64,
    step: Option<Box<dyn FnOnce() + Send>>,
    won: Option<Call>,
}

impl Race {
    /// Takes `step` before the call number `nth`, the first being 0.
    pub fn before(nth: u64, step: impl FnOnce() + Send + 'static) -> Self {
        let state = State { seen: 0, step: Some(Box::new(step)), won: None };
        Self { nth, of: Box::new(|_| true), state: Mutex::new(state) }
    }

    /// Counts only calls that are `of` the kind.
    #[must_use]
    pub fn among(mut self, of: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.of = Box::new(of);
        self
    }

    /// The call before which the step was taken: none means that the work was done before its turn came.
    pub fn taken_before(&self) -> Option<Call> {
        self.state().won.clone()
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
        if !(self.of)(call) {
            return FaultAction::Go;
        }
        let number = state.seen;
        state.seen += 1;
        if number != self.nth {
            return FaultAction::Go;
        }
        let step = state.step.take();
        state.won = Some(call.clone());
        // The step may go through the same probe; it must not find it locked.
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
    use crate::probe::tests::Echo;
    use crate::probe::{Call, Probed};

    #[test]
    fn the_step_is_taken_once_right_before_its_call() {
        let node = Echo::node();
        let (seen, at) = (node.clone(), Arc::new(AtomicU64::new(u64::MAX)));
        let when = Arc::clone(&at);
        let race = Arc::new(Race::before(1, move || when.store(seen.calls(), Ordering::SeqCst)));
        let probed = Probed::new(node, Arc::clone(&race));
        for _ in 0..3 {
            probed.volumes().expect("volumes");
        }
        assert_eq!(at.load(Ordering::SeqCst), 1, "one call had reached the node");
        assert_eq!(race.taken_before().map(|call| call.sequence), Some(1));
    }

    #[test]
    fn a_step_whose_call_never_comes_is_not_taken() {
        let race = Arc::new(Race::before(0, || panic!("taken")).among(Call::is_wmi));
        Probed::new(Echo::node(), Arc::clone(&race)).volumes().expect("volumes");
        assert_eq!(race.taken_before(), None);
    }
}
