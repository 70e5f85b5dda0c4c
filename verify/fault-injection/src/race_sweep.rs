//! Every attack before every call: no file outside kubelet's directory may be read, written or
//! deleted.

use std::sync::Arc;
use std::time::Duration;

use faults::{Layered, Probed, Trace};

use crate::SETTLE_TIME;
use crate::attack::Attack;
use crate::invariants::{Baseline, check_answer, check_nothing_held};
use crate::outside_access::OutsideAccess;
use crate::scenarios::Scenario;
use crate::scenarios::filesystem::PATH;
use crate::started_node::started;

/// The operation that may enter the volume that is mounted at its path.
const RMDIR_CONTENTS: &str = "RmdirContents";

/// Longer than an operation takes, if it does not wait for the attacker.
const WITHOUT_WAITING: Duration = Duration::from_mins(10);

/// Returns how many calls a run without an attack makes.
pub fn calls(scenario: &Scenario) -> usize {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let trace = Arc::new(Trace::counting());
    let os = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
    let node = started(os, (scenario.spec.config)());
    request.run(&node);
    usize::try_from(trace.counts().primitives).unwrap_or(usize::MAX)
}

/// Runs one case and returns the violations.
pub fn run(scenario: &Scenario, nth: usize, attack: Attack) -> Vec<String> {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let baseline = Baseline::of(&sim).with_formats_of(&scenario.spec);
    let enters_volume = scenario.spec.operation() == RMDIR_CONTENTS;
    let outside = OutsideAccess::on(&sim, enters_volume.then_some(PATH));
    let watched = Arc::new(Layered::around(sim.process(), outside.clone()));
    let probes = attack.probes(&sim, u64::try_from(nth).unwrap_or(u64::MAX));
    let node = started(
        Arc::new(Probed::new(watched, probes)),
        (scenario.spec.config)(),
    );
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
