//! Runs many cases on all processors, and filters them by name and number.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::attack::Attack;
use crate::fault_sweep::{self, ReferenceRun};
use crate::pair_sweep::{self, Pair};
use crate::race_sweep;
use crate::random_run;
use crate::report::Report;
use crate::scenarios::Scenario;
use crate::scenarios::races::COMPONENTS;

/// Which cases to run.
#[derive(Clone, Debug, Default)]
pub struct CaseFilter {
    /// Run only the cases whose names begin with one of these; if empty, run all.
    pub prefixes: Vec<String>,
    /// Run every nth case.
    pub every: Option<usize>,
}

impl CaseFilter {
    /// Returns whether to run a case. `number` counts the cases of a scenario.
    pub fn matches(&self, case: &str, number: usize) -> bool {
        (self.prefixes.is_empty()
            || self
                .prefixes
                .iter()
                .any(|prefix| case.starts_with(prefix.as_str())))
            && self.every.is_none_or(|every| number.is_multiple_of(every))
    }

    /// Returns whether a case whose name begins with `start` can match.
    pub fn may_match(&self, start: &str) -> bool {
        let may = |prefix: &String| prefix.starts_with(start) || start.starts_with(prefix.as_str());
        self.prefixes.is_empty() || self.prefixes.iter().any(may)
    }
}

/// A case that violated an invariant.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case's name, with which `fault-injection --case` runs it again.
    pub case: String,
    /// The violations, one sentence each.
    pub violations: Vec<String>,
}

/// The results of many cases.
#[derive(Debug, Default)]
pub struct Findings {
    /// The counts.
    pub report: Report,
    /// The failures.
    pub failures: Vec<Failure>,
}

impl Findings {
    /// Adds the results of other cases.
    pub fn add(&mut self, other: Self) {
        self.report.add(&other.report);
        self.failures.extend(other.failures);
    }

    /// Counts a case.
    pub fn count(&mut self, operation: &str, case: impl Fn() -> String, violations: Vec<String>) {
        let row = self.report.row(operation);
        row.cases += 1;
        if !violations.is_empty() {
            row.failures += 1;
            self.failures.push(Failure {
                case: case(),
                violations,
            });
        }
    }
}

/// Runs `run` for each of `all`, on all processors.
pub fn run_in_parallel<T: Sync>(all: &[T], run: impl Fn(&T) -> Findings + Sync) -> Findings {
    let next = AtomicUsize::new(0);
    let findings = Mutex::new(Findings::default());
    let work = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = run(one);
            os::lock(&findings).add(found);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    let mut findings = findings
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    findings.failures.sort_by(|a, b| a.case.cmp(&b.case));
    findings
}

/// Runs a scenario with every fault at every call.
pub fn run_faults(scenario: &Scenario, filter: &CaseFilter) -> Findings {
    let mut findings = Findings::default();
    let name = scenario.to_string();
    if !filter.may_match(&name) {
        return findings;
    }
    let operation = scenario.spec.operation();
    findings.report.row(operation).states += 1;
    let reference = match ReferenceRun::new(scenario) {
        Ok(reference) => reference,
        Err(violations) => {
            findings.count(operation, || name.clone(), violations);
            return findings;
        }
    };
    findings.report.row(operation).calls += reference.calls.len();
    let at = |nth| {
        reference
            .faults(scenario, nth)
            .into_iter()
            .map(move |fault| (nth, fault))
    };
    let cases = (0..reference.calls.len()).flat_map(at).zip(1..);
    for ((nth, fault), number) in cases {
        let case = || format!("{name} #{nth} {fault}");
        if filter.matches(&case(), number) {
            findings.count(
                operation,
                case,
                fault_sweep::run(scenario, &reference, nth, fault),
            );
        }
    }
    findings
}

/// Runs a scenario with every attack before every call.
pub fn run_races(scenario: &Scenario, filter: &CaseFilter) -> Findings {
    let mut findings = Findings::default();
    let name = format!("race {scenario}");
    if !filter.may_match(&name) {
        return findings;
    }
    let operation = scenario.spec.operation();
    let attacks = Attack::all(COMPONENTS);
    let mut number = 0;
    for nth in 0..race_sweep::calls(scenario) {
        for attack in &attacks {
            let case = || format!("{name} #{nth} {attack}");
            number += 1;
            if filter.matches(&case(), number) {
                findings.count(operation, case, race_sweep::run(scenario, nth, *attack));
            }
        }
    }
    findings
}

/// Runs a pair of operations concurrently, switched at every pair of their calls.
pub fn run_pairs(pair: &Pair, filter: &CaseFilter) -> Findings {
    let mut findings = Findings::default();
    let name = format!("together {}", pair.name);
    if !filter.may_match(&name) {
        return findings;
    }
    let operation = pair.name.split(' ').next().unwrap_or(pair.name);
    let serial_results = pair_sweep::serial_results(pair);
    let stride = filter.every.unwrap_or(1);
    for first in (0..).step_by(stride) {
        let mut first_reached = true;
        for second in (0..).step_by(stride) {
            let case = || format!("{name} #{first} #{second}");
            let result = pair_sweep::run(pair, &serial_results, first, second);
            first_reached = result.first_reached;
            if filter.matches(&case(), 0) {
                findings.count(operation, case, result.violations);
            }
            // An operation that ends or waits before its limit does the same with any higher limit.
            if !result.second_reached {
                break;
            }
        }
        if !first_reached {
            break;
        }
    }
    findings
}

/// Performs the random run of a seed.
pub fn run_random(seed: u64, filter: &CaseFilter) -> Findings {
    let mut findings = Findings::default();
    let case = || format!("seed {seed}");
    if filter.matches(&case(), 0) {
        let (requests, violations) = random_run::run(seed);
        findings.report.row(RANDOM_RUNS).calls += requests;
        findings.count(RANDOM_RUNS, case, violations);
    }
    findings
}

/// The row of the random runs, which use many operations.
const RANDOM_RUNS: &str = "(random runs)";
