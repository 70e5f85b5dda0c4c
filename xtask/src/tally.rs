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

/// The outcome of a test run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// Failures that the runner's own output names.
    pub(crate) failed: usize,
    /// Failures of a runner itself, which no line of its output tells: each is one sentence.
    pub(crate) broken: Vec<String>,
    pub(crate) skipped: Vec<Skip>,
}

impl Tally {
    pub(crate) fn skip(name: &str, why: &str) -> Self {
        Self { skipped: vec![Skip::new(name, why)], ..Self::default() }
    }

    pub(crate) fn broken(sentence: String) -> Self {
        Self { broken: vec![sentence], ..Self::default() }
    }

    pub(crate) fn is_green(&self) -> bool {
        self.failures() == 0
    }

    pub(crate) fn failures(&self) -> usize {
        self.failed + self.broken.len()
    }

    /// Prints the reasons, then the counts on a line of their own.
    pub(crate) fn print(&self) {
        println!();
        for Skip { name, why } in &self.skipped {
            println!("skipped: {name}: {why}");
        }
        for sentence in &self.broken {
            println!("failed: {sentence}");
        }
        println!("{self}");
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.broken.extend(other.broken);
        self.skipped.extend(other.skipped);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failures(), self.skipped.len())
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
        let tally = Tally { passed: 7, failed: 1, broken: vec!["died".into()], skipped: vec![Skip::new("a", "b")] };
        assert_eq!(tally.to_string(), "7 passed, 2 failed, 1 skipped");
        assert_eq!(counts(&tally.to_string()), Some([7, 2, 1]));
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
            Skip::from_line("skipped: pipe::tests::first_instance: Wine does not enforce it: 8.0"),
            Some(Skip::new("pipe::tests::first_instance", "Wine does not enforce it: 8.0"))
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
        sum += Tally::broken("cargo test died".into());
        assert!(!sum.is_green());
    }
}
