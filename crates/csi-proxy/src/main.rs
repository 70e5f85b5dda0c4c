//! The daemon `csi-proxy`: serves the Windows node that it runs on, or runs the command in its
//! first argument.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use csi_proxy::VERSION;
use csi_proxy::command::Command;
use csi_proxy::daemon;
use csi_proxy::doctor::CSI_PROXY_DOCTOR;
use csi_proxy::flags::help::Help;
use csi_proxy::program::CSI_PROXY;

fn main() -> ExitCode {
    CSI_PROXY.main(Command::parse, run)
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = anstream::stdout();
    match command {
        Command::Serve(flags) => daemon::serve(*flags, out)?,
        Command::Service(task) => daemon::manage_service(task, out)?,
        Command::Doctor(doctor) => {
            return Ok(doctor.run(&CSI_PROXY_DOCTOR, |_| Ok(daemon::examined_node()?), out));
        }
        Command::Help => write!(out, "{}", Help(&CSI_PROXY))?,
        Command::Version => writeln!(out, "csi-proxy {VERSION}")?,
    }
    Ok(ExitCode::SUCCESS)
}
