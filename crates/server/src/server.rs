//! Serving: accepting connections, answering what they ask, and coming to an end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use node::Desk;
use pipe::connections::{Admitted, Connections};
use pipe::listener::Listener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::body::Body;

use crate::call::Calls;
use crate::count::Count;
use crate::endpoint::Endpoint;
use crate::handlers::Handlers;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::routes::Routes;

/// How long a listener that cannot accept, for want of handles say, is left alone.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a client has to take the last answers and close, once nothing runs any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a client has to answer the server's question whether it is still there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(20);

/// The server of one node, for all its endpoints.
pub struct Server {
    desk: Arc<Desk>,
    limits: Limits,
    handlers: Arc<Handlers>,
    connections: Connections,
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
    /// A server that lets `desk` do the work.
    pub fn new(desk: Arc<Desk>, limits: Limits) -> Self {
        Self {
            handlers: Arc::new(Handlers::new(Arc::clone(&desk), &limits)),
            connections: Connections::new(limits.connections),
            calls: Arc::default(),
            metrics: Arc::new(Metrics::new()),
            desk,
            limits,
        }
    }

    /// The counters of all calls.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The open connections of all endpoints.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Serves `endpoints` until `shutdown`, then lets what runs come to its end. Tells what did not in time.
    pub async fn serve<L: Listener>(
        &self,
        endpoints: Vec<Endpoint<L>>,
        shutdown: impl Future<Output = ()>,
    ) -> Unfinished {
        let (phase, _) = watch::channel(Phase::Serving);
        let open = Arc::new(Count::default());
        let (mut loops, mut all_routes) = (JoinSet::new(), Vec::with_capacity(endpoints.len()));
        for Endpoint { offer, listener } in endpoints {
            let routes = Arc::new(Routes::new(offer, &self.handlers, &self.calls, &self.metrics).await);
            all_routes.push(Arc::clone(&routes));
            let acceptor = Acceptor {
                routes,
                http: self.http(),
                connections: self.connections.clone(),
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
            self.desk.idle().await;
        };
        let unfinished = match timeout(self.limits.drain, idle).await {
            Ok(()) => Unfinished::default(),
            Err(_) => Unfinished { calls: self.calls.open.now(), operations: self.desk.running() },
        };
        let _ = timeout(FAREWELL, open.none()).await;
        phase.send_replace(Phase::Closed);
        open.none().await;
        unfinished
    }

    fn http(&self) -> http2::Builder<TokioExecutor> {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new())
            .keep_alive_interval(self.limits.keepalive)
            .keep_alive_timeout(SIGN_OF_LIFE)
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
    connections: Connections,
    phase: watch::Receiver<Phase>,
    open: Arc<Count>,
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
                        sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let stream = Admitted::new(stream, self.connections.admit());
            let counted = Count::up(&self.open);
            let connection = serve_connection(stream, Arc::clone(&self.routes), self.http.clone(), self.phase.clone());
            tokio::spawn(async move {
                connection.await;
                drop(counted);
            });
        }
    }
}

/// Answers all that comes over one connection. One that says nothing is only waited for.
async fn serve_connection<S>(
    mut stream: Admitted<S>,
    routes: Arc<Routes>,
    http: http2::Builder<TokioExecutor>,
    mut phase: watch::Receiver<Phase>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let id = stream.connection().id();
    let spoken = tokio::select! {
        spoken = stream.preface() => spoken,
        () = Phase::Draining.reached(&mut phase) => return,
    };
    if let Err(reason) = spoken {
        tracing::debug!(connection = %id, %reason, "closed before it said anything");
        return;
    }
    let service = service_fn(move |request: Request<Incoming>| {
        let routes = Arc::clone(&routes);
        async move { Ok::<Response<Body>, Infallible>(routes.answer(request).await) }
    });
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = Phase::Draining.reached(&mut phase) => None,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
        ended = tokio::select! {
            ended = connection => Some(ended),
            () = Phase::Closed.reached(&mut phase) => None,
        };
    }
    if let Some(Err(reason)) = ended {
        tracing::debug!(connection = %id, %reason, "a connection broke");
    }
}
