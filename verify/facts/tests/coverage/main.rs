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

use facts::{Check, SimulatedNode};
use faults::{Probed, Trace};
use os::OsError;
use simtest::scenarios::{self, Scenario};
use storage_ops::{Config, Node};

use pair::Pair;

/// Codes that any call on an object can fail with, each with the fact that says so.
const OF_ANY_PRIMITIVE: &[(OsError, &str)] = &[];

/// Outcomes that no fact covers yet. Nothing is added here: a new outcome needs a fact.
const NOT_COVERED_YET: &[&str] = &[
    "delete_volume_mount_point: Done",
    "set DispositionEx: DIR_NOT_EMPTY (145)",
    "set_volume_mount_point: DIR_NOT_EMPTY (145)",
    "set_volume_mount_point: Done",
    "volume_paths: FILE_NOT_FOUND (2)",
    "wmi call MSFT_Disk.CreatePartition: Returned(0)",
    "wmi call MSFT_Disk.Initialize: Returned(0)",
    "wmi call MSFT_Disk.Refresh: Returned(0)",
    "wmi call MSFT_Partition.GetSupportedSize: Returned(0)",
    "wmi call MSFT_Partition.Resize: Returned(0)",
    "wmi call MSFT_SmbGlobalMapping.Create: StillRunning",
    "wmi call MSFT_StorageSetting.UpdateHostStorageCache: Returned(0)",
    "wmi call MSFT_Volume.Format: Returned(0)",
    "wmi call MSFT_Volume.Format: Returned(41002)",
    "wmi call MSFT_iSCSISession.SetCHAPSecret: ISDSC_SERVICE_NOT_RUNNING (4026466366)",
    "wmi query MSFT_Partition: Done",
    "wmi query MSFT_Volume: Done",
    "wmi query MSFT_iSCSITarget: ISDSC_SERVICE_NOT_RUNNING (4026466366)",
    "wmi query MSFT_iSCSITargetPortal: ISDSC_SERVICE_NOT_RUNNING (4026466366)",
];

/// Longer than any job can take.
const SETTLE_TIME: Duration = Duration::from_hours(4);

#[test]
fn each_outcome_that_an_operation_meets_is_covered_by_a_fact() {
    let covered = pairs_of_facts();
    let mut uncovered: BTreeMap<Pair, BTreeSet<String>> = BTreeMap::new();
    for scenario in [scenarios::all(), scenarios::races::scenarios()].concat() {
        for pair in pairs_of_scenario(&scenario) {
            let of_any_primitive = OF_ANY_PRIMITIVE.iter().any(|(code, _)| pair.failed_with(*code));
            let is_known = NOT_COVERED_YET.contains(&pair.to_string().as_str());
            if !covered.contains(&pair) && !of_any_primitive && !is_known {
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

#[test]
fn a_code_of_any_primitive_names_a_fact() {
    for (code, id) in OF_ANY_PRIMITIVE {
        let fact = facts::all().into_iter().find(|fact| fact.id == *id);
        let code = format!("{code:?} ({})", code.0);
        assert!(fact.is_some_and(|fact| fact.sentence.contains(&code)), "{id} does not name {code}");
    }
}

/// Returns what the calls of all checks on the simulated node are and how they end.
fn pairs_of_facts() -> BTreeSet<Pair> {
    let mut pairs = BTreeSet::new();
    for fact in facts::all().into_iter().filter(|fact| matches!(fact.check, Check::Test(_))) {
        let trace = Arc::new(Trace::recording());
        let node = SimulatedNode::with_layer(|node| Arc::new(Probed::new(node, Arc::clone(&trace))));
        facts::check(fact, &node);
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
    for _ in 0..2 {
        request.run(&node);
        sim.advance(SETTLE_TIME);
    }
    trace.take().iter().map(Pair::of).collect()
}
