//! A part of the proof that does not take long. `cargo xtask prove` runs all of it.

use simtest::runner::{Choice, Findings, faults, interleavings, on_all_processors, races, voyage};
use simtest::scenarios;

fn every(nth: usize) -> Choice {
    Choice { cases: Vec::new(), every: Some(nth) }
}

fn assert_none_failed(findings: &Findings) {
    let shown: Vec<_> = findings.failures.iter().take(10).collect();
    assert!(shown.is_empty(), "{} failures, such as {shown:#?}", findings.failures.len());
    assert!(findings.report.sum().cases.values().sum::<usize>() > 50, "too few cases were run");
}

#[test]
fn a_fault_at_any_call_leaves_nothing_that_a_retry_does_not_mend() {
    assert_none_failed(&on_all_processors(&scenarios::all(), |scenario| faults(scenario, &every(89))));
}

#[test]
fn an_attacker_at_any_call_leads_nothing_out_of_the_working_directory() {
    assert_none_failed(&on_all_processors(&scenarios::races::scenarios(), |scenario| races(scenario, &every(199))));
}

#[test]
fn two_operations_at_once_come_to_what_one_after_the_other_comes_to() {
    assert_none_failed(&on_all_processors(scenarios::pairs::PAIRS, |pair| interleavings(pair, &every(4))));
}

#[test]
fn long_random_runs_end_with_disks_that_can_be_used() {
    let seeds: Vec<u64> = (1_000_000..1_000_060).collect();
    assert_none_failed(&on_all_processors(&seeds, |seed| voyage(*seed, &Choice::default())));
}
