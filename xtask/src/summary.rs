//! The result of a test run: how many tests passed, failed and were skipped, and how long its steps
//! took.

use std::cmp::Reverse;
use std::fmt;
use std::fs;
use std::ops::AddAssign;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::process::{self, End};
use crate::{Error, Missing, test_output};

/// A test, or a whole part of the tests, that did not run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Skip {
    pub(crate) fn new(name: &str, reason: &str) -> Self {
        Self {
            name: name.into(),
            reason: reason.into(),
        }
    }
}

/// A test or check that failed, or a command that failed without naming a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Failure {
    /// The name of the test, or a sentence about the command.
    pub(crate) name: String,
    /// The lines that the test printed.
    pub(crate) output: Vec<String>,
}

impl Failure {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            output: Vec::new(),
        }
    }
}

/// How long a part of the run took.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Step {
    name: String,
    wall: Duration,
    /// CPU time of the programs that have ended. Wine's services are missing in it.
    cpu: Duration,
}

/// The results of any number of tests and checks. Summaries are added up with `+=`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<Failure>,
    pub(crate) skipped: Vec<Skip>,
    pub(crate) steps: Vec<Step>,
}

/// How many steps the report names.
const SLOWEST: usize = 10;

/// How many lines of a failed test's output the report repeats, the first and the last ones.
const REPEATED_LINES: usize = 40;

impl Summary {
    /// One passed test or check.
    pub(crate) fn passed() -> Self {
        Self {
            passed: 1,
            ..Self::default()
        }
    }

    /// One skipped test or check.
    pub(crate) fn skipped(name: &str, reason: &str) -> Self {
        Self {
            skipped: vec![Skip::new(name, reason)],
            ..Self::default()
        }
    }

    /// One failed test, check or command.
    pub(crate) fn failed(name: &str) -> Self {
        Self {
            failed: vec![Failure::new(name)],
            ..Self::default()
        }
    }

    /// The result of a task that counts as one check and has printed why it failed.
    pub(crate) fn of_result(name: &str, succeeded: Result<bool, Error>) -> Self {
        match succeeded {
            Ok(true) => Self::passed(),
            Ok(false) => Self::failed(&format!("{name}: see its output above")),
            Err(error) => Self::failed(&format!("{name}: {error}")),
        }
    }

    /// The result of what cannot run on each machine: something missing makes it skipped.
    pub(crate) fn of_attempt(name: &str, result: Result<Self, Error>) -> Self {
        result.unwrap_or_else(|error| {
            if error.is::<Missing>() {
                Self::skipped(name, &error.to_string())
            } else {
                Self::failed(&format!("{name}: {error}"))
            }
        })
    }

    /// Runs a command that counts as one check.
    pub(crate) fn of_check(name: &str, command: &mut Command) -> Self {
        let mut output = Vec::new();
        let end = process::stream(command, process::SILENCE_OF_CHECKS, |line| {
            output.push(line.to_owned());
            false
        });
        let why = match end {
            Ok(End::Exited(status)) if status.success() => return Self::passed(),
            Ok(End::Exited(status)) => format!("`{}` ended with {status}", process::typed(command)),
            Ok(End::Killed(limit)) => format!(
                "`{}` printed nothing for {limit:?}",
                process::typed(command)
            ),
            Err(error) => format!("`{}`: {error}", process::typed(command)),
        };
        let output = output.split_off(output.len().saturating_sub(REPEATED_LINES));
        Self {
            failed: vec![Failure {
                name: format!("{name}: {why}"),
                output,
            }],
            ..Self::default()
        }
    }

    /// Runs a program and reads the results that it prints.
    pub(crate) fn of_tests(command: &mut Command) -> Self {
        Self::read(command, process::SILENCE_OF_TESTS, false)
    }

    /// Runs a program that ends after its first result, and reads that result.
    pub(crate) fn of_test_program(command: &mut Command) -> Self {
        Self::read(command, process::SILENCE_OF_TESTS, true)
    }

    /// Runs a program that compiles, and prints nothing meanwhile, and reads the results that it
    /// prints.
    pub(crate) fn of_compiling_tests(command: &mut Command) -> Self {
        Self::read(command, process::SILENCE_OF_CHECKS, false)
    }

    fn read(command: &mut Command, longest_silence: Duration, ends_with_result: bool) -> Self {
        let mut output = test_output::Reader::default();
        match process::stream(command, longest_silence, |line| {
            output.line(line) && ends_with_result
        }) {
            Ok(end) => output.summary(&process::typed(command), &end),
            Err(error) => Self::failed(&format!("`{}`: {error}", process::typed(command))),
        }
    }

