//! One group-version as a client sees it: a connection, and calls that are entered in the ledger.

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

use crate::ledger::Ledger;

/// The version of each group that a driver speaks.
///
/// What is called here has the same fields in both of these generations, so the messages of one serve for the other.
#[derive(Clone, Copy)]
pub(crate) struct Versions {
    pub(crate) disk: &'static str,
    pub(crate) filesystem: &'static str,
    pub(crate) smb: &'static str,
    pub(crate) volume: &'static str,
}

pub(crate) const PRESENT: Versions = Versions { disk: "v1", filesystem: "v1", smb: "v1", volume: "v1" };

/// What those clients speak that are killed, so that the daemon counts their calls apart.
pub(crate) const FORMER: Versions =
    Versions { disk: "v1beta3", filesystem: "v1beta2", smb: "v1beta2", volume: "v1beta3" };

impl Versions {
    /// The services' names, as the daemon's counts have them.
    pub(crate) fn services(&self) -> [String; 4] {
        let Self { disk, filesystem, smb, volume } = self;
        [("Disk", disk), ("Filesystem", filesystem), ("Smb", smb), ("Volume", volume)]
            .map(|(group, version)| format!("{version}.{group}"))
    }
}

/// A connection of its own to one service.
#[derive(Clone)]
pub(crate) struct Service {
    name: String,
    grpc: Grpc<Channel>,
    ledger: Arc<Ledger>,
}

impl Service {
    pub(crate) async fn connect(place: &Location, group: &str, version: &str, ledger: &Arc<Ledger>) -> Self {
        let address = place.address(&pipe_of(group, version)).expect("a name");
        let connector = service_fn(move |_| {
            let address = address.clone();
            async move { connect(&address).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await;
        let grpc = Grpc::new(channel.expect("never refused"));
        Self { name: format!("{version}.{group}"), grpc, ledger: Arc::clone(ledger) }
    }

    /// One call, which has one answer.
    pub(crate) async fn call<Q, A>(&mut self, method: &str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = format!("{}/{method}", self.name);
        self.ledger.sent(&call);
        let outcome = self.send(&call, request).await;
        self.ledger.answered(&call, &outcome);
        outcome
    }

    /// A call that cannot fail.
    pub(crate) async fn must<Q, A>(&mut self, method: &str, request: Q) -> A
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let outcome = self.call(method, request).await;
        outcome.unwrap_or_else(|status| panic!("{}/{method}: {status}", self.name))
    }

    /// A call that is given up after `patience`; nothing if that was before its answer.
    pub(crate) async fn call_for<Q, A>(
        &mut self,
        patience: Duration,
        method: &str,
        request: Q,
    ) -> Option<Result<A, Status>>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = format!("{}/{method}", self.name);
        self.ledger.sent(&call);
        let Ok(outcome) = tokio::time::timeout(patience, self.send(&call, request)).await else {
            self.ledger.abandoned(&call);
            return None;
        };
        self.ledger.answered(&call, &outcome);
        Some(outcome)
    }

    async fn send<Q, A>(&mut self, call: &str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let path = PathAndQuery::try_from(format!("/{call}")).expect("a path");
        self.grpc.ready().await.expect("connected");
        let codec = ProstCodec::<Q, A>::default();
        self.grpc.unary(Request::new(request), path, codec).await.map(Response::into_inner)
    }
}

/// The name of the pipe of a group-version.
pub(crate) fn pipe_of(group: &str, version: &str) -> String {
    format!("csi-proxy-{}-{version}", group.to_lowercase())
}
