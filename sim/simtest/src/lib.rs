//! Starts csi-proxy-sim, a simulated Windows node, in the test of a CSI node plugin, and changes
//! the node.
//!
//! The program is the one that the environment variable `CSI_PROXY_SIM` names, or the one on the
//! PATH. It needs neither Windows nor privileges. Each node is a process of its own, so tests can
//! run in parallel. The README in this folder has a test to copy. The Go module in the same folder
//! does the same for plugins in Go.

pub mod control_api;

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, error, fs, thread};

use csi_proxy_client::{Client, DiskNumber};
use tempfile::TempDir;
use tokio::runtime;
use tokio::time::{sleep, timeout};
pub use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use transport::address::Location;

use control_api::fault::Action;
use control_api::set_reachable_request::What;
use control_api::{
    AddRequest, AdvanceClockRequest, ClearFaultsRequest, CompareRequest, ContainerFilesClient,
    GetNodeRequest, GrowDiskRequest, InjectFaultRequest, ListFaultsRequest, MakeDirectoryRequest,
    PlugDiskRequest, RestartRequest, RpcStatus, SetReachableRequest, SetSmbPasswordRequest,
    SimulationClient, UnplugDiskRequest, WaitForFaultRequest,
};

/// Why a node did not start, or a change of the node failed.
pub type Error = Box<dyn error::Error + Send + Sync>;

/// The variable that names the program.
const PROGRAM: &str = "CSI_PROXY_SIM";

/// How long the program may take until it serves, and a fault until it has disturbed the calls that
/// a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running simulated node, which ends when this is dropped.
///
/// Dropping the node panics if the program has ended, and if a fault that was not cleared has
/// disturbed no call: the test would otherwise pass without having tested anything.
#[derive(Debug)]
pub struct Node {
    /// The control API: disks, servers, faults, the clock.
    pub simulation: SimulationClient<Channel>,
    /// What kubelet and the plugin's container do on the file system of the node.
    pub files: ContainerFilesClient<Channel>,
    process: Process,
}

/// The program, which is killed when this is dropped, and the folder of its files and sockets.
#[derive(Debug)]
struct Process {
    child: Child,
    /// The folder of the sockets.
    folder: TempDir,
    /// What the program logs, which is shown if the test fails.
    log: File,
}

impl Node {
    /// Starts the node that a node file describes, with further flags of csi-proxy-sim, such as
    /// `-fast` or `-like-go`. Returns when all endpoints are open.
    pub async fn start(node_file: &str, flags: &[&str]) -> Result<Self, Error> {
        let program = env::var_os(PROGRAM).unwrap_or_else(|| "csi-proxy-sim".into());
        Self::start_program(Path::new(&program), node_file, flags).await
    }

