//! A daemon for a test: a server with all endpoints in a temporary directory, on a simulated node.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use api::Group;
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, Node};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use transport::address::{Address, Location};
use transport::listener::{ClientStream, Listener, bind, connect};

/// Far longer than any step takes; a test that waits this long hangs.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Daemon {
    folder: TempDir,
    pub(crate) executor: Arc<Executor>,
    pub(crate) server: Arc<Server>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Unfinished>,
}

/// The settings of a daemon.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) groupless: bool,
    /// The groups that are not served.
    pub(crate) left_out: Vec<Group>,
}

impl Daemon {
    pub(crate) fn on(sim: &Sim) -> Self {
        Setup::default().on(sim)
    }

    pub(crate) fn limited(limits: Limits, sim: &Sim) -> Self {
        Setup {
            limits,
            ..Setup::default()
        }
        .on(sim)
    }

    pub(crate) fn address(&self, pipe: &str) -> Address {
        Location::Directory(self.folder.path().join("sockets")).address(pipe)
    }

    /// Opens a connection.
    pub(crate) async fn stream(&self, pipe: &str) -> ClientStream {
        connect(&self.address(pipe))
            .await
            .expect("the endpoint accepts")
    }

    /// Starts the shutdown, and returns the task of the server.
    pub(crate) fn stop(self) -> (JoinHandle<Unfinished>, TempDir) {
        self.stop.send(()).expect("it serves");
        (self.serving, self.folder)
    }
}

impl Setup {
    pub(crate) fn on(self, sim: &Sim) -> Daemon {
        self.at(Node::new(sim.process(), Config::default()))
    }

    pub(crate) fn at(self, node: Node) -> Daemon {
        self.listening(node, bind)
    }

    /// Starts a daemon with endpoints that `open` opens.
    pub(crate) fn listening<L: Listener>(
        self,
        node: Node,
        open: impl FnMut(&Address) -> io::Result<L>,
    ) -> Daemon {
        let folder = tempfile::tempdir().expect("a folder");
        let location = Location::Directory(folder.path().join("sockets"));
        let groups: Vec<_> = Group::ALL
            .into_iter()
            .filter(|group| !self.left_out.contains(group))
            .collect();
        let specs = EndpointSpec::of(&groups, self.groupless);
        let endpoints = Endpoint::open(&location, specs, open).expect("all endpoints");
        let executor = Arc::new(Executor::new(Arc::new(node)));
        let server = Arc::new(Server::new(Arc::clone(&executor), self.limits));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn({
            let server = Arc::clone(&server);
            async move {
                server
                    .serve(endpoints, async {
                        // A test that ends early drops the sender, which also starts the shutdown.
                        let _ = stopped.await;
                    })
                    .await
            }
        });
        Daemon {
            folder,
            executor,
            server,
            stop,
            serving,
        }
    }
}

/// Waits until `holds` returns true.
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    let wait = pin!(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    tokio::time::timeout(HANG_TIMEOUT, wait)
        .await
        .expect("the condition never became true");
}
