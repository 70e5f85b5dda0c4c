//! Running `cargo test` and parsing the output of Rust's test runner, libtest.
//!
//! libtest prints `running N tests`, a line per test, what the tests printed (`--show-output`; that of failed tests
//! below `failures:`), and one `test result:` line. A test program that prints the first line and not the last counts
//! as a failure, even if cargo exits with 0.

use std::collections::HashMap;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use cargo_metadata::Message;

use crate::durations::{self, Step};
use crate::summary::{Failure, Skip, Summary};
use crate::{process, workspace};

/// Builds the tests of a `cargo test` command, runs all of them even if some fail, and returns the summary.
pub(crate) fn run(cargo: &mut Command) -> io::Result<Summary> {
    let mut build = process::copy(cargo);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let Some(packages) = durations::record(&mut build, build_tests)? else {
        return Ok(Summary::failed(&format!("`{}` failed, see its output above", process::typed(&build))));
    };
    let mut suites = Suites { packages, ..Suites::default() };
    cargo.args(["--no-fail-fast", "--", "--show-output"]);
    let status = process::stream_shown(cargo, |line| suites.line(line))?;
    Ok(suites.finish(&process::typed(cargo), status))
}

/// Builds test programs and returns the folder of the package that each belongs to, or `None` if the build fails.
fn build_tests(build: &mut Command) -> io::Result<Option<HashMap<String, String>>> {
    process::print(build);
    let mut child = build.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut packages = HashMap::new();
    for message in Message::parse_stream(BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?)) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(program) = artifact.executable.as_deref().and_then(|program| program.file_name())
        {
            let folder = artifact.manifest_path.parent().map(|folder| folder.as_std_path().to_path_buf());
            let folder = folder.unwrap_or_default();
            let folder = folder.strip_prefix(workspace::root()).unwrap_or(&folder);
            packages.insert(program.to_owned(), folder.display().to_string());
        }
    }
    Ok(child.wait()?.success().then_some(packages))
}

/// The results of all test programs that one `cargo test` runs.
#[derive(Debug, Default)]
struct Suites {
    /// The package of each test program, by the program's file name.
    packages: HashMap<String, String>,
    summary: Summary,
    /// The test program that has printed its first line and not yet its result.
    running: Option<Suite>,
    /// The package whose tests run, and since when.
    package: Option<(String, Instant)>,
}

/// The results of one test program.
#[derive(Debug, Default)]
struct Suite {
    ignored: Vec<Skip>,
    skipped: Vec<Skip>,
    failed: Vec<Failure>,
    /// Below `successes:`, where passed tests print what they print, such as the panics that they expect.
    in_successes: bool,
    /// Below `failures:`, where a `skipped:` line does not count because its test has failed.
    in_failures: bool,
    /// Below the name of a failed test, where its output is.
    in_output: bool,
}

impl Suites {
    /// Parses a line. Returns whether it is worth showing: the output of passed tests is not.
    fn line(&mut self, line: &str) -> bool {
        if let Some(package) = self.package_of(line) {
            self.end_package();
            self.package = Some((package, Instant::now()));
        }
        if is_start(line) {
            self.abandon();
            self.running = Some(Suite::default());
        } else if let Some(suite) = &mut self.running {
            if let Some(result) = line.strip_prefix("test result: ") {
                let suite = self.running.take().unwrap_or_default();
                self.end(suite, result);
            } else {
                suite.line(line);
                return !suite.in_successes;
            }
        }
        true
    }

    /// Returns the sum of all test programs. `command` is named if it failed although no test did.
    fn finish(mut self, command: &str, status: ExitStatus) -> Summary {
        self.end_package();
        self.abandon();
        if !status.success() && self.summary.is_success() {
            self.summary += Summary::failed(&format!(
                "`{command}` exited with {status} although no test failed, see its output above"
            ));
        }
        self.summary
    }

    /// Parses `Running <source> (<program>)` and `Doc-tests <crate>`, which cargo prints before each test program.
    fn package_of(&self, line: &str) -> Option<String> {
        if self.running.is_none() && line.contains("Doc-tests ") {
            return Some("documentation examples".to_owned());
        }
        let program = Path::new(line.strip_suffix(')')?.rsplit_once('(')?.1).file_name()?;
        self.packages.get(program.to_str()?).cloned()
    }

    /// Adds the time since the package's tests began to the package's step.
    fn end_package(&mut self) {
        let Some((name, start)) = self.package.take() else { return };
        match self.summary.steps.iter_mut().find(|step| step.name == name) {
            Some(step) => step.run += start.elapsed(),
            None => self.summary.steps.push(Step { name, build: None, run: start.elapsed() }),
        }
    }

    fn end(&mut self, suite: Suite, result: &str) {
        let count = |word| count(result, word).unwrap_or(0);
        let Suite { mut ignored, mut failed, .. } = suite;
        ignored.resize(count(" ignored"), Skip::new("an ignored test", "no reason given"));
        failed.resize(count(" failed"), Failure::new("a test without a name"));
        self.summary += Summary {
            passed: count(" passed").saturating_sub(suite.skipped.len()),
            failed,
            skipped: [suite.skipped, ignored].concat(),
            steps: Vec::new(),
        };
    }

    fn abandon(&mut self) {
        if self.running.take().is_some() {
            self.summary += Summary::failed("a test program ended before it printed its result");
        }
    }
}

impl Suite {
    fn line(&mut self, line: &str) {
        match line {
            "failures:" => (self.in_failures, self.in_successes) = (true, false),
            "successes:" => (self.in_failures, self.in_successes) = (false, true),
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

    /// Parses a line below `failures:`: first the output of each failed test, then the names alone.
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
            failure.output.push(line.to_owned());
        }
    }
}

