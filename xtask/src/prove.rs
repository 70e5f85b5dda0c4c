//! The simulation tests of reliability, `verify/simtest`, in their release build, because they run several hundred
//! thousand cases.

use clap::Args;

use crate::{Error, process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Arguments of the program `prove`, such as `--seeds 100` or `--case ...`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the program `prove`.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", "csi-proxy-simtest", "--bin", "prove", "--"]).args(&options.arguments);
    Ok(process::succeeds(&mut cargo)?)
}
