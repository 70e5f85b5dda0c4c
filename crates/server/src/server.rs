//! Serving: accepting connections, answering what they ask, and coming to an end.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use crate::admission::connections::{Connection, ConnectionId, Connections, EvictionDeadline};
use authority_filter::AuthorityFilter;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use storage_ops::Executor;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use transport::listener::Listener;

use crate::admission::limits::Limits;
use crate::admission::request_body::Messages;
use crate::admission::response_body::{Answer, StallDetector};
use crate::listen::endpoint::Endpoint;
use crate::metrics::active_count::ActiveCount;
use crate::metrics::rpc_metrics::Metrics;
use crate::metrics::server_state::ServerState;
use crate::rpc::call::{Calls, Peer};
use crate::rpc::handlers::Handlers;
use crate::rpc::router::Routes;

/// How long a listener that cannot accept, for want of handles say, is left alone.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// How long a client has to take the last answers and close, once nothing runs any more.
const GOAWAY_GRACE: Duration = Duration::from_secs(1);

/// How long a client has to answer the server's question whether it is still there.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The server of one node, for all its endpoints.
pub struct Server {
    executor: Arc<Executor>,
    limits: Limits,
    handlers: Arc<Handlers>,
    load: Arc<ServerState>,
    calls: Arc<Calls>,
    metrics: Arc<Metrics>,
}

/// What did not end in the time that it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Calls that were cut off.
    pub calls: usize,
    /// Operations that go on, for a caller or without one, until the process ends.
    pub operations: usize,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Serving,
    /// No new connections and calls.
    Draining,
    /// No connections.
    Closed,
}

impl Phase {
    /// Waits for `self` or a later phase.
    async fn reached(self, current: &mut watch::Receiver<Self>) {
        // Without a sender there is no server any more, which is the last phase.
        let _ = current.wait_for(|current| *current >= self).await;
    }
}

impl Server {
    /// A server that lets `executor` do the work.
    pub fn new(executor: Arc<Executor>, limits: Limits) -> Self {
        let handlers = Arc::new(Handlers::new(Arc::clone(&executor), &limits));
        let load = Arc::new(ServerState::new(
            Connections::new(limits.connections),
            Messages::new(&limits),
            Arc::clone(handlers.running()),
            Arc::clone(&executor),
            limits.watches,
        ));
        let metrics = Arc::new(Metrics::new(Arc::clone(&load)));
        Self { executor, limits, handlers, load, calls: Arc::default(), metrics }
    }

    /// The counters of all calls.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The open connections of all endpoints.
    pub fn connections(&self) -> &Connections {
        &self.load.connections
    }

    #[cfg(test)]
    pub(crate) fn load(&self) -> &Arc<ServerState> {
        &self.load
    }

    /// Serves `endpoints` until `shutdown`, then lets what runs come to its end. Tells what did not in time.
    pub async fn serve<L: Listener>(
        &self,
        endpoints: Vec<Endpoint<L>>,
        shutdown: impl Future<Output = ()>,
    ) -> Unfinished {
        let (phase, _) = watch::channel(Phase::Serving);
        let open = Arc::new(ActiveCount::default());
        let (mut loops, mut all_routes) = (JoinSet::new(), Vec::with_capacity(endpoints.len()));
        for Endpoint { offer, listener } in endpoints {
            let routes = Arc::new(Routes::new(offer, &self.handlers, &self.calls, &self.metrics).await);
            all_routes.push(Arc::clone(&routes));
            let acceptor = Acceptor {
                routes,
                http: self.http(),
                load: Arc::clone(&self.load),
                patience: self.limits.answer,
                phase: phase.subscribe(),
                open: Arc::clone(&open),
            };
            loops.spawn(acceptor.run(listener));
        }
        shutdown.await;

        phase.send_replace(Phase::Draining);
        // With its loop goes the listener, and with that the pipe.
        while loops.join_next().await.is_some() {}
        for routes in all_routes {
            routes.close().await;
        }
        let idle = async {
            self.calls.open.none().await;
            self.executor.idle().await;
        };
        let unfinished = match timeout(self.limits.drain, idle).await {
            Ok(()) => Unfinished::default(),
            Err(_) => Unfinished { calls: self.calls.open.now(), operations: self.executor.running() },
        };
        let _ = timeout(GOAWAY_GRACE, open.none()).await;
        phase.send_replace(Phase::Closed);
        open.none().await;
        unfinished
    }

