//! The client and its settings. Each API group is a view of the client, in a file of its own.

pub(crate) mod disk;
pub(crate) mod filesystem;
pub(crate) mod iscsi;
mod rpc;
pub(crate) mod smb;
pub(crate) mod system;
pub(crate) mod volume;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::{EncodedCodec, Group, GroupVersion, Request};
use disk::Disk;
use filesystem::Filesystem;
use iscsi::Iscsi;
use rpc::{DELAYS, Effect, Rpc};
use smb::Smb;
use system::System;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic_prost::ProstCodec;
use transport::address::Location;
use volume::Volume;

use crate::connection::{BoxedFuture, Connections, Endpoints, Stream};
use crate::error::{Error, ErrorKind};

/// How long a call may take by default: as long as kubelet gives a CSI call.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(2 * 60);

/// The greatest deadline; a longer one counts as this.
const MAX_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long [`Client::served_versions`] waits for the first answer.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// A client of the csi-proxy of this node.
///
/// The client connects at the first call of a group. Clones share its connections. It needs a tokio
/// runtime with I/O and time that also runs between the calls, so that the client notices when a
/// connection is closed.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) connections: Arc<Connections>,
    pub(crate) deadline: Duration,
    /// How long a call waits before each repetition.
    pub(crate) delays: &'static [Duration],
}

impl Client {
    /// Creates a client with default settings. Connects to nothing yet, and cannot fail.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a client with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a client with another deadline for each call, such as the time that kubelet still
    /// waits. It shares the connections of this one.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline: deadline.min(MAX_DEADLINE),
            ..self.clone()
        }
    }

    /// Disks: their identifiers, locations, sizes, state and partition.
    pub fn disk(&self) -> Disk {
        Disk(self.clone())
    }

    /// Directories and links.
    pub fn filesystem(&self) -> Filesystem {
        Filesystem(self.clone())
    }

    /// The iSCSI initiator: target portals, and sessions with targets.
    pub fn iscsi(&self) -> Iscsi {
        Iscsi(self.clone())
    }

    /// SMB global mappings.
    pub fn smb(&self) -> Smb {
        Smb(self.clone())
    }

    /// The serial number of the node, and its Windows services.
    pub fn system(&self) -> System {
        System(self.clone())
    }

    /// Volumes: finding, formatting, mounting and growing them.
    pub fn volume(&self) -> Volume {
        Volume(self.clone())
    }

    /// Returns which group-versions the node serves to this process now, by connecting to each. The
    /// list is empty if no csi-proxy runs there, or if the container has none of its pipes. A
    /// daemon that hangs serves a version that does not [answer](ServedVersion::answers).
    pub async fn served_versions(&self) -> Result<Vec<ServedVersion>, Error> {
        let found = self
            .connections
            .answering(self.deadline.min(ANSWER_TIME))
            .await
            .map_err(|error| {
                let kind = rpc::connect_error_kind(&error);
                Error::new(kind, "the search for served versions", error.to_string())
                    .with_source(error)
            })?;
        let version = |(row, answers): (&api::GroupVersion, bool)| ServedVersion {
            group: row.group.name(),
            version: row.version,
            answers,
        };
        Ok(found.into_iter().map(version).collect())
    }

    /// Calls an RPC by its name, with a request and a response that are encoded protobuf messages:
    /// for a tool that knows the messages from their descriptors, and for the RPCs of csi-proxy
    /// before 1.0, which the methods of the groups do not use.
    ///
    /// The call may change the node, so it is [repeated](crate#retries) only if the request was not
    /// sent.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) if csi-proxy has no such RPC in one of the
    /// versions.
    pub async fn call_encoded(
        &self,
        rpc: EncodedRpc<'_>,
        request: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let EncodedRpc {
            group,
            versions,
            name: rpc,
        } = rpc;
        let unknown = || {
            let message = format!(
                "csi-proxy has no RPC {rpc} in {group} {}",
                versions.join(", ")
            );
            Error::new(ErrorKind::InvalidArgument, "the call", message)
        };
        let group = Group::ALL
            .into_iter()
            .find(|own| own.name() == group)
            .ok_or_else(unknown)?;
        let known = |version: &&str| {
            let version = GroupVersion::find(group, version)?;
            Some((version.version, version.rpc(rpc)?.name))
        };
        let known: Vec<_> = versions
            .iter()
            .map(known)
            .collect::<Option<_>>()
            .ok_or_else(unknown)?;
        let (_, name) = *known.first().ok_or_else(unknown)?;
        let versions: Vec<_> = known.into_iter().map(|(version, _)| version).collect();
        let rpc = Rpc {
            group,
            name,
            effect: Effect::Unknown,
            versions: &versions,
        };
        rpc::call(self, rpc, &request, || EncodedCodec).await
    }

    /// Calls the RPC of `request`, which changes nothing.
    pub(crate) async fn read<Q: Request>(&self, request: Q) -> Result<Q::Response, Error> {
        self.call(Effect::Read, request).await
    }

    /// Calls the RPC of `request`, which may change the node.
    pub(crate) async fn change<Q: Request>(&self, request: Q) -> Result<Q::Response, Error> {
        self.call(Effect::Change, request).await
    }

    async fn call<Q: Request>(&self, effect: Effect, request: Q) -> Result<Q::Response, Error> {
        let rpc = Rpc {
            group: Q::GROUP,
            name: Q::RPC,
            effect,
            versions: Q::VERSIONS,
        };
        rpc::call(self, rpc, &request, ProstCodec::<Q, Q::Response>::default).await
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// An RPC of [`Client::call_encoded`].
#[derive(Clone, Copy, Debug)]
pub struct EncodedRpc<'a> {
    /// The group, such as `disk`.
    pub group: &'a str,
    /// The versions, such as `v1`. The first that the node serves is called; the messages must be
    /// the same in all.
    pub versions: &'a [&'a str],
    /// The name, such as `GetDiskStats`.
    pub name: &'a str,
}

