//! The state that all connections and calls of a server share: its limits, and the use of each
//! limit.

pub(crate) mod failures;
pub(crate) mod last_seen;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use storage_ops::Executor;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::connections::Connections;
use crate::admission::limits::Limits;
use crate::admission::message_memory::MessageMemory;
use crate::drain::readiness::Readiness;
use crate::server_state::failures::LastFailures;
use crate::server_state::last_seen::Memory;

/// The shared state of one server.
pub(crate) struct ServerState {
    pub(crate) limits: Limits,
    pub(crate) executor: Arc<Executor>,
    pub(crate) connections: Connections,
    pub(crate) message_memory: Arc<MessageMemory>,
    /// The calls in progress: their headers have arrived, and their status is not decided yet.
    pub(crate) open_calls: TaskTracker,
    pub(crate) readiness: Readiness,
    /// Cancelled when the drain time is over. The server then cuts off running calls.
    pub(crate) end_of_drain: CancellationToken,
    /// The number of the last call.
    pub(crate) last_call: AtomicU64,
    pub(crate) failures: LastFailures,
    pub(crate) last_seen: Memory,
    started: Instant,
    /// The watches of the health service on all connections.
    pub(crate) health_watches: TaskTracker,
    refused_health_watches: AtomicU64,
    stalled_connections: AtomicU64,
}

impl ServerState {
    pub(crate) fn new(executor: Arc<Executor>, limits: Limits) -> Self {
        Self {
            limits,
            executor,
            connections: Connections::new(limits),
            message_memory: Arc::new(MessageMemory::new(&limits)),
            open_calls: TaskTracker::new(),
            readiness: Readiness::default(),
            end_of_drain: CancellationToken::new(),
            last_call: AtomicU64::new(0),
            failures: LastFailures::default(),
            last_seen: Memory::default(),
            started: Instant::now(),
            health_watches: TaskTracker::new(),
            refused_health_watches: AtomicU64::new(0),
            stalled_connections: AtomicU64::new(0),
        }
    }

    /// Returns the time from the creation of the server to `moment`. A call records this time when
    /// it begins.
    pub(crate) fn since_start(&self, moment: Instant) -> Duration {
        moment - self.started
    }

    pub(crate) fn count_refused_health_watch(&self) {
        self.refused_health_watches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused_health_watches(&self) -> u64 {
        self.refused_health_watches.load(Ordering::Relaxed)
    }

    /// Counts a connection that was closed because its client did not read its responses.
    pub(crate) fn count_stalled_connection(&self) {
        self.stalled_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stalled_connections(&self) -> u64 {
        self.stalled_connections.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState")
            .field("connections", &self.connections.counts())
            .finish_non_exhaustive()
    }
}
