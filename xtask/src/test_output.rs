//! The results that test programs print.
//!
//! Three forms are read: libtest's last line (`test result: ok. 3 passed; ...`), the lines of
//! `go test -v` (`--- PASS: TestA`), and the last line of this project's own programs
//! (`3 passed, 0 failed, 1 skipped`). In each form, a test that cannot run on this machine prints
//! `skipped: <test>: <why>`. A program that ends without a result has failed.
//!
//! In Rust tests, the line is printed by the test itself, for example by `skipped` in
//! `crates/os-win32/tests/win32/skip.rs`.

use std::collections::BTreeSet;

use crate::process::{self, End};
use crate::summary::{Failure, Skip, Summary};

/// The output of one program.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    summary: Summary,
    /// Whether the program has printed a result.
    has_result: bool,
    /// Whether the lines below libtest's `failures:` have begun. A failed test that says `skipped`
    /// has failed.
    in_failures: bool,
    /// Tests of which libtest has said that they run for over 60 seconds.
    slow: BTreeSet<String>,
    /// The lines since the last result of a Go test, or since libtest began to print the output of
    /// a failed test.
    output: Vec<String>,
}

impl Reader {
    /// Reads a line. Returns whether the program has printed its result.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if let Some(skip) = skipped(line).or_else(|| ignored(line)) {
            if !self.in_failures && !self.summary.skipped.contains(&skip) {
                self.summary.skipped.push(skip);
            }
        } else if let Some(name) = line.strip_prefix("FAILED ") {
            self.fail(name);
        } else if let Some(result) = line.strip_prefix("test result: ") {
            self.end_of_libtest(result);
        } else if let Some([passed, failed, _]) = counts(line) {
            self.has_result = true;
            self.summary.passed += passed;
            self.add_unnamed(failed);
        } else if let Some((result, rest)) = line
            .strip_prefix("--- ")
            .and_then(|rest| rest.split_once(": "))
        {
            self.end_of_go_test(result, rest.split(' ').next().unwrap_or_default());
        } else {
            self.other_line(line);
        }
        self.has_result
    }

    fn other_line(&mut self, line: &str) {
        let of_test = |end: &str| {
            line.strip_prefix("test ")
                .and_then(|rest| rest.strip_suffix(end))
        };
        if let Some(name) = of_test(" has been running for over 60 seconds") {
            self.slow.insert(name.to_owned());
        } else if let Some((name, _)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        {
            self.slow.remove(name);
        } else if line == "failures:" {
            self.end_of_failed_test();
            self.in_failures = true;
        } else if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            if self.in_failures {
                self.end_of_failed_test();
                self.summary.failed.push(Failure::new(name));
            }
        } else if !line.starts_with("===") && !line.trim().is_empty() {
            self.output.push(line.trim_end().to_owned());
        }
    }

    fn fail(&mut self, name: &str) {
        self.summary.failed.push(Failure {
            name: name.to_owned(),
            output: std::mem::take(&mut self.output),
        });
    }

    /// Adds the failures that no line has named.
    fn add_unnamed(&mut self, failed: usize) {
        let named = self.summary.failed.len();
        self.summary
            .failed
            .resize(named.max(failed), Failure::new("a test without a name"));
    }

    /// Gives the lines that have been read to the failed test that they belong to.
    fn end_of_failed_test(&mut self) {
        let output = std::mem::take(&mut self.output);
        if self.in_failures
            && let Some(failure) = self.summary.failed.last_mut()
        {
            failure.output.extend(output);
        }
    }

    /// Reads `ok. 3 passed; 0 failed; ...`.
    fn end_of_libtest(&mut self, result: &str) {
        let count = |word: &str| {
            let before = result.split_once(word).map_or("", |(before, _)| before);
            before
                .rsplit(' ')
                .next()
                .and_then(|count| count.parse().ok())
                .unwrap_or(0_usize)
        };
        self.has_result = true;
        // A test that says `skipped` has passed for libtest.
        let said_skipped =
            self.summary.skipped.len() - count(" ignored").min(self.summary.skipped.len());
        self.summary.passed += count(" passed").saturating_sub(said_skipped);
        self.add_unnamed(count(" failed"));
    }

    fn end_of_go_test(&mut self, result: &str, name: &str) {
        self.has_result = true;
        match result {
            "PASS" => self.summary.passed += 1,
            "SKIP" => self.summary.skipped.push(Skip::new(
                name,
                self.output.last().map_or("", |line| line.trim()),
            )),
            _ => self.fail(name),
        }
        self.output.clear();
    }

    /// Returns the results of the program that `command` started.
    pub(crate) fn summary(mut self, command: &str, end: &End) -> Summary {
        match end {
            End::Exited(status) if status.success() && self.has_result => {}
            // A thread can hang after the last test.
            End::Killed(limit) if self.has_result && *limit == process::LONGEST_END => {}
            End::Exited(_) if self.has_result && !self.summary.is_success() => {}
            End::Exited(status) => {
                let state = if self.has_result {
                    "although no test failed"
                } else {
                    "before it printed its result"
                };
                self.fail(&format!("`{command}` ended with {status} {state}"));
            }
            End::Killed(limit) => {
                let slow: Vec<_> = std::mem::take(&mut self.slow).into_iter().collect();
                self.fail(&format!(
                    "`{command}` printed nothing for {limit:?}; these tests hang: {}",
                    slow.join(", ")
                ));
            }
        }
        self.summary
    }
}

/// Parses `skipped: <name>: <reason>`. A name can contain `::`.
fn skipped(line: &str) -> Option<Skip> {
    let (name, reason) = line.strip_prefix("skipped: ")?.split_once(": ")?;
    Some(Skip::new(name.trim(), reason.trim()))
}

