//! A probe that makes chosen calls fail, delays them or kills the process.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use crate::probe::{Call, FaultAction, Outcome, Probe};

/// Whether a fault happens before or after the call reaches the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// Before: the call does not reach the node.
    Before,
    /// After: the call has had its effect, but the caller sees the fault.
    After,
}

/// A probe that disturbs one call, several calls, or every call that matches a condition.
pub struct Fault {
    /// How many of the matching calls pass before the first one that is disturbed.
    skip: u64,
    /// How many calls are disturbed.
    count: u64,
    matches: Box<dyn Fn(&Call) -> bool + Send + Sync>,
    when: When,
    action: FaultAction,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seen: u64,
    /// The sequence numbers of running calls to disturb when the node has answered.
    pending: Vec<u64>,
    hits: u64,
    last_hit: Option<Call>,
}

impl Fault {
    /// Disturbs only the call number `nth`, counted from 0.
    pub fn at(nth: u64, when: When, action: FaultAction) -> Self {
        Self::some(nth, 1, when, action)
    }

    /// Disturbs `count` calls after the first `skip` calls.
    pub fn some(skip: u64, count: u64, when: When, action: FaultAction) -> Self {
        Self {
            skip,
            count,
            matches: Box::new(|_| true),
            when,
            action,
            state: Mutex::default(),
        }
    }

    /// Disturbs every call for which `matches` returns true.
    pub fn each(
        matches: impl Fn(&Call) -> bool + Send + Sync + 'static,
        when: When,
        action: FaultAction,
    ) -> Self {
        Self::some(0, u64::MAX, when, action).among(matches)
    }

    /// Counts and disturbs only calls for which `matches` returns true.
    #[must_use]
    pub fn among(mut self, matches: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        self.matches = Box::new(matches);
        self
    }

    /// Returns the last call that was disturbed, or `None` if there were too few calls.
    pub fn last_hit(&self) -> Option<Call> {
        self.state().last_hit.clone()
    }

    /// Returns how many calls were disturbed.
    pub fn hits(&self) -> u64 {
        self.state().hits
    }

    /// Counts the call if it matches, and returns whether it is one of those to disturb.
    pub fn chooses(&self, call: &Call) -> bool {
        let mut state = self.state();
        if !(self.matches)(call) {
            return false;
        }
        let number = state.seen;
        state.seen += 1;
        number
            .checked_sub(self.skip)
            .is_some_and(|number| number < self.count)
    }

    /// Records that the call is disturbed.
    pub fn hit(&self, call: &Call) {
        let mut state = self.state();
        state.hits += 1;
        state.last_hit = Some(call.clone());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        os::lock(&self.state)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {:?}, last hit {:?}",
            self.action,
            self.when,
            self.last_hit()
        )
    }
}

impl Probe for Fault {
    fn before(&self, call: &Call) -> FaultAction {
        if !self.chooses(call) {
            return FaultAction::Go;
        }
        match self.when {
            When::Before => {
                self.hit(call);
                self.action
            }
            When::After => {
                self.state().pending.push(call.sequence);
                FaultAction::Go
            }
        }
    }

    fn after(&self, call: &Call, _outcome: Outcome) -> FaultAction {
        let mut state = self.state();
        let Some(position) = state
            .pending
            .iter()
            .position(|sequence| *sequence == call.sequence)
        else {
            return FaultAction::Go;
        };
        state.pending.swap_remove(position);
        drop(state);
        self.hit(call);
        self.action
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use os::{CallStatus, MethodCall, Namespace, Os, OsError, Time};

    use super::{Fault, When};
    use crate::probe::tests::{Counted, probed, write};
    use crate::probe::{Call, FaultAction};

    const FAIL: FaultAction = FaultAction::Fail(OsError::BUSY);

    #[test]
    fn only_a_call_with_a_fault_after_it_reaches_the_node() {
        for (when, reached) in [(When::Before, 2), (When::After, 3)] {
            let node = Counted::new();
            let fault = Arc::new(Fault::at(1, when, FAIL));
            let probed = node.process(Arc::clone(&fault));
            assert_eq!(
                [(); 3].map(|()| write(&probed)),
                [Ok(()), Err(OsError::BUSY), Ok(())]
            );
            assert_eq!(node.calls(), reached, "{when:?}");
            assert_eq!(fault.last_hit().map(|call| call.sequence), Some(1));
        }
    }

    #[test]
    fn a_fault_disturbs_the_chosen_ones_of_the_calls_that_match() {
        let is_change = |call: &Call| call.mutates;
        for (fault, failed) in [
            (
                Fault::at(0, When::Before, FAIL).among(is_change),
                [true, false, false, false],
            ),
            (
                Fault::some(1, 2, When::Before, FAIL).among(is_change),
                [false, true, true, false],
            ),
            (Fault::each(is_change, When::Before, FAIL), [true; 4]),
        ] {
            let fault = Arc::new(fault);
            let probed = probed(Arc::clone(&fault));
            assert!(probed.volumes().is_ok());
            assert_eq!(fault.last_hit(), None);
            assert_eq!(
                [(); 4].map(|()| write(&probed).is_err()),
                failed,
                "{fault:?}"
            );
            assert_eq!(
                fault.hits(),
                failed.iter().map(|failed| u64::from(*failed)).sum()
            );
        }
    }

    #[test]
    fn a_delay_advances_the_clock_of_the_node_and_changes_nothing_else() {
        for when in [When::Before, When::After] {
            let node = Counted::new();
            let span = Duration::from_secs(7);
            let probed = node.process(Fault::at(0, when, FaultAction::Delay(span)));
            assert_eq!(write(&probed), Ok(()));
            assert_eq!((node.sim.now().0, node.calls()), (span, 1));
        }
    }

    #[test]
    fn a_method_returns_another_code_without_its_work_or_after_it_and_other_calls_proceed() {
        for (when, reached) in [(When::Before, 1), (When::After, 2)] {
            let node = Counted::new();
            let probed = node.process(Fault::each(|_| true, when, FaultAction::Return(5)));
            assert_eq!(write(&probed), Ok(()));
            let update = MethodCall::new(
                Namespace::Storage,
                "MSFT_StorageSetting",
                "UpdateHostStorageCache",
                &[],
            );
            let status = probed
                .wmi()
                .call(&update, Time(Duration::MAX))
                .expect("the method is called");
            assert!(
                matches!(status, CallStatus::Done(returned) if returned.code == 5),
                "{when:?}"
            );
            assert_eq!(node.calls(), reached, "{when:?}");
        }
    }

    #[test]
    fn no_call_of_a_dead_process_reaches_the_node() {
        for (when, reached) in [(When::Before, 1), (When::After, 2)] {
            let node = Counted::new();
            let probed = node.process(Fault::at(1, when, FaultAction::Die));
            let aborted = Err(OsError::OPERATION_ABORTED);
            assert_eq!([(); 3].map(|()| write(&probed)), [Ok(()), aborted, aborted]);
            assert!(probed.is_dead());
            assert_eq!(node.calls(), reached, "{when:?}");
        }
    }
}
