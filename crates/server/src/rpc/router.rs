//! From the path of a request to what answers it.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::{HealthServer, SERVICE_NAME as HEALTH};
use tonic_health::server::{HealthReporter, HealthService};

use crate::admission::response_body::{Answer, CallGuard};
use crate::listen::endpoint::EndpointSpec;
use crate::metrics::rpc_metrics::Metrics;
use crate::rpc::call::{self, Calls, Peer};
use crate::rpc::handlers::{self, Handlers, Service};

/// All that one endpoint answers.
pub(crate) struct Routes {
    calls: Arc<Calls>,
    metrics: Arc<Metrics>,
    services: Vec<Route>,
    health: HealthServer<HealthService>,
    reporter: HealthReporter,
}

struct Route {
    name: &'static str,
    row: usize,
    service: Arc<dyn Service>,
}

impl Routes {
    pub(crate) async fn new(
        offer: EndpointSpec,
        handlers: &Arc<Handlers>,
        calls: &Arc<Calls>,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let route = |(row, group_version): (usize, &api::GroupVersion)| {
            let service = handlers::service(group_version, handlers).expect("every row of the table has a service");
            Route { name: group_version.service, row, service }
        };
        let services: Vec<_> = offer.rows().map(route).collect();
        let reporter = HealthReporter::new();
        for Route { name, .. } in &services {
            reporter.set_service_status(name, ServingStatus::Serving).await;
        }
        let health = HealthServer::new(HealthService::from_health_reporter(reporter.clone()));
        Self { calls: Arc::clone(calls), metrics: Arc::clone(metrics), services, health, reporter }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<Answer> {
        let refuse = |response: Response<Body>| response.map(|body| Answer::new(body, None, &peer.stall_detector));
        let path = request.uri().path();
        let name = path.strip_prefix('/').and_then(|path| path.split('/').next()).unwrap_or_default();
        if let Some(route) = self.services.iter().find(|route| route.name == name) {
            return match self.metrics.of(route.row, path) {
                Some(rpc) => call::answer(&self.calls, rpc, &*route.service, peer, request).await,
                None => refuse(unimplemented(format!("{name} has no such RPC"))),
            };
        }
        if name == HEALTH {
            return self.health(request, peer).await.unwrap_or_else(|status| refuse(status.into_http()));
        }
        let names: Vec<_> = self.services.iter().map(|route| route.name).collect();
        refuse(unimplemented(format!("here is only {}", names.join(", "))))
    }

    /// Answers a request of the health service. A watch lasts for as long as its client likes, and so does not keep
    /// its connection from making room for another.
    async fn health(&self, request: Request<Incoming>, peer: &Peer) -> Result<Response<Answer>, Status> {
        let held = if request.uri().path().ends_with("/Watch") {
            let counted = peer.load.watch().ok_or_else(|| Status::unavailable("too many watch the health"))?;
            CallGuard::Watch { _counted: counted }
        } else {
            let in_flight = peer.caller.call().map_err(|refused| Status::unavailable(refused.to_string()))?;
            CallGuard::Call { _in_flight: in_flight }
        };
        let (parts, body) = request.into_parts();
        let (message, _taken) = peer.load.messages.read(body).await?;
        let answered = self.health.clone().call(Request::from_parts(parts, message)).await;
        let response = answered.unwrap_or_else(|never| match never {});
        Ok(response.map(|body| Answer::new(body, Some(held), &peer.stall_detector)))
    }

    /// Tells those who watch that the end is near, and lets them go.
    pub(crate) async fn close(&self) {
        let mut reporter = self.reporter.clone();
        for name in self.services.iter().map(|route| route.name).chain([""]) {
            reporter.set_service_status(name, ServingStatus::NotServing).await;
            reporter.clear_service_status(name).await;
        }
    }
}

/// What a client hears that is newer than this server, or at the wrong pipe.
fn unimplemented(message: String) -> Response<Body> {
    tracing::info!("asked for an RPC that is not served: {message}");
    Status::unimplemented(message).into_http()
}
