//! Every attack before every call, also together with a change that fails although it has had its
//! effect: no file outside kubelet's directory may be read, written or deleted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use faults::{Call, Fault, FaultAction, Layered, Probed, Trace, When};

use os::OsError;

use crate::SETTLE_TIME;
use crate::attack::Attack;
use crate::error_codes::{UNSEEN_RETURN, unseen_error_of};
use crate::invariants::{Baseline, check_answer, check_nothing_held};
use crate::outside_access::OutsideAccess;
use crate::scenarios::Scenario;
use crate::scenarios::filesystem::PATH;
use crate::started_node::{Driver, StartedNode};

/// The operation that may enter the volume that is mounted at its path.
const RMDIR_CONTENTS: &str = "RmdirContents";

/// Longer than an operation takes, if it does not wait for the attacker.
const WITHOUT_WAITING: Duration = Duration::from_mins(10);

/// A change that has its effect and reports an error that says nothing about the object. A refusal
/// would be an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedChange {
    /// How many changes the operation makes before it.
    skip: u64,
    /// The error, or the return value.
    action: FaultAction,
}

impl fmt::Display for FailedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self.action {
            FaultAction::Fail(OsError(code)) => format!("error {code}"),
            FaultAction::Return(code) => format!("return {code}"),
            other => format!("{other:?}"),
        };
        write!(f, "change {} {code} after", self.skip)
    }
}

/// Returns the calls of a run without an attack.
pub fn calls(scenario: &Scenario) -> Vec<Call> {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let trace = Arc::new(Trace::recording());
    let os = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
    let node = StartedNode::new(&sim, os, (scenario.spec.config)(), Driver::Thread);
    request.run(&node);
    trace.take().into_iter().map(|record| record.call).collect()
}

/// Returns the changes that can fail in a case whose attack is made before the call number `nth`:
/// the change of that call, and that of the call before.
pub fn failed_changes(calls: &[Call], nth: usize) -> Vec<FailedChange> {
    let mut failed = Vec::new();
    for at in nth.saturating_sub(1)..=nth {
        let Some(call) = calls.get(at).filter(|call| call.mutates) else {
            continue;
        };
        let skip = calls[..at].iter().filter(|call| call.mutates).count();
        let skip = u64::try_from(skip).unwrap_or(u64::MAX);
        let mut actions = vec![FaultAction::Fail(unseen_error_of(call))];
        if call.primitive.starts_with("wmi call") {
            actions.push(FaultAction::Return(UNSEEN_RETURN));
        }
        failed.extend(
            actions
                .into_iter()
                .map(|action| FailedChange { skip, action }),
        );
    }
    failed
}

/// Runs one case and returns the violations.
pub fn run(
    scenario: &Scenario,
    nth: usize,
    attack: Attack,
    failed: Option<FailedChange>,
    driver: Driver,
) -> Vec<String> {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let baseline = Baseline::of(&sim).with_formats_of(&scenario.spec);
    let enters_volume = scenario.spec.operation() == RMDIR_CONTENTS;
    let outside = OutsideAccess::on(&sim, enters_volume.then_some(PATH));
    let watched = Arc::new(Layered::around(sim.process(), outside.clone()));
    let mut probes = attack.probes(&sim, u64::try_from(nth).unwrap_or(u64::MAX));
    if let Some(FailedChange { skip, action }) = failed {
        let fault = Fault::some(skip, 1, When::After, action).among(|call| call.mutates);
        probes.push(Arc::new(fault));
    }
    let os = Arc::new(Probed::new(watched, probes));
    let node = StartedNode::new(&sim, os, (scenario.spec.config)(), driver);
    let held = attack.open_held(&sim);
    let began = sim.now();
    let answer = request.run(&node);
    let took = sim.now() - began;
    drop(held);
    sim.advance(SETTLE_TIME);
    let mut violations = outside.take();
    if took > WITHOUT_WAITING {
        violations.push(format!("it waited for the attacker, {took:?} in all"));
    }
    violations.extend(baseline.check(&sim, scenario.spec.changes, None));
    violations.extend(check_answer(&*request, &answer, None));
    violations.extend(check_nothing_held(&sim, &node));
    violations
}
