//! A probe that lets another actor change the node between two calls of a process.

use std::fmt;
use std::sync::Mutex;

use crate::fault::{Fault, When};
use crate::probe::{Call, FaultAction, Probe};

/// A probe that runs a step once, right before a chosen call. The step may replace a directory with
/// a junction or detach a disk.
pub struct Race {
    /// Chooses the call, which it does not disturb.
    chosen: Fault,
    step: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Race {
    /// Runs `step` before the call number `nth`, counted from 0.
    pub fn before(nth: u64, step: impl FnOnce() + Send + 'static) -> Self {
        Self {
            chosen: Fault::at(nth, When::Before, FaultAction::Go),
            step: Mutex::new(Some(Box::new(step))),
        }
    }

    /// Counts only calls for which `matches` returns true.
    #[must_use]
    pub fn among(mut self, matches: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.chosen = self.chosen.among(matches);
        self
    }

    /// Returns the call before which the step ran, or `None` if there were too few calls.
    pub fn taken_before(&self) -> Option<Call> {
        self.chosen.last_hit()
    }
}

impl fmt::Debug for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race")
            .field("taken_before", &self.taken_before())
            .finish_non_exhaustive()
    }
}

impl Probe for Race {
    fn before(&self, call: &Call) -> FaultAction {
        if self.chosen.chooses(call) {
            self.chosen.hit(call);
            // Release the lock before the step runs: the step may make calls through the same
            // probe.
            let step = os::lock(&self.step).take();
            if let Some(step) = step {
                step();
            }
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
        let race = Arc::new(Race::before(1, move || {
            when.store(seen.calls(), Ordering::SeqCst);
        }));
        let probed = node.process(Arc::clone(&race));
        for _ in 0..3 {
            probed.volumes().expect("volumes");
        }
        assert_eq!(
            at.load(Ordering::SeqCst),
            1,
            "one call had reached the node"
        );
        assert_eq!(race.taken_before().map(|call| call.sequence), Some(1));
    }

    #[test]
    fn a_step_whose_call_is_not_made_does_not_run() {
        let race = Arc::new(Race::before(0, || panic!("the step ran")).among(Call::is_wmi));
        probed(Arc::clone(&race)).volumes().expect("volumes");
        assert_eq!(race.taken_before(), None);
    }
}
