//! Every RPC of every group-version, called with valid input.

use std::collections::BTreeSet;

use api::GROUP_VERSIONS;
use serde_json::Value;

use super::daemon::Daemon;
use super::good_input;

/// Whether `actual` has all fields of `expected`; arrays must be equal.
fn has(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| actual.get(key).is_some_and(|actual| has(actual, value))),
        _ => actual == expected,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_succeeds_with_valid_input() {
    let mut called = BTreeSet::new();
    for row in &GROUP_VERSIONS {
        let sim = good_input::node();
        let daemon = Daemon::on(&sim);
        let channel = daemon.channel(row.pipe()).await;
        let rpcs = dynamic_client::rpcs(row);
        for case in good_input::cases(row, &sim) {
            let rpc = &rpcs[case.rpc];
            let answer = rpc.call(&channel, &rpc.request(&case.request)).await;
            let answer = answer.unwrap_or_else(|status| panic!("{}: {status}", rpc.path));
            assert!(
                has(&answer, &case.response),
                "{}: {answer}, not {}",
                rpc.path,
                case.response
            );
            called.insert(rpc.path);
        }
        sim.invariants().expect("the invariants of the node hold");
    }
    let table: BTreeSet<_> = GROUP_VERSIONS
        .iter()
        .flat_map(|row| row.rpcs)
        .map(|rpc| rpc.path)
        .collect();
    let missing: Vec<_> = table.difference(&called).collect();
    assert!(
        missing.is_empty(),
        "good_input.rs has no call of {missing:?}"
    );
}
