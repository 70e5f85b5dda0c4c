//! The limits of a server, for all clients together and for each connection.

use std::time::Duration;

use storage_ops::OPERATIONS_MEMORY;

/// The largest request in bytes. The largest sensible one has about 5 KiB. grpc-go accepts 4 MiB by
/// default.
pub(crate) const LARGEST_REQUEST: usize = 16 << 10;

/// The largest response in bytes: about 5000 iSCSI targets with names of the maximum length.
/// grpc-go accepts 4 MiB by default.
pub(crate) const LARGEST_RESPONSE: usize = 1 << 20;

/// Responses up to this size in bytes are exempt from the shared buffer limit: the lists of a node
/// with hundreds of disks or volumes must not fail because of other clients.
pub(crate) const ORDINARY_RESPONSE: usize = 32 << 10;

/// The largest memory of a connection in bytes, whatever its client has sent, without its calls.
const CONNECTION_MEMORY: usize = 400 << 10;

/// The largest memory of a call in bytes: its request in a buffer that has just grown, or a response
/// of the ordinary size, and the state of the call.
const CALL_MEMORY: usize = 40 << 10;

/// The memory in bytes that depends on no limit: the program, the log, the status pages, and the
/// threads for asynchronous work, each of which may be decoding the headers of all streams of a
/// connection.
const BASE_MEMORY: usize = 64 << 20;

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum open connections. At the limit a new connection evicts one without a call in flight.
    pub connections: usize,
    /// How long a client may take to send its HTTP/2 preface.
    pub silence: Duration,
    /// Maximum open calls of one connection. HTTP/2 clients queue further calls.
    ///
    /// h2 allocates about 1.5 KiB for each and keeps it while the connection is open.
    pub streams: u32,
    /// Maximum size of the headers of a call, in bytes.
    pub header_bytes: u32,
    /// Maximum running calls of all connections, two for each connection. Half of them are kept for
    /// the first call of each connection.
    ///
    /// As many calls may be in flight without running. At that limit a connection may have only one
    /// call in flight.
    pub calls: usize,
    /// How long a call waits for a slot before it fails with Unavailable.
    pub queue_timeout: Duration,
    /// How long a client may take to complete a header block, and then the request body, to its
    /// last byte.
    pub request_timeout: Duration,
    /// Maximum buffer size for large responses of all connections, in bytes.
    pub large_response_bytes: usize,
    /// A connection is closed if its client leaves a response unread for this long, or at most
    /// twice as long.
    pub stall_timeout: Duration,
    /// Maximum watches of the health service on one connection.
    pub health_watches: usize,
    /// The time between the keepalive PING frames on a connection.
    pub keepalive: Duration,
    /// How long running calls and operations may take to finish after the shutdown begins.
    pub drain: Duration,
}

impl Limits {
    /// Returns the limits of a server with this many connections.
    pub fn for_connections(connections: usize) -> Self {
        Self {
            connections,
            silence: Duration::from_mins(2),
            streams: 128,
            header_bytes: 16 << 10,
            calls: connections.saturating_mul(2),
            queue_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            large_response_bytes: 64 << 20,
            stall_timeout: Duration::from_secs(30),
            health_watches: 4,
            keepalive: Duration::from_mins(2),
            drain: Duration::from_secs(30),
        }
    }

    /// Returns the largest memory of the daemon in bytes.
    pub fn memory_ceiling(&self) -> usize {
        // The calls with a slot, as many without one, and the first call of each connection.
        let calls = self
            .calls
            .saturating_mul(2)
            .saturating_add(self.connections);
        [
            self.connections.saturating_mul(CONNECTION_MEMORY),
            calls.saturating_mul(CALL_MEMORY),
            self.large_response_bytes,
            OPERATIONS_MEMORY,
        ]
        .into_iter()
        .fold(BASE_MEMORY, usize::saturating_add)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::for_connections(1024)
    }
}
