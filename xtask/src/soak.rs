//! The server under load for a given time: `verify/soak`, with release builds of the test and of csi-proxy-sim.
//!
//! `cargo xtask test` runs ten seconds of it, on this machine and as a Windows program.

use clap::Args;

use crate::{Error, process, windows, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How many seconds to run
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Run the Windows program over named pipes: under Wine, or on Windows itself
    #[arg(long)]
    windows: bool,
}

/// Runs the soak test, which prints its counts and measurements.
pub(crate) fn run(options: &Options) -> Result<bool, Error> {
    let seconds = options.seconds.to_string();
    if options.windows {
        return Ok(windows::soak(&seconds)?.print());
    }
    let mut build = workspace::cargo();
    if !process::succeeds(build.args(["build", "--release", "-p", PROGRAM]))? {
        return Ok(false);
    }
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--release", "-p", PACKAGE, "--", "--nocapture"]);
    Ok(process::succeeds(cargo.env(SECONDS, seconds))?)
}

/// The package of the test.
pub(crate) const PACKAGE: &str = "csi-proxy-soak";

/// The package of the program that the test runs: cargo does not build it for a test of another package.
pub(crate) const PROGRAM: &str = "csi-proxy-sim";

/// The environment variable that contains the duration in seconds.
pub(crate) const SECONDS: &str = "CSI_PROXY_SOAK_SECONDS";
