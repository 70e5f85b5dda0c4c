//! A probe whose faults can be added and removed while the process runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::Fault;
use crate::probe::{Call, FaultAction, Outcome, Probe};

/// Faults by number. If several faults disturb the same call, the faults with lower numbers are the outer probes.
#[derive(Debug, Default)]
pub struct FaultSet {
    faults: Mutex<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    last: u64,
    /// Not locked while a fault's condition runs, which may take long and may call the node.
    by_number: BTreeMap<u64, Arc<Fault>>,
}

impl FaultSet {
    /// Adds a fault and returns its number, which is never used again.
    pub fn add(&self, fault: Arc<Fault>) -> u64 {
        let mut faults = self.faults();
        faults.last += 1;
        let number = faults.last;
        faults.by_number.insert(number, fault);
        number
    }

    /// Removes the fault with this number. Returns false if it does not exist. Calls in progress may still be disturbed.
    pub fn remove(&self, number: u64) -> bool {
        self.faults().by_number.remove(&number).is_some()
    }

    fn nested(&self) -> Vec<Arc<dyn Probe>> {
        self.faults().by_number.values().map(|fault| Arc::clone(fault) as Arc<dyn Probe>).collect()
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe for FaultSet {
    fn before(&self, call: &Call) -> FaultAction {
        self.nested().before(call)
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        self.nested().after(call, outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use os::{Os, OsError};

    use super::FaultSet;
    use crate::fault::{Fault, When};
    use crate::probe::FaultAction;
    use crate::probe::tests::probed;

    #[test]
    fn a_fault_acts_from_its_addition_to_its_removal() {
        let set = Arc::new(FaultSet::default());
        let probed = probed(Arc::clone(&set));
        assert!(probed.volumes().is_ok());
        let busy = Arc::new(Fault::each(|_| true, When::Before, FaultAction::Fail(OsError::BUSY)));
        let first = set.add(Arc::clone(&busy));
        let second = set.add(Arc::new(Fault::each(|_| true, When::Before, FaultAction::Fail(OsError::NOT_READY))));
        assert_eq!(probed.volumes(), Err(OsError::BUSY));
        assert!(set.remove(first) && !set.remove(first));
        assert_eq!(probed.volumes(), Err(OsError::NOT_READY));
        assert!(set.remove(second));
        assert!(probed.volumes().is_ok());
        assert_eq!(busy.hits(), 1);
    }
}
