//! The task of one connection, from its HTTP/2 preface to its end.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use authority_filter::AuthorityFilter;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use storage_ops::ClientId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::admission::connections::{Connection, EvictionGrace};
use crate::admission::limits::Limits;
use crate::admission::response_body::{ResponseBody, StallDetector};
use crate::drain::{GOAWAY_GRACE, Phase};
use crate::rpc::call::Peer;
use crate::rpc::router::Router;
use crate::server_state::ServerState;

/// How long a client has to answer a keepalive PING frame.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The size of the table in which a connection keeps headers that its client sends repeatedly.
///
/// Each call adds an entry with its deadline, which no later call uses. A large table would therefore save nothing.
const HEADER_TABLE_BYTES: u32 = 1024;

/// Returns the HTTP/2 settings of every connection.
pub(crate) fn http2_settings(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut http2 = http2::Builder::new(TokioExecutor::new());
    http2
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.keepalive)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_bytes)
        .header_table_size(HEADER_TABLE_BYTES)
        // The server buffers unread data up to the size of these windows. Requests are small.
        .initial_stream_window_size(1 << 16)
        .initial_connection_window_size(1 << 16)
        .auto_date_header(false);
    http2
}

/// One connection, with the router and the state that its calls need.
pub(crate) struct ConnectionTask {
    pub(crate) connection: Connection,
    pub(crate) state: Arc<ServerState>,
    pub(crate) router: Arc<Router>,
    pub(crate) http2: http2::Builder<TokioExecutor>,
    pub(crate) phase: watch::Receiver<Phase>,
}

impl ConnectionTask {
    /// Answers the calls of the connection until it ends. HTTP/2 starts only after the client has sent its preface.
    pub(crate) async fn serve<S>(mut self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let id = self.connection.id();
        let mut stream = AuthorityFilter::new(stream, self.state.limits.request_timeout);
        let preface = tokio::select! {
            preface = self.connection.preface(&mut stream) => preface,
            () = Phase::Draining.reached(&mut self.phase) => return,
        };
        if let Err(reason) = preface {
            tracing::debug!(connection = id.0, %reason, "closed a connection without an HTTP/2 preface");
            return;
        }

        let stall_detector = Arc::new(StallDetector::default());
        let peer = Arc::new(Peer {
            connection: Arc::clone(self.connection.handle()),
            stall_detector: Arc::clone(&stall_detector),
            state: Arc::clone(&self.state),
        });
        let router = self.router;
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, peer) = (Arc::clone(&router), Arc::clone(&peer));
            async move { Ok::<Response<ResponseBody>, Infallible>(router.answer(request, &peer).await) }
        });
        let mut served = pin!(self.http2.serve_connection(TokioIo::new(stream), service));
        let mut stalled = pin!(stall_detector.stalled(self.state.limits.stall_timeout));
        let eviction = tokio::select! {
            ended = served.as_mut() => return log_end(id, ended),
            () = stalled.as_mut() => return log_stall(id, &self.state),
            () = Phase::Draining.reached(&mut self.phase) => None,
            grace = self.connection.evicted() => Some(grace),
        };

        // Sends GOAWAY, so that the client dials again for its next call. Calls in flight finish.
        served.as_mut().graceful_shutdown();
        let grace_over = async {
            match eviction {
                None => pending().await,
                Some(grace) => grace_over(&self.connection, grace).await,
            }
        };
        tokio::select! {
            ended = served => log_end(id, ended),
            () = stalled => log_stall(id, &self.state),
            () = grace_over => tracing::debug!(connection = id.0, "closed an evicted connection"),
            () = Phase::Closed.reached(&mut self.phase) => {}
        }
    }
}

/// Waits until the grace period of an evicted connection is over and no call is in flight on it.
async fn grace_over(connection: &Connection, grace: EvictionGrace) {
    tokio::select! {
        () = sleep(GOAWAY_GRACE) => {}
        () = grace.revoked() => {}
    }
    while connection.calls() > 0 {
        connection.no_calls().await;
        sleep(GOAWAY_GRACE).await;
    }
}

fn log_end(id: ClientId, ended: hyper::Result<()>) {
    if let Err(reason) = ended {
        tracing::debug!(connection = id.0, %reason, "a connection ended with an error");
    }
}

fn log_stall(id: ClientId, state: &ServerState) {
    state.count_stalled_connection();
    tracing::info!(connection = id.0, "closed a connection whose client does not read its responses");
}
