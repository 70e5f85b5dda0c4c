//! The result of a test run: how many tests passed, failed and were skipped, and how long its steps took.
//!
//! Test programs other than libtest's print the line `N passed, N failed, N skipped`, which is also this one's last line.

use std::fmt;
use std::ops::AddAssign;

use crate::durations::Step;

/// A test, or a whole part of the tests, that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Skip {
    pub(crate) fn new(name: &str, reason: &str) -> Self {
        Self { name: name.into(), reason: reason.into() }
    }

    /// Parses `skipped: <name>: <reason>`, the line that a test prints if it cannot run on this machine.
    ///
    /// A name can contain `::`, so it ends at the first colon that is followed by a space.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (name, reason) = line.strip_prefix("skipped: ")?.split_once(": ")?;
        Some(Self::new(name.trim(), reason.trim()))
    }
}

/// A test or check that failed, or a command that failed without naming a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The name of the test, or a sentence about the command.
    pub(crate) name: String,
    /// The lines that the test printed.
    pub(crate) output: Vec<String>,
}

impl Failure {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), output: Vec::new() }
    }
}

/// The results of any number of tests and checks. Summaries are added up with `+=`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<Failure>,
    pub(crate) skipped: Vec<Skip>,
    pub(crate) steps: Vec<Step>,
}

/// How many lines of a failed test's output are repeated in the report.
const REPEATED_LINES: usize = 30;

impl Summary {
    /// One passed test or check.
    pub(crate) fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// One skipped test or check.
    pub(crate) fn skipped(name: &str, reason: &str) -> Self {
        Self { skipped: vec![Skip::new(name, reason)], ..Self::default() }
    }

    /// One failed test, check or command.
    pub(crate) fn failed(name: &str) -> Self {
        Self { failed: vec![Failure::new(name)], ..Self::default() }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.failed.is_empty()
    }

    /// Returns the skipped tests, the failed tests with their output, and the counts on a line of their own.
    pub(crate) fn report(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|Skip { name, reason }| format!("skipped: {name}: {reason}"));
        let failed = self.failed.iter().flat_map(|Failure { name, output }| {
            let output = output.iter().take(REPEATED_LINES).map(|line| format!("    {line}"));
            std::iter::once(format!("failed: {name}")).chain(output)
        });
        skipped.chain(failed).chain([self.to_string()]).collect()
    }

    /// Prints how long the steps took, then the report. Returns whether no test failed.
    pub(crate) fn print(&self) -> bool {
        if !self.steps.is_empty() {
            print!("\n{}", Step::table(&self.steps));
        }
        println!();
        self.report().iter().for_each(|line| println!("{line}"));
        self.is_success()
    }
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
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len())
    }
}

/// Parses a line that consists of `N passed, N failed, N skipped`.
pub(crate) fn counts(line: &str) -> Option<[usize; 3]> {
    let mut parts = line.trim().split(", ");
    let mut count = |word: &str| parts.next()?.strip_suffix(word)?.strip_suffix(' ')?.parse().ok();
    let counts = [count("passed")?, count("failed")?, count("skipped")?];
    parts.next().is_none().then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_counts_can_be_parsed() {
        let failed = vec![Failure::new("a"), Failure::new("b")];
        let summary = Summary { passed: 7, failed, skipped: vec![Skip::new("c", "d")], steps: Vec::new() };
        assert_eq!(summary.to_string(), "7 passed, 2 failed, 1 skipped");
        assert_eq!(counts(&summary.to_string()), Some([7, 2, 1]));
    }

    #[test]
    fn failed_tests_are_reported_after_skipped_ones_with_their_output() {
        let failed = Failure { name: "b::c".into(), output: vec!["left: 1".into(), "right: 2".into()] };
        let skipped = vec![Skip::new("a", "no Wine")];
        let summary = Summary { passed: 7, failed: vec![failed], skipped, steps: Vec::new() };
        let report =
            ["skipped: a: no Wine", "failed: b::c", "    left: 1", "    right: 2", "7 passed, 1 failed, 1 skipped"];
        assert_eq!(summary.report(), report);
    }

    #[test]
    fn other_lines_are_not_parsed_as_counts() {
        for line in ["", "7 passed", "7 passed, 2 failed, 1 skipped, 3 more", "x passed, 2 failed, 1 skipped"] {
            assert_eq!(counts(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_skipped_line_has_a_name_and_a_reason() {
        assert_eq!(
            Skip::from_line("skipped: transport::tests::first_instance: Wine does not enforce it: 8.0"),
            Some(Skip::new("transport::tests::first_instance", "Wine does not enforce it: 8.0"))
        );
        assert_eq!(Skip::from_line("skipped: without a reason"), None);
        assert_eq!(Skip::from_line("  skipped: indented: a reason"), None);
    }

    #[test]
    fn one_failure_makes_the_sum_a_failure() {
        let mut sum = Summary { passed: 100, ..Summary::default() };
        assert!(sum.is_success());
        sum += Summary::skipped("windows", "no Wine");
        assert!(sum.is_success());
        sum += Summary::failed("cargo test exited with 101");
        assert!(!sum.is_success());
    }
}
