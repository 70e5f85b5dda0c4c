//! The system under test: the daemon, served in memory, on a simulated node.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use api::GROUP_VERSIONS;
use hyper_util::rt::TokioIo;
use os_sim::Sim;
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, HostPath, Node};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;
use transport::address::Location;
use transport::memory::{self, Dialer};

use crate::directory_tree::DiskKey;
use crate::expected::Expected;
use crate::messages::{self, Payload};
use crate::reference_model::{INNER, Model, password, simulated};
use crate::transition::{Call, Event, VolumeName};

/// A valid name that no volume has.
const UNKNOWN_VOLUME: &str = r"\\?\Volume{00000000-1111-2222-3333-444444444444}\";

/// A daemon that serves in-memory connections.
struct Daemon {
    dialers: Vec<Dialer>,
    channels: BTreeMap<usize, Channel>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Unfinished>,
}

/// A simulated node and a daemon on it.
pub(crate) struct SystemUnderTest {
    runtime: Runtime,
    pub(crate) sim: Sim,
    daemon: Option<Daemon>,
    /// The names of all volumes so far.
    pub(crate) volumes: BTreeMap<DiskKey, String>,
    /// The sizes of volumes, as first reported in each size generation.
    pub(crate) totals: BTreeMap<(DiskKey, u32), u64>,
    detached: Vec<u64>,
}

impl SystemUnderTest {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let sim = simulated();
        let daemon = runtime.block_on(async { Daemon::on(&sim) });
        Self {
            runtime,
            sim,
            daemon: Some(daemon),
            volumes: BTreeMap::new(),
            totals: BTreeMap::new(),
            detached: Vec::new(),
        }
    }

    pub(crate) fn name(&self, id: &VolumeName) -> String {
        match id {
            VolumeName::Known(key) => self
                .volumes
                .get(key)
                .map_or(UNKNOWN_VOLUME, String::as_str)
                .to_owned(),
            VolumeName::Unknown => UNKNOWN_VOLUME.to_owned(),
            VolumeName::Malformed(text) => (*text).to_owned(),
        }
    }

    /// Calls the daemon.
    pub(crate) fn call(&mut self, call: &Call, version: usize) -> Result<Payload, Status> {
        let message = messages::message(call, version, |id| self.name(id));
        let request = message.rpc.request(&message.request);
        let daemon = self.daemon.as_mut().expect("the daemon runs");
        self.runtime.block_on(async {
            let channel = daemon.channel(message.row).await;
            let answer = message.rpc.call(&channel, &request).await?;
            Ok(messages::payload(call, &answer))
        })
    }

    /// Stops the daemon and starts another one on the same node.
    fn restart(&mut self) {
        let daemon = self.daemon.take().expect("the daemon runs");
        let sim = &self.sim;
        let next = self.runtime.block_on(async {
            assert_eq!(daemon.stop().await, Unfinished::default());
            Daemon::on(sim)
        });
        self.daemon = Some(next);
    }

    /// Applies an event, after which the node must match `model`.
    pub(crate) fn apply_event(&mut self, event: &Event, model: &Model) {
        let takes_effect = model.expected == Expected::nothing();
        let external = self.sim.external();
        match event {
            Event::Grow(number) => {
                if let Some(disk) = self.sim.disk(*number) {
                    self.sim
                        .grow_disk(*number, disk.size + crate::reference_model::GIB);
                }
            }
            Event::Detach(number) => self.detached.extend(self.sim.unplug_disk(*number)),
            Event::Attach { enumerated } => {
                if !self.detached.is_empty() {
                    self.sim.plug_disk(self.detached.remove(0), *enumerated);
                }
            }
            Event::AttachNew { enumerated } => {
                let (_, description) = crate::reference_model::another(model.next_key() - 1);
                self.sim
                    .attach_disk(&description, *enumerated)
                    .expect("a disk");
            }
            Event::RestartDaemon => self.restart(),
            Event::SmbReachable(up) => assert!(self.sim.set_smb_reachable("files", *up)),
            Event::ChangePassword(user) => {
                assert!(self.sim.rotate_smb_password(
                    "files",
                    user,
                    &password(user, model.passwords[user])
                ));
            }
            Event::MakeDirectory(path) if takes_effect => {
                external.mkdir(path).expect("the parent directory exists");
            }
            Event::WriteFile(path) if takes_effect => external
                .write(path, "")
                .expect("the parent directory exists"),
            Event::MakeDirectory(_) | Event::WriteFile(_) => {}
        }
        // New volumes arrive after a delay.
        self.sim.advance(std::time::Duration::from_secs(1));
    }

    pub(crate) fn stop(mut self) {
        let daemon = self.daemon.take().expect("the daemon runs");
        assert_eq!(
            self.runtime.block_on(daemon.stop()),
            Unfinished::default(),
            "no call or operation is unfinished"
        );
        assert_eq!(self.sim.open_handles(), 0, "a handle was left open");
    }
}

impl Daemon {
    fn on(sim: &Sim) -> Self {
        let inner = HostPath::parse(&format!(r"C:\{}", INNER.join(r"\"))).expect("a valid path");
        let config = Config::default().with(|c| c.working_dirs = vec![inner]);
        let executor = Arc::new(Executor::new(Arc::new(Node::new(sim.process(), config))));
        let (mut dialers, mut endpoints) = (Vec::new(), Vec::new());
        for row in &GROUP_VERSIONS {
            let (dialer, endpoint) = memory::endpoint(Location::NamedPipes.address(row.pipe()));
            dialers.push(dialer);
            endpoints.push(Endpoint::new(EndpointSpec::GroupVersion(row), endpoint));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let server = Server::new(executor, Limits::default());
            server.serve(endpoints, async { drop(stopped.await) }).await
        });
        Self {
            dialers,
            channels: BTreeMap::new(),
            stop,
            serving,
        }
    }

    async fn channel(&mut self, row: usize) -> Channel {
        if let Some(channel) = self.channels.get(&row) {
            return channel.clone();
        }
        let client = self.dialers[row].connect().expect("the endpoint accepts");
        let once = Arc::new(Mutex::new(Some(client)));
        let dial = tower::service_fn(move |_| {
            let stream = once.lock().unwrap_or_else(PoisonError::into_inner).take();
            std::future::ready(
                stream
                    .map(TokioIo::new)
                    .ok_or_else(|| io::Error::other("the channel connects only once")),
            )
        });
        let endpoint = tonic::transport::Endpoint::from_static("http://localhost");
        let channel = endpoint
            .connect_with_connector(dial)
            .await
            .expect("the endpoint accepts");
        self.channels.insert(row, channel.clone());
        channel
    }

    async fn stop(self) -> Unfinished {
        drop((self.channels, self.stop));
        self.serving.await.expect("no panic")
    }
}