/// A group-version that the node serves. `Display` is its name, such as `disk/v1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServedVersion {
    /// The group, such as `disk`.
    pub group: &'static str,
    /// The version, such as `v1`.
    pub version: &'static str,
    /// Whether the daemon answers a connection within a few seconds.
    pub answers: bool,
}

impl fmt::Display for ServedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.version)
    }
}

/// The settings of a [`Client`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    endpoints: Endpoints,
    deadline: Duration,
    delays: &'static [Duration],
}

impl Builder {
    /// Connects to Unix sockets in this folder, which `csi-proxy-sim -socket-folder` serves. Not on
    /// Windows.
    pub fn socket_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            endpoints: Endpoints::At(Location::Directory(folder.into())),
            ..self
        }
    }

    /// Lets `connect` open each connection, such as one to a server in the process of a test. It
    /// gets the name of the pipe without the folder, such as `csi-proxy-disk-v1`. An error of the
    /// kind [`NotFound`](io::ErrorKind::NotFound) means that nothing serves that pipe.
    pub fn connector<S, F>(
        self,
        connect: impl Fn(&'static str) -> F + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        F: Future<Output = io::Result<S>> + Send + 'static,
    {
        let connect = move |pipe| -> BoxedFuture<io::Result<Box<dyn Stream>>> {
            let stream = connect(pipe);
            Box::pin(async move { Ok(Box::new(stream.await?) as _) })
        };
        Self {
            endpoints: Endpoints::Through(Arc::new(connect)),
            ..self
        }
    }

    /// Makes each call only once: for a caller that repeats calls itself, and for tests. A call
    /// still connects if no connection is open.
    pub fn without_retries(self) -> Self {
        Self {
            delays: &[],
            ..self
        }
    }

    /// Sets how long each call may take, with all its repetitions. The default is
    /// [`DEFAULT_DEADLINE`], the maximum a day. The node learns of the deadline too, and does not
    /// begin a change after it.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self {
            deadline: deadline.min(MAX_DEADLINE),
            ..self
        }
    }

    /// Creates the client. Connects to nothing yet.
    pub fn build(self) -> Client {
        let Self {
            endpoints,
            deadline,
            delays,
        } = self;
        Client {
            connections: Arc::new(Connections::new(endpoints)),
            deadline,
            delays,
        }
    }
}

/// The named pipes of the node; on other systems than Windows, where csi-proxy-sim has its sockets
/// by default.
impl Default for Builder {
    fn default() -> Self {
        let is_set = |folder: &OsString| !folder.is_empty() && env::consts::OS != "windows";
        let runtime_folder = env::var_os("XDG_RUNTIME_DIR").filter(is_set);
        let location = runtime_folder.map_or(Location::NamedPipes, |folder| {
            Location::Directory(PathBuf::from(folder).join("csi-proxy"))
        });
        Self {
            endpoints: Endpoints::At(location),
            deadline: DEFAULT_DEADLINE,
            delays: DELAYS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_be_shared_and_its_calls_can_be_spawned() {
        fn check<T: Send + Sync + Clone>(_: &T) {}
        fn check_future<T: Send>(_: T) {}
        let client = Client::builder().socket_folder("/nowhere").build();
        check(&client);
        check(&client.disk());
        check_future(client.disk().rescan());
        check_future(client.served_versions());
        let rescan = EncodedRpc {
            group: "disk",
            versions: &["v1"],
            name: "Rescan",
        };
        check_future(client.call_encoded(rescan, Vec::new()));
    }

    #[test]
    fn a_deadline_above_a_day_counts_as_a_day() {
        let client = Client::builder().deadline(Duration::MAX).build();
        assert_eq!(client.deadline, MAX_DEADLINE);
        assert_eq!(client.with_deadline(Duration::MAX).deadline, MAX_DEADLINE);
    }

    #[tokio::test]
    async fn named_pipes_on_another_system_are_an_error_that_is_not_repeated() {
        if env::consts::OS == "windows" {
            return;
        }
        let client = Builder {
            endpoints: Endpoints::At(Location::NamedPipes),
            ..Client::builder()
        }
        .build();
        let error = client.disk().rescan().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FailedPrecondition);
        assert!(
            error.to_string().contains("exists only on Windows"),
            "{error}"
        );
    }
}
