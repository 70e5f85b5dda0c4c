//! How much is taken of what there is, and what has been refused for want of it.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::admission::connections::Connections;
use storage_ops::Executor;

use crate::admission::call_slots::CallSlots;
use crate::admission::request_body::Messages;
use crate::metrics::active_count::{ActiveCount, ActiveGuard};
use crate::metrics::rpc_metrics::head;

/// All that is bounded for the whole of a server.
pub(crate) struct ServerState {
    pub(crate) connections: Connections,
    pub(crate) messages: Arc<Messages>,
    pub(crate) running: Arc<CallSlots>,
    pub(crate) executor: Arc<Executor>,
    watches: Arc<ActiveCount>,
    most_watches: usize,
    refused_watches: AtomicU64,
    stalled: AtomicU64,
}

impl ServerState {
    pub(crate) fn new(
        connections: Connections,
        messages: Arc<Messages>,
        running: Arc<CallSlots>,
        executor: Arc<Executor>,
        most_watches: usize,
    ) -> Self {
        let (watches, refused_watches, stalled) = Default::default();
        Self { connections, messages, running, executor, watches, most_watches, refused_watches, stalled }
    }

    /// Lets one more client watch, if there is room.
    pub(crate) fn watch(&self) -> Option<ActiveGuard> {
        let counted = ActiveCount::up(&self.watches);
        if self.watches.now() > self.most_watches {
            self.refused_watches.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(counted)
    }

    /// Counts a connection closed because its client does not take its answers.
    pub(crate) fn stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, text: &mut String) -> fmt::Result {
        let counts = self.connections.counts();
        let gauge = |text: &mut String, name, label, help, values: &[(&str, usize)]| {
            head(text, name, "gauge", help)?;
            values.iter().try_for_each(|(value, number)| writeln!(text, "{name}{{{label}=\"{value}\"}} {number}"))
        };
        let counter = |text: &mut String, name, help, values: &[(&str, u64)]| {
            head(text, name, "counter", help)?;
            values.iter().try_for_each(|(value, number)| writeln!(text, "{name}{{reason=\"{value}\"}} {number}"))
        };
        let help = "Open connections: silent ones have sent no preface, unused ones no call yet, idle ones have no \
                    call in flight, leaving ones have been told to make room.";
        let states = [
            ("busy", counts.busy),
            ("idle", counts.idle),
            ("leaving", counts.leaving),
            ("silent", counts.silent),
            ("unused", counts.unused),
        ];
        gauge(text, "csi_proxy_connections", "state", help, &states)?;
        head(text, "csi_proxy_connections_accepted_total", "counter", "Connections ever accepted.")?;
        writeln!(text, "csi_proxy_connections_accepted_total {}", counts.admitted)?;
        let help = "Connections closed by csi-proxy: idle_made_room and silent_made_room where -max-connections were \
                    open, silent after -max-silence, answer_not_taken where the client does not read its answers.";
        let reasons = [
            ("answer_not_taken", self.stalled.load(Ordering::Relaxed)),
            ("idle_made_room", counts.made_room_idle),
            ("silent", counts.closed_silent),
            ("silent_made_room", counts.made_room_silent),
        ];
        counter(text, "csi_proxy_connections_closed_total", help, &reasons)?;
        let help = "Calls: in_flight from the headers until the answer is taken, running ones among them, and those \
                    that wait because -max-calls are running.";
        let states =
            [("in_flight", counts.calls), ("running", self.running.taken()), ("waiting", self.running.waiting())];
        gauge(text, "csi_proxy_calls", "state", help, &states)?;
        let help = "Calls refused for want of room: connections_busy, in_flight and running where there are too many \
                    of these, message_late and messages_large for what the client sends, watches of the health.";
        let reasons = [
            ("connections_busy", counts.refused_busy),
            ("in_flight", counts.refused_calls),
            ("message_late", self.messages.late()),
            ("messages_large", self.messages.refused()),
            ("running", self.running.refused()),
            ("watches", self.refused_watches.load(Ordering::Relaxed)),
        ];
        counter(text, "csi_proxy_calls_refused_total", help, &reasons)?;
        let help = "Bytes held of messages larger than 16 KiB.";
        head(text, "csi_proxy_large_messages_bytes", "gauge", help)?;
        writeln!(text, "csi_proxy_large_messages_bytes {}", self.messages.held())?;
        let help = "Operations that wait for a lock or a thread or run, with those whose callers have gone.";
        head(text, "csi_proxy_operations", "gauge", help)?;
        writeln!(text, "csi_proxy_operations {}", self.executor.running())?;
        head(text, "csi_proxy_health_watches", "gauge", "Clients that watch the health of a service.")?;
        writeln!(text, "csi_proxy_health_watches {}", self.watches.now())
    }
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerState").field("connections", &self.connections.counts()).finish_non_exhaustive()
    }
}
