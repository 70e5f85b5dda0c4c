//! The health service of an endpoint (`grpc.health.v1.Health`).

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tonic::Status;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower_service::Service as _;

use crate::admission::response_body::{CallGuard, Content, ResponseBody};
use crate::rpc::call::Peer;
use crate::rpc::message;

/// The health of the services of one endpoint.
pub(crate) struct Health {
    server: HealthServer<HealthService>,
    reporter: HealthReporter,
}

impl Health {
    /// Reports `services` as SERVING.
    pub(crate) async fn new(services: impl Iterator<Item = &'static str>) -> Self {
        let reporter = HealthReporter::new();
        for name in services {
            reporter.set_service_status(name, ServingStatus::Serving).await;
        }
        let server = HealthServer::new(HealthService::from_health_reporter(reporter.clone()));
        Self { server, reporter }
    }

    /// Answers a request of the health service.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: &Peer) -> Response<ResponseBody> {
        match self.try_answer(request, peer).await {
            Ok(response) => response,
            Err(status) => peer.response(message::failure(&status), None),
        }
    }

    async fn try_answer(&self, request: Request<Incoming>, peer: &Peer) -> Result<Response<ResponseBody>, Status> {
        let guard = if request.uri().path().ends_with("/Watch") {
            // A watch lasts until its client cancels it, so it must not protect its connection from eviction.
            let watch = peer.state.begin_health_watch();
            let watch =
                watch.ok_or_else(|| Status::unavailable("too many watches of the health service; use Check"))?;
            CallGuard::Watch { _counted: watch }
        } else {
            CallGuard::Unary { _in_flight: peer.connection.begin_call()?, _memory: None }
        };
        let (parts, body) = request.into_parts();
        let (body, _reservation) = peer.state.request_bodies.read(body).await?;
        let answered = self.server.clone().call(Request::from_parts(parts, Full::new(body))).await;
        let response = answered.unwrap_or_else(|never| match never {});
        Ok(peer.response(response.map(Content::Other), Some(guard)))
    }

    /// Reports `services` as NOT_SERVING, and ends the watches.
    pub(crate) async fn close(&self, services: impl Iterator<Item = &'static str>) {
        let mut reporter = self.reporter.clone();
        for name in services.chain([""]) {
            reporter.set_service_status(name, ServingStatus::NotServing).await;
            reporter.clear_service_status(name).await;
        }
    }
}
