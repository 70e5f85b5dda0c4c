//! The daemon with the node that it runs on, as a driver meets them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use api::GROUP_VERSIONS;
use hyper_util::rt::TokioIo;
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, Node};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;
use transport::address::Location;
use transport::memory::{self, Dial};

use crate::expect::Expected;
use crate::node::{Model, PORTAL, password, simulated};
use crate::step::{Call, Event, Id};
use crate::tree::Key;
use crate::wire::{self, Payload};

/// A name that no volume has.
const NOBODY: &str = r"\\?\Volume{00000000-1111-2222-3333-444444444444}\";

/// A daemon that serves in memory.
struct Daemon {
    dial: Vec<Dial>,
    channels: BTreeMap<usize, Channel>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Unfinished>,
}

/// A node, and a daemon on it.
pub(crate) struct Served {
    runtime: Runtime,
    pub(crate) sim: Sim,
    daemon: Option<Daemon>,
    /// The volumes that there have been, by the model's names.
    pub(crate) volumes: BTreeMap<Key, String>,
    /// The sizes that were seen.
    pub(crate) totals: BTreeMap<(Key, u32), u64>,
    drawer: Vec<os_sim::DetachedDisk>,
}

impl Served {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let sim = simulated();
        let daemon = runtime.block_on(async { Daemon::on(&sim) });
        Self {
            runtime,
            sim,
            daemon: Some(daemon),
            volumes: BTreeMap::new(),
            totals: BTreeMap::new(),
            drawer: Vec::new(),
        }
    }

    pub(crate) fn name(&self, id: &Id) -> String {
        match id {
            Id::Of(key) => self.volumes.get(key).map_or(NOBODY, String::as_str).to_owned(),
            Id::Nobody => NOBODY.to_owned(),
            Id::Text(text) => (*text).to_owned(),
        }
    }

    /// Calls the daemon.
    pub(crate) fn call(&mut self, call: &Call, version: usize) -> Result<Payload, Status> {
        let message = wire::message(call, version, |id| self.name(id));
        let request = message.rpc.request(&message.request);
        let daemon = self.daemon.as_mut().expect("it runs");
        self.runtime.block_on(async {
            let channel = daemon.channel(message.row).await;
            let answer = message.rpc.call(&channel, &request).await?;
            Ok(wire::payload(call, &answer))
        })
    }

    /// Ends the daemon and starts it again.
    fn restart(&mut self) {
        let daemon = self.daemon.take().expect("it runs");
        let sim = &self.sim;
        let next = self.runtime.block_on(async {
            assert_eq!(daemon.stop().await, Unfinished::default());
            Daemon::on(sim)
        });
        self.daemon = Some(next);
    }

    /// Lets something happen, after which the node must be `node`.
    pub(crate) fn happen(&mut self, event: &Event, node: &Model) {
        let happens = node.expected == Expected::nothing();
        let door = self.sim.external();
        match event {
            Event::Grow(number) => {
                if let Some(disk) = self.sim.disk(*number) {
                    self.sim.grow_disk(*number, disk.size + crate::node::GIB);
                }
            }
            Event::Detach(number) => self.drawer.extend(self.sim.detach_disk(*number)),
            Event::Attach { noticed } => {
                if !self.drawer.is_empty() {
                    self.sim.reattach_disk(self.drawer.remove(0), *noticed);
                }
            }
            Event::Another { noticed } => {
                let (_, description) = crate::node::another(node.next_key() - 1);
                self.sim.attach_disk(&description, *noticed).expect("a disk");
            }
            Event::Restart => self.restart(),
            Event::Network(up) => assert!(self.sim.set_smb_reachable("files", *up)),
            Event::Rotate(user) => {
                assert!(self.sim.rotate_smb_password("files", user, &password(user, node.passwords[user])));
            }
            Event::Directory(path) if happens => door.mkdir(path).expect("there is a place for it"),
            Event::File(path) if happens => door.write(path, "").expect("there is a place for it"),
            Event::Directory(_) | Event::File(_) => {}
        }
        // Volumes take a moment to come.
        self.sim.advance(std::time::Duration::from_secs(1));
    }

    pub(crate) fn stop(mut self) {
        let daemon = self.daemon.take().expect("it runs");
        assert_eq!(self.runtime.block_on(daemon.stop()), Unfinished::default(), "nothing is left unfinished");
        assert_eq!(self.sim.open_handles(), 0, "a handle was left open");
    }
}

impl Daemon {
    fn on(sim: &Sim) -> Self {
        let executor = Arc::new(Executor::new(Arc::new(Node::new(sim.process(), Config::default()))));
        let (mut dial, mut endpoints) = (Vec::new(), Vec::new());
        for row in &GROUP_VERSIONS {
            let (to, endpoint) = memory::endpoint(Location::NamedPipes.address(row.pipe()).expect("a name"));
            dial.push(to);
            endpoints.push(Endpoint::new(EndpointSpec::GroupVersion(row), endpoint));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let server = Server::new(executor, Limits::default());
            server.serve(endpoints, async { drop(stopped.await) }).await
        });
        Self { dial, channels: BTreeMap::new(), stop, serving }
    }

    async fn channel(&mut self, row: usize) -> Channel {
        if let Some(channel) = self.channels.get(&row) {
            return channel.clone();
        }
        let client = self.dial[row].connect().expect("it accepts");
        let once = Arc::new(Mutex::new(Some(client)));
        let dial = tower::service_fn(move |_| {
            let stream = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            std::future::ready(stream.map(TokioIo::new).ok_or_else(|| io::Error::other("it is connected once")))
        });
        let endpoint = tonic::transport::Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(dial).await.expect("it accepts");
        self.channels.insert(row, channel.clone());
        channel
    }

    async fn stop(self) -> Unfinished {
        drop((self.channels, self.stop));
        self.serving.await.expect("no panic")
    }
}

/// Whether a session with a target is open, by the simulated initiator.
pub(crate) fn portal_is_known(served: &Served) -> bool {
    served.sim.snapshot().as_str().lines().any(|line| line.starts_with("portal ") && line.contains(PORTAL))
}
