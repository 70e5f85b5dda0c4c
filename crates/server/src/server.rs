//! The server of one node: its construction, and its life from the first connection to the end of
//! the drain.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use storage_ops::Executor;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;
use transport::listener::Listener;

use crate::admission::connections::Connections;
use crate::admission::limits::Limits;
use crate::drain::{GOAWAY_GRACE, Phase, Unfinished};
use crate::listen::acceptor::Acceptor;
use crate::listen::endpoint::Endpoint;
use crate::metrics::registry::Metrics;
use crate::rpc::long_calls;
use crate::rpc::router::Router;
use crate::server_state::ServerState;

/// How long calls without a connection may take to write their last lines to the log. In a
/// container, the process is ended one second after the drain time.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The server of one node, for all its endpoints.
pub struct Server {
    state: Arc<ServerState>,
    metrics: Arc<Metrics>,
}

impl Server {
    /// Creates a server that runs the operations of its callers on `executor`.
    pub fn new(executor: Arc<Executor>, limits: Limits) -> Self {
        let state = Arc::new(ServerState::new(executor, limits));
        let metrics = Arc::new(Metrics::new(Arc::clone(&state)));
        Self { state, metrics }
    }

    /// The metrics of the server.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The open connections of all endpoints.
    pub fn connections(&self) -> &Connections {
        &self.state.connections
    }

    /// Serves `endpoints` until `shutdown` completes, then drains, and returns what was unfinished
    /// after the drain time.
    pub async fn serve<L: Listener>(
        &self,
        endpoints: Vec<Endpoint<L>>,
        shutdown: impl Future<Output = ()>,
    ) -> Unfinished {
        let (phase, _) = watch::channel(Phase::Serving);
        let open_connections = TaskTracker::new();
        let mut acceptors = JoinSet::new();
        let draining = DrainAtDrop(&self.state.connections);
        self.state.readiness.begin(endpoints.len());
        for Endpoint {
            spec,
            listener,
            services,
        } in endpoints
        {
            let router = Arc::new(Router::new(&spec, services, &self.metrics));
            let state = Arc::clone(&self.state);
            let acceptor =
                Acceptor::new(state, router, phase.subscribe(), open_connections.clone());
            acceptors.spawn(acceptor.run(listener));
        }
        // Dropping the set ends the task.
        let mut reporting = JoinSet::new();
        let state = Arc::clone(&self.state);
        reporting.spawn(async move { long_calls::report(&state).await });
        // Also cancelled if a second signal drops the server while it serves.
        let end = self.state.end_of_drain.clone().drop_guard();
        shutdown.await;

        let calls = self.state.open_calls.len();
        let operations = self.state.executor.running();
        tracing::info!(
            calls,
            operations,
            "draining: no new connections, and running calls finish"
        );
        self.state.readiness.drain();
        // A tracker can be waited for only once it is closed. A closed one still counts.
        self.state.open_calls.close();
        open_connections.close();
        phase.send_replace(Phase::Draining);
        drop(draining);
        // An acceptor that ends drops its listener, which removes the pipe.
        while acceptors.join_next().await.is_some() {}
        self.wait_until_idle(&open_connections).await;
        let calls = self.state.open_calls.len();
        drop(end);
        phase.send_replace(Phase::Closed);
        open_connections.wait().await;
        // Calls whose connection is closed end at once. The log must have their last lines before
        // the process ends.
        let _ = timeout(LAST_LINES, self.state.open_calls.wait()).await;
        Unfinished {
            calls,
            operations: self.state.executor.running(),
        }
    }

    /// Waits until no call and no operation runs, at most for the drain time, and then until the
    /// clients have read their responses.
    async fn wait_until_idle(&self, open_connections: &TaskTracker) {
        let ServerState {
            limits,
            executor,
            open_calls,
            ..
        } = &*self.state;
        let began = Instant::now();
        let work_ended = async || {
            open_calls.wait().await;
            executor.idle().await;
        };
        while timeout(limits.drain.saturating_sub(began.elapsed()), work_ended())
            .await
            .is_ok()
        {
            let all_closed = timeout(GOAWAY_GRACE, open_connections.wait()).await.is_ok();
            // A client may have sent another call before it read the GOAWAY frame.
            if all_closed || (open_calls.is_empty() && executor.running() == 0) {
                return;
            }
        }
    }
}

/// Makes the connections drain, also if the future of [`Server::serve`] is dropped. They then close
/// at once.
struct DrainAtDrop<'a>(&'a Connections);

impl Drop for DrainAtDrop<'_> {
    fn drop(&mut self) {
        self.0.drain();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Arc;
    use std::time::Duration;

    use api::Group;
    use storage_ops::{Config, Executor, Node};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;
    use transport::address::Location;
    use transport::memory;

    use super::Server;
    use crate::admission::limits::Limits;
    use crate::listen::endpoint::Endpoint;
    use crate::rpc::endpoint_spec::EndpointSpec;

    fn server(limits: Limits) -> Server {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        Server::new(Arc::new(Executor::new(Arc::new(node))), limits)
    }

    // In a container, the process is ended one second after the drain time of the manifests.
    #[tokio::test(start_paused = true)]
    async fn a_drain_that_a_call_outlasts_takes_the_drain_time_and_no_longer() {
        let server = server(Limits {
            drain: Duration::from_secs(4),
            ..Limits::default()
        });
        let _call = server.state.open_calls.token();
        let (_dialer, listener) =
            memory::endpoint(Location::NamedPipes.address("csi-proxy-disk-v1"));
        let spec = EndpointSpec::of(&[Group::Disk], false).remove(0);
        let began = Instant::now();
        let unfinished = server
            .serve(vec![Endpoint::new(spec, listener)], ready(()))
            .await;
        assert_eq!((unfinished.calls, began.elapsed().as_secs()), (1, 4));
    }

    #[tokio::test]
    async fn a_server_that_is_dropped_while_it_serves_leaves_no_task() {
        let server = server(Limits::default());
        let state = Arc::downgrade(&server.state);
        let location = Location::NamedPipes;
        let (dialer, listener) = memory::endpoint(location.address("csi-proxy-disk-v1"));
        let spec = EndpointSpec::of(&[Group::Disk], false).remove(0);
        let mut client = dialer.connect().expect("the endpoint exists");
        client
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await
            .expect("there is room");
        tokio::select! {
            _ = server.serve(vec![Endpoint::new(spec, listener)], pending()) => {}
            settings = client.read_u8() => drop(settings.expect("the connection is served")),
        }
        drop(server);
        while state.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
