//! Starts csi-proxy-sim, a simulated Windows node, in the test of a CSI node plugin, and changes the node.
//!
//! ```no_run
//! # async fn test() -> Result<(), csi_proxy_sim_client::Error> {
//! let node = csi_proxy_sim_client::Node::start("[[disk]]\nsize = \"1 GiB\"\nserial = \"vol-1\"\n", &["-fast"]).await?;
//! let fault = node.fail_rpc("volume/MountVolume", tonic::Code::Aborted, 1).await?;
//! // Test the plugin with node.client(), or with the sockets in node.sockets().
//! node.wait_for_fault(fault, 1).await?;
//! # Ok(()) }
//! ```
//!
//! The program is the one that the environment variable `CSI_PROXY_SIM` names, or the one on the PATH. It needs neither
//! Windows nor privileges. Each node is a process of its own, so tests can run in parallel. The Go module in the same folder
//! does the same for plugins in Go.

pub mod control_api;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, error, fs};

use csi_proxy_client::Client;
use tempfile::TempDir;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use transport::address::Location;

use control_api::fault::Action;
use control_api::{
    ClearFaultsRequest, CompareRequest, ContainerFilesClient, Fault, GetNodeRequest, InjectFaultRequest,
    RestartRequest, RpcStatus, SimulationClient, WaitForFaultRequest,
};

/// Why a node did not start, or a change of the node failed.
pub type Error = Box<dyn error::Error + Send + Sync>;

/// The variable that names the program.
const PROGRAM: &str = "CSI_PROXY_SIM";

/// How long the program may take until it serves.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running simulated node, which ends when this is dropped.
#[derive(Debug)]
pub struct Node {
    process: Child,
    folder: TempDir,
    /// The control API: disks, servers, faults, the clock.
    pub simulation: SimulationClient<Channel>,
    /// What kubelet and the plugin's container do on the file system of the node.
    pub files: ContainerFilesClient<Channel>,
}

impl Node {
    /// Starts the node that a node file describes, with further flags of csi-proxy-sim, such as `-fast` or `-like-go`.
    /// Returns when all endpoints are open.
    pub async fn start(node_file: &str, flags: &[&str]) -> Result<Self, Error> {
        let program = env::var_os(PROGRAM).unwrap_or_else(|| "csi-proxy-sim".into());
        Self::start_program(Path::new(&program), node_file, flags).await
    }

    /// Starts the node like [`Self::start`], with this program.
    pub async fn start_program(program: &Path, node_file: &str, flags: &[&str]) -> Result<Self, Error> {
        // The path of a socket must be short.
        let folder = tempfile::Builder::new().prefix("sim").tempdir()?;
        let file = folder.path().join("node.toml");
        fs::write(&file, node_file)?;
        let mut command = Command::new(program);
        command.arg("-drain=0").arg("-node").arg(file).arg("-socket-folder").arg(sockets(&folder)).args(flags);
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut process =
            started.map_err(|error| format!("cannot start {}: {error}; {PROGRAM} names it", program.display()))?;
        let location = Location::Directory(sockets(&folder));
        let begin = Instant::now();
        let channel = loop {
            if let Some(channel) = serving(&location).await {
                break channel;
            }
            if let Some(status) = process.try_wait()? {
                return Err(format!("csi-proxy-sim ended with {status} before it served").into());
            }
            if begin.elapsed() > PATIENCE {
                process.kill()?;
                return Err("csi-proxy-sim does not serve".into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        // A node file has the contents of the node's files, without a limit.
        let simulation = SimulationClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
        Ok(Self { process, folder, simulation, files: ContainerFilesClient::new(channel) })
    }

    /// Returns the folder of the sockets, which have the names of the pipes.
    pub fn sockets(&self) -> PathBuf {
        sockets(&self.folder)
    }

    /// Returns a client of the node's csi-proxy.
    pub fn client(&self) -> Client {
        Client::builder().socket_folder(self.sockets()).build()
    }

    /// Makes an RPC, such as `volume/MountVolume`, `volume/v1/MountVolume` or `volume/*`, fail with a code so many times.
    /// Returns the id of the fault.
    pub async fn fail_rpc(&self, rpc: &str, code: Code, count: u64) -> Result<u64, Error> {
        let status = RpcStatus { code: u32::try_from(code as i32)?, message: String::new() };
        self.inject(Fault { count, ..rpc_fault(rpc, Action::Status(status)) }).await
    }

    /// Injects a fault of any kind, and returns its id.
    pub async fn inject(&self, fault: Fault) -> Result<u64, Error> {
        let request = InjectFaultRequest { fault: Some(fault) };
        Ok(self.simulation.clone().inject_fault(request).await?.into_inner().id)
    }

    /// Waits until a fault has disturbed this many calls. A call that is held counts when it begins to wait.
    pub async fn wait_for_fault(&self, id: u64, hits: u64) -> Result<(), Error> {
        self.simulation.clone().wait_for_fault(WaitForFaultRequest { id, hits }).await?;
        Ok(())
    }

    /// Removes a fault, and releases the calls that wait for it.
    pub async fn clear_fault(&self, id: u64) -> Result<(), Error> {
        self.simulation.clone().clear_faults(ClearFaultsRequest { id }).await?;
        Ok(())
    }

    /// Restarts the node, with other disk numbers if a seed for them is given.
    pub async fn restart(&self, renumber: Option<u64>) -> Result<(), Error> {
        let (renumber_disks, seed) = (renumber.is_some(), renumber.unwrap_or_default());
        self.simulation.clone().restart(RestartRequest { daemon_only: false, renumber_disks, seed }).await?;
        Ok(())
    }

    /// Returns the node as it is now, as a node file.
    pub async fn node_file(&self) -> Result<String, Error> {
        Ok(self.simulation.clone().get_node(GetNodeRequest {}).await?.into_inner().node_file)
    }

    /// Returns how the node differs from an earlier [`Self::node_file`], a line for each mount, link, SMB mapping, session,
    /// directory and online disk that was left behind.
    pub async fn differences(&self, node_file: String) -> Result<Vec<String>, Error> {
        let request = CompareRequest { node_file, with_data: false };
        Ok(self.simulation.clone().compare(request).await?.into_inner().differences)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn sockets(folder: &TempDir) -> PathBuf {
    folder.path().join("s")
}

/// Returns a fault of an RPC: a status, a cut connection, a delay, a hold until the fault is cleared, or a crash, which needs
/// a `count`. The other fields choose the calls.
pub fn rpc_fault(rpc: &str, action: Action) -> Fault {
    Fault { rpc: rpc.to_owned(), action: Some(action), ..Fault::default() }
}

/// Returns a connection to the control API of the csi-proxy-sim that serves in `location`, if all of its endpoints are open.
pub async fn serving(location: &Location) -> Option<Channel> {
    let channel = control_api::connect(location).await.ok()?;
    let checked = HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await.ok()?;
    (checked.into_inner().status() == ServingStatus::Serving).then_some(channel)
}