    /// Runs a part of the tests and adds how long it took. A part that cannot run is a failure.
    pub(crate) fn of_step(name: &str, run: impl FnOnce() -> Result<Self, Error>) -> Self {
        let (start, cpu) = (Instant::now(), cpu_time_of_children());
        let mut summary = Self::of_attempt(name, run());
        let cpu = cpu_time_of_children().saturating_sub(cpu);
        summary.steps.push(Step {
            name: name.to_owned(),
            wall: start.elapsed(),
            cpu,
        });
        summary
    }

    pub(crate) fn is_success(&self) -> bool {
        self.failed.is_empty()
    }

    /// Returns the skipped tests, the failed tests with their output, and the counts on a line of
    /// their own.
    fn report(&self) -> Vec<String> {
        let skipped = self
            .skipped
            .iter()
            .map(|Skip { name, reason }| format!("skipped: {name}: {reason}"));
        let failed = self.failed.iter().flat_map(|Failure { name, output }| {
            let output = output
                .iter()
                .take(REPEATED_LINES)
                .map(|line| format!("    {line}"));
            std::iter::once(format!("failed: {name}")).chain(output)
        });
        skipped.chain(failed).chain([self.to_string()]).collect()
    }

    /// Returns the steps that have parts, in their order, and the slowest of the others.
    fn slowest(&self) -> impl Iterator<Item = &Step> {
        let has_parts = |step: &&Step| {
            let beginning = format!("{}: ", step.name);
            let mut steps = self.steps.iter();
            steps.any(|other| other.name.starts_with(&beginning))
        };
        let (whole, mut others): (Vec<_>, Vec<_>) = self.steps.iter().partition(has_parts);
        others.sort_by_key(|step| Reverse(step.wall));
        whole.into_iter().chain(others.into_iter().take(SLOWEST))
    }

    /// Prints how long the slowest steps took, then the report. Returns whether no test failed.
    pub(crate) fn print(&self) -> bool {
        if !self.steps.is_empty() {
            println!("\n{:<44}{:>9}{:>9}", "slowest steps", "wall s", "CPU s");
        }
        for Step { name, wall, cpu } in self.slowest() {
            println!(
                "{name:<44}{:>9.1}{:>9.1}",
                wall.as_secs_f64(),
                cpu.as_secs_f64()
            );
        }
        println!();
        self.report().iter().for_each(|line| println!("{line}"));
        self.is_success()
    }
}

/// Returns the CPU time of the programs that this process has started and that have ended. Only
/// Linux shows it.
fn cpu_time_of_children() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may contain spaces. Fields 16 and 17 of the file are the times of
    // children.
    let fields = stat
        .rsplit_once(')')
        .map_or("", |(_, fields)| fields)
        .split_whitespace();
    let ticks: u32 = fields
        .skip(13)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u32>().ok())
        .sum();
    TICK * ticks
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
        self.steps.extend(other.steps);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failed.len(),
            self.skipped.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_reported_after_skipped_ones_with_their_output() {
        let failed = Failure {
            name: "b::c".into(),
            output: vec!["left: 1".into(), "right: 2".into()],
        };
        let skipped = vec![Skip::new("a", "no Wine")];
        let summary = Summary {
            passed: 7,
            failed: vec![failed],
            skipped,
            steps: Vec::new(),
        };
        let report = [
            "skipped: a: no Wine",
            "failed: b::c",
            "    left: 1",
            "    right: 2",
            "7 passed, 1 failed, 1 skipped",
        ];
        assert_eq!(summary.report(), report);
    }

    #[test]
    fn the_slowest_steps_are_listed_after_those_that_have_parts() {
        let step = |name: &str, seconds| Step {
            name: name.into(),
            wall: Duration::from_secs(seconds),
            cpu: Duration::ZERO,
        };
        let mut summary = Summary::default();
        for seconds in 0..12 {
            summary
                .steps
                .push(step(&format!("linux: {seconds}"), seconds));
        }
        summary.steps.extend([step("linux", 66), step("facts", 5)]);
        let names: Vec<_> = summary.slowest().map(|step| &*step.name).collect();
        let expected = [
            "linux",
            "linux: 11",
            "linux: 10",
            "linux: 9",
            "linux: 8",
            "linux: 7",
            "linux: 6",
            "linux: 5",
            "facts",
            "linux: 4",
            "linux: 3",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn one_failure_makes_the_sum_a_failure() {
        let mut sum = Summary {
            passed: 100,
            ..Summary::default()
        };
        sum += Summary::skipped("windows", "no Wine");
        assert!(sum.is_success());
        sum += Summary::failed("cargo test exited with 101");
        assert!(!sum.is_success());
    }

    #[test]
    fn a_check_that_fails_is_reported_with_the_end_of_its_output() {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let summary = Summary::of_check("a check", command.arg("--no-such-option"));
        assert!(
            summary.failed[0].name.starts_with("a check: `"),
            "{summary:?}"
        );
        assert!(
            summary.failed[0]
                .output
                .iter()
                .any(|line| line.contains("--no-such-option")),
            "{summary:?}"
        );
    }
}