/// Parses `test <name> ... ignored, <reason>`.
fn ignored(line: &str) -> Option<Skip> {
    let (name, reason) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some(Skip::new(
        name,
        reason
            .strip_prefix(", ")
            .unwrap_or("ignored, no reason given"),
    ))
}

/// Parses a line that consists of `N passed, N failed, N skipped`.
fn counts(line: &str) -> Option<[usize; 3]> {
    let mut parts = line.trim().split(", ");
    let mut count = |word: &str| {
        parts
            .next()?
            .strip_suffix(word)?
            .strip_suffix(' ')?
            .parse()
            .ok()
    };
    let counts = [count("passed")?, count("failed")?, count("skipped")?];
    parts.next().is_none().then_some(counts)
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::*;

    /// Returns the status of a process that exited with `code`. Only a real process has one on
    /// every system.
    fn exited_with(code: i32) -> ExitStatus {
        let (shell, flag) = if std::env::consts::OS == "windows" {
            ("cmd", "/C")
        } else {
            ("sh", "-c")
        };
        std::process::Command::new(shell)
            .args([flag, &format!("exit {code}")])
            .status()
            .expect("a shell")
    }

    fn read(output: &str, end: &End) -> Summary {
        let mut reader = Reader::default();
        output.lines().for_each(|line| {
            reader.line(line);
        });
        reader.summary("program", end)
    }

    #[test]
    fn results_are_counted() {
        for (output, code, counts) in [
            (
                "running 1 test\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n",
                0,
                "3 passed, 0 failed, 0 skipped",
            ),
            // A test that reports itself skipped has not passed; an ignored test never counts as
            // passed.
            (
                "---- a stdout ----\nskipped: a: no NTFS\nskipped: a: no NTFS\ntest result: ok. 2 \
                 passed; 0 failed; 0 ignored\n",
                0,
                "1 passed, 0 failed, 1 skipped",
            ),
            (
                "test a ... ignored, slow\ntest result: ok. 2 passed; 0 failed; 1 ignored\n",
                0,
                "2 passed, 0 failed, 1 skipped",
            ),
            // A test that reports itself skipped and fails has failed.
            (
                "failures:\n---- a stdout ----\nskipped: a: no NTFS\nfailures:\n    a\ntest \
                 result: FAILED. 1 passed; 1 failed\n",
                101,
                "1 passed, 1 failed, 0 skipped",
            ),
            (
                "test result: ok. 5 passed; 0 failed\n",
                1,
                "5 passed, 1 failed, 0 skipped",
            ),
            (
                "running 9 tests\ntest a ... ok\n",
                0,
                "0 passed, 1 failed, 0 skipped",
            ),
            (
                "error: could not compile `os`\n",
                101,
                "0 passed, 1 failed, 0 skipped",
            ),
            (
                "--- PASS: TestA (0.00s)\n    --- PASS: TestA/one (0.00s)\n    c_test.go:9: no \
                 program\n--- SKIP: TestC (0.00s)\n",
                0,
                "1 passed, 0 failed, 1 skipped",
            ),
            (
                "--- PASS: TestA (0.00s)\npanic: x\n",
                2,
                "1 passed, 1 failed, 0 skipped",
            ),
            (
                "ok disk/v1\nskipped: a: b\n140 passed, 0 failed, 1 skipped\n",
                0,
                "140 passed, 0 failed, 1 skipped",
            ),
            (
                "FAILED disk/v1 Rescan {}: no\n139 passed, 1 failed, 0 skipped\n",
                1,
                "139 passed, 1 failed, 0 skipped",
            ),
            ("7 passed, 2 failed\n", 0, "0 passed, 1 failed, 0 skipped"),
        ] {
            assert_eq!(
                read(output, &End::Exited(exited_with(code))).to_string(),
                counts,
                "{output}"
            );
        }
    }

    #[test]
    fn a_failed_test_has_its_output() {
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\nthread 'a' panicked \
                      at src/lib.rs:1:1:\nno\n\n\
                      ---- b stdout ----\nError: 5\n\n\nfailures:\n    a\n    b\n\ntest result: \
                      FAILED. 1 passed; 2 failed\n";
        let a = vec!["thread 'a' panicked at src/lib.rs:1:1:".into(), "no".into()];
        let b = vec!["Error: 5".into()];
        let failed = [
            Failure {
                name: "a".into(),
                output: a,
            },
            Failure {
                name: "b".into(),
                output: b,
            },
        ];
        assert_eq!(read(output, &End::Exited(exited_with(101))).failed, failed);
        let go = read(
            "    b_test.go:7: 1, not 2\n--- FAIL: TestB (0.01s)\nFAIL\n",
            &End::Exited(exited_with(1)),
        );
        assert_eq!(
            go.failed,
            [Failure {
                name: "TestB".into(),
                output: vec!["    b_test.go:7: 1, not 2".into()]
            }]
        );
    }

    #[test]
    fn a_test_that_hangs_is_named() {
        let output = "test a has been running for over 60 seconds\ntest b has been running for \
                      over 60 seconds\n\
                      test a ... ok\n";
        let summary = read(output, &End::Killed(Duration::from_mins(5)));
        assert!(
            summary.failed[0]
                .name
                .ends_with("printed nothing for 300s; these tests hang: b"),
            "{summary:?}"
        );
        // The tests had ended.
        let result = "test result: ok. 1 passed; 0 failed\n";
        assert!(read(result, &End::Killed(process::LONGEST_END)).is_success());
        // Another result was to come.
        assert!(!read(result, &End::Killed(Duration::from_mins(5))).is_success());
    }
}
