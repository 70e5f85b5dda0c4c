//! The connections of a client: at most one for each group-version, opened by the first call that
//! needs it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use api::{GROUP_VERSIONS, GroupVersion};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::body::Body;
use tower_service::Service;
use transport::address::Location;
use transport::listener::connect;

/// What a client sends first: the preface of HTTP/2, and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A byte stream to a daemon.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Opens a stream to the endpoint with this name.
type Connector = dyn Fn(&'static str) -> BoxedFuture<io::Result<Box<dyn Stream>>> + Send + Sync;

/// How the endpoints are reached.
#[derive(Clone)]
pub(crate) enum Endpoints {
    /// They are in this location.
    At(Location),
    /// The caller of this crate opens the connections.
    Through(Arc<Connector>),
}

impl Endpoints {
    async fn connect(&self, version: &GroupVersion) -> io::Result<Box<dyn Stream>> {
        match self {
            Self::At(location) => Ok(Box::new(connect(&location.address(version.pipe())).await?)),
            Self::Through(connector) => connector(version.pipe()).await,
        }
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(location) => location.fmt(f),
            Self::Through(_) => f.write_str("Connector"),
        }
    }
}

/// The connections to the endpoints.
#[derive(Debug)]
pub(crate) struct Connections {
    endpoints: Endpoints,
    /// The last connection to each endpoint, by its name. A call that dials holds the lock, so that
    /// others wait for it.
    last: BTreeMap<&'static str, Mutex<Option<Connection>>>,
}

impl Connections {
    pub(crate) fn new(endpoints: Endpoints) -> Self {
        let last = GROUP_VERSIONS
            .iter()
            .map(|version| (version.pipe(), Mutex::default()))
            .collect();
        Self { endpoints, last }
    }

    /// Returns the connection to `version`, and dials if it is not open. The error is `NotFound` if
    /// nothing serves it.
    pub(crate) async fn get(&self, version: &GroupVersion) -> io::Result<Connection> {
        let mut last = self.last[version.pipe()].lock().await;
        if let Some(open) = last.as_ref().filter(|connection| !connection.0.is_closed()) {
            return Ok(open.clone());
        }
        let stream = self.endpoints.connect(version).await?;
        tracing::debug!(
            endpoint = version.pipe(),
            again = last.is_some(),
            "connected to csi-proxy"
        );
        let (sender, task) = handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        // The calls on the connection get its error. The task ends when no sender is left.
        tokio::spawn(async move { drop(task.await) });
        Ok(last.insert(Connection(sender)).clone())
    }

    /// Returns which of `versions` are served now. Keeps no connection.
    pub(crate) async fn served(
        &self,
        versions: impl Iterator<Item = &'static GroupVersion>,
    ) -> io::Result<Vec<&'static GroupVersion>> {
        let mut served = Vec::new();
        for version in versions {
            match self.endpoints.connect(version).await {
                Ok(_) => served.push(version),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(served)
    }

    /// Returns which versions are served now, and whether the daemon answers there within `limit`.
    /// Keeps no connection.
    pub(crate) async fn answering(
        &self,
        limit: Duration,
    ) -> io::Result<Vec<(&'static GroupVersion, bool)>> {
        let ask = |version: &'static GroupVersion| {
            let endpoints = self.endpoints.clone();
            let answer = async move {
                let mut stream = endpoints.connect(version).await?;
                // The daemon answers the start of HTTP/2 with its settings. No RPC is called.
                let is_sent = stream.write_all(PREFACE).await.is_ok();
                Ok::<_, io::Error>(is_sent && stream.read_u8().await.is_ok())
            };
            (version, tokio::spawn(timeout(limit, answer)))
        };
        // All at once, because none may answer.
        let asked: Vec<_> = GROUP_VERSIONS.iter().map(ask).collect();
        let mut found = Vec::new();
        for (version, answer) in asked {
            match answer.await? {
                Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {}
                answers => found.push((version, answers.unwrap_or(Ok(false))?)),
            }
        }
        Ok(found)
    }

    /// Returns the path that opens the endpoint, or only its name if the caller of this crate opens
    /// the connections.
    pub(crate) fn address(&self, version: &GroupVersion) -> String {
        match &self.endpoints {
            Endpoints::At(location) => location.address(version.pipe()).to_string(),
            Endpoints::Through(_) => version.pipe().to_owned(),
        }
    }
}

/// An HTTP/2 connection. Unlike tonic's channel it never reconnects by itself, and it knows of each
/// request that failed whether the request was sent.
#[derive(Clone, Debug)]
pub(crate) struct Connection(SendRequest<Body>);

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = ConnectionLost;
    type Future = BoxedFuture<Result<Self::Response, ConnectionLost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(())) // `call` returns the error
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = self.0.try_send_request(request);
        Box::pin(async move {
            response.await.map_err(|mut error| {
                let was_sent = error.take_message().is_none();
                ConnectionLost {
                    was_sent,
                    error: error.into_error(),
                }
            })
        })
    }
}

/// The connection broke before the response began.
#[derive(Debug)]
pub(crate) struct ConnectionLost {
    /// Whether any part of the request may have reached the daemon.
    pub(crate) was_sent: bool,
    error: hyper::Error,
}

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection broke")
    }
}

impl Error for ConnectionLost {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
