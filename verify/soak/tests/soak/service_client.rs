//! A client of one group-version, which counts its calls.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;
use transport::address::Location;
use transport::listener::connect;

use crate::call_counts::CallCounts;

/// The version of each group that a driver uses.
///
/// The messages used here have the same fields in [`CURRENT`] and in [`PREVIOUS`], so those of the former serve for both.
#[derive(Clone, Copy)]
pub(crate) struct Versions {
    pub(crate) disk: &'static str,
    pub(crate) filesystem: &'static str,
    pub(crate) smb: &'static str,
    pub(crate) volume: &'static str,
}

pub(crate) const CURRENT: Versions = Versions { disk: "v1", filesystem: "v1", smb: "v1", volume: "v1" };

/// The versions that client processes use, so that the daemon counts their calls separately.
pub(crate) const PREVIOUS: Versions =
    Versions { disk: "v1beta3", filesystem: "v1beta2", smb: "v1beta2", volume: "v1beta3" };

impl Versions {
    /// Returns the names of the gRPC services, as in the daemon's metrics.
    pub(crate) fn services(&self) -> [String; 4] {
        let Self { disk, filesystem, smb, volume } = self;
        [("Disk", disk), ("Filesystem", filesystem), ("Smb", smb), ("Volume", volume)]
            .map(|(group, version)| format!("{version}.{group}"))
    }
}

/// A connection to one gRPC service.
#[derive(Clone)]
pub(crate) struct ServiceClient {
    name: String,
    grpc: Grpc<Channel>,
    counts: Arc<CallCounts>,
}

impl ServiceClient {
    pub(crate) async fn connect(location: &Location, group: &str, version: &str, counts: &Arc<CallCounts>) -> Self {
        let address = location.address(&pipe_of(group, version));
        let connector = service_fn(move |_| {
            let address = address.clone();
            async move { connect(&address).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await;
        let grpc = Grpc::new(channel.expect("the daemon accepts every connection"));
        Self { name: format!("{version}.{group}"), grpc, counts: Arc::clone(counts) }
    }

    /// Makes a call and returns its result.
    pub(crate) async fn call<Q, A>(&mut self, method: &str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = format!("{}/{method}", self.name);
        self.counts.add_sent(&call);
        let outcome = self.send(&call, request).await;
        self.counts.add_answered(&call, &outcome);
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
        let call = format!("{}/{method}", self.name);
        self.counts.add_sent(&call);
        let Ok(outcome) = tokio::time::timeout(timeout, self.send(&call, request)).await else {
            self.counts.add_abandoned(&call);
            return None;
        };
        self.counts.add_answered(&call, &outcome);
        Some(outcome)
    }

    async fn send<Q, A>(&mut self, call: &str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let path = PathAndQuery::try_from(format!("/{call}")).expect("a path");
        self.grpc.ready().await.expect("an open connection");
        let codec = ProstCodec::<Q, A>::default();
        self.grpc.unary(Request::new(request), path, codec).await.map(Response::into_inner)
    }
}

/// Returns the name of a group-version's pipe.
pub(crate) fn pipe_of(group: &str, version: &str) -> String {
    format!("csi-proxy-{}-{version}", group.to_lowercase())
}
