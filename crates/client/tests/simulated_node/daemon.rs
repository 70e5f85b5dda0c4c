//! Daemons on a simulated node, and the folder of their sockets.

use std::collections::HashMap;
use std::fs;
use std::future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use api::Group;
use csi_proxy_client::Client;
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server};
use storage_ops::{Config, Executor, Node};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use transport::address::{Address, Location};
use transport::listener::{Listener, bind};
use transport::memory;

/// The folder of the sockets, which outlives each daemon.
pub(crate) struct Sockets(TempDir);

impl Sockets {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.0.path().join("sockets")
    }

    pub(crate) fn client(&self) -> Client {
        Client::builder().socket_folder(self.folder()).build()
    }

    /// Takes an endpoint away, as if the daemon did not serve it.
    pub(crate) fn hide(&self, endpoint: &str) {
        fs::rename(self.socket(endpoint), self.0.path().join(endpoint)).expect("the socket exists");
    }

    /// Gives an endpoint back.
    pub(crate) fn restore(&self, endpoint: &str) {
        fs::rename(self.0.path().join(endpoint), self.socket(endpoint))
            .expect("the socket was hidden");
    }

    fn socket(&self, endpoint: &str) -> PathBuf {
        self.folder().join(format!("{endpoint}.sock"))
    }
}

/// A server with all endpoints.
pub(crate) struct Daemon {
    pub(crate) server: Arc<Server>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Daemon {
    pub(crate) fn on(sim: &Sim, sockets: &Sockets) -> Self {
        Self::listening(Node::new(sim.process(), Config::default()), sockets, bind)
    }

    /// Starts a daemon with endpoints that `open` opens.
    pub(crate) fn listening<L: Listener>(
        node: Node,
        sockets: &Sockets,
        open: impl FnMut(&Address) -> io::Result<L>,
    ) -> Self {
        Self::at(node, &Location::Directory(sockets.folder()), open)
    }

    /// Starts a daemon in memory. Returns the daemon and a client that makes each call once.
    pub(crate) fn in_memory(node: Node) -> (Self, Client) {
        let mut dialers = HashMap::new();
        let daemon = Self::at(node, &Location::NamedPipes, |address| {
            let (dialer, endpoint) = memory::endpoint(address.clone());
            dialers.insert(address.name().to_owned(), dialer);
            Ok(endpoint)
        });
        let dialers = Arc::new(dialers);
        let connect = move |pipe: &'static str| future::ready(dialers[pipe].connect());
        (
            daemon,
            Client::builder()
                .connector(connect)
                .without_retries()
                .build(),
        )
    }

    fn at<L: Listener>(
        node: Node,
        location: &Location,
        open: impl FnMut(&Address) -> io::Result<L>,
    ) -> Self {
        let endpoints = Endpoint::open(location, EndpointSpec::of(&Group::ALL, false), open)
            .expect("all endpoints");
        let server = Arc::new(Server::new(
            Arc::new(Executor::new(Arc::new(node))),
            Limits::default(),
        ));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn({
            let server = Arc::clone(&server);
            async move {
                // A test that ends early drops the sender, which also starts the shutdown.
                server.serve(endpoints, async { drop(stopped.await) }).await;
            }
        });
        Self {
            server,
            stop,
            serving,
        }
    }

    /// Stops the daemon and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("it serves");
        self.serving.await.expect("no panic");
    }

    /// Returns how many calls of an RPC have arrived.
    pub(crate) fn calls(&self, service: &str, rpc: &str) -> u64 {
        let labels = [
            format!("grpc_method=\"{rpc}\""),
            format!("grpc_service=\"{service}\""),
        ];
        let metrics = self.server.metrics().render();
        let is_it = |line: &&str| {
            line.starts_with("grpc_server_started_total{")
                && labels.iter().all(|l| line.contains(l))
        };
        // A series may be missing until its first call.
        metrics.lines().find(is_it).map_or(0, |line| {
            line.rsplit_once(' ')
                .expect("a value")
                .1
                .parse()
                .expect("a number")
        })
    }
}
