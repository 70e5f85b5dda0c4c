//! All tests, in one run with one summary at its end.

use std::io;

use clap::{Args, ValueEnum};

use crate::summary::Summary;
use crate::{
    Error, apt, bench, call_costs, checks, durations, facts, go, libtest, process, python, sensitivity, soak, windows,
    workspace,
};

mod alerts;
mod deploy;

#[derive(Args)]
pub(crate) struct Options {
    /// Check format and lints and run the Linux tests with fewer cases: what to run before each commit
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
    /// The instructions of calls, compared with docs/call-costs.md
    CallCosts,
    /// The facts about Windows, on the simulated node and under Wine, and their page
    Facts,
    /// The published Go client, as deployed drivers use it, against the server
    Go,
    /// The benchmark: every measurement once and briefly, so that it is known to work
    Bench,
    /// The manifests, the chart, the admission policy and the alert rules in `deploy`
    Deploy,
    /// Patches that each break a rule, which the simulation tests must detect
    Sensitivity,
}

/// Runs what the options select.
pub(crate) fn task(options: &Options) -> Result<Summary, Error> {
    if options.quick { quick() } else { Ok(run(&options.parts)) }
}

/// Runs these parts, or all if there are none.
pub(crate) fn run(parts: &[Part]) -> Summary {
    let parts = if parts.is_empty() { Part::value_variants() } else { parts };
    let mut sum = Summary::default();
    for part in parts {
        let name = part.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let (summary, step) = durations::measure(&name, || match part {
            Part::Linux => linux(),
            Part::Windows => windows::test(),
            Part::CallCosts => call_costs::test(),
            Part::Facts => facts::test(),
            Part::Go => go::test(),
            Part::Bench => bench::test(),
            Part::Deploy => deploy::test(),
            Part::Sensitivity => sensitivity::run(),
        });
        sum.steps.push(step);
        // The other parts run nevertheless.
        sum += summary.unwrap_or_else(|error| Summary::failed(&format!("cargo xtask test {name}: {error}")));
    }
    sum
}

/// Checks format and lints and runs the Linux tests, of which the long ones are shortened.
fn quick() -> Result<Summary, Error> {
    const FEWER_CASES: [(&str, &str); 2] = [("PROPTEST_CASES", "16"), (soak::SECONDS, "3")];
    let mut sum = checks::format();
    sum += checks::clippy();
    let (summary, step) = durations::measure("tests", || {
        let mut cargo = workspace::cargo();
        // Documentation examples are left out: each is a program to be linked.
        libtest::run(cargo.args(["test", "--workspace", "--all-targets"]).envs(FEWER_CASES))
    });
    sum.steps.push(step);
    sum += summary?;
    Ok(sum)
}

fn linux() -> Result<Summary, Error> {
    // On Windows, the part `windows` runs the tests of all packages.
    if std::env::consts::OS == "windows" {
        return Ok(Summary::default());
    }
    let mut sum = Summary::default();
    install_tools();
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--workspace"]);
    match python::interpreter() {
        None => {}
        Some(Ok(python)) => {
            cargo.env("CSI_PROXY_PYTHON", python);
        }
        Some(Err(reason)) => sum += Summary::skipped("the Python client", &reason),
    }
    sum += libtest::run(&mut cargo)?;
    sum += executor_model()?;
    Ok(sum)
}

/// Runs the executor under a scheduler that chooses the interleavings. The model is a workspace of its own.
fn executor_model() -> io::Result<Summary> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--test", "model", "--manifest-path", "verify/executor-model/Cargo.toml"]);
    cargo.arg("--target-dir").arg(workspace::target().join("executor-model"));
    libtest::run(&mut cargo)
}

/// Programs that tests run, most of them to compare their output with ours, and the Debian packages that contain them.
const TOOLS: [(&str, &str); 11] = [
    ("sg_inq", "sg3-utils"),
    ("dmidecode", "dmidecode"),
    ("sfdisk", "fdisk"),
    ("sgdisk", "gdisk"),
    ("mkswap", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.vfat", "dosfstools"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ntfs", "ntfs-3g"),
    ("curl", "curl"),
];

/// Installs the missing ones of [`TOOLS`] if that is allowed. A test whose program is missing reports itself skipped.
fn install_tools() {
    let missing: Vec<_> =
        TOOLS.iter().filter(|(program, _)| process::find(program).is_none()).map(|(_, package)| *package).collect();
    if !missing.is_empty()
        && let Err(reason) = apt::install(&missing)
    {
        println!("{reason}");
    }
}
