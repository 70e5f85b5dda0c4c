//! `cargo xtask fault-injection`: the simulation tests of `verify/fault-injection`, in their
//! release build, because they run several hundred thousand cases.

use clap::Args;

use crate::summary::Summary;
use crate::workspace;

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Arguments of the program `fault-injection`, such as `--seeds 100` or `--case ...`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the program `fault-injection`, which counts as one test.
pub(crate) fn run(options: &Options) -> Summary {
    let mut cargo = workspace::cargo();
    cargo
        .args([
            "run",
            "--release",
            "--package",
            "csi-proxy-fault-injection",
            "--bin",
            "fault-injection",
            "--",
        ])
        .args(&options.arguments);
    Summary::of_check("fault-injection", &mut cargo)
}