    fn http(&self) -> http2::Builder<TokioExecutor> {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .keep_alive_interval(self.limits.keepalive)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            .max_concurrent_streams(self.limits.streams)
            .max_header_list_size(self.limits.headers)
            // What clients may send ahead is what the server must hold. Requests are small.
            .initial_stream_window_size(1 << 16)
            .initial_connection_window_size(1 << 16)
            .auto_date_header(false);
        http
    }
}

/// Takes the connections of one endpoint.
struct Acceptor {
    routes: Arc<Routes>,
    http: http2::Builder<TokioExecutor>,
    load: Arc<ServerState>,
    /// How long answers may lie.
    patience: Duration,
    phase: watch::Receiver<Phase>,
    open: Arc<ActiveCount>,
}

impl Acceptor {
    async fn run<L: Listener>(self, mut listener: L) {
        let mut phase = self.phase.clone();
        loop {
            let stream = tokio::select! {
                biased;
                () = Phase::Draining.reached(&mut phase) => return,
                accepted = listener.accept() => match accepted {
                    Ok(stream) => stream,
                    Err(error) => {
                        tracing::warn!(endpoint = %listener.address(), %error, "a connection was not accepted");
                        sleep(ACCEPT_BACKOFF).await;
                        continue;
                    }
                },
            };
            let line = ConnectionTask {
                connection: self.load.connections.admit(),
                routes: Arc::clone(&self.routes),
                http: self.http.clone(),
                load: Arc::clone(&self.load),
                patience: self.patience,
                phase: self.phase.clone(),
            };
            let counted = ActiveCount::up(&self.open);
            tokio::spawn(async move {
                line.serve(stream).await;
                drop(counted);
            });
        }
    }
}

/// One connection, and what is needed to answer what comes over it.
struct ConnectionTask {
    connection: Connection,
    routes: Arc<Routes>,
    http: http2::Builder<TokioExecutor>,
    load: Arc<ServerState>,
    patience: Duration,
    phase: watch::Receiver<Phase>,
}

impl ConnectionTask {
    /// Answers all that comes over the connection. One that says nothing is only waited for.
    async fn serve<S>(mut self, stream: S)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let id = self.connection.id();
        let mut stream = AuthorityFilter::new(stream);
        let spoken = tokio::select! {
            spoken = self.connection.preface(&mut stream) => spoken,
            () = Phase::Draining.reached(&mut self.phase) => return,
        };
        if let Err(reason) = spoken {
            tracing::debug!(connection = %id, %reason, "closed before it said anything");
            return;
        }
        let stall_detector = Arc::new(StallDetector::default());
        let peer = Peer {
            caller: self.connection.caller().clone(),
            stall_detector: Arc::clone(&stall_detector),
            load: self.load,
        };
        let (peer, routes) = (Arc::new(peer), self.routes);
        let load = Arc::clone(&peer.load);
        let service = service_fn(move |request: Request<Incoming>| {
            let (routes, peer) = (Arc::clone(&routes), Arc::clone(&peer));
            async move { Ok::<Response<Answer>, Infallible>(routes.answer(request, &peer).await) }
        });
        let mut served = std::pin::pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let mut stalled = std::pin::pin!(stall_detector.stalled(self.patience));
        let parting = tokio::select! {
            ended = served.as_mut() => return log_end(id, ended),
            () = stalled.as_mut() => return log_stalled(id, &load),
            () = Phase::Draining.reached(&mut self.phase) => None,
            hurry = self.connection.make_room() => Some(hurry),
        };
        // Tells the client to dial again; what is in flight goes on.
        served.as_mut().graceful_shutdown();
        let gone = async {
            match parting {
                None => pending().await,
                Some(hurry) => gone(&self.connection, hurry).await,
            }
        };
        tokio::select! {
            ended = served => log_end(id, ended),
            () = stalled => log_stalled(id, &load),
            () = gone => tracing::debug!(connection = %id, "closed to make room"),
            () = Phase::Closed.reached(&mut self.phase) => {}
        }
    }
}

/// Waits until a connection that makes room has had time for that, and for the calls that have come nevertheless.
async fn gone(connection: &Connection, hurry: EvictionDeadline) {
    tokio::select! {
        () = sleep(GOAWAY_GRACE) => {}
        () = hurry.over() => {}
    }
    while connection.calls() > 0 {
        connection.quiet().await;
        sleep(GOAWAY_GRACE).await;
    }
}

fn log_stalled(id: ConnectionId, load: &ServerState) {
    load.stalled();
    tracing::info!(connection = %id, "closed, as its client does not take its answers");
}

fn log_end(id: ConnectionId, ended: hyper::Result<()>) {
    if let Err(reason) = ended {
        tracing::debug!(connection = %id, %reason, "a connection broke");
    }
}
