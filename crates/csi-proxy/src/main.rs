//! The daemon `csi-proxy`: serves the Windows node that it runs on, or runs the command in its first argument.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use csi_proxy::command::Command;
use csi_proxy::doctor::{self, CSI_PROXY_DOCTOR};
use csi_proxy::flags::help::Help;
use csi_proxy::program::CSI_PROXY;
use csi_proxy::service::{self, Task};
use csi_proxy::{backend, endpoints, serve};

fn main() -> ExitCode {
    CSI_PROXY.main(Command::parse, run)
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = anstream::stdout();
    match command {
        Command::Serve(flags) if flags.windows_service => service::run(*flags)?,
        Command::Serve(flags) => {
            serve::console(&flags, backend::windows()?, endpoints::named_pipes(&flags)?, out)?;
        }
        Command::Service(Task::Install(installation)) => service::install(&installation, out)?,
        Command::Service(Task::Uninstall) => service::uninstall(out)?,
        Command::Service(Task::Status) => service::status(out)?,
        Command::Doctor(doctor) => {
            return Ok(doctor.run(&CSI_PROXY_DOCTOR, |_| Ok((backend::windows()?, doctor::system()?)), out));
        }
        Command::Help => write!(out, "{}", Help(&CSI_PROXY))?,
        Command::Version => writeln!(out, "csi-proxy {}", env!("CARGO_PKG_VERSION"))?,
    }
    Ok(ExitCode::SUCCESS)
}
