//! `cargo xtask mutants`: cargo-mutants makes one small change after the other to the storage
//! operations, `crates/storage-ops`, in a copy of the tree, and runs that package's tests, which
//! must fail.
//!
//! `.cargo/mutants.toml` lists the changes that no test can or should detect, with the reasons.

use clap::Args;

use crate::summary::Summary;
use crate::{Error, setup, workspace};

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

impl Default for Options {
    fn default() -> Self {
        Self {
            jobs: 2,
            files: Vec::new(),
        }
    }
}

/// Runs cargo-mutants, which takes an hour on two processors and counts as one test.
pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    let mut mutants = std::process::Command::new(setup::cargo_tool("cargo-mutants")?);
    mutants
        .current_dir(workspace::root())
        .args(["mutants", "--package", PACKAGE, "--no-shuffle"]);
    mutants.args(["--timeout", TIMEOUT, "--jobs", &options.jobs.to_string()]);
    mutants.arg("--output").arg(workspace::target());
    mutants.args(options.files.iter().flat_map(|file| ["--file", file]));
    // Each build takes half as long without debug information.
    for setting in ["CARGO_PROFILE_DEV_DEBUG", "CARGO_PROFILE_TEST_DEBUG"] {
        mutants.env(setting, "false");
    }
    Ok(Summary::of_check("mutants", &mut mutants))
}
