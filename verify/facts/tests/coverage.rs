//! Each outcome that the storage operations meet is covered by a fact.
//!
//! The scenarios of `verify/fault-injection` run without faults. Each pair of a primitive and its outcome in
//! these runs must also be in the run of a check, so that it is known to be what Windows does and
//! not only what the simulated node does. The scenarios run on one thread and without random
//! choices, so the pairs are the same each time. The tests of storage-ops are not traced: each
//! makes its own node, without a place for a probe. The simulated node is the same on Windows.
#![cfg(not(windows))]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use facts::SimulatedNode;
use fault_injection::scenarios::{self, Scenario};
use fault_injection::started_node::{Driver, StartedNode};
use faults::{Call, Outcome, Probed, Record, Trace};
use storage_ops::Config;

/// Longer than any job can take.
const SETTLE_TIME: Duration = Duration::from_hours(4);

#[test]
fn each_outcome_that_an_operation_meets_is_covered_by_a_fact() {
    let covered = pairs_of_facts();
    let mut uncovered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for scenario in [scenarios::all(), scenarios::races::scenarios()].concat() {
        for pair in pairs_of_scenario(&scenario) {
            if !covered.contains(&pair) {
                uncovered
                    .entry(pair)
                    .or_default()
                    .insert(scenario.spec.operation().to_owned());
            }
        }
    }
    let mut report = String::new();
    for (pair, operations) in &uncovered {
        let operations: Vec<&str> = operations.iter().map(String::as_str).collect();
        writeln!(report, "uncovered: {pair}, in {}", operations.join(", ")).expect("a text");
    }
    assert!(
        uncovered.is_empty(),
        "no fact covers {} outcomes:\n{report}",
        uncovered.len()
    );
}

/// Returns what the calls of all checks on the simulated node are and how they end.
fn pairs_of_facts() -> BTreeSet<String> {
    let mut pairs = BTreeSet::new();
    for fact in facts::all() {
        let trace = Arc::new(Trace::recording());
        let node =
            SimulatedNode::with_layer(|node| Arc::new(Probed::new(node, Arc::clone(&trace))));
        facts::check(&fact, &node);
        pairs.extend(trace.take().iter().map(pair));
    }
    pairs
}

/// Returns what the calls of an operation are and how they end, when it runs and when it is
/// repeated.
fn pairs_of_scenario(scenario: &Scenario) -> BTreeSet<String> {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let trace = Arc::new(Trace::recording());
    let os = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
    let node = StartedNode::new(&sim, os, Config::default(), Driver::Thread);
    for _ in 0..2 {
        request.run(&node);
        sim.advance(SETTLE_TIME);
    }
    trace.take().iter().map(pair).collect()
}

/// Returns a primitive with what selects its work (the kind of object, the control code, the class
/// of information, the WMI class and method), and how the call ended.
fn pair(record: &Record) -> String {
    let primitive = primitive(&record.call);
    match record.outcome {
        Outcome::Failed(code) => format!("{primitive}: {code:?} ({})", code.0),
        outcome => format!("{primitive}: {outcome:?}"),
    }
}

fn primitive(call: &Call) -> String {
    let kind = match &*call.primitive {
        "open" => kind_of_object(&call.object),
        "wmi query" => class(&call.object),
        "firmware_table" => &call.object,
        _ => return call.primitive.to_string(),
    };
    format!("{} {kind}", call.primitive)
}

/// Returns the kind of object that an NT path names.
fn kind_of_object(path: &str) -> &'static str {
    let name = path.trim_start_matches(r"\??\");
    if name.starts_with("PhysicalDrive") {
        "disk"
    } else if name.starts_with(r"UNC\") {
        "path on a server"
    } else if name.starts_with("Volume{") && name.ends_with('}') {
        "volume"
    } else {
        "path"
    }
}

/// Returns the class of the objects that a query finds.
fn class(wql: &str) -> &str {
    let words = |keyword: &str| wql.split_once(keyword).map(|(_, rest)| rest);
    let rest = words("ResultClass = ")
        .or_else(|| words(" FROM "))
        .unwrap_or(wql);
    rest.split_whitespace().next().unwrap_or_default()
}

#[test]
fn a_call_is_named_by_its_class_or_kind_of_object() {
    assert_eq!(
        class("SELECT * FROM MSFT_Disk WHERE Number = 1"),
        "MSFT_Disk"
    );
    assert_eq!(
        class("ASSOCIATORS OF {A.B=\"1\"} WHERE AssocClass = C ResultClass = MSFT_Disk"),
        "MSFT_Disk"
    );
    assert_eq!(kind_of_object(r"\??\PhysicalDrive1"), "disk");
    assert_eq!(
        kind_of_object(r"\??\Volume{00000000-0000-0000-0000-000000000001}"),
        "volume"
    );
    assert_eq!(
        kind_of_object(r"\??\Volume{00000000-0000-0000-0000-000000000001}\directory"),
        "path"
    );
    assert_eq!(kind_of_object(r"\??\UNC\files\one"), "path on a server");
}
