//! Draining: the phases in which a server shuts down, and what was unfinished at the end.
//!
//! The drain time is `Limits::drain`, which the daemon sets from its flag `-drain`
//! (`csi-proxy/src/flags/table.rs`). `Server::serve` in `server.rs` passes through the phases;
//! `listen/acceptor.rs` and `listen/connection_task.rs` react.

pub(crate) mod readiness;

use std::time::Duration;

use tokio::sync::watch;

/// How long a client has to read the last responses and close its connection after a GOAWAY frame.
pub(crate) const GOAWAY_GRACE: Duration = Duration::from_secs(1);

/// The calls and operations that had not ended when the drain time expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Calls that were cut off.
    pub calls: usize,
    /// Operations that keep running, with or without a caller, until the process exits.
    pub operations: usize,
}

/// A phase in the life of a server. Phases only advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// New connections and calls are not accepted; running calls finish.
    Draining,
    /// The remaining connections are closed.
    Closed,
}

impl Phase {
    /// Waits until the server is in this phase or a later one.
    pub(crate) async fn reached(self, current: &mut watch::Receiver<Self>) {
        // An error means that the server no longer exists, which counts as the last phase.
        let _ = current.wait_for(|current| *current >= self).await;
    }
}
