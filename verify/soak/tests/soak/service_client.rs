//! A client of one gRPC service, which counts its calls.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use api::GROUP_VERSIONS;
use dynamic_client::Rpc;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use serde_json::Value;
use tokio::io::{DuplexStream, copy, split};
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use transport::address::Location;
use transport::listener::connect;

use crate::call_counts::{CallCounts, SentCall};

/// The gRPC services that a client uses.
///
/// The messages used here have the same fields in [`CURRENT`] and in [`PREVIOUS`], so those of the
/// former serve for both.
pub(crate) type Services = [&'static str; 4];

pub(crate) const CURRENT: Services = ["v1.Disk", "v1.Filesystem", "v1.Smb", "v1.Volume"];

/// The services that killed clients use, so that the daemon counts their calls separately.
pub(crate) const PREVIOUS: Services = [
    "v1beta3.Disk",
    "v1beta2.Filesystem",
    "v1beta2.Smb",
    "v1beta3.Volume",
];

/// Opens the connections of a client, and cuts all of them at once, as the end of the client's
/// process does.
#[derive(Clone)]
pub(crate) struct Connections {
    location: Location,
    alive: watch::Receiver<()>,
}

impl Connections {
    /// Returns what opens connections to the daemon at `location`. They are cut when the sender is
    /// dropped.
    pub(crate) fn to(location: Location) -> (watch::Sender<()>, Self) {
        let (connected, alive) = watch::channel(());
        (connected, Self { location, alive })
    }

    /// Opens a connection to a service.
    pub(crate) async fn open(&self, service: &str) -> io::Result<DuplexStream> {
        let (version, group) = service.split_once('.').expect("a version and a group");
        let pipe = format!("csi-proxy-{}-{version}", group.to_lowercase());
        let daemon = connect(&self.location.address(&pipe)).await?;
        let (stream, client) = tokio::io::duplex(1 << 16);
        let mut alive = self.alive.clone();
        tokio::spawn(async move {
            let ((mut from_daemon, mut to_daemon), (mut from_client, mut to_client)) =
                (split(daemon), split(client));
            tokio::select! {
                biased;
                _ = alive.changed() => {}
                _ = copy(&mut from_client, &mut to_daemon) => {}
                _ = copy(&mut from_daemon, &mut to_client) => {}
            }
        });
        Ok(stream)
    }
}

/// The RPCs by service and name.
static RPCS: LazyLock<BTreeMap<&str, BTreeMap<&str, Rpc>>> = LazyLock::new(|| {
    GROUP_VERSIONS
        .iter()
        .map(|row| (row.service, dynamic_client::rpcs(row)))
        .collect()
});

/// Encodes a request to a service.
pub(crate) fn encoded(service: &str, method: &str, request: &Value) -> Vec<u8> {
    RPCS[service][method].request(request).encode_to_vec()
}

/// A connection to one gRPC service.
#[derive(Clone)]
pub(crate) struct ServiceClient {
    service: &'static str,
    channel: Channel,
    counts: Arc<CallCounts>,
}

impl ServiceClient {
    pub(crate) async fn connect(
        connections: &Connections,
        service: &'static str,
        counts: &Arc<CallCounts>,
    ) -> Self {
        let connections = connections.clone();
        let connector = service_fn(move |_| {
            let connections = connections.clone();
            async move { connections.open(service).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://csi-proxy")
            .connect_with_connector(connector)
            .await;
        Self {
            service,
            channel: channel.expect("the daemon accepts every connection"),
            counts: Arc::clone(counts),
        }
    }

    /// Makes a call and returns its result.
    pub(crate) async fn call(&self, method: &str, request: Value) -> Result<Value, Status> {
        let sent = SentCall::new(&self.counts, &format!("{}/{method}", self.service));
        let rpc = &RPCS[self.service][method];
        let outcome = rpc.call(&self.channel, &rpc.request(&request)).await;
        sent.answered(&outcome);
        outcome
    }

    /// Makes a call that must succeed.
    pub(crate) async fn call_ok(&self, method: &str, request: Value) -> Value {
        let outcome = self.call(method, request).await;
        outcome.unwrap_or_else(|status| panic!("{}/{method}: {status}", self.service))
    }

    /// Makes a call and cancels it after `timeout`. Returns nothing if it was cancelled.
    pub(crate) async fn call_with_timeout(
        &self,
        timeout: Duration,
        method: &str,
        request: Value,
    ) -> Option<Result<Value, Status>> {
        tokio::time::timeout(timeout, self.call(method, request))
            .await
            .ok()
    }
}
