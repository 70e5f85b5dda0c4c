//! Checks that operations do not change an object while Windows is still running a job on it.
//!
//! A job can outlive the operation that started it. Windows and the simulated node refuse some
//! calls during a job, but versions of Windows refuse different calls. csi-proxy's own locks must
//! prevent all of them, so a call counts when it begins, regardless of its result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use faults::{Call, FaultAction, Outcome, Probe};
use os_sim::Sim;

/// A probe that records each call that can change the node and begins while a job is known to be
/// running. It is meant for operations on one object.
#[derive(Clone)]
pub struct JobConflicts {
    sim: Sim,
    /// Whether Windows has reported a job as still running. If a call reported a failure instead,
    /// its caller cannot know of the job.
    job_reported: Arc<AtomicBool>,
    recorded: Arc<Mutex<Vec<String>>>,
}

impl JobConflicts {
    /// Starts without any recorded conflicts on `sim`.
    pub fn on(sim: &Sim) -> Self {
        Self {
            sim: sim.clone(),
            job_reported: Arc::default(),
            recorded: Arc::default(),
        }
    }

    /// Returns and clears the conflicts recorded so far, one sentence each.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *os::lock(&self.recorded))
    }
}

impl Probe for JobConflicts {
    fn before(&self, call: &Call) -> FaultAction {
        if call.mutates && self.job_reported.load(Ordering::SeqCst) && self.sim.running_jobs() > 0 {
            let conflict = format!(
                "began {} while Windows was still running a job on the object",
                call.primitive
            );
            os::lock(&self.recorded).push(conflict);
        }
        FaultAction::Go
    }

    fn after(&self, _call: &Call, outcome: Outcome) -> FaultAction {
        if outcome == Outcome::StillRunning {
            self.job_reported.store(true, Ordering::SeqCst);
        }
        FaultAction::Go
    }
}
