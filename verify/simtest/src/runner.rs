//! Running many cases on all processors, and choosing among them.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::attack::Attack;
use crate::fault_sweep::{self, Undisturbed};
use crate::pair_sweep::{self, Pair};
use crate::race_sweep;
use crate::random_run;
use crate::report::Report;
use crate::request::Scenario;
use crate::scenarios::operation_of;
use crate::scenarios::races::COMPONENTS;

/// Which cases to run.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only those whose name begins in one of these ways; all if there are none.
    pub cases: Vec<String>,
    /// Only each so manieth.
    pub every: Option<usize>,
}

impl Choice {
    /// Whether a case is among the chosen. `number` counts the cases of a scenario.
    pub fn has(&self, case: &str, number: usize) -> bool {
        (self.cases.is_empty() || self.cases.iter().any(|wanted| case.starts_with(wanted.as_str())))
            && self.every.is_none_or(|every| number.is_multiple_of(every))
    }

    /// Whether there can be a chosen case with a name that begins so.
    pub fn may_have(&self, prefix: &str) -> bool {
        let may = |wanted: &String| wanted.starts_with(prefix) || prefix.starts_with(wanted.as_str());
        self.cases.is_empty() || self.cases.iter().any(may)
    }
}

/// A case that broke a promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case's name, by which `prove --case` runs it again.
    pub case: String,
    /// What was broken.
    pub broken: Vec<String>,
}

/// What came of many cases.
#[derive(Debug, Default)]
pub struct Findings {
    /// The counts.
    pub report: Report,
    /// The failures.
    pub failures: Vec<Failure>,
}

impl Findings {
    /// Adds what came of others.
    pub fn add(&mut self, other: Self) {
        self.report.add(other.report);
        self.failures.extend(other.failures);
    }

    /// Counts a case.
    pub fn count(&mut self, operation: &str, kind: &'static str, case: impl Fn() -> String, broken: Vec<String>) {
        let row = self.report.row(operation);
        *row.cases.entry(kind).or_default() += 1;
        if !broken.is_empty() {
            row.failures += 1;
            self.failures.push(Failure { case: case(), broken });
        }
    }
}

/// Runs `each` of `all` on all processors.
pub fn on_all_processors<T: Sync>(all: &[T], each: impl Fn(&T) -> Findings + Sync) -> Findings {
    let next = AtomicUsize::new(0);
    let findings = Mutex::new(Findings::default());
    let work = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = each(one);
            findings.lock().unwrap_or_else(PoisonError::into_inner).add(found);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    let mut findings = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    findings.failures.sort_by(|a, b| a.case.cmp(&b.case));
    findings
}

/// Every fault at every call of a scenario.
pub fn faults(scenario: &Scenario, choice: &Choice) -> Findings {
    let mut findings = Findings::default();
    let name = scenario.to_string();
    if !choice.may_have(&name) {
        return findings;
    }
    let operation = operation_of(&scenario.asked);
    findings.report.row(operation).states += 1;
    let undisturbed = match Undisturbed::run(scenario) {
        Ok(undisturbed) => undisturbed,
        Err(broken) => {
            findings.count(operation, "faults", || name.clone(), broken);
            return findings;
        }
    };
    findings.report.row(operation).calls += undisturbed.calls.len();
    let mut number = 0;
    for nth in 0..undisturbed.calls.len() {
        for blow in undisturbed.blows(scenario, nth) {
            let case = || format!("{name} #{nth} {blow}");
            number += 1;
            if choice.has(&case(), number) {
                findings.count(operation, "faults", case, fault_sweep::run(scenario, &undisturbed, nth, blow));
            }
        }
    }
    findings
}

/// Every attack before every call of a scenario.
pub fn races(scenario: &Scenario, choice: &Choice) -> Findings {
    let mut findings = Findings::default();
    let name = format!("contested {scenario}");
    if !choice.may_have(&name) {
        return findings;
    }
    let operation = operation_of(&scenario.asked);
    let attacks = Attack::all(COMPONENTS);
    let mut number = 0;
    for nth in 0..race_sweep::calls(scenario) {
        for attack in &attacks {
            let case = || format!("{name} #{nth} {attack}");
            number += 1;
            if choice.has(&case(), number) {
                findings.count(operation, "attacks", case, race_sweep::run(scenario, nth, *attack));
            }
        }
    }
    findings
}

/// Two operations at once, at every pair of their calls.
pub fn interleavings(pair: &Pair, choice: &Choice) -> Findings {
    let mut findings = Findings::default();
    let name = format!("together {}", pair.name);
    if !choice.may_have(&name) {
        return findings;
    }
    let ends = pair_sweep::serial_ends(pair);
    let stride = choice.every.unwrap_or(1);
    for first in (0..).step_by(stride) {
        let mut first_reached = true;
        for second in (0..).step_by(stride) {
            let case = || format!("{name} #{first} #{second}");
            let outcome = pair_sweep::run(pair, &ends, first, second);
            first_reached = outcome.first_reached;
            if choice.has(&case(), 0) {
                findings.count(pair.operation, "together", case, outcome.broken);
            }
            // What ends or waits before its turn is over comes to the same however long the turn is.
            if !outcome.second_reached {
                break;
            }
        }
        if !first_reached {
            break;
        }
    }
    findings
}

/// The voyage of a seed.
pub fn voyage(seed: u64, choice: &Choice) -> Findings {
    let mut findings = Findings::default();
    let case = || format!("seed {seed}");
    if choice.has(&case(), 0) {
        let (asked, broken) = random_run::run(seed);
        findings.report.row(VOYAGE).calls += asked;
        findings.count(VOYAGE, "voyages", case, broken);
    }
    findings
}

/// The row of the voyages, which are about all operations at once.
const VOYAGE: &str = "(all at once)";
