//! `cargo xtask test`: all tests of the program, in one run with one summary at its end.

use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum};

use crate::beside::Beside;
use crate::summary::Summary;
use crate::test_programs::Program;
use crate::{
    Error, checks, deploy, differential, facts, go, process, setup, soak, test_programs, windows,
    workspace,
};

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Check format and lints and run the Linux tests with fewer cases: what to run before each
    /// commit
    #[arg(long, conflicts_with = "parts")]
    quick: bool,
    /// Run only these parts
    parts: Vec<Part>,
}

/// A part of the tests that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The tests and documentation examples of all packages, on this machine
    Linux,
    /// The tests of the Windows programs, under Wine or on Windows itself
    Windows,
    /// The facts about Windows, on the simulated node and under Wine, and their page
    Facts,
    /// The published Go client, as deployed drivers use it, and the example node plugins
    Go,
    /// The manifests, the chart, the admission policy and the alert rules in `deploy`
    Deploy,
    /// 1,000 random calls to this program and to the Go program; not part of all tests
    Differential,
}

/// All tests, in order.
const ALL: [Part; 5] = [
    Part::Linux,
    Part::Deploy,
    Part::Windows,
    Part::Facts,
    Part::Go,
];

/// How many random calls are compared with the Go program. `cargo xtask differential` makes 20
/// times as many.
const DIFFERENTIAL_CALLS: usize = 1000;

/// Downloads and compiles what the Go tests need, before the first test.
pub(crate) fn set_up(options: &Options) {
    let is_run = |part| options.parts.is_empty() || options.parts.contains(&part);
    if !options.quick && is_run(Part::Go) {
        go::set_up();
    }
    if !options.quick && is_run(Part::Deploy) {
        deploy::set_up();
    }
}

/// Runs what the options select.
pub(crate) fn task(options: &Options) -> Summary {
    if options.quick {
        quick()
    } else {
        run(&options.parts)
    }
}

/// Runs these parts, or all if the list is empty.
fn run(parts: &[Part]) -> Summary {
    match parts {
        [] if windows::is_here() => in_turn(&ALL),
        [] => beside_wine(&["test", "windows", "facts"]),
        _ => in_turn(parts),
    }
}

/// Runs all tests and the comparison with the Go program.
pub(crate) fn with_differential() -> Summary {
    beside_wine(&["test", "windows", "facts", "differential"])
}

/// Runs all tests, those that `wine` names in a process beside the others. The Go clients use the
/// same Wine prefix, so they come last.
fn beside_wine(wine: &[&str]) -> Summary {
    let wine = Beside::start(wine);
    let mut sum = in_turn(&[Part::Linux, Part::Deploy]);
    sum += wine
        .and_then(Beside::end)
        .unwrap_or_else(|error| Summary::failed(&error.to_string()));
    sum += in_turn(&[Part::Go]);
    sum
}

fn in_turn(parts: &[Part]) -> Summary {
    let mut sum = Summary::default();
    for part in parts {
        let name = part
            .to_possible_value()
            .map_or(String::new(), |value| value.get_name().to_owned());
        // After a part that fails, the others run nevertheless.
        sum += Summary::of_step(&name, || match part {
            Part::Linux => Ok(linux()),
            Part::Windows => windows::test(),
            Part::Facts => facts::test(),
            Part::Go => go::test(),
            Part::Deploy => deploy::test(),
            Part::Differential => differential::compare(DIFFERENTIAL_CALLS, None),
        });
    }
    sum
}

/// Checks format and lints and runs the Linux tests, the long ones with fewer cases.
fn quick() -> Summary {
    let mut sum = checks::run(&[("format", checks::format), ("clippy", checks::clippy)]);
    // Documentation examples are left out: each is a program to be linked. Incremental, as this runs
    // after each change.
    sum += test_programs::run(
        "tests",
        workspace::cargo()
            .args(["test", "--workspace"])
            .env_remove(workspace::INCREMENTAL),
        |program| {
            let mut command = test_command(program);
            command.env("PROPTEST_CASES", "16").env(soak::SECONDS, "3");
            Some(command)
        },
    );
    sum
}

fn linux() -> Summary {
    // On Windows, the part `windows` runs the tests of all packages.
    if windows::is_here() {
        return Summary::default();
    }
    let mut sum = Summary::default();
    if setup::python().is_none() {
        sum += Summary::skipped("the Python client", "its packages are not installed");
    }
    sum += test_programs::run(
        "linux",
        workspace::cargo().args(["test", "--workspace"]),
        |program| Some(test_command(program)),
    );
    sum += Summary::of_step("linux: documentation examples", || {
        Ok(Summary::of_compiling_tests(workspace::cargo().args([
            "test",
            "--workspace",
            "--doc",
        ])))
    });
    sum
}

fn test_command(program: &Program) -> Command {
    let mut command = Command::new(&program.file);
    if let Some(python) = setup::python() {
        command.env("CSI_PROXY_PYTHON", python);
    }
    command
}

/// A test program of csi-proxy-sim. Cargo builds csi-proxy-sim with it.
pub(crate) const SIMULATOR_TEST: &str = "demo";

/// Returns csi-proxy-sim for tests, after building it.
pub(crate) fn simulator() -> Result<PathBuf, Error> {
    debug_program(windows::SIMULATOR, SIMULATOR_TEST)
}

/// Returns a program for tests, after building it with the features with which [`linux`] builds all
/// packages. Cargo builds it with `test`, a test program of the same package.
pub(crate) fn debug_program(program: &str, test: &str) -> Result<PathBuf, Error> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--workspace", "--no-run", "--test", test]);
    process::must_succeed(&mut cargo)?;
    Ok(workspace::target()
        .join("debug")
        .join(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}
