//! Mutation tests of the storage operations, `crates/storage-ops`: cargo-mutants makes one small change after the other
//! in a copy of the tree and runs that package's tests, which must fail.
//!
//! `.cargo/mutants.toml` lists the changes that no test can or should detect, with the reasons.

use clap::Args;

use crate::{Error, process, tools, workspace};

const PACKAGE: &str = "csi-proxy-storage-ops";
/// After how many seconds a change counts as detected. The tests take one second.
const TIMEOUT: &str = "20";

#[derive(Args)]
pub(crate) struct Options {
    /// How many changes are tested at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Test only changes in these files
    files: Vec<String>,
}

/// Runs cargo-mutants, which takes an hour on two processors. Returns whether the tests detected every change.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let mut mutants = std::process::Command::new(tools::find_or_install("cargo-mutants")?);
    mutants.current_dir(workspace::root()).args(["mutants", "--package", PACKAGE, "--no-shuffle"]);
    mutants.args(["--timeout", TIMEOUT, "--jobs", &options.jobs.to_string()]);
    mutants.arg("--output").arg(workspace::target());
    mutants.args(options.files.iter().flat_map(|file| ["--file", file]));
    // Debug information is not needed, and each build takes half as long without it.
    for setting in ["CARGO_PROFILE_DEV_DEBUG", "CARGO_PROFILE_TEST_DEBUG"] {
        mutants.env(setting, "false");
    }
    Ok(process::succeeds(&mut mutants)?)
}
