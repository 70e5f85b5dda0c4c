//! The daemon under load for as long as one likes: the test `soak` of the daemon's crate, in its release build.
//!
//! There is no such run under Wine: it samples what Linux tells of a process, and Wine's processes share theirs with
//! Wine's own.

use clap::Args;

use crate::{Outcome, process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 120)]
    seconds: u64,
}

/// Runs it, showing what it has counted and measured.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--release", "-p", "csi-proxy", "--test", "soak", "--", "--nocapture"]);
    cargo.env("CSI_PROXY_SOAK_SECONDS", options.seconds.to_string());
    Ok(process::succeeds(&mut cargo)?)
}
