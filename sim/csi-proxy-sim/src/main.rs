//! The program `csi-proxy-sim`: serves a simulated node, or runs the demonstration.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use csi_proxy::VERSION;
use csi_proxy::flags::help::Help;
use csi_proxy_sim::command::Command;
use csi_proxy_sim::flags::{CSI_PROXY_SIM, CSI_PROXY_SIM_DOCTOR};
use csi_proxy_sim::{backend, ctl, demo, endpoints};

fn main() -> ExitCode {
    CSI_PROXY_SIM.main(Command::parse, run)
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    let mut out = anstream::stdout();
    let code = |has_succeeded| {
        if has_succeeded {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    };
    match command {
        Command::Serve(flags) => endpoints::serve(&flags, backend::served(&flags)?, out)?,
        Command::Demo => return Ok(code(demo::show(out)?)),
        Command::Replay(flags) => {
            return Ok(code(demo::replay(&flags, backend::served(&flags)?, out)?));
        }
        Command::Ctl => return Ok(ctl::main()?),
        Command::Doctor(doctor) => {
            return Ok(doctor.run(&CSI_PROXY_SIM_DOCTOR, backend::examined, out));
        }
        Command::PrintNode => write!(out, "{}", os_sim::Sim::default_node_file())?,
        Command::Help => write!(out, "{}", Help(&CSI_PROXY_SIM))?,
        Command::Version => writeln!(out, "csi-proxy-sim {VERSION}")?,
    }
    Ok(ExitCode::SUCCESS)
}
