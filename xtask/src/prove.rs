//! The simulation tests of reliability, `verify/simtest`, in their release build, because they run several hundred
//! thousand cases.

use crate::{Error, process, workspace};

/// Runs the program `prove` with `arguments`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, Error> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", "csi-proxy-simtest", "--bin", "prove", "--"]).args(arguments);
    Ok(process::succeeds(&mut cargo)?)
}
