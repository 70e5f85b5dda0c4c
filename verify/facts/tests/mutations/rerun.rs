//! Running a check and recording its calls, or altering the outcome of one of them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use facts::{Fact, Outcome, SimulatedNode};
use faults::{Call, Fault, FaultAction, Layered, Probe, Probed, Record, Trace, When};
use os::OsError;

use crate::alteration::{Alteration, AlteredAnswer, Progress};

/// A code that no check expects.
const UNKNOWN: u32 = 0xdead;

/// How a check ended.
pub(crate) enum Run {
    /// The fact holds. The calls of the check.
    Holds(Vec<Step>),
    /// The simulated node lacks what the check needs.
    Skipped,
    /// The fact does not hold.
    Fails(String),
}

/// A call of a check.
pub(crate) struct Step {
    /// The call and its outcome.
    pub(crate) record: Record,
    /// Whether the call returned something that can be altered, such as the bytes in a buffer.
    pub(crate) has_answer: bool,
}

impl Step {
    /// Returns whether the call failed, or called a WMI method that returned an error.
    pub(crate) fn failed(&self) -> bool {
        matches!(self.record.outcome, faults::Outcome::Failed(_) | faults::Outcome::Returned(1..))
    }

    /// Returns the alteration of a failure into another one.
    pub(crate) fn other_code(&self) -> Alteration {
        match self.record.outcome {
            faults::Outcome::Returned(_) => Alteration::Return(UNKNOWN),
            _ => Alteration::Fail,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { sequence, primitive, object, .. } = &self.record.call;
        write!(f, "call {sequence} ({primitive} {object}: {:?})", self.record.outcome)
    }
}

/// Runs a check and records its calls.
pub(crate) fn original(fact: &Fact) -> Run {
    let trace = Arc::new(Trace::recording());
    let answers = Arc::new(Mutex::new(BTreeSet::new()));
    let outcome = run(fact, Arc::clone(&trace), None, &answers);
    let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    match outcome {
        Outcome::Holds => {
            let mut records = trace.take();
            records.sort_by_key(|record| record.call.sequence);
            let step = |record: Record| Step { has_answer: answers.contains(&record.call.sequence), record };
            Run::Holds(records.into_iter().map(step).collect())
        }
        Outcome::Skipped(_) => Run::Skipped,
        Outcome::Fails(why) => Run::Fails(why),
    }
}

/// Runs a check with one call altered and returns whether the check then fails.
pub(crate) fn notices(fact: &Fact, index: usize, alteration: Alteration) -> bool {
    let call = u64::try_from(index).expect("a small number");
    let answers = Arc::default();
    let outcome = match alteration {
        Alteration::Fail => {
            run(fact, Fault::at(call, When::After, FaultAction::Fail(OsError(UNKNOWN))), None, &answers)
        }
        of_answer => run(fact, Trace::counting(), Some((call, of_answer)), &answers),
    };
    matches!(outcome, Outcome::Fails(_))
}

fn run(
    fact: &Fact,
    probe: impl Probe + 'static,
    alter: Option<(u64, Alteration)>,
    answers: &Arc<Mutex<BTreeSet<u64>>>,
) -> Outcome {
    let progress = Progress::default();
    let layer = AlteredAnswer { alter, progress: progress.clone(), answers: Arc::clone(answers) };
    let node = SimulatedNode::with_layer(|node| {
        let probes: Vec<Arc<dyn Probe>> = vec![Arc::new(probe), Arc::new(Current(progress))];
        Arc::new(Layered::around(Arc::new(Probed::new(node, probes)), layer))
    });
    facts::check(fact, &node)
}

/// A probe that keeps the number of the last call, and ends a check that makes calls without end.
struct Current(Progress);

impl Probe for Current {
    fn before(&self, call: &Call) -> FaultAction {
        assert!(call.sequence < 20_000, "the check does not end");
        self.0.store(call.sequence, Ordering::SeqCst);
        FaultAction::Go
    }
}
