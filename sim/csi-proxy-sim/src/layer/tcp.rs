//! One TCP endpoint for all group-versions and the control API: for containers, and for Windows
//! programs under Wine.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;

use api::GROUP_VERSIONS;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;
use tower::Service as _;
use transport::address::Location;
use transport::listener::connect;

use super::send;
use crate::control_api::{DESCRIPTORS, ENDPOINT};
use crate::reflection;

/// A connection of a client. Each of its requests has a connection of its own to an endpoint of the
/// location.
struct Connection {
    location: Location,
    /// Ends the connection, as an endpoint has ended its own.
    cut: Notify,
}

/// Passes the requests of TCP clients on to the endpoints in `location`, by the services that the
/// requests name.
pub(crate) async fn serve(listener: TcpListener, location: Location) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // An answer does not wait for the acknowledgement of an earlier one.
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve_connection(stream, location.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a TCP client");
                tokio::time::sleep(crate::control::ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, location: Location) {
    let connection = Arc::new(Connection {
        location,
        cut: Notify::new(),
    });
    let service = service_fn(|request| {
        let connection = Arc::clone(&connection);
        async move {
            Ok::<_, Infallible>(
                connection
                    .answer(request)
                    .await
                    .unwrap_or_else(Status::into_http),
            )
        }
    });
    let served = pin!(
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        _ = served => {}
        () = connection.cut.notified() => {}
    }
}

impl Connection {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        let reflected = || {
            let rows = GROUP_VERSIONS.iter().map(api::GroupVersion::descriptors);
            reflection::builder(
                rows.chain([DESCRIPTORS, tonic_health::pb::FILE_DESCRIPTOR_SET])
                    .collect(),
            )
        };
        let defect = |error: tonic_reflection::server::Error| Status::internal(error.to_string());
        let answered = match service {
            "grpc.reflection.v1.ServerReflection" => {
                reflected().build_v1().map_err(defect)?.call(request).await
            }
            "grpc.reflection.v1alpha.ServerReflection" => {
                reflected()
                    .build_v1alpha()
                    .map_err(defect)?
                    .call(request)
                    .await
            }
            _ => {
                let row = GROUP_VERSIONS.iter().find(|row| row.service == service);
                let mut endpoint = self
                    .connect(row.map_or(ENDPOINT, api::GroupVersion::pipe))
                    .await?;
                let sent = send(&mut endpoint, request.map(Body::new), &self.cut).await;
                return sent.map(|response| response.map(Body::new));
            }
        };
        Ok(answered.unwrap_or_else(|never| match never {}))
    }

    /// Connects to an endpoint.
    async fn connect(&self, name: &str) -> Result<SendRequest<Body>, Status> {
        let refused =
            |error: &dyn Error| Status::unavailable(format!("cannot connect to {name}: {error}"));
        let stream = connect(&self.location.address(name))
            .await
            .map_err(|error| refused(&error))?;
        let connected = handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = connected.map_err(|error| refused(&error))?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
