//! The accept loop of one endpoint.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;
use transport::listener::Listener;

use crate::drain::Phase;
use crate::drain::readiness::Accepting;
use crate::listen::connection_task::{ConnectionTask, http2_settings};
use crate::rpc::router::Router;
use crate::server_state::ServerState;

/// How long the loop pauses after a failed accept, for example when the process has no free handle.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Accepts the connections of one endpoint and spawns a task for each.
pub(crate) struct Acceptor {
    state: Arc<ServerState>,
    router: Arc<Router>,
    http2: h2::server::Builder,
    phase: watch::Receiver<Phase>,
    open_connections: TaskTracker,
}

impl Acceptor {
    pub(crate) fn new(
        state: Arc<ServerState>,
        router: Arc<Router>,
        phase: watch::Receiver<Phase>,
        open_connections: TaskTracker,
    ) -> Self {
        let http2 = http2_settings(&state.limits);
        Self {
            state,
            router,
            http2,
            phase,
            open_connections,
        }
    }

    /// Accepts connections until the server drains. If the listener panics, only one connection
    /// fails and the endpoint stays open: a driver that finds an endpoint missing uses an older
    /// version or does not start.
    pub(crate) async fn run<L: Listener>(self, mut listener: L) {
        let mut phase = self.phase.clone();
        let mut accepting = Accepting::new(&self.state.readiness);
        loop {
            let accepted = tokio::select! {
                biased;
                () = Phase::Draining.reached(&mut phase) => return,
                accepted = accept(&mut listener, &mut accepting) => accepted,
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(
                        endpoint = %listener.address(), %error,
                        "cannot accept a connection"
                    );
                    sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            };
            let task = ConnectionTask {
                connection: self.state.connections.admit(L::client_process(&stream)),
                state: Arc::clone(&self.state),
                router: Arc::clone(&self.router),
                http2: self.http2.clone(),
                phase: self.phase.clone(),
            };
            self.open_connections.spawn(task.serve(stream));
        }
    }
}

/// Accepts a connection, and returns an error if the listener panics.
async fn accept<L: Listener>(
    listener: &mut L,
    accepting: &mut Accepting<'_>,
) -> io::Result<L::Stream> {
    let mut accepted = pin!(listener.accept());
    std::future::poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| accepted.as_mut().poll(cx)));
        let polled = polled.unwrap_or_else(|_| {
            Poll::Ready(Err(io::Error::other("a defect in csi-proxy; see the log")))
        });
        match &polled {
            Poll::Ready(Err(_)) => accepting.fails(),
            // A pending accept works too: the listener waits for a client.
            Poll::Ready(Ok(_)) | Poll::Pending => accepting.works(),
        }
        polled
    })
    .await
}
