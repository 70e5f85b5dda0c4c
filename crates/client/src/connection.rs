//! The connections of a client: at most one for each group-version, opened by the first call that needs it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use api::{GROUP_VERSIONS, GroupVersion};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::body::Body;
use tower_service::Service;
use transport::address::{Address, Location};
use transport::listener::connect;

/// What a client sends first: the preface of HTTP/2, and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The connections to the endpoints in one location.
pub(crate) struct Connections {
    location: Location,
    /// The last connection to each endpoint, by its name. A call that dials holds the lock, so that others wait for it.
    last: BTreeMap<&'static str, Mutex<Option<Connection>>>,
}

impl Connections {
    pub(crate) fn new(location: Location) -> Self {
        let last = GROUP_VERSIONS.iter().map(|version| (version.pipe(), Mutex::default())).collect();
        Self { location, last }
    }

    /// Returns the connection to `version`, and dials if it is not open. The error is `NotFound` if nothing serves it.
    pub(crate) async fn get(&self, version: &GroupVersion) -> io::Result<Connection> {
        let mut last = self.last[version.pipe()].lock().await;
        if let Some(open) = last.as_ref().filter(|connection| !connection.0.is_closed()) {
            return Ok(open.clone());
        }
        let stream = connect(&self.address(version)).await?;
        let (sender, task) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(io::Error::other)?;
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
            match connect(&self.address(version)).await {
                Ok(_) => served.push(version),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(served)
    }

    /// Returns which versions are served now, and whether the daemon answers there within `limit`. Keeps no connection.
    pub(crate) async fn answering(&self, limit: Duration) -> io::Result<Vec<(&'static GroupVersion, bool)>> {
        let ask = |version: &'static GroupVersion| {
            let address = self.address(version);
            let answer = async move {
                let mut stream = connect(&address).await?;
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

    pub(crate) fn address(&self, version: &GroupVersion) -> Address {
        self.location.address(version.pipe())
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connections").field(&self.location).finish()
    }
}

/// An HTTP/2 connection. Unlike tonic's channel it never reconnects by itself, and it knows of each request that failed
/// whether the request was sent.
#[derive(Clone)]
pub(crate) struct Connection(SendRequest<Body>);

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = ConnectionLost;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectionLost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(())) // `call` returns the error
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let response = self.0.try_send_request(request);
        Box::pin(async move {
            response.await.map_err(|mut error| {
                let was_sent = error.take_message().is_none();
                ConnectionLost { was_sent, error: error.into_error() }
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
