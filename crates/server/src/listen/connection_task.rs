//! The task of one connection, from its HTTP/2 preface to its end.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use h2::{Ping, PingPong};
use header_filter::HeaderFilter;
use storage_ops::ConnectionId;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::admission::connections::{Connection, EvictionGrace};
use crate::admission::limits::Limits;
use crate::admission::response_body::{ResponseStream, TrackedBytes};
use crate::drain::{GOAWAY_GRACE, Phase};
use crate::rpc::call::Peer;
use crate::rpc::router::Router;
use crate::server_state::ServerState;

/// How long a client has to answer a keepalive PING frame.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection on which more calls than this were open at once is closed when it is idle.
///
/// h2 keeps about 2 KiB for each of these calls until the connection ends.
const KEPT_CALLS: usize = 16;

/// The size of the table of headers that a client sends repeatedly. The header filter keeps that
/// table.
///
/// Each call adds an entry with its deadline, which no later call uses. A large table would
/// therefore save nothing.
const HEADER_TABLE_BYTES: u32 = 1024;

/// Returns the HTTP/2 settings of every connection.
pub(crate) fn http2_settings(limits: &Limits) -> h2::server::Builder {
    let mut http2 = h2::server::Builder::new();
    http2
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.header_bytes)
        .header_table_size(HEADER_TABLE_BYTES)
        // The server buffers unread data up to the size of these windows. Requests are small.
        .initial_window_size(1 << 16)
        .initial_connection_window_size(1 << 16);
    http2
}

/// One connection, with the router and the state that its calls need.
pub(crate) struct ConnectionTask {
    pub(crate) connection: Connection,
    pub(crate) state: Arc<ServerState>,
    pub(crate) router: Arc<Router>,
    pub(crate) http2: h2::server::Builder,
    pub(crate) phase: watch::Receiver<Phase>,
}

impl ConnectionTask {
    /// Answers the calls of the connection until it ends. HTTP/2 starts only after the client has
    /// sent its preface.
    pub(crate) async fn serve<S>(mut self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let id = self.connection.id();
        let mut stream = HeaderFilter::new(stream, self.state.limits.request_timeout);
        if let Err(reason) = self.connection.preface(&mut stream).await {
            tracing::debug!(
                connection = id.0, %reason,
                "closed a connection without an HTTP/2 preface"
            );
            return;
        }
        // The preface has arrived, so the server only has to send its settings.
        let handshake = tokio::select! {
            handshake = timeout(KEEPALIVE_TIMEOUT, self.http2.handshake(stream)) => handshake,
            () = Phase::Closed.reached(&mut self.phase) => return,
        };
        let mut http2 = match handshake {
            Ok(Ok(http2)) => http2,
            Ok(Err(error)) => return log_end(id, Err(error)),
            Err(_) => return,
        };

        let pings = http2.ping_pong().expect("asked once");
        let peer = Arc::new(Peer {
            connection: Arc::clone(self.connection.handle()),
            stall_detector: Arc::default(),
            has_grown: AtomicBool::new(false),
            health_watches: TaskTracker::new(),
            state: self.state,
            phase: self.phase.clone(),
        });
        let mut unresponsive = pin!(async {
            tokio::select! {
                () = unresponsive(id, &peer, pings) => {}
                () = peer.connection.unfinished.cancelled() => close_unread(id, &peer),
            }
        });
        let eviction = tokio::select! {
            biased;
            ended = answer_calls(&mut http2, &self.router, &peer) => return log_end(id, ended),
            eviction = self.connection.evicted() => eviction,
            () = unresponsive.as_mut() => return,
        };

        // Sends GOAWAY, so that the client dials again for its next call. Calls in flight finish.
        http2.graceful_shutdown();
        let grace_over = async {
            match eviction {
                None => pending().await,
                Some(grace) => grace_over(&self.connection, grace).await,
            }
        };
        tokio::select! {
            biased;
            ended = answer_calls(&mut http2, &self.router, &peer) => log_end(id, ended),
            () = grace_over => tracing::debug!(connection = id.0, "closed an evicted connection"),
            () = Phase::Closed.reached(&mut self.phase) => {}
            () = unresponsive => {}
        }
    }
}

/// Answers the calls of a connection until it ends.
async fn answer_calls<S>(
    http2: &mut h2::server::Connection<S, TrackedBytes>,
    router: &Router,
    peer: &Arc<Peer>,
) -> Result<(), h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // Each open call holds the detector until its response has been sent. h2 reads all requests
    // that have arrived before it returns the first of them, so calls may end before others of the
    // same moment are accepted.
    let open = || Arc::strong_count(&peer.stall_detector) - 1;
    let mut at_once = open();
    while let Some(accepted) = poll_fn(|cx| {
        let accepted = http2.poll_accept(cx);
        at_once = if accepted.is_pending() {
            open()
        } else {
            at_once + 1
        };
        accepted
    })
    .await
    {
        let (request, response) = accepted?;
        if at_once > KEPT_CALLS {
            peer.has_grown.store(true, Ordering::Relaxed);
        }
        router.answer(
            peer,
            request,
            ResponseStream::tracked(response, &peer.stall_detector),
        );
    }
    Ok(())
}

/// Waits until the client has left a response unread for too long, or leaves a PING frame
/// unanswered.
async fn unresponsive(id: ConnectionId, peer: &Peer, mut pings: PingPong) {
    let Limits {
        stall_timeout,
        keepalive,
        ..
    } = peer.state.limits;
    let mut pinged = Instant::now();
    loop {
        sleep(stall_timeout).await;
        if peer.stall_detector.begin_period() {
            return close_unread(id, peer);
        }
        if peer.has_grown.load(Ordering::Relaxed) {
            peer.connection.close_if_idle();
        }
        if pinged.elapsed() >= keepalive {
            pinged = Instant::now();
            if !matches!(
                timeout(KEEPALIVE_TIMEOUT, pings.ping(Ping::opaque())).await,
                Ok(Ok(_))
            ) {
                tracing::debug!(
                    connection = id.0,
                    "closed a connection whose client does not answer pings"
                );
                return;
            }
        }
    }
}

fn close_unread(id: ConnectionId, peer: &Peer) {
    peer.state.count_stalled_connection();
    tracing::info!(
        connection = id.0,
        "closed a connection whose client does not read its responses"
    );
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

fn log_end(id: ConnectionId, ended: Result<(), h2::Error>) {
    if let Err(reason) = ended {
        tracing::debug!(connection = id.0, %reason, "a connection ended with an error");
    }
}