/// Returns whether the line is `running N tests`.
fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|number| number.parse::<usize>().is_ok())
}

/// Parses `test <name> ... ignored, <reason>`.
fn ignored(line: &str) -> Option<Skip> {
    let (name, reason) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some(Skip::new(name, reason.strip_prefix(", ").unwrap_or("ignored, no reason given")))
}

/// Returns the number before `word` in `ok. 3 passed; 0 failed; ...`.
fn count(result: &str, word: &str) -> Option<usize> {
    result.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the status of a process that exited with `code`. Only a real process has one on every system.
    fn exited_with(code: i32) -> ExitStatus {
        let (shell, flag) = if std::env::consts::OS == "windows" { ("cmd", "/C") } else { ("sh", "-c") };
        std::process::Command::new(shell).args([flag, &format!("exit {code}")]).status().expect("a shell")
    }

    fn summary(output: &str, code: i32) -> Summary {
        let mut suites = Suites::default();
        for line in output.lines() {
            suites.line(line);
        }
        suites.finish("cargo test", exited_with(code))
    }

    #[test]
    fn test_programs_add_up() {
        let one = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\ntest result: FAILED. 1 passed; 1 failed; \
                   0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let two = "running 1 test\ntest c ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n";
        assert_eq!(summary(&[one, two].concat(), 101).to_string(), "2 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_test_that_reports_itself_skipped_has_not_passed() {
        let output = "running 2 tests\n\nsuccesses:\n\n---- a stdout ----\nskipped: a: no NTFS\nskipped: a: no NTFS\n\n\n\
                      successes:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
        let summary = summary(output, 0);
        assert_eq!(summary.to_string(), "1 passed, 0 failed, 1 skipped");
        assert_eq!(summary.skipped, [Skip::new("a", "no NTFS")]);
    }

    #[test]
    fn a_test_that_reports_itself_skipped_and_fails_has_failed() {
        let output = "running 2 tests\nfailures:\n---- a stdout ----\nskipped: a: no NTFS\n\nfailures:\n    a\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        assert_eq!(summary(output, 101).to_string(), "1 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_failed_test_is_reported_with_its_output() {
        let output = "running 3 tests\ntest a ... FAILED\ntest b ... FAILED\n\nsuccesses:\n---- c stdout ----\nfine\n\n\
                      failures:\n\n---- a stdout ----\n\nthread 'a' panicked at src/lib.rs:1:1:\nno\n\n\
                      ---- b stdout ----\nError: 5\n\n\nfailures:\n    a\n    b\n\n\
                      test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        let a = vec!["thread 'a' panicked at src/lib.rs:1:1:".into(), "no".into()];
        let b = vec!["Error: 5".into()];
        assert_eq!(
            summary(output, 101).failed,
            [Failure { name: "a".into(), output: a }, Failure { name: "b".into(), output: b }]
        );
    }

    #[test]
    fn the_output_of_passed_tests_is_not_shown() {
        let output = "running 2 tests\ntest a ... FAILED\ntest b ... ok\n\nsuccesses:\n\n---- b stdout ----\nexpected\n\n\
                      successes:\n    b\n\nfailures:\n---- a stdout ----\nno\n\nfailures:\n    a\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored\n";
        let mut suites = Suites::default();
        let shown: Vec<_> = output.lines().filter(|line| suites.line(line) && !line.is_empty()).collect();
        let expected = [
            "running 2 tests",
            "test a ... FAILED",
            "test b ... ok",
            "failures:",
            "---- a stdout ----",
            "no",
            "failures:",
            "    a",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_ignored_test_is_skipped_with_its_reason() {
        let output = "running 2 tests\ntest a ... ignored, takes an hour\ntest b ... ignored\n\n\
                      test result: ok. 0 passed; 0 failed; 2 ignored; 0 measured\n";
        let summary = summary(output, 0);
        assert_eq!(summary.to_string(), "0 passed, 0 failed, 2 skipped");
        assert_eq!(summary.skipped[0], Skip::new("a", "takes an hour"));
    }

    #[test]
    fn a_test_program_without_a_result_is_a_failure() {
        let output = "running 9 tests\ntest a ... ok\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert_eq!(summary(output, 0).to_string(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(summary("running 9 tests\ntest a ... ok\n", 0).to_string(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_command_that_fails_before_any_test_runs_is_a_failure() {
        assert_eq!(summary("error: could not compile `os`\n", 101).to_string(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_result_line_without_a_test_program_counts_nothing() {
        assert_eq!(
            summary("test result: ok. 5 passed; 0 failed; 0 ignored\n", 0).to_string(),
            Summary::default().to_string()
        );
    }

    #[test]
    fn the_time_of_a_test_program_counts_for_its_package() {
        let packages =
            [("a-1", "crates/a"), ("b-2", "crates/a")].map(|(program, folder)| (program.into(), folder.into()));
        let mut suites = Suites { packages: packages.into(), ..Suites::default() };
        let output = "     Running unittests src/lib.rs (target/debug/deps/a-1)\nrunning 0 tests\ntest result: ok. 0 passed\n\
                      \u{1b}[1m     Running\u{1b}[0m tests/b.rs (target/debug/deps/b-2)\nrunning 0 tests\ntest result: ok.\n\
                      \x20  Doc-tests a\nrunning 0 tests\ntest result: ok. 0 passed\n";
        for line in output.lines() {
            suites.line(line);
        }
        let names: Vec<String> =
            suites.finish("cargo test", exited_with(0)).steps.into_iter().map(|step| step.name).collect();
        assert_eq!(names, ["crates/a", "documentation examples"]);
    }
}
