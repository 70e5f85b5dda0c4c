//! A client of one gRPC service, which counts its calls.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::io::{DuplexStream, copy, split};
use tokio::sync::watch;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;
use transport::address::Location;
use transport::listener::connect;

use crate::call_counts::{CallCounts, SentCall};

/// The gRPC services that a client uses.
///
/// The messages used here have the same fields in [`CURRENT`] and in [`PREVIOUS`], so those of the former serve for both.
pub(crate) type Services = [&'static str; 4];

pub(crate) const CURRENT: Services = ["v1.Disk", "v1.Filesystem", "v1.Smb", "v1.Volume"];

/// The services that killed clients use, so that the daemon counts their calls separately.
pub(crate) const PREVIOUS: Services = ["v1beta3.Disk", "v1beta2.Filesystem", "v1beta2.Smb", "v1beta3.Volume"];

/// Opens the connections of a client, and cuts all of them at once, as the end of the client's process does.
#[derive(Clone)]
pub(crate) struct Connections {
    location: Location,
    alive: watch::Receiver<()>,
}

impl Connections {
    /// Returns what opens connections to the daemon at `location`. They are cut when the sender is dropped.
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
            let ((mut from_daemon, mut to_daemon), (mut from_client, mut to_client)) = (split(daemon), split(client));
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

/// A connection to one gRPC service.
#[derive(Clone)]
pub(crate) struct ServiceClient {
    name: &'static str,
    grpc: Grpc<Channel>,
    counts: Arc<CallCounts>,
}

impl ServiceClient {
    pub(crate) async fn connect(connections: &Connections, name: &'static str, counts: &Arc<CallCounts>) -> Self {
        let connections = connections.clone();
        let connector = service_fn(move |_| {
            let connections = connections.clone();
            async move { connections.open(name).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await;
        let grpc = Grpc::new(channel.expect("the daemon accepts every connection"));
        Self { name, grpc, counts: Arc::clone(counts) }
    }

    /// Makes a call and returns its result.
    pub(crate) async fn call<Q, A>(&mut self, method: &str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = format!("{}/{method}", self.name);
        let sent = SentCall::new(&self.counts, &call);
        let path = PathAndQuery::try_from(format!("/{call}")).expect("a path");
        self.grpc.ready().await.expect("an open connection");
        let codec = ProstCodec::<Q, A>::default();
        let outcome = self.grpc.unary(Request::new(request), path, codec).await.map(Response::into_inner);
        sent.answered(&outcome);
        outcome
    }

    /// Makes a call that must succeed.
    pub(crate) async fn call_ok<Q, A>(&mut self, method: &str, request: Q) -> A
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let outcome = self.call(method, request).await;
        outcome.unwrap_or_else(|status| panic!("{}/{method}: {status}", self.name))
    }

    /// Makes a call and cancels it after `timeout`. Returns nothing if it was cancelled.
    pub(crate) async fn call_with_timeout<Q, A>(
        &mut self,
        timeout: Duration,
        method: &str,
        request: Q,
    ) -> Option<Result<A, Status>>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        tokio::time::timeout(timeout, self.call(method, request)).await.ok()
    }
}
