//! Whether the work that Windows goes on with, after whoever began it has given up waiting, is left alone.
//!
//! Windows itself refuses some of what would disturb it, the simulated node likewise; that is chance, and different
//! from one Windows to the next. What is relied on are our own locks, so it counts what is begun, not what comes of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use faults::{Call, FaultAction, Outcome, Probe};
use os_sim::Sim;

/// Notes each call that can change the node and is begun while a job goes on of which Windows has said so. For
/// operations on one object.
#[derive(Clone)]
pub struct Disturbances {
    sim: Sim,
    /// Whether Windows has said of any job that it goes on. Of one that is said to have failed nobody can know.
    told: Arc<AtomicBool>,
    noted: Arc<Mutex<Vec<String>>>,
}

impl Disturbances {
    /// None yet on `sim`.
    pub fn on(sim: &Sim) -> Self {
        Self { sim: sim.clone(), told: Arc::default(), noted: Arc::default() }
    }

    /// Those so far, a line each.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Probe for Disturbances {
    fn before(&self, call: &Call) -> FaultAction {
        if call.mutates && self.told.load(Ordering::SeqCst) && self.sim.running_jobs() > 0 {
            let line = format!("began {} while Windows still worked on the object", call.primitive);
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        FaultAction::Go
    }

    fn after(&self, _call: &Call, outcome: Outcome) -> FaultAction {
        if outcome == Outcome::StillRunning {
            self.told.store(true, Ordering::SeqCst);
        }
        FaultAction::Go
    }
}
