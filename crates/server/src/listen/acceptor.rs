//! The accept loop of one endpoint.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::TokioExecutor;
use tokio::sync::watch;
use tokio::time::sleep;
use transport::listener::Listener;

use crate::drain::Phase;
use crate::drain::active_count::ActiveCount;
use crate::listen::connection_task::{ConnectionTask, http2_settings};
use crate::rpc::router::Router;
use crate::server_state::ServerState;

/// How long the loop pauses after an accept that failed, for example for lack of handles.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Accepts the connections of one endpoint and spawns a task for each.
pub(crate) struct Acceptor {
    state: Arc<ServerState>,
    router: Arc<Router>,
    http2: http2::Builder<TokioExecutor>,
    phase: watch::Receiver<Phase>,
    open_connections: Arc<ActiveCount>,
}

impl Acceptor {
    pub(crate) fn new(
        state: Arc<ServerState>,
        router: Arc<Router>,
        phase: watch::Receiver<Phase>,
        open_connections: Arc<ActiveCount>,
    ) -> Self {
        let http2 = http2_settings(&state.limits);
        Self { state, router, http2, phase, open_connections }
    }

    /// Accepts connections until the server drains.
    pub(crate) async fn run<L: Listener>(self, mut listener: L) {
        let mut phase = self.phase.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = Phase::Draining.reached(&mut phase) => return,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(endpoint = %listener.address(), %error, "cannot accept a connection");
                    sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            };
            let task = ConnectionTask {
                connection: self.state.connections.admit(),
                state: Arc::clone(&self.state),
                router: Arc::clone(&self.router),
                http2: self.http2.clone(),
                phase: self.phase.clone(),
            };
            let open = self.open_connections.add();
            tokio::spawn(async move {
                task.serve(stream).await;
                drop(open);
            });
        }
    }
}
