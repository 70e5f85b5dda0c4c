//! Identity before destruction, by the record: each operation, in each state that matters to it.

use std::collections::BTreeSet;

use fault_injection::fault_sweep::ReferenceRun;
use fault_injection::identity::destructive_primitives;
use fault_injection::scenarios;

#[test]
fn each_destructive_call_is_preceded_by_its_identity_checks_with_no_other_change_between() {
    let mut called = BTreeSet::new();
    for scenario in scenarios::all() {
        let run = ReferenceRun::new(&scenario);
        let run = run.unwrap_or_else(|violations| panic!("{scenario}: {violations:#?}"));
        called.extend(run.calls.into_iter().map(|call| call.primitive));
    }
    for primitive in destructive_primitives() {
        assert!(called.contains(primitive), "no scenario calls {primitive}");
    }
}
