//! Failing, delaying or killing a process at a chosen call.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::probe::{Call, FaultAction, Outcome, Probe};

/// On which side of its effect a fault strikes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The call never reaches the node.
    Before,
    /// The call has had its effect, but its caller does not learn of it.
    After,
}

/// A probe that disturbs one call, or each call of a kind.
pub struct Fault {
    which: Which,
    of: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    moment: Moment,
    verdict: FaultAction,
    state: Mutex<State>,
}

enum Which {
    Nth(u64),
    Each,
}

#[derive(Default)]
struct State {
    disarmed: bool,
    seen: u64,
    /// The sequence numbers of calls under way that are to be struck when they come back.
    pending: Vec<u64>,
    struck: Option<Call>,
}

impl Fault {
    /// Disturbs the call number `nth`, the first being 0, and that one only.
    pub fn at(nth: u64, moment: Moment, verdict: FaultAction) -> Self {
        Self::new(Which::Nth(nth), Box::new(|_| true), moment, verdict)
    }

    /// Disturbs each call that is `of` the kind.
    pub fn each(of: impl Fn(&Call) -> bool + Send + Sync + 'static, moment: Moment, verdict: FaultAction) -> Self {
        Self::new(Which::Each, Box::new(of), moment, verdict)
    }

    /// Counts only calls that are `of` the kind.
    #[must_use]
    pub fn among(mut self, of: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.of = Box::new(of);
        self
    }

    /// Begins to count again with the next call.
    pub fn arm(&self) {
        *self.state() = State::default();
    }

    /// Disturbs nothing until armed.
    pub fn disarm(&self) {
        self.state().disarmed = true;
    }

    /// The last call that was disturbed: none means that the work was done before the fault's turn came.
    pub fn struck(&self) -> Option<Call> {
        self.state().struck.clone()
    }

    fn new(which: Which, of: Box<dyn Fn(&Call) -> bool + Send + Sync>, moment: Moment, verdict: FaultAction) -> Self {
        Self { which, of, moment, verdict, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}, struck {:?}", self.verdict, self.moment, self.struck())
    }
}

impl Probe for Fault {
    fn before(&self, call: &Call) -> FaultAction {
        let mut state = self.state();
        if state.disarmed || !(self.of)(call) {
            return FaultAction::Go;
        }
        let number = state.seen;
        state.seen += 1;
        if matches!(self.which, Which::Nth(nth) if nth != number) {
            return FaultAction::Go;
        }
        match self.moment {
            Moment::Before => {
                state.struck = Some(call.clone());
                self.verdict
            }
            Moment::After => {
                state.pending.push(call.sequence);
                FaultAction::Go
            }
        }
    }

    fn after(&self, call: &Call, _outcome: Outcome) -> FaultAction {
        let mut state = self.state();
        let Some(position) = state.pending.iter().position(|sequence| *sequence == call.sequence) else {
            return FaultAction::Go;
        };
        state.pending.swap_remove(position);
        state.struck = Some(call.clone());
        self.verdict
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use os::{Clock, Os, OsError, U16String};

    use super::{Fault, Moment};
    use crate::probe::tests::Echo;
    use crate::probe::{Call, FaultAction, Probed};

    fn mount(probed: &Probed) -> Result<(), OsError> {
        probed.set_volume_mount_point(&U16String::from_str(r"C:\dir\"), &U16String::from_str("volume"))
    }

    #[test]
    fn a_fault_before_a_call_keeps_it_from_the_node_and_one_after_it_does_not() {
        for (moment, reached) in [(Moment::Before, 2), (Moment::After, 3)] {
            let node = Echo::node();
            let fault = Arc::new(Fault::at(1, moment, FaultAction::Fail(OsError::BUSY)));
            let probed = Probed::new(node.clone(), Arc::clone(&fault));
            assert_eq!([mount(&probed), mount(&probed), mount(&probed)], [Ok(()), Err(OsError::BUSY), Ok(())]);
            assert_eq!(node.calls(), reached, "{moment:?}");
            assert_eq!(fault.struck().map(|call| call.sequence), Some(1));
        }
    }

    #[test]
    fn a_fault_counts_among_the_calls_of_its_kind_from_when_it_was_armed() {
        let fault = Arc::new(Fault::at(0, Moment::Before, FaultAction::Fail(OsError::BUSY)).among(|call| call.mutates));
        let probed = Probed::new(Echo::node(), Arc::clone(&fault));
        assert!(probed.volumes().is_ok());
        assert_eq!(fault.struck(), None);
        assert_eq!([mount(&probed), mount(&probed)], [Err(OsError::BUSY), Ok(())]);
        fault.arm();
        assert_eq!([mount(&probed), mount(&probed)], [Err(OsError::BUSY), Ok(())]);
    }

    #[test]
    fn each_call_of_a_kind_fails_until_disarmed() {
        let of = |call: &Call| call.primitive == "set_volume_mount_point";
        let fault = Arc::new(Fault::each(of, Moment::Before, FaultAction::Fail(OsError::NOT_READY)));
        let probed = Probed::new(Echo::node(), Arc::clone(&fault));
        assert_eq!([mount(&probed), mount(&probed)], [Err(OsError::NOT_READY); 2]);
        fault.disarm();
        assert_eq!(mount(&probed), Ok(()));
    }

    #[test]
    fn a_delay_lets_the_nodes_time_pass_and_changes_nothing_else() {
        for moment in [Moment::Before, Moment::After] {
            let node = Echo::node();
            let span = Duration::from_secs(7);
            let probed = Probed::new(node.clone(), Fault::at(0, moment, FaultAction::Delay(span)));
            assert_eq!(mount(&probed), Ok(()));
            assert_eq!(node.now().0, span);
            assert_eq!(node.calls(), 1);
        }
    }

    #[test]
    fn after_dying_nothing_reaches_the_node() {
        for (moment, reached) in [(Moment::Before, 1), (Moment::After, 2)] {
            let node = Echo::node();
            let probed = Probed::new(node.clone(), Fault::at(1, moment, FaultAction::Die));
            assert_eq!(mount(&probed), Ok(()));
            assert_eq!([mount(&probed), mount(&probed)], [Err(OsError::OPERATION_ABORTED); 2]);
            assert!(probed.is_dead());
            assert_eq!(node.calls(), reached, "{moment:?}");
        }
    }
}
