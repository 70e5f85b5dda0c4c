//! What clients may take, all together and each for itself.

use std::time::Duration;

/// The largest request in bytes; tonic's default, and grpc-go's.
pub(crate) const LARGEST_REQUEST: usize = 4 << 20;

/// What a request may have in bytes without a thought of what others send. No request that makes sense has more.
pub(crate) const ORDINARY_REQUEST: usize = 16 << 10;

/// The bounds of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections may be open, with how many calls, and for how long one may say nothing.
    pub connections: crate::admission::connections::Limits,
    /// How many calls of one connection may be open at once; the client keeps further ones back.
    pub streams: u32,
    /// How large the headers of a call may be, in bytes.
    pub headers: u32,
    /// How many calls may run at once, of all connections.
    pub calls: usize,
    /// How long a call beyond [`Self::calls`] waits before it is answered Unavailable.
    pub wait: Duration,
    /// How many calls may wait so.
    pub queue: usize,
    /// How long the message of a call may take, from its headers to its last byte.
    pub message: Duration,
    /// How many bytes of large messages may be held at once, of all connections.
    pub messages: usize,
    /// How long the answers of a connection may lie before it is closed for not taking any.
    pub answer: Duration,
    /// How many clients may watch the health of a service.
    pub watches: usize,
    /// How long a connection may be quiet before the server looks whether the client is still there.
    pub keepalive: Duration,
    /// How long the calls and operations that run may take to end once the server is to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: crate::admission::connections::Limits::default(),
            streams: 256,
            headers: 16 << 10,
            calls: 2048,
            wait: Duration::from_secs(5),
            queue: 2048,
            message: Duration::from_secs(10),
            messages: 64 << 20,
            answer: Duration::from_secs(30),
            watches: 256,
            keepalive: Duration::from_mins(2),
            drain: Duration::from_secs(30),
        }
    }
}
