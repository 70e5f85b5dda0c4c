//! `cargo xtask ci`: everything that must succeed before a change is merged.

use std::process::Command;

use crate::summary::Summary;
use crate::{checks, differential, process, test, workspace};

/// How many random calls are compared with the Go program. `cargo xtask differential` makes 20
/// times as many.
const DIFFERENTIAL_CALLS: usize = 1000;

/// Runs all checks, the cheap ones first, then all tests, and the count. A failure ends none of
/// them.
pub(crate) fn run() -> Summary {
    let mut sum = checks::run(&checks::ALL);
    sum += test::run(&[]);
    sum += Summary::of_step("instructions of a call", || Ok(instructions()));
    sum += Summary::of_step("differential", || {
        differential::compare(DIFFERENTIAL_CALLS, None)
    });
    sum
}

/// Counts the instructions of a call with callgrind, which must not be many more than they were.
fn instructions() -> Summary {
    const NAME: &str = "instructions of a call";
    if process::find("valgrind").is_none() {
        return Summary::skipped(NAME, "valgrind is not installed");
    }
    let mut build = workspace::cargo();
    let mut sum = Summary::of_check(
        NAME,
        build.args(["build", "--release", "--package", "csi-proxy-call-costs"]),
    );
    if sum.is_success() {
        let program = workspace::target().join("release/csi-proxy-call-costs");
        sum = Summary::of_check(NAME, &mut Command::new(program));
    }
    sum
}
