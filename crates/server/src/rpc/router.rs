//! The router of an endpoint: finds the RPC that the path of a request names.

use std::sync::Arc;

use h2::RecvStream;
use http::Request;
use tonic::Status;

use crate::admission::response_body::ResponseStream;
use crate::metrics::registry::Metrics;
use crate::rpc::boxed_service::BoxedService;
use crate::rpc::call::{self, Peer, Rpc};
use crate::rpc::endpoint_spec::EndpointSpec;
use crate::rpc::handler;
use crate::rpc::health;
use crate::rpc::message;

/// The services of one endpoint.
#[derive(Debug)]
pub(crate) struct Router {
    /// The name of the endpoint, for the log.
    pipe: String,
    services: Vec<Service>,
    /// The services that the application has added.
    others: Vec<BoxedService>,
}

/// One group-version.
#[derive(Debug)]
struct Service {
    name: &'static str,
    rpcs: Vec<Rpc>,
}

impl Router {
    pub(crate) fn new(spec: &EndpointSpec, others: Vec<BoxedService>, metrics: &Metrics) -> Self {
        let service = |(index, row): (usize, &api::GroupVersion)| {
            let rpcs = handler::of_row(index).iter().zip(metrics.of_row(index));
            let rpcs = rpcs.map(|(handler, metrics)| Rpc {
                handler: *handler,
                metrics: Arc::clone(metrics),
            });
            Service {
                name: row.service,
                rpcs: rpcs.collect(),
            }
        };
        Self {
            pipe: spec.name(),
            services: spec.rows().map(service).collect(),
            others,
        }
    }

    /// Answers one request, in a task of its own.
    pub(crate) fn answer(
        &self,
        peer: &Arc<Peer>,
        request: Request<RecvStream>,
        mut response: ResponseStream,
    ) {
        if let Err((http, status)) = message::check_head(&request) {
            return response.refuse(http, message::failure(&status));
        }
        let path = request.uri().path();
        let full_name = path.strip_prefix('/').unwrap_or_default();
        let (name, rpc) = full_name.split_once('/').unwrap_or((full_name, ""));
        let names = || -> Vec<_> { self.services.iter().map(|service| service.name).collect() };
        let message =
            if let Some(service) = self.services.iter().find(|service| service.name == name) {
                if let Some(rpc) = service
                    .rpcs
                    .iter()
                    .find(|known| known.metrics.rpc.name == rpc)
                {
                    tokio::spawn(call::answer(rpc, peer, request, response));
                    return;
                }
                format!("{name} has no such RPC")
            } else if name == health::NAME {
                tokio::spawn(health::answer(Arc::clone(peer), names(), request, response));
                return;
            } else if let Some(other) = self.others.iter().find(|other| other.name() == name) {
                tokio::spawn(other.answer(request, response));
                return;
            } else {
                format!("this endpoint serves only {}", names().join(", "))
            };
        // The client is newer than this server, or connected to the wrong endpoint.
        tracing::info!(
            pipe = self.pipe,
            path,
            "refused an RPC that is not served: {message}"
        );
        response.send_headers(message::failure(&Status::unimplemented(message)), true);
    }
}
