//! A sample of the cases, for each commit. `cargo xtask fault-injection` runs all of them.

use fault_injection::runner::{
    CaseFilter, Findings, run_faults, run_in_parallel, run_pairs, run_races, run_random,
};
use fault_injection::scenarios;

fn every(nth: usize) -> CaseFilter {
    CaseFilter {
        prefixes: Vec::new(),
        every: Some(nth),
    }
}

fn assert_no_failures(findings: &Findings) {
    let shown: Vec<_> = findings.failures.iter().take(10).collect();
    assert!(
        shown.is_empty(),
        "{} failures, such as {shown:#?}",
        findings.failures.len()
    );
    assert!(findings.report.sum().cases > 50, "too few cases were run");
}

#[test]
fn a_retry_repairs_what_a_fault_at_any_call_leaves_behind() {
    assert_no_failures(&run_in_parallel(&scenarios::all(), |scenario| {
        run_faults(scenario, &every(89))
    }));
}

#[test]
fn an_attacker_at_any_call_never_redirects_an_operation_out_of_the_working_directory() {
    assert_no_failures(&run_in_parallel(
        &scenarios::races::scenarios(),
        |scenario| run_races(scenario, &every(199)),
    ));
}

#[test]
fn two_concurrent_operations_end_like_one_of_their_serial_orders() {
    assert_no_failures(&run_in_parallel(scenarios::pairs::PAIRS, |pair| {
        run_pairs(pair, &every(4))
    }));
}

#[test]
fn every_disk_is_usable_after_a_long_random_run() {
    let seeds: Vec<u64> = (1_000_000..1_000_060).collect();
    assert_no_failures(&run_in_parallel(&seeds, |seed| {
        run_random(*seed, &CaseFilter::default())
    }));
}
