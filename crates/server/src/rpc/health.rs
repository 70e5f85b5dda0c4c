//! The health service of an endpoint (`grpc.health.v1.Health`).

use std::sync::Arc;

use h2::RecvStream;
use http::Request;
use tokio::time::Instant;
use tonic::Status;

use crate::admission::response_body::{CallGuard, ResponseStream};
use crate::drain::Phase;
use crate::rpc::call::Peer;
use crate::rpc::message;

/// The full name of the service.
pub(crate) const NAME: &str = "grpc.health.v1.Health";

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

const SERVING: HealthCheckResponse = HealthCheckResponse { status: 1 };
const NOT_SERVING: HealthCheckResponse = HealthCheckResponse { status: 2 };

/// Answers a request of the service on an endpoint that also serves `others`.
pub(crate) async fn answer(
    peer: Arc<Peer>,
    others: Vec<&'static str>,
    request: Request<RecvStream>,
    mut response: ResponseStream,
) {
    if let Err(status) = try_answer(&peer, &others, request, &mut response).await {
        response.send_headers(message::failure(&status), true);
    }
}

async fn try_answer(
    peer: &Peer,
    others: &[&str],
    request: Request<RecvStream>,
    response: &mut ResponseStream,
) -> Result<(), Status> {
    let mut phase = peer.phase.clone();
    match request
        .uri()
        .path()
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(NAME))
    {
        Some("/Check") => {
            let in_flight = peer.connection.begin_call()?;
            read(peer, others, request).await?;
            let health = if *phase.borrow() == Phase::Serving {
                SERVING
            } else {
                NOT_SERVING
            };
            let guard = CallGuard {
                _in_flight: in_flight,
                _memory: None,
            };
            message::send(message::encode(&health)?, guard, response);
        }
        Some("/Watch") => {
            // A watch lasts until its client cancels it, so it must not protect its connection from
            // eviction. It is a call only until its request is complete.
            let _watch = peer.begin_health_watch()?;
            let in_flight = peer.connection.begin_call()?;
            read(peer, others, request).await?;
            drop(in_flight);
            let (serving, not_serving) =
                (message::encode(&SERVING)?, message::encode(&NOT_SERVING)?);
            response.send_headers(message::headers(), false);
            response.send(serving);
            tokio::select! {
                () = Phase::Draining.reached(&mut phase) => {}
                () = response.reset() => return Ok(()),
            }
            response.send(not_serving);
            response.send_trailers(message::ok());
        }
        _ => return Err(Status::unimplemented(format!("{NAME} has no such RPC"))),
    }
    Ok(())
}

/// Reads a request, and checks that the endpoint has the service that it names.
async fn read(peer: &Peer, others: &[&str], request: Request<RecvStream>) -> Result<(), Status> {
    message::check_encoding(request.headers())?;
    let body = peer
        .state
        .message_memory
        .read(&mut request.into_body(), Instant::now())
        .await?;
    let HealthCheckRequest { service } = message::decode(body, None)?;
    if service.is_empty() || others.contains(&&*service) {
        return Ok(());
    }
    Err(Status::not_found("service not registered"))
}
