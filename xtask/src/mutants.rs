//! Whether the tests of the operations, `crates/storage-ops`, would notice a change of one word: cargo-mutants makes each
//! change that it can think of in a copy of the tree, and runs that crate's own tests.
//!
//! What no test can or should notice is in `.cargo/mutants.toml`, with the reason.

use clap::Args;

use crate::{Outcome, process, tools, workspace};

const CRATE: &str = "csi-proxy-storage-ops";
/// How many seconds the tests, which take one, may take before a change counts as noticed.
const TIMEOUT: &str = "20";

#[derive(Args)]
pub(crate) struct Options {
    /// How many are tried at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only those in these files
    files: Vec<String>,
}

/// Runs it, which takes an hour on two processors; succeeds where every change is noticed.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut mutants = std::process::Command::new(tools::find_or_install("cargo-mutants")?);
    mutants.current_dir(workspace::root()).args(["mutants", "--package", CRATE, "--no-shuffle"]);
    mutants.args(["--timeout", TIMEOUT, "--jobs", &options.jobs.to_string()]);
    mutants.arg("--output").arg(workspace::target());
    mutants.args(options.files.iter().flat_map(|file| ["--file", file]));
    // Neither is looked at here, and without them each build takes half as long.
    for setting in ["CARGO_PROFILE_DEV_DEBUG", "CARGO_PROFILE_TEST_DEBUG"] {
        mutants.env(setting, "false");
    }
    Ok(process::succeeds(&mut mutants)?)
}
