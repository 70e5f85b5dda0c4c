//! Reading the output of Rust's test runner, line by line.
//!
//! libtest prints `running N tests`, a line per test, what the tests printed (`--show-output`; that of failed tests
//! below `failures:`), and one `test result:` line. A suite that was announced and has no result line died, whatever
//! cargo says of it.

use std::process::ExitStatus;

use crate::summary::{Failure, Skip, Tally};

/// Adds up the suites of one `cargo test`.
#[derive(Debug, Default)]
pub(crate) struct Suites {
    tally: Tally,
    /// The suite that has begun and not yet ended.
    running: Option<Suite>,
}

#[derive(Debug, Default)]
struct Suite {
    ignored: Vec<Skip>,
    skipped: Vec<Skip>,
    failed: Vec<Failure>,
    /// In the list of failures, where a `skipped:` line does not count: that test failed.
    in_failures: bool,
    /// Below a failed test's name, with what it printed.
    in_output: bool,
}

impl Suites {
    pub(crate) fn line(&mut self, line: &str) {
        if is_start(line) {
            self.abandon();
            self.running = Some(Suite::default());
        } else if let Some(suite) = &mut self.running {
            if let Some(result) = line.strip_prefix("test result: ") {
                let suite = self.running.take().unwrap_or_default();
                self.end(suite, result);
            } else {
                suite.line(line);
            }
        }
    }

    /// The sum of all suites. `what` is the command, named when it failed without a failing test.
    pub(crate) fn finish(mut self, what: &str, status: ExitStatus) -> Tally {
        self.abandon();
        if !status.success() && self.tally.is_green() {
            self.tally +=
                Tally::broken(&format!("{what} ended with {status} and no failing test: see its output above"));
        }
        self.tally
    }

    fn end(&mut self, suite: Suite, result: &str) {
        let count = |word| count(result, word).unwrap_or(0);
        let Suite { mut ignored, mut failed, .. } = suite;
        ignored.resize(count(" ignored"), Skip::new("an ignored test", "no reason given"));
        failed.resize(count(" failed"), Failure::new("a test without a name"));
        self.tally += Tally {
            passed: count(" passed").saturating_sub(suite.skipped.len()),
            failed,
            skipped: [suite.skipped, ignored].concat(),
        };
    }

    fn abandon(&mut self) {
        if self.running.take().is_some() {
            self.tally += Tally::broken("a test program died before it gave its result");
        }
    }
}

impl Suite {
    fn line(&mut self, line: &str) {
        match line {
            "failures:" => self.in_failures = true,
            "successes:" => self.in_failures = false,
            _ => {}
        }
        if self.in_failures {
            self.failure(line);
        }
        if let Some(skip) = ignored(line) {
            self.ignored.push(skip);
        } else if let Some(skip) = Skip::from_line(line)
            && !self.in_failures
            && !self.skipped.contains(&skip)
        {
            self.skipped.push(skip);
        }
    }

    /// A line below `failures:`, first what each failed test printed, then the bare names.
    fn failure(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failed.push(Failure::new(name));
            self.in_output = true;
        } else if line == "failures:" {
            self.in_output = false;
        } else if self.in_output
            && !line.is_empty()
            && let Some(failure) = self.failed.last_mut()
        {
            failure.said.push(line.to_owned());
        }
    }
}

fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Reads `test <name> ... ignored, <why>`.
fn ignored(line: &str) -> Option<Skip> {
    let (name, why) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some(Skip::new(name, why.strip_prefix(", ").unwrap_or("ignored, no reason given")))
}

/// The number before `word` in `ok. 3 passed; 0 failed; ...`.
fn count(result: &str, word: &str) -> Option<usize> {
    result.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status of a program that ended with this code, from a shell: there is no other way to make one portably.
    fn ended_with(code: i32) -> ExitStatus {
        let (shell, flag) = if std::env::consts::OS == "windows" { ("cmd", "/C") } else { ("sh", "-c") };
        std::process::Command::new(shell).args([flag, &format!("exit {code}")]).status().expect("a shell")
    }

    fn tally(output: &str, code: i32) -> Tally {
        let mut suites = Suites::default();
        output.lines().for_each(|line| suites.line(line));
        suites.finish("cargo test", ended_with(code))
    }

    #[test]
    fn suites_add_up() {
        let one = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; \
                   0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let two = "running 1 test\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(tally(&[one, two].concat(), 101).to_string(), "2 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_test_that_says_skipped_did_not_pass() {
        let output = "running 2 tests\n\nsuccesses:\n\n---- a stdout ----\nskipped: a: no NTFS\nskipped: a: no NTFS\n\n\n\
                      successes:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
        let tally = tally(output, 0);
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 1 skipped");
        assert_eq!(tally.skipped, [Skip::new("a", "no NTFS")]);
    }

    #[test]
    fn a_test_that_says_skipped_and_fails_has_failed() {
        let output = "running 2 tests\nfailures:\n---- a stdout ----\nskipped: a: no NTFS\n\nfailures:\n    a\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(tally(output, 101).to_string(), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_test_that_fails_is_told_with_what_it_printed() {
        let output = "running 3 tests\ntest a ... FAILED\ntest b ... FAILED\n\nsuccesses:\n---- c stdout ----\nfine\n\n\
                      failures:\n\n---- a stdout ----\n\nthread 'a' panicked at src/lib.rs:1:1:\nno\n\n\
                      ---- b stdout ----\nError: 5\n\n\nfailures:\n    a\n    b\n\n\
                      test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        let a = vec!["thread 'a' panicked at src/lib.rs:1:1:".into(), "no".into()];
        let b = vec!["Error: 5".into()];
        assert_eq!(
            tally(output, 101).failed,
            [Failure { what: "a".into(), said: a }, Failure { what: "b".into(), said: b }]
        );
    }

    #[test]
    fn an_ignored_test_is_skipped_with_its_reason() {
        let output = "running 2 tests\ntest a ... ignored, takes an hour\ntest b ... ignored\n\n\
                      test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured\n";
        let tally = tally(output, 0);
        assert_eq!(tally.to_string(), "0 passed, 0 failed, 2 skipped");
        assert_eq!(tally.skipped[0], Skip::new("a", "takes an hour"));
    }

    #[test]
    fn a_suite_without_a_result_is_a_failure_whatever_follows() {
        let output = "running 9 tests\ntest a ... ok\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert_eq!(tally(output, 0).to_string(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(tally("running 9 tests\ntest a ... ok\n", 0).to_string(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_command_that_fails_before_any_test_is_a_failure() {
        assert_eq!(tally("error: could not compile `os`\n", 101).to_string(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_result_line_without_a_suite_counts_nothing() {
        assert_eq!(
            tally("test result: ok. 5 passed; 0 failed; 0 ignored\n", 0).to_string(),
            Tally::default().to_string()
        );
    }
}
