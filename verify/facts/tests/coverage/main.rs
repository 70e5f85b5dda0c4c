//! Each outcome that the storage operations meet is covered by a fact.
//!
//! The scenarios of simtest run without faults. Each pair of a primitive and its outcome in these runs must also be in
//! the run of a check, so that it is known to be what Windows does and not only what the simulated node does. The
//! scenarios run on one thread and without random choices, so the pairs are the same each time. The tests of
//! storage-ops are not traced: each makes its own node, without a place for a probe. The simulated node is the same on
//! Windows.
#![cfg(not(windows))]

mod pair;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use facts::SimulatedNode;
use faults::{Probed, Trace};
use simtest::scenarios::{self, Scenario};
use storage_ops::{Config, Node};

use pair::Pair;

/// Longer than any job can take.
const SETTLE_TIME: Duration = Duration::from_hours(4);

#[test]
fn each_outcome_that_an_operation_meets_is_covered_by_a_fact() {
    let covered = pairs_of_facts();
    let mut uncovered: BTreeMap<Pair, BTreeSet<String>> = BTreeMap::new();
    for scenario in [scenarios::all(), scenarios::races::scenarios()].concat() {
        for pair in pairs_of_scenario(&scenario) {
            if !covered.contains(&pair) {
                uncovered.entry(pair).or_default().insert(scenario.spec.operation().to_owned());
            }
        }
    }
    let mut report = String::new();
    for (pair, operations) in &uncovered {
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        writeln!(report, "uncovered: {pair}, in {}", operations.join(", ")).expect("a text");
    }
    assert!(uncovered.is_empty(), "no fact covers {} outcomes:\n{report}", uncovered.len());
}

/// Returns what the calls of all checks on the simulated node are and how they end.
fn pairs_of_facts() -> BTreeSet<Pair> {
    let mut pairs = BTreeSet::new();
    for fact in facts::all() {
        let trace = Arc::new(Trace::recording());
        let node = SimulatedNode::with_layer(|node| Arc::new(Probed::new(node, Arc::clone(&trace))));
        facts::check(&fact, &node);
        pairs.extend(trace.take().iter().map(Pair::of));
    }
    pairs
}

/// Returns what the calls of an operation are and how they end, when it runs and when it is repeated.
fn pairs_of_scenario(scenario: &Scenario) -> BTreeSet<Pair> {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let trace = Arc::new(Trace::recording());
    let node = Node::new(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Config::default());
    node.test_path_lookup();
    for _ in 0..2 {
        request.run(&node);
        sim.advance(SETTLE_TIME);
    }
    trace.take().iter().map(Pair::of).collect()
}
