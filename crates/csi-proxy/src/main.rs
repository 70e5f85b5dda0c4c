//! The daemon `csi-proxy`: serves, or does what its first argument says.

use std::env;
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use csi_proxy::command::Command;
use csi_proxy::demo;
use csi_proxy::flags::help::Help;
use csi_proxy::service::{self, Task};
use csi_proxy::{log, serve};

/// What Go programs exit with when a command line cannot be followed.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let command = match Command::parse(arguments) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("csi-proxy: {error}; 'csi-proxy help' lists what there is");
            return ExitCode::from(USAGE);
        }
    };
    match run(command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("csi-proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says whether all went well.
fn run(command: Command) -> Result<bool, Box<dyn Error>> {
    let mut out = anstream::stdout();
    match command {
        Command::Serve(flags) if flags.windows_service => service::run(*flags)?,
        Command::Serve(flags) => {
            log::start(&flags.log)?;
            let runtime = serve::runtime()?;
            let served = runtime.block_on(serve::run(&flags, out));
            // What has not ended by now is not waited for.
            runtime.shutdown_background();
            served?;
        }
        Command::Service(Task::Install(flags)) => service::install(&flags, out)?,
        Command::Service(Task::Uninstall) => service::uninstall(out)?,
        Command::Service(Task::Status) => service::status(out)?,
        Command::Demo => return demo::show(out),
        Command::Help => write!(out, "{Help}")?,
        Command::Version => writeln!(out, "csi-proxy {}", env!("CARGO_PKG_VERSION"))?,
    }
    Ok(true)
}
