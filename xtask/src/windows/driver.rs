//! Runs a driver that was built for Windows against a simulated node, under Wine or on Windows
//! itself.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use clap::Args;

use super::simulator;
use crate::process::{self, KillOnDrop};
use crate::{Error, wine, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// The file that describes the node, instead of the built-in one
    #[arg(long)]
    node: Option<PathBuf>,
    /// Also serve the node and its control API at this TCP address, such as 127.0.0.1:9900, for
    /// tests that run on Linux
    #[arg(long)]
    listen: Option<String>,
    /// The driver and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    driver: Vec<OsString>,
}

/// Runs the driver until it ends, and returns whether it succeeded.
pub(super) fn run(options: &Options) -> Result<bool, Error> {
    // The log has a line for each call of the driver.
    let flags: Vec<_> = options
        .listen
        .iter()
        .map(|address| format!("-listen={address}"))
        .collect();
    let node = Node::start(options.node.as_deref(), "-v=2", &flags)?;
    let mut driver = node.command(&options.driver[0]);
    Ok(process::succeeds(driver.args(&options.driver[1..]))?)
}

/// A simulated node whose pipes Windows programs can open.
pub(crate) struct Node {
    // Dropped in this order.
    _simulator: KillOnDrop,
    prefix: Option<wine::Prefix>,
}

impl Node {
    /// Builds and starts csi-proxy-sim.exe with this flag for its log and further flags, and waits
    /// until it serves.
    pub(crate) fn start(file: Option<&Path>, log: &str, flags: &[String]) -> Result<Self, Error> {
        let program = simulator()?;
        let folder = workspace::target().join("wine-driver");
        let prefix = if super::is_here() {
            None
        } else {
            Some(wine::Prefix::start_in(folder)?)
        };
        let mut command = command(prefix.as_ref(), program);
        command
            .arg(log)
            .args(flags)
            .args(file.map(|_| "-node"))
            .args(file);
        process::print(&command);
        let mut simulator = KillOnDrop(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let output = simulator
            .0
            .stdout
            .take()
            .ok_or("csi-proxy-sim has no standard output")?;
        let mut output = BufReader::new(output).lines();
        if !output
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.starts_with("Press Ctrl-C"))
        {
            return Err("csi-proxy-sim ended before it served the node".into());
        }
        thread::spawn(move || output.for_each(drop));
        Ok(Self {
            _simulator: simulator,
            prefix,
        })
    }

    /// Returns a command for a Windows program that runs on the node.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        command(self.prefix.as_ref(), program)
    }
}

fn command(prefix: Option<&wine::Prefix>, program: impl AsRef<Path>) -> Command {
    let Some(prefix) = prefix else {
        return Command::new(program.as_ref());
    };
    // A harness may signal this process alone, which then ends without dropping anything. Linux
    // ends the programs with it.
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL"])
        .arg(prefix.loader())
        .arg(program.as_ref());
    prefix.enter(&mut command);
    command
}
