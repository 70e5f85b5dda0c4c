//! `cargo xtask bless`: renews every generated file, except for those with results of a machine:
//! docs/facts.md (`cargo xtask facts`) and the tables of `cargo xtask bench`.
//!
//! Each file is written by the test that compares it, if the environment variable `BLESS` is set.

use std::process::Command;

use crate::summary::Summary;
use crate::{Error, workspace};

/// The tests that write files and are not in packages with collected texts.
const OTHERS: [&[&str]; 3] = [
    &["--package", "csi-proxy-selftest", "--test", "pages"],
    &["--package", "csi-proxy-call-costs", "--test", "counts"],
    // Last, as it reads other generated files.
    &["--package", "xtask", "--test", "interface"],
];

/// Runs the tests that write files, then again as they are.
pub(crate) fn run() -> Result<Summary, Error> {
    let metadata = workspace::metadata()?;
    let collects = |package: &&cargo_metadata::Package| {
        let mut dependencies = package.dependencies.iter();
        dependencies.any(|dependency| dependency.name == "csi-proxy-texts")
    };
    let packages = metadata.workspace_packages();
    let packages = packages.into_iter().filter(collects);
    let collected: Vec<&str> = packages
        .flat_map(|package| ["--package", package.name.as_str()])
        .collect();
    let mut sum = Summary::default();
    for tests in std::iter::once(&collected[..]).chain(OTHERS) {
        // A test that writes a file may fail at another file, which a later test writes.
        let _ = cargo(tests).env("BLESS", "1").status()?;
        sum += Summary::of_compiling_tests(&mut cargo(tests));
    }
    Ok(sum)
}

fn cargo(tests: &[&str]) -> Command {
    let mut cargo = workspace::cargo();
    cargo
        .args(["test", "--no-fail-fast"])
        .args(tests)
        .env_remove(workspace::INCREMENTAL);
    cargo
}
