//! The daemon that the demonstration calls: the real server on Unix sockets, over a simulated node whose calls are
//! counted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{error, io};

use api::{GROUP_VERSIONS, Group};
use csi_proxy_client::Client;
use faults::{Counts, Probe, Probed, Trace};
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, Node};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use transport::address::Location;
use transport::listener::{bind, connect};

/// A running daemon.
pub struct Daemon {
    sim: Sim,
    trace: Arc<Trace>,
    folder: TempDir,
    sockets: PathBuf,
    client: Client,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Unfinished>,
    /// How long it took until every endpoint accepted connections.
    pub startup: Duration,
}

impl Daemon {
    /// Starts on the built-in node, in simulated time, so that formatting a volume takes no real time.
    pub async fn start() -> Result<Self, Box<dyn error::Error>> {
        Self::start_on(Sim::default_node(), Vec::new()).await
    }

    /// Starts on a node, with probes at each of its primitive calls.
    pub async fn start_on(sim: Sim, mut probes: Vec<Arc<dyn Probe>>) -> Result<Self, Box<dyn error::Error>> {
        let started = Instant::now();
        let trace = Arc::new(Trace::counting());
        probes.insert(0, Arc::clone(&trace) as Arc<dyn Probe>);
        let os = Arc::new(Probed::new(sim.process(), probes));
        let executor = Arc::new(Executor::new(Arc::new(Node::new(os, Config::default()))));

        let folder = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
        // The server creates this folder, with access for its owner only.
        let sockets = folder.path().join("sockets");
        let location = Location::Directory(sockets.clone());
        let endpoints = Endpoint::open(&location, EndpointSpec::of(&Group::ALL, false), bind)?;
        let (stop, stopped) = oneshot::channel();
        let server = Server::new(executor, Limits::default());
        let serving = tokio::spawn(async move {
            server
                .serve(endpoints, async {
                    // An error means that the sender was dropped, which also requests a stop.
                    let _ = stopped.await;
                })
                .await
        });
        for row in &GROUP_VERSIONS {
            connect(&location.address(row.pipe())).await?;
        }
        let startup = started.elapsed();
        let client = Client::builder().socket_folder(&sockets).build();
        Ok(Self { sim, trace, folder, sockets, client, stop, serving, startup })
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
    pub fn folder(&self) -> &Path {
        &self.sockets
    }

    /// Returns a client of the daemon.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Stops the daemon and waits until it has drained.
    pub async fn stop(self) -> io::Result<Unfinished> {
        drop(self.client);
        drop(self.stop);
        let unfinished = self.serving.await?;
        self.folder.close()?;
        Ok(unfinished)
    }
}
