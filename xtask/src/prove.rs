//! The proof of reliability, `crates/proof`, optimised: it runs a hundred thousand cases and more.

use crate::{Outcome, process, workspace};

/// Runs `prove` with `arguments`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--package", "csi-proxy-proof", "--bin", "prove", "--"]).args(arguments);
    Ok(process::succeeds(&mut cargo)?)
}