    /// Starts the node like [`Self::start`], with this program.
    pub async fn start_program(
        program: &Path,
        node_file: &str,
        flags: &[&str],
    ) -> Result<Self, Error> {
        // The path of a socket must be short. The program removes the folder if the test is killed, and
        // so there is nothing else in it once the program serves.
        let folder = tempfile::Builder::new().prefix("sim").tempdir()?;
        let sockets = folder.path().to_owned();
        let file = sockets.join("node.toml");
        fs::write(&file, node_file)?;
        let log = tempfile::tempfile()?;
        let mut command = Command::new(program);
        command
            .args(["-exit-with-stdin", "-drain=0", "-node"])
            .arg(&file)
            .arg("-socket-folder")
            .arg(&sockets)
            .args(flags);
        let started = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log.try_clone()?)
            .spawn();
        let child = started.map_err(|error| {
            format!(
                "cannot start {}: {error}; {PROGRAM} names it",
                program.display()
            )
        })?;
        let (location, begin) = (Location::Directory(sockets.clone()), Instant::now());
        let mut process = Process { child, folder, log };
        let channel = loop {
            if let Some(channel) = serving(&location).await {
                break channel;
            }
            if process.child.try_wait()?.is_some() || begin.elapsed() > PATIENCE {
                return Err(format!("csi-proxy-sim does not serve: {}", process.log()).into());
            }
            sleep(Duration::from_millis(5)).await;
        };
        fs::remove_file(file)?;
        // A node file has the contents of the node's files, without a limit.
        let simulation =
            SimulationClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
        Ok(Self {
            simulation,
            files: ContainerFilesClient::new(channel),
            process,
        })
    }

    /// Returns the folder of the sockets, which have the names of the pipes.
    pub fn sockets(&self) -> PathBuf {
        self.process.folder.path().to_owned()
    }

    /// Returns a client of the node's csi-proxy.
    pub fn client(&self) -> Client {
        Client::builder().socket_folder(self.sockets()).build()
    }

    /// Makes an RPC, such as `volume/MountVolume`, `volume/v1/MountVolume` or `volume/*`, fail with
    /// a code so many times.
    pub async fn fail_rpc(&self, rpc: &str, code: Code, count: u64) -> Result<Fault, Error> {
        let status = RpcStatus {
            code: u32::try_from(code as i32)?,
            message: String::new(),
        };
        self.inject(control_api::Fault {
            count,
            ..rpc_fault(rpc, Action::Status(status))
        })
        .await
    }

    /// Injects a fault of any kind.
    pub async fn inject(&self, fault: control_api::Fault) -> Result<Fault, Error> {
        let request = InjectFaultRequest { fault: Some(fault) };
        let id = self
            .simulation
            .clone()
            .inject_fault(request)
            .await?
            .into_inner()
            .id;
        Ok(Fault {
            simulation: self.simulation.clone(),
            id,
        })
    }

    /// Adds the disks, servers, services and files of a node file, and returns the numbers of the
    /// disks.
    pub async fn add(&self, node_file: &str) -> Result<Vec<DiskNumber>, Error> {
        let request = AddRequest {
            node_file: node_file.to_owned(),
            undetected: false,
        };
        let added = self.simulation.clone().add(request).await?.into_inner();
        Ok(added.disk_numbers.into_iter().map(DiskNumber).collect())
    }

    /// Unplugs a disk without warning, and returns its handle for [`Self::plug`].
    pub async fn unplug(&self, disk: DiskNumber) -> Result<u64, Error> {
        Ok(self
            .simulation
            .clone()
            .unplug_disk(UnplugDiskRequest {
                disk_number: disk.0,
            })
            .await?
            .into_inner()
            .handle)
    }

    /// Plugs an unplugged disk in again, with what is on it, and returns its number, which may
    /// differ from its former one.
    pub async fn plug(&self, handle: u64) -> Result<DiskNumber, Error> {
        let request = PlugDiskRequest {
            handle,
            undetected: false,
        };
        Ok(DiskNumber(
            self.simulation
                .clone()
                .plug_disk(request)
                .await?
                .into_inner()
                .disk_number,
        ))
    }

    /// Enlarges a disk to this size in bytes.
    pub async fn grow(&self, disk: DiskNumber, size: u64) -> Result<(), Error> {
        let disk_number = disk.0;
        let request = GrowDiskRequest { disk_number, size };
        self.simulation.clone().grow_disk(request).await?;
        Ok(())
    }

    /// Makes a directory and its missing parents, as kubelet does.
    pub async fn mkdir(&self, path: &str) -> Result<(), Error> {
        let path = path.to_owned();
        let request = MakeDirectoryRequest { path };
        self.files.clone().make_directory(request).await?;
        Ok(())
    }

    /// Makes an SMB server answer, or not answer.
    pub async fn set_smb_reachable(&self, server: &str, reachable: bool) -> Result<(), Error> {
        let what = Some(What::SmbServer(server.to_owned()));
        let request = SetReachableRequest { what, reachable };
        self.simulation.clone().set_reachable(request).await?;
        Ok(())
    }

    /// Makes an iSCSI portal, given as its address, answer or not answer.
    pub async fn set_portal_reachable(&self, portal: &str, reachable: bool) -> Result<(), Error> {
        let what = Some(What::IscsiPortal(portal.to_owned()));
        let request = SetReachableRequest { what, reachable };
        self.simulation.clone().set_reachable(request).await?;
        Ok(())
    }

    /// Changes the password of a user of an SMB server.
    pub async fn set_smb_password(
        &self,
        server: &str,
        user: &str,
        password: &str,
    ) -> Result<(), Error> {
        let request = SetSmbPasswordRequest {
            server: server.to_owned(),
            user: user.to_owned(),
            password: password.to_owned(),
        };
        self.simulation.clone().set_smb_password(request).await?;
        Ok(())
    }

    /// Advances the clock of the node: what takes time on the node ends sooner.
    pub async fn advance_clock(&self, span: Duration) -> Result<(), Error> {
        let milliseconds = u64::try_from(span.as_millis())?;
        self.simulation
            .clone()
            .advance_clock(AdvanceClockRequest { milliseconds })
            .await?;
        Ok(())
    }

    /// Restarts the node. With a seed, each disk except disk 0 gets the number of another one: at
    /// least two are needed.
    pub async fn restart(&self, renumber: Option<u64>) -> Result<(), Error> {
        let request = RestartRequest {
            renumber_disks: renumber.is_some(),
            seed: renumber.unwrap_or_default(),
            ..RestartRequest::default()
        };
        self.simulation.clone().restart(request).await?;
        Ok(())
    }

    /// Restarts csi-proxy alone, as when it is upgraded.
    pub async fn restart_daemon(&self) -> Result<(), Error> {
        let request = RestartRequest {
            daemon_only: true,
            ..RestartRequest::default()
        };
        self.simulation.clone().restart(request).await?;
        Ok(())
    }

    /// Returns the node as it is now, as a node file.
    pub async fn node_file(&self) -> Result<String, Error> {
        Ok(self
            .simulation
            .clone()
            .get_node(GetNodeRequest {})
            .await?
            .into_inner()
            .node_file)
    }

    /// Returns how the node differs from an earlier [`Self::node_file`], a line for each mount,
    /// link, SMB mapping, session, directory and online disk that was left behind. Disks are
    /// compared by number, so the numbers must not have changed.
    pub async fn differences(&self, node_file: String) -> Result<Vec<String>, Error> {
        self.compare(node_file, false).await
    }

    /// Returns the same as [`Self::differences`], and how what is on the disks differs.
    pub async fn differences_with_data(&self, node_file: String) -> Result<Vec<String>, Error> {
        self.compare(node_file, true).await
    }

    async fn compare(&self, node_file: String, with_data: bool) -> Result<Vec<String>, Error> {
        let request = CompareRequest {
            node_file,
            with_data,
        };
        Ok(self
            .simulation
            .clone()
            .compare(request)
            .await?
            .into_inner()
            .differences)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let location = Location::Directory(self.sockets());
        // The runtime of the test cannot wait here.
        let faults = thread::spawn(move || -> Result<_, Error> {
            runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(async {
                    let channel = control_api::connect(&location).await?;
                    Ok(SimulationClient::new(channel)
                        .list_faults(ListFaultsRequest {})
                        .await?
                        .into_inner()
                        .faults)
                })
        });
        let faults = faults
            .join()
            .expect("no panic")
            .expect("csi-proxy-sim lists its faults");
        let missed = faults.iter().find(|fault| fault.hits == 0);
        assert!(
            missed.is_none(),
            "a fault has disturbed no call: {missed:?}"
        );
    }
}

