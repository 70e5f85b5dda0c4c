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
use crate::report::{Report, Row};
use crate::scenarios::Scenario;
use crate::scenarios::races::COMPONENTS;
use crate::started_node::Driver;

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

/// Of the cases of a scenario, the first and each of this number after it also run in the executor.
const IN_EXECUTOR: usize = 50;

/// Runs the cases of one scenario.
struct Cases<'a> {
    filter: &'a CaseFilter,
    operation: &'static str,
    /// How many cases there are so far, including those that `filter` does not match.
    number: usize,
    findings: Findings,
}

impl<'a> Cases<'a> {
    fn of(scenario: &Scenario, filter: &'a CaseFilter) -> Self {
        Self {
            filter,
            operation: scenario.spec.operation(),
            number: 0,
            findings: Findings::default(),
        }
    }

    fn row(&mut self) -> &mut Row {
        self.findings.report.row(self.operation)
    }

    /// Runs a case if the filter matches it: always on this thread, and sometimes also in the
    /// executor.
    fn run(&mut self, case: impl Fn() -> String, run: impl Fn(Driver) -> Vec<String>) {
        self.number += 1;
        let name = case();
        if !self.filter.matches(&name, self.number) {
            return;
        }
        let ran = self.row().cases;
        self.findings
            .count(self.operation, || name.clone(), run(Driver::Thread));
        if !ran.is_multiple_of(IN_EXECUTOR) {
            return;
        }
        self.row().in_executor += 1;
        let violations = run(Driver::Executor);
        if !violations.is_empty() {
            self.row().failures += 1;
            let violations = violations
                .into_iter()
                .map(|violation| format!("in the executor: {violation}"))
                .collect();
            self.findings.failures.push(Failure {
                case: name,
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
    let mut cases = Cases::of(scenario, filter);
    let name = scenario.to_string();
    if !filter.may_match(&name) {
        return cases.findings;
    }
    cases.row().states += 1;
    let reference = match ReferenceRun::new(scenario) {
        Ok(reference) => reference,
        Err(violations) => {
            let operation = cases.operation;
            cases.findings.count(operation, || name.clone(), violations);
            return cases.findings;
        }
    };
    cases.row().calls += reference.calls.len();
    for nth in 0..reference.calls.len() {
        for fault in reference.faults(scenario, nth) {
            let case = || format!("{name} #{nth} {fault}");
            cases.run(case, |driver| {
                fault_sweep::run(scenario, &reference, nth, fault, driver)
            });
        }
    }
    cases.findings
}

/// Runs a scenario with every attack before every call, and with every attack and a change that
/// fails although it has had its effect.
pub fn run_races(scenario: &Scenario, filter: &CaseFilter) -> Findings {
    let mut cases = Cases::of(scenario, filter);
    let name = format!("race {scenario}");
    if !filter.may_match(&name) {
        return cases.findings;
    }
    let attacks = Attack::all(COMPONENTS);
    let calls = race_sweep::calls(scenario);
    for nth in 0..calls.len() {
        for attack in &attacks {
            let case = || format!("{name} #{nth} {attack}");
            cases.run(case, |driver| {
                race_sweep::run(scenario, nth, *attack, None, driver)
            });
        }
    }
    for nth in 0..=calls.len() {
        for failed in race_sweep::failed_changes(&calls, nth) {
            for attack in &attacks {
                let case = || format!("{name} #{nth} {attack}; {failed}");
                cases.run(case, |driver| {
                    race_sweep::run(scenario, nth, *attack, Some(failed), driver)
                });
            }
        }
    }
    cases.findings
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
