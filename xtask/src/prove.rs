//! The proof of reliability, `verify/simtest`, optimised: it runs a hundred thousand cases and more.

use crate::{Outcome, process, workspace};

/// Runs `prove` with `arguments`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", "csi-proxy-simtest", "--bin", "prove", "--"]).args(arguments);
    Ok(process::succeeds(&mut cargo)?)
}
