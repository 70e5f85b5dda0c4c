//! Every attack before every call: nothing outside of kubelet's directory is read, written or deleted.

use std::sync::Arc;
use std::time::Duration;

use faults::{Layered, Probed, Trace};
use storage_ops::{Config, Node};

use crate::attack::Attack;
use crate::outside_access::OutsideAccess;
use crate::promise::{Before, nothing_held, words};
use crate::scenario::Scenario;
use crate::scenarios::filesystem::PATH;

/// The operation that goes into the volume mounted at its path.
const RMDIR_CONTENTS: &str = "RmdirContents";

/// How many calls an undisturbed run makes.
pub fn calls(scenario: &Scenario) -> usize {
    let sim = (scenario.state.build)();
    let request = (scenario.asked.request)(&sim);
    let trace = Arc::new(Trace::counting());
    let node = Node::new(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Config::default());
    request.run(&node);
    usize::try_from(trace.counts().primitives).unwrap_or(usize::MAX)
}

/// Runs one case and says what was broken.
pub fn run(scenario: &Scenario, nth: usize, attack: Attack) -> Vec<String> {
    let sim = (scenario.state.build)();
    let request = (scenario.asked.request)(&sim);
    let before = Before::of(&sim);
    let empties = scenario.asked.name == RMDIR_CONTENTS;
    let outside = OutsideAccess::on(&sim, empties.then_some(PATH));
    let watched = Arc::new(Layered::around(sim.process(), outside.clone()));
    let probes = attack.probes(&sim, u64::try_from(nth).unwrap_or(u64::MAX));
    let node = Node::new(Arc::new(Probed::new(watched, probes)), Config::default());
    let held = attack.hold(&sim);
    let answer = request.run(&node);
    drop(held);
    sim.advance(Duration::from_hours(4));
    let mut broken = outside.take();
    broken.extend(before.check(&sim, scenario.asked.changes, None));
    broken.extend(words(&*request, &answer, None));
    broken.extend(nothing_held(&sim, &node));
    broken
}
