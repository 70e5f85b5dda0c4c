//! A running program, its control API, and a driver's client.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use csi_proxy_client::Client;
use csi_proxy_sim::control_api::{ContainerFilesClient, Fault, InjectFaultRequest, SimulationClient};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use transport::address::Location;

/// A running csi-proxy-sim that serves in a folder of the test. Dropping it ends it.
pub(crate) struct Program {
    process: Child,
    folder: TempDir,
    pub(crate) simulation: SimulationClient<Channel>,
    pub(crate) files: ContainerFilesClient<Channel>,
}

impl Program {
    /// Starts the program on the node of a node file, and waits until it serves.
    pub(crate) async fn start(node_file: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("node.toml");
        fs::write(&file, node_file).expect("a file");
        Self::start_with(folder, &[format!("-node={}", file.display())]).await
    }

    pub(crate) async fn start_with(folder: TempDir, flags: &[String]) -> Self {
        let sockets = folder.path().join("sockets");
        let mut process = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"))
            .arg(format!("-socket-folder={}", sockets.display()))
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        assert!(output.any(|line| line.starts_with("Press Ctrl-C")), "the program ended");
        // It announces each run of the daemon.
        std::thread::spawn(move || output.for_each(drop));
        let channel = csi_proxy_sim::control_api::connect(&Location::Directory(sockets)).await.expect("a connection");
        let (simulation, files) = (SimulationClient::new(channel.clone()), ContainerFilesClient::new(channel));
        Self { process, folder, simulation, files }
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.folder.path().join("sockets")
    }

    /// Returns a client as a driver has it.
    pub(crate) fn driver(&self) -> Client {
        Client::builder().socket_folder(self.sockets()).build()
    }

    /// Connects to one of the sockets.
    pub(crate) async fn channel(&self, endpoint: &str) -> Channel {
        let address = Location::Directory(self.sockets()).address(endpoint);
        let connector = service_fn(move |_| {
            let address = address.clone();
            async move { transport::listener::connect(&address).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await;
        channel.expect("a connection")
    }

    pub(crate) async fn inject(&mut self, fault: Fault) -> u64 {
        let request = InjectFaultRequest { fault: Some(fault) };
        self.simulation.inject_fault(request).await.expect("a fault").into_inner().id
    }

    /// Tells the program to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> TempDir {
        let kill = Command::new("kill").args(["-s", "TERM", &self.process.id().to_string()]).status();
        assert!(kill.expect("the program kill").success());
        assert!(self.process.wait().expect("an end").success());
        std::mem::replace(&mut self.folder, tempfile::tempdir().expect("a folder"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
