//! A fault that was injected: of a primitive, which is a probe of the daemon's process, or of an
//! RPC, which the layer asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use faults::{Call, Fault, FaultAction, Outcome, Probe};
use os::{Os as _, Time};
use os_sim::Sim;

use crate::control_api;

/// How often a call that waits looks whether it is released.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// A fault that was injected.
pub(crate) struct Injected {
    /// The fault as it was requested.
    pub(crate) request: control_api::Fault,
    pub(crate) fault: Fault,
    sim: Sim,
    /// The number of runs of the daemon that have ended.
    ended_runs: Arc<AtomicU64>,
    is_cleared: AtomicBool,
}

/// The wait of a call, until it is released or its time is over.
pub(crate) struct Wait<'a> {
    injected: &'a Injected,
    until: Time,
    ended_runs: u64,
}

impl Injected {
    pub(super) fn new(
        request: control_api::Fault,
        fault: Fault,
        sim: Sim,
        ended_runs: Arc<AtomicU64>,
    ) -> Self {
        Self {
            request,
            fault,
            sim,
            ended_runs,
            is_cleared: AtomicBool::new(false),
        }
    }

    /// Releases the calls that wait, for good.
    pub(super) fn clear(&self) {
        self.is_cleared.store(true, Ordering::SeqCst);
    }

    /// Begins a wait of this time on the clock of the node.
    pub(crate) fn wait(&self, span: Duration) -> Wait<'_> {
        Wait {
            injected: self,
            until: self.sim.now() + span,
            ended_runs: self.ended_runs.load(Ordering::SeqCst),
        }
    }

    /// Lets a delayed call wait here, so that it can be released.
    fn delayed(&self, action: FaultAction) -> FaultAction {
        let FaultAction::Delay(span) = action else {
            return action;
        };
        let wait = self.wait(span);
        // On the clock of the node, on which the daemon notices that a call takes too long.
        while let Some(left) = wait.left() {
            self.sim.clock().sleep(left);
        }
        FaultAction::Go
    }
}

impl Wait<'_> {
    /// Returns how long to wait before the next look; `None` if the wait is over.
    pub(crate) fn left(&self) -> Option<Duration> {
        let Injected {
            sim,
            ended_runs,
            is_cleared,
            ..
        } = self.injected;
        let is_released = is_cleared.load(Ordering::SeqCst)
            || ended_runs.load(Ordering::SeqCst) != self.ended_runs;
        let left = self.until.0.saturating_sub(sim.now().0).min(POLL);
        (!is_released && !left.is_zero()).then_some(left)
    }
}

impl Probe for Injected {
    fn before(&self, call: &Call) -> FaultAction {
        self.delayed(self.fault.before(call))
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        self.delayed(self.fault.after(call, outcome))
    }
}
