//! The daemon under load for as long as one likes: the test `soak` of the daemon's crate, in its release build.
//!
//! `cargo xtask test` runs ten seconds of it, here and as a Windows program.

use clap::Args;

use crate::{Outcome, process, windows, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How long
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// The Windows program, over named pipes: under Wine, or on Windows itself
    #[arg(long)]
    windows: bool,
}

/// Runs it, showing what it has counted and measured.
pub(crate) fn run(options: &Options) -> Outcome {
    let seconds = options.seconds.to_string();
    if options.windows {
        let tally = windows::soak(&seconds)?;
        tally.print();
        return Ok(tally.is_green());
    }
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--release", "-p", "csi-proxy-sim", "--test", "soak", "--", "--nocapture"]);
    Ok(process::succeeds(cargo.env(SECONDS, seconds))?)
}

/// The variable that says how long.
pub(crate) const SECONDS: &str = "CSI_PROXY_SOAK_SECONDS";
