//! The daemon that the demonstration calls: the real server on real sockets, over a simulated node that is watched.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{error, io};

use api::{GROUP_VERSIONS, GroupVersion};
use faults::{Counts, Probed, Trace};
use hyper_util::rt::TokioIo;
use os_sim::Sim;
use server::{Endpoint, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, Node};
use tempfile::TempDir;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tower::service_fn;
use transport::address::Location;

use transport::listener::bind;

/// A daemon that serves.
pub struct Daemon {
    sim: Sim,
    trace: Arc<Trace>,
    folder: TempDir,
    sockets: PathBuf,
    place: Location,
    channels: Mutex<HashMap<&'static str, Channel>>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Unfinished>,
    /// How long it took until all endpoints accepted connections.
    pub start: Duration,
}

impl Daemon {
    /// Starts on the built-in node, in simulated time: nobody waits for a format.
    pub async fn start() -> Result<Self, Box<dyn error::Error>> {
        let begun = Instant::now();
        let sim = Sim::default_node();
        let trace = Arc::new(Trace::counting());
        let os = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
        let executor = Arc::new(Executor::new(Arc::new(Node::new(os, Config::default()))));

        let folder = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
        // The server makes its folder itself, so that it is open to nobody else.
        let sockets = folder.path().join("sockets");
        let place = Location::Directory(sockets.clone());
        let endpoints = Endpoint::open_all(&place, false, bind)?;
        let (stop, stopped) = oneshot::channel();
        let server = Server::new(executor, Limits::default());
        let serving = tokio::spawn(async move {
            server
                .serve(endpoints, async {
                    // Whoever drops the sender wants it to stop, too.
                    let _ = stopped.await;
                })
                .await
        });
        for row in &GROUP_VERSIONS {
            transport::listener::connect(&place.address(row.pipe())?).await?;
        }
        let start = begun.elapsed();
        Ok(Self { sim, trace, folder, sockets, place, channels: Mutex::default(), stop, serving, start })
    }

    /// The node it runs on.
    pub fn sim(&self) -> &Sim {
        &self.sim
    }

    /// What it has called of the node so far.
    pub fn counts(&self) -> Counts {
        self.trace.counts()
    }

    /// Where its sockets are.
    pub fn folder(&self) -> &Path {
        &self.sockets
    }

    /// A connection to one group-version, made when it is first needed.
    pub async fn channel(&self, api: &GroupVersion) -> Result<Channel, Box<dyn error::Error>> {
        let mut channels = self.channels.lock().await;
        if let Some(channel) = channels.get(api.pipe()) {
            return Ok(channel.clone());
        }
        let address = self.place.address(api.pipe())?;
        let connector = service_fn(move |_| {
            let address = address.clone();
            async move { transport::listener::connect(&address).await.map(TokioIo::new) }
        });
        let endpoint = tonic::transport::Endpoint::from_static("http://csi-proxy");
        let channel = endpoint.connect_with_connector(connector).await?;
        channels.insert(api.pipe(), channel.clone());
        Ok(channel)
    }

    /// Stops it and waits for its end.
    pub async fn stop(self) -> io::Result<Unfinished> {
        drop(self.channels);
        drop(self.stop);
        let unfinished = self.serving.await?;
        self.folder.close()?;
        Ok(unfinished)
    }
}
