//! A probe that counts and records the calls of a process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Sub;
use std::sync::{Mutex, MutexGuard};

use crate::probe::{Call, FaultAction, Outcome, Probe};

/// A probe that counts every call and optionally records it.
#[derive(Debug, Default)]
pub struct Trace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    recording: bool,
    counts: Counts,
    records: Vec<Record>,
}

/// A call and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The call.
    pub call: Call,
    /// The outcome of the call.
    pub outcome: Outcome,
}

/// Numbers of calls. Subtract two of them for the calls in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of all primitives.
    pub primitives: u64,
    /// The number of WMI queries and method calls.
    pub wmi: u64,
    /// The number of calls of each primitive that was called, by its name.
    pub by_primitive: BTreeMap<Cow<'static, str>, u64>,
}

impl Trace {
    /// Returns a probe that counts and records calls.
    pub fn recording() -> Self {
        let trace = Self::default();
        trace.state().recording = true;
        trace
    }

    /// Returns a probe that only counts calls, so that its memory does not grow.
    pub fn counting() -> Self {
        Self::default()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.state().counts.clone()
    }

    /// Takes the calls recorded so far, in the order in which they ended.
    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.state().records)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        os::lock(&self.state)
    }
}

impl Probe for Trace {
    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        let mut state = self.state();
        state.counts.primitives += 1;
        state.counts.wmi += u64::from(call.is_wmi());
        *state
            .counts
            .by_primitive
            .entry(call.primitive.clone())
            .or_default() += 1;
        if state.recording {
            state.records.push(Record {
                call: call.clone(),
                outcome,
            });
        }
        FaultAction::Go
    }
}

impl Counts {
    /// Returns how many times `primitive` was called.
    pub fn of(&self, primitive: &str) -> u64 {
        self.by_primitive
            .get(primitive)
            .copied()
            .unwrap_or_default()
    }
}

impl Sub<&Self> for Counts {
    type Output = Self;

    fn sub(mut self, earlier: &Self) -> Self {
        self.primitives = self.primitives.saturating_sub(earlier.primitives);
        self.wmi = self.wmi.saturating_sub(earlier.wmi);
        for (primitive, count) in &mut self.by_primitive {
            *count = count.saturating_sub(earlier.of(primitive));
        }
        self.by_primitive.retain(|_, count| *count > 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use os::{Namespace, Os, OsError, Time};

    use super::Trace;
    use crate::probe::Outcome;
    use crate::probe::tests::{path, probed};

    #[test]
    fn the_difference_of_two_counts_is_the_number_of_calls_between_them() {
        let trace = Arc::new(Trace::counting());
        let probed = probed(Arc::clone(&trace));
        probed.volumes().expect("volumes");
        let before = trace.counts();
        probed.volumes().expect("volumes");
        probed
            .wmi()
            .query(
                Namespace::Storage,
                "SELECT * FROM MSFT_Disk",
                Time::default(),
            )
            .expect("a query");
        let cost = trace.counts() - &before;
        assert_eq!((cost.primitives, cost.wmi), (2, 1));
        assert_eq!(
            (cost.of("volumes"), cost.of("wmi query"), cost.of("open")),
            (1, 1, 0)
        );
        assert!(trace.take().is_empty(), "nothing is recorded");
    }

    #[test]
    fn a_record_has_the_call_its_object_and_its_outcome() {
        let trace = Arc::new(Trace::recording());
        let probed = probed(Arc::clone(&trace));
        let how = os::Open::existing(os::Access::empty(), os::Options::empty());
        let root = probed.open(&path(r"C:\"), &how).expect("a directory");
        let child = root
            .open_child(&os::U16String::from_str("var"), &how)
            .expect("a directory");
        assert_eq!(child.flush(), Err(OsError::ACCESS_DENIED));
        let lines: Vec<_> = trace
            .take()
            .into_iter()
            .map(|record| {
                (
                    record.call.sequence,
                    record.call.primitive,
                    record.call.object,
                    record.outcome,
                )
            })
            .collect();
        assert_eq!(
            lines,
            [
                (0, "open".into(), r"\??\C:\".to_owned(), Outcome::Done),
                (
                    1,
                    "open_child".into(),
                    r"\??\C:\var".to_owned(),
                    Outcome::Done
                ),
                (
                    2,
                    "flush".into(),
                    r"\??\C:\var".to_owned(),
                    Outcome::Failed(OsError::ACCESS_DENIED)
                ),
            ]
        );
    }
}
