//! The output of `go test -v`.

use crate::summary::{Failure, Skip, Summary};

/// The results of tests. A test with subtests counts as one.
#[derive(Debug, Default)]
pub(crate) struct Report {
    summary: Summary,
    /// What has been printed since the last result.
    output: Vec<String>,
}

impl Report {
    /// Takes the next line.
    pub(crate) fn line(&mut self, line: &str) {
        // The results of subtests are indented.
        let result = line.strip_prefix("--- ").and_then(|rest| rest.split_once(": "));
        let Some((result, rest)) = result else {
            if !line.starts_with("===") && !line.trim().is_empty() {
                self.output.push(line.trim().to_owned());
            }
            return;
        };
        let name = rest.split(' ').next().unwrap_or_default();
        let output = std::mem::take(&mut self.output);
        match result {
            "PASS" => self.summary.passed += 1,
            "SKIP" => self.summary.skipped.push(Skip::new(name, output.last().map_or("", String::as_str))),
            _ => self.summary.failed.push(Failure { name: name.to_owned(), output }),
        }
    }

    /// Returns the results. A command that failed although no test did has failed too.
    pub(crate) fn finish(mut self, command: &str, succeeded: bool) -> Summary {
        let ran = self.summary.passed + self.summary.failed.len() + self.summary.skipped.len();
        if ran == 0 || (!succeeded && self.summary.is_success()) {
            let name = format!("{command} failed, but no test did");
            self.summary.failed.push(Failure { name, output: self.output });
        }
        self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::Report;
    use crate::summary::Summary;

    fn report(output: &str, succeeded: bool) -> Summary {
        let mut report = Report::default();
        output.lines().for_each(|line| report.line(line));
        report.finish("go test", succeeded)
    }

    #[test]
    fn the_results_of_go_tests_are_counted() {
        let output = "=== RUN   TestA\n=== RUN   TestA/one\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/one (0.00s)\n\
                      === RUN   TestB\n=== RUN   TestB/two\n    b_test.go:7: 1, not 2\n--- FAIL: TestB (0.01s)\n    \
                      --- FAIL: TestB/two (0.01s)\n=== RUN   TestC\n    c_test.go:9: no program\n\
                      --- SKIP: TestC (0.00s)\nFAIL\nFAIL\tp\t0.02s\n";
        let summary = report(output, false);
        assert_eq!(summary.to_string(), "1 passed, 1 failed, 1 skipped");
        assert_eq!(summary.failed[0].name, "TestB");
        assert!(summary.failed[0].output.contains(&"b_test.go:7: 1, not 2".to_owned()));
        assert_eq!((&*summary.skipped[0].name, &*summary.skipped[0].reason), ("TestC", "c_test.go:9: no program"));
    }

    #[test]
    fn tests_that_do_not_build_or_stop_early_have_failed() {
        let summary = report("# p\na.go:1: syntax error\nFAIL\tp [build failed]\n", false);
        assert_eq!(summary.to_string(), "0 passed, 1 failed, 0 skipped");
        assert_eq!(summary.failed[0].output[1], "a.go:1: syntax error");
        assert_eq!(report("--- PASS: TestA (0.00s)\npanic: x\n", false).to_string(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(report("", true).to_string(), "0 passed, 1 failed, 0 skipped");
    }
}
