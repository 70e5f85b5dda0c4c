//! Servers that stop and start, and restarts.

use std::time::Duration;

use clap::{Args, Subcommand};
use command_line::{quantity, text_input};

use super::{Error, Output, Simulator};
use crate::control_api::{
    AdvanceClockRequest, CompareRequest, GetNodeRequest, RestartRequest, SaveStateRequest,
    SetReachableRequest, SetSmbPasswordRequest, set_reachable_request::What,
};

#[derive(Subcommand)]
pub(super) enum Task {
    /// Makes an SMB server or an iSCSI portal answer
    Start(Server),
    /// Makes an SMB server or an iSCSI portal unreachable
    Stop(Server),
    /// Changes a user's password on an SMB server
    #[command(before_help = "Mappings that were made with the old password can no longer be used.")]
    SetSmbPassword {
        /// Name of the server
        #[arg(value_name = "HOST")]
        server: String,
        /// Name of the user
        user: String,
        /// File with the new password; - for standard input
        #[arg(long, value_name = "FILE")]
        password_file: String,
    },
    /// Restarts the simulated node, or the daemon on it
    #[command(
        before_help = "Connections break, and calls in progress are cut off. The command returns \
                       when the daemon serves again. Files, disks and persistent SMB mappings \
                       survive a restart of the node; handles, storage jobs and other mappings do \
                       not."
    )]
    Restart {
        /// Restart the daemon alone, as when it is upgraded
        #[arg(long)]
        daemon_only: bool,
        /// Give the disks other numbers, as a start of Windows may do
        #[arg(long, conflicts_with = "daemon_only")]
        renumber: bool,
        /// Number that chooses the new numbers
        #[arg(
            long,
            default_value_t = 0,
            hide_default_value = true,
            requires = "renumber"
        )]
        seed: u64,
    },
    /// Advances the clock of the node, so that what takes time ends sooner
    Advance {
        /// Time to skip, such as 30s
        #[arg(value_parser = quantity::duration)]
        time: Duration,
    },
    /// Compares the node with a file that the command node has printed
    #[command(
        before_help = "Prints a line for each difference, such as a mount, a link, an SMB mapping \
                       or a disk that is online. Fails if there is one. Does not compare what is \
                       on the disks other than disk 0."
    )]
    Diff {
        /// File with the earlier node; - for standard input
        file: String,
        /// Also compare partitions, file systems and files on the disks
        #[arg(long)]
        with_data: bool,
    },
    /// Prints the simulated node as a node file
    #[command(
        before_help = "The file contains the passwords of the simulated servers. Comments in the \
                       file name the parts of the node that the file does not describe."
    )]
    Node,
    /// Writes the simulated node to the state file (flag -state)
    #[command(
        before_help = "csi-proxy-sim also writes this file by itself, within a second of a change \
                       and when it ends."
    )]
    Save,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct Server {
    /// Name of the SMB server
    #[arg(long, value_name = "HOST")]
    smb_server: Option<String>,
    /// Address of the iSCSI portal; port 3260 if not given
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    iscsi_portal: Option<String>,
}

impl Server {
    fn request(self, reachable: bool) -> SetReachableRequest {
        let what = self
            .smb_server
            .map(What::SmbServer)
            .or(self.iscsi_portal.map(What::IscsiPortal));
        SetReachableRequest { what, reachable }
    }
}

impl Task {
    pub(super) async fn run(
        self,
        Simulator { mut simulation, .. }: Simulator,
    ) -> Result<Output, Error> {
        match self {
            Self::Start(server) => drop(simulation.set_reachable(server.request(true)).await?),
            Self::Stop(server) => drop(simulation.set_reachable(server.request(false)).await?),
            Self::SetSmbPassword {
                server,
                user,
                password_file,
            } => {
                let password = text_input::secret_from_file(&password_file, "the password")?;
                simulation
                    .set_smb_password(SetSmbPasswordRequest {
                        server,
                        user,
                        password,
                    })
                    .await?;
            }
            Self::Restart {
                daemon_only,
                renumber,
                seed,
            } => {
                simulation
                    .restart(RestartRequest {
                        daemon_only,
                        renumber_disks: renumber,
                        seed,
                        node_file: None,
                    })
                    .await?;
            }
            Self::Advance { time } => {
                let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                simulation
                    .advance_clock(AdvanceClockRequest { milliseconds })
                    .await?;
            }
            Self::Diff { file, with_data } => {
                let node_file = text_input::read(&file, "the node file")?;
                let compared = simulation
                    .compare(CompareRequest {
                        node_file,
                        with_data,
                    })
                    .await?
                    .into_inner();
                return Ok(Output::Differences(compared.differences));
            }
            Self::Node => {
                let node = simulation.get_node(GetNodeRequest {}).await?.into_inner();
                return Ok(Output::Bytes(node.node_file.into_bytes()));
            }
            Self::Save => drop(simulation.save_state(SaveStateRequest {}).await?),
        }
        Ok(Output::DONE)
    }
}
