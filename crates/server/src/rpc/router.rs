//! The router of an endpoint: finds the RPC that the path of a request names.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic_health::pb::health_server::SERVICE_NAME as HEALTH;

use crate::admission::response_body::{Content, ResponseBody};
use crate::metrics::registry::Metrics;
use crate::rpc::boxed_service::BoxedService;
use crate::rpc::call::{self, Peer, Rpc};
use crate::rpc::endpoint_spec::EndpointSpec;
use crate::rpc::handler;
use crate::rpc::health::Health;
use crate::rpc::message;

/// The response of a service.
pub(crate) type Answer<'a> = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + 'a>>;

/// The services of one endpoint.
pub(crate) struct Router {
    /// The name of the endpoint, for the log.
    pipe: String,
    services: Vec<Service>,
    health: Health,
    /// The services that the application has added.
    others: Vec<BoxedService>,
}

/// One group-version.
struct Service {
    name: &'static str,
    rpcs: Vec<Rpc>,
}

impl Router {
    pub(crate) async fn new(spec: &EndpointSpec, others: Vec<BoxedService>, metrics: &Metrics) -> Self {
        let service = |(index, row): (usize, &api::GroupVersion)| {
            let rpcs = handler::of_row(index).iter().zip(metrics.of_row(index));
            let rpcs = rpcs.map(|(handler, metrics)| Rpc { handler: *handler, metrics: Arc::clone(metrics) });
            Service { name: row.service, rpcs: rpcs.collect() }
        };
        let services: Vec<Service> = spec.rows().map(service).collect();
        let health = Health::new(services.iter().map(|service| service.name)).await;
        Self { pipe: spec.name(), services, health, others }
    }

    /// Answers one request. The returned future is boxed, because hyper and tokio move the future that awaits it
    /// several times.
    pub(crate) fn answer<'a>(&'a self, request: Request<Incoming>, peer: &'a Peer) -> Answer<'a> {
        let path = request.uri().path();
        let name = path.strip_prefix('/').and_then(|path| path.split('/').next()).unwrap_or_default();
        let refused = |why| Box::pin(ready(self.unimplemented(peer, path, why)));
        let Some(service) = self.services.iter().find(|service| service.name == name) else {
            if name == HEALTH {
                return Box::pin(self.health.answer(request, peer));
            }
            if let Some(other) = self.others.iter().find(|other| other.name() == name) {
                let answer = other.answer(request);
                return Box::pin(async { peer.response(answer.await.map(Content::Other), None) });
            }
            let names: Vec<_> = self.services.iter().map(|service| service.name).collect();
            return refused(format!("this endpoint serves only {}", names.join(", ")));
        };
        match service.rpcs.iter().find(|rpc| rpc.metrics.rpc.path == path) {
            Some(rpc) => Box::pin(call::answer(rpc, peer, request)),
            None => refused(format!("{name} has no such RPC")),
        }
    }

    /// Reports NOT_SERVING to the clients that watch the health, and ends their watches.
    pub(crate) async fn close(&self) {
        self.health.close(self.services.iter().map(|service| service.name)).await;
    }

    /// Answers a client that is newer than this server or connected to the wrong endpoint.
    fn unimplemented(&self, peer: &Peer, path: &str, message: String) -> Response<ResponseBody> {
        tracing::info!(pipe = self.pipe, path, "refused an RPC that is not served: {message}");
        peer.response(message::failure(&Status::unimplemented(message)), None)
    }
}
