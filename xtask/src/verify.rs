//! `cargo xtask verify`: the deep checks, which are too slow for each change. They run every night,
//! and before an issue is called resolved.

use std::process::Command;

use crate::summary::Summary;
use crate::{
    Error, bench, checks, differential, fault_injection, fuzz, go, mutants, process, sensitivity,
    site, soak, windows, workspace,
};

/// A deep check by its name.
type Check = (&'static str, fn() -> Result<Summary, Error>);

const ALL: [Check; 13] = [
    ("advisories", checks::advisories),
    ("site", || Ok(Summary::of_result("site", site::run()))),
    ("fault-injection", || {
        Ok(fault_injection::run(&fault_injection::Options::default()))
    }),
    ("executor model", || Ok(executor_model())),
    ("node plugins", go::disturbed_plugins),
    ("differential", || {
        differential::compare(differential::CALLS, None)
    }),
    ("sensitivity", || Ok(sensitivity::run())),
    ("Windows tests in German", windows::test_in_german),
    ("instructions of a call", instructions),
    ("soak", || Ok(soak::both())),
    ("fuzz", || fuzz::run(&fuzz::Options::default())),
    ("bench", || bench::run(&bench::Options::default())),
    ("mutants", || mutants::run(&mutants::Options::default())),
];

/// Runs all of them, the slowest one last.
pub(crate) fn run() -> Summary {
    let mut sum = Summary::default();
    for (name, check) in ALL {
        sum += Summary::of_step(name, check);
    }
    sum
}

/// Runs the executor under a scheduler that chooses the interleavings. The model is a workspace of
/// its own.
fn executor_model() -> Summary {
    let mut cargo = workspace::cargo();
    cargo.args([
        "test",
        "--test",
        "model",
        "--manifest-path",
        "verify/executor-model/Cargo.toml",
    ]);
    cargo
        .arg("--target-dir")
        .arg(workspace::target().join("executor-model"));
    Summary::of_compiling_tests(&mut cargo)
}

/// Counts the instructions of a call with callgrind, which must not be many more than they were.
/// The build is that of [`soak`].
fn instructions() -> Result<Summary, Error> {
    const NAME: &str = "instructions of a call";
    const PACKAGE: &str = "csi-proxy-call-costs";
    if process::find("valgrind").is_none() {
        return Ok(Summary::skipped(NAME, "valgrind is not installed"));
    }
    let mut build = workspace::cargo();
    process::must_succeed(build.args(["build", "--release", "--workspace", "--bin", PACKAGE]))?;
    let program = workspace::target().join("release").join(PACKAGE);
    Ok(Summary::of_check(NAME, &mut Command::new(program)))
}
