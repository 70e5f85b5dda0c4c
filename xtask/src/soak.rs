//! `cargo xtask soak`: the server under load for a given time, `verify/soak`, with release builds
//! of the test and of csi-proxy-sim. `cargo xtask test` runs ten seconds of it, on this machine and
//! as a Windows program.

use std::process::Command;

use clap::Args;

use crate::summary::Summary;
use crate::{Error, test, test_programs, windows, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// How many seconds to run
    #[arg(long, default_value_t = SECONDS_OF_VERIFY)]
    seconds: u64,
    /// Run the Windows program over named pipes: under Wine, or on Windows itself
    #[arg(long)]
    windows: bool,
}

const SECONDS_OF_VERIFY: u64 = 120;

/// The package of the test.
pub(crate) const PACKAGE: &str = "csi-proxy-soak";
/// The name of the test's program.
pub(crate) const TARGET: &str = "soak";

/// The environment variable that contains the duration in seconds.
pub(crate) const SECONDS: &str = "CSI_PROXY_SOAK_SECONDS";

/// Runs the soak test.
pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    let seconds = options.seconds.to_string();
    if options.windows {
        return windows::soak(&seconds);
    }
    let mut cargo = workspace::cargo();
    // The test runs csi-proxy-sim, which cargo builds with the tests of its own package.
    cargo.args([
        "test",
        "--release",
        "--workspace",
        "--test",
        TARGET,
        "--test",
        test::SIMULATOR_TEST,
    ]);
    Ok(test_programs::run("soak", &mut cargo, |program| {
        let mut command = Command::new(&program.file);
        command.env(SECONDS, &seconds);
        (program.target == TARGET).then_some(command)
    }))
}

/// Runs the soak test on this machine and as a Windows program.
pub(crate) fn both() -> Summary {
    let mut sum = Summary::default();
    for (name, windows) in [("soak", false), ("soak of the Windows program", true)] {
        let seconds = SECONDS_OF_VERIFY;
        sum += Summary::of_attempt(name, run(&Options { seconds, windows }));
    }
    sum
}
