//! Servers that stop and start, and restarts.

use crate::control_api::{
    GetNodeRequest, RestartRequest, SaveStateRequest, SetReachableRequest, SetSmbPasswordRequest,
    set_reachable_request::What,
};
use clap::{Arg, ArgGroup, ArgMatches, Command};

use super::{Error, Output, Simulator, answered, argument, switch};
use csi_proxyctl::args;
use csi_proxyctl::text_input;

pub(super) fn commands() -> Vec<Command> {
    vec![
        with_server(Command::new("start").about("Makes an SMB server or an iSCSI portal answer")),
        with_server(Command::new("stop").about("Makes an SMB server or an iSCSI portal unreachable")),
        Command::new("set-smb-password")
            .about("Changes a user's password on an SMB server")
            .before_help("Mappings that were made with the old password can no longer be used.")
            .arg(argument("server", "HOST", "Name of the server"))
            .arg(argument("user", "USER", "Name of the user"))
            .arg(
                Arg::new("password-file")
                    .long("password-file")
                    .value_name("FILE")
                    .required(true)
                    .help("File with the new password; - for standard input"),
            ),
        Command::new("restart")
            .about("Restarts the simulated node, or the daemon on it")
            .before_help(
                "Connections break, and calls in progress are cut off. The command returns when the daemon serves again. \
                 Files, disks and persistent SMB mappings survive a restart of the node; handles, storage jobs and other \
                 mappings do not.",
            )
            .arg(switch("daemon-only", "Restart the daemon alone, as when it is upgraded")),
        Command::new("node")
            .about("Prints the simulated node as a node file")
            .before_help("The file contains the passwords of the simulated servers. Comments in it name what it leaves out."),
        Command::new("save")
            .about("Writes the simulated node to the state file (flag -state)")
            .before_help("csi-proxy-sim also writes this file by itself, within a second of a change and when it ends."),
    ]
}

fn with_server(command: Command) -> Command {
    command
        .arg(Arg::new("smb-server").long("smb-server").value_name("HOST").help("Name of the SMB server"))
        .arg(
            Arg::new("iscsi-portal")
                .long("iscsi-portal")
                .value_name("ADDRESS[:PORT]")
                .help("Address of the iSCSI portal; port 3260 if not given"),
        )
        .group(ArgGroup::new("what").args(["smb-server", "iscsi-portal"]).required(true))
}

pub(super) async fn run(name: &str, matches: &ArgMatches, mut simulator: Simulator) -> Result<Output, Error> {
    let simulation = &mut simulator.simulation;
    match name {
        "start" | "stop" => {
            let text = |flag| matches.get_one::<String>(flag).cloned();
            let what = text("smb-server").map(What::SmbServer).or_else(|| text("iscsi-portal").map(What::IscsiPortal));
            let request = SetReachableRequest { what, reachable: name == "start" };
            answered(simulation.set_reachable(request).await)?;
        }
        "node" => {
            let node = answered(simulation.get_node(GetNodeRequest {}).await)?;
            return Ok(Output::Bytes(node.node_file.into_bytes()));
        }
        "save" => {
            answered(simulation.save_state(SaveStateRequest {}).await)?;
        }
        "set-smb-password" => {
            let password = text_input::secret_from_file(args::required(matches, "password-file"), "the password")?;
            let [server, user] = ["server", "user"].map(|name| args::required(matches, name).to_owned());
            answered(simulation.set_smb_password(SetSmbPasswordRequest { server, user, password }).await)?;
        }
        _ => {
            let request = RestartRequest { daemon_only: matches.get_flag("daemon-only") };
            answered(simulation.restart(request).await)?;
        }
    }
    Ok(Output::done())
}
