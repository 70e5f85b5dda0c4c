//! How many tests passed, failed and were skipped, over all runners.
//!
//! The line a tally prints, `N passed, N failed, N skipped`, is also what it reads from runners that are not libtest.

use std::fmt;
use std::ops::AddAssign;

/// A test, or a whole part of the tests, that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) name: String,
    pub(crate) why: String,
}

impl Skip {
    pub(crate) fn new(name: &str, why: &str) -> Self {
        Self { name: name.into(), why: why.into() }
    }

    /// Reads `skipped: <name>: <why>`, the line with which a test says that it could not run here.
    ///
    /// A name may hold `::`, so it ends at the first colon with a blank behind it.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let (name, why) = line.strip_prefix("skipped: ")?.split_once(": ")?;
        Some(Self::new(name.trim(), why.trim()))
    }
}

/// A test that failed, or a runner that did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The test's name, or a sentence.
    pub(crate) what: String,
    /// What it printed.
    pub(crate) said: Vec<String>,
}

impl Failure {
    pub(crate) fn new(what: &str) -> Self {
        Self { what: what.into(), said: Vec::new() }
    }
}

/// The outcome of a test run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: Vec<Failure>,
    pub(crate) skipped: Vec<Skip>,
}

/// As much of what a failed test printed is repeated at the end.
const REPEATED: usize = 30;

impl Tally {
    pub(crate) fn skip(name: &str, why: &str) -> Self {
        Self { skipped: vec![Skip::new(name, why)], ..Self::default() }
    }

    /// The failure of a runner itself, which no line of its output tells.
    pub(crate) fn broken(sentence: &str) -> Self {
        Self { failed: vec![Failure::new(sentence)], ..Self::default() }
    }

    pub(crate) fn is_green(&self) -> bool {
        self.failed.is_empty()
    }

    /// The reasons, then the counts on a line of their own. Failures come last, where they are looked for.
    pub(crate) fn report(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|Skip { name, why }| format!("skipped: {name}: {why}"));
        let failed = self.failed.iter().flat_map(|Failure { what, said }| {
            let said = said.iter().take(REPEATED).map(|line| format!("    {line}"));
            std::iter::once(format!("failed: {what}")).chain(said)
        });
        skipped.chain(failed).chain([self.to_string()]).collect()
    }

    pub(crate) fn print(&self) {
        println!();
        self.report().iter().for_each(|line| println!("{line}"));
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len())
    }
}

/// Reads `N passed, N failed, N skipped`, and nothing else, from a line.
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
    fn the_printed_counts_read_back() {
        let failed = vec![Failure::new("died"), Failure::new("hung")];
        let tally = Tally { passed: 7, failed, skipped: vec![Skip::new("a", "b")] };
        assert_eq!(tally.to_string(), "7 passed, 2 failed, 1 skipped");
        assert_eq!(counts(&tally.to_string()), Some([7, 2, 1]));
    }

    #[test]
    fn what_failed_is_told_last_with_what_it_said() {
        let failed = Failure { what: "b::c".into(), said: vec!["left: 1".into(), "right: 2".into()] };
        let tally = Tally { passed: 7, failed: vec![failed], skipped: vec![Skip::new("a", "no Wine")] };
        let report =
            ["skipped: a: no Wine", "failed: b::c", "    left: 1", "    right: 2", "7 passed, 1 failed, 1 skipped"];
        assert_eq!(tally.report(), report);
    }

    #[test]
    fn other_lines_are_not_counts() {
        for line in ["", "7 passed", "7 passed, 2 failed, 1 skipped, 3 more", "x passed, 2 failed, 1 skipped"] {
            assert_eq!(counts(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_skip_names_the_test_and_the_reason() {
        assert_eq!(
            Skip::from_line("skipped: transport::tests::first_instance: Wine does not enforce it: 8.0"),
            Some(Skip::new("transport::tests::first_instance", "Wine does not enforce it: 8.0"))
        );
        assert_eq!(Skip::from_line("skipped: without a reason"), None);
        assert_eq!(Skip::from_line("  skipped: not: at the margin"), None);
    }

    #[test]
    fn a_broken_runner_makes_the_whole_run_fail() {
        let mut sum = Tally { passed: 100, ..Tally::default() };
        assert!(sum.is_green());
        sum += Tally::skip("windows", "no Wine");
        assert!(sum.is_green());
        sum += Tally::broken("cargo test died");
        assert!(!sum.is_green());
    }
}