impl Process {
    fn log(&self) -> String {
        let (mut log, mut text) = (&self.log, String::new());
        let read = log.rewind().and_then(|()| log.read_to_string(&mut text));
        read.map_or_else(|error| error.to_string(), |_| text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprint!("The log of csi-proxy-sim:\n{}", self.log());
        }
    }
}

/// A fault that was injected.
#[derive(Clone, Debug)]
pub struct Fault {
    simulation: SimulationClient<Channel>,
    id: u64,
}

impl Fault {
    /// Waits until the fault has disturbed this many calls. A call that is held counts when it
    /// begins to wait.
    pub async fn wait(&self, hits: u64) -> Result<(), Error> {
        let request = WaitForFaultRequest { id: self.id, hits };
        match timeout(PATIENCE, self.simulation.clone().wait_for_fault(request)).await {
            Ok(answer) => answer.map(drop).map_err(Error::from),
            Err(_) => Err(format!(
                "the fault has disturbed only {} of {hits} calls",
                self.hits().await?
            )
            .into()),
        }
    }

    /// Returns how many calls the fault has disturbed.
    pub async fn hits(&self) -> Result<u64, Error> {
        let faults = self
            .simulation
            .clone()
            .list_faults(ListFaultsRequest {})
            .await?
            .into_inner()
            .faults;
        Ok(faults
            .iter()
            .find(|fault| fault.id == self.id)
            .ok_or("the fault was cleared")?
            .hits)
    }

    /// Removes the fault, and releases the calls that it holds or delays. Returns how many calls it
    /// has disturbed.
    pub async fn clear(self) -> Result<u64, Error> {
        let hits = self.hits().await?;
        self.simulation
            .clone()
            .clear_faults(ClearFaultsRequest { id: self.id })
            .await?;
        Ok(hits)
    }
}

/// Returns a fault of an RPC: a status, a cut connection, a delay, a hold until the fault is
/// cleared, or a crash, which needs a `count`. The other fields choose the calls.
pub fn rpc_fault(rpc: &str, action: Action) -> control_api::Fault {
    control_api::Fault {
        rpc: rpc.to_owned(),
        action: Some(action),
        ..control_api::Fault::default()
    }
}

/// Returns a connection to the control API of the csi-proxy-sim that serves in `location`, if all
/// of its endpoints are open.
pub async fn serving(location: &Location) -> Option<Channel> {
    let channel = control_api::connect(location).await.ok()?;
    let checked = HealthClient::new(channel.clone())
        .check(HealthCheckRequest::default())
        .await
        .ok()?;
    (checked.into_inner().status() == ServingStatus::Serving).then_some(channel)
}
