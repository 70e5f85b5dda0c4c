//! The daemon that the demonstration calls: the real server on Unix sockets, over a simulated node
//! whose calls are counted.

use std::path::PathBuf;
use std::sync::Arc;
use std::{error, io};

use api::Group;
use csi_proxy_client::Client;
use faults::{Counts, Probe, Probed, Trace};
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, Node};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use transport::address::Location;
use transport::listener::bind;

/// A running daemon.
pub struct Daemon {
    pub(super) sim: Sim,
    pub(super) trace: Arc<Trace>,
    pub(super) folder: TempDir,
    pub(super) client: Client,
    pub(super) is_like_go: bool,
    /// The control API, if the daemon is that of the program.
    pub(super) control: Option<Channel>,
    /// What stops the daemon, unless it ends with this process.
    pub(super) serving: Option<(oneshot::Sender<()>, JoinHandle<Unfinished>)>,
}

impl Daemon {
    /// Starts on the built-in node, in simulated time, so that formatting a volume takes no real
    /// time.
    pub fn start() -> Result<Self, Box<dyn error::Error>> {
        Self::start_on(Sim::default_node(), Vec::new())
    }

    /// Starts on a node, with probes at each of its primitive calls.
    pub fn start_on(
        sim: Sim,
        mut probes: Vec<Arc<dyn Probe>>,
    ) -> Result<Self, Box<dyn error::Error>> {
        let trace = Arc::new(Trace::counting());
        probes.insert(0, Arc::clone(&trace) as Arc<dyn Probe>);
        let os = Arc::new(Probed::new(sim.process(), probes));
        let executor = Arc::new(Executor::new(Arc::new(Node::new(os, Config::default()))));

        let folder = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
        // The server creates this folder, with access for its owner only.
        let sockets = folder.path().join("sockets");
        let endpoints = Endpoint::open(
            &Location::Directory(sockets.clone()),
            EndpointSpec::of(&Group::ALL, false),
            bind,
        )?;
        let (stop, stopped) = oneshot::channel();
        let server = Server::new(executor, Limits::default());
        // An error means that the sender was dropped, which requests a stop.
        let serving =
            tokio::spawn(
                async move { server.serve(endpoints, async { drop(stopped.await) }).await },
            );
        let client = Client::builder().socket_folder(sockets).build();
        Ok(Self {
            sim,
            trace,
            folder,
            client,
            is_like_go: false,
            control: None,
            serving: Some((stop, serving)),
        })
    }

    /// Returns the simulated node.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// Returns how often the daemon has called the node so far.
    pub fn counts(&self) -> Counts {
        self.trace.counts()
    }

    /// Returns the folder of the sockets.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("sockets")
    }

    /// Stops the daemon and waits until it has drained.
    pub async fn stop(self) -> io::Result<Unfinished> {
        drop(self.client);
        let Some((stop, serving)) = self.serving else {
            return Ok(Unfinished::default());
        };
        drop(stop);
        let unfinished = serving.await?;
        self.folder.close()?;
        Ok(unfinished)
    }
}
