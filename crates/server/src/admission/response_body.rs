//! The answer to a call, until the client has taken it.
//!
//! A client decides how much of an answer it lets through, by the windows of HTTP/2 and by reading at all. So a call
//! has not ended with its answer: it counts until the octets of that have gone to the connection, and a connection on
//! which answers lie and none goes is closed after a while.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::admission::connections::InFlight;
use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::sleep;
use tonic::Status;

use crate::metrics::active_count::ActiveGuard;

/// How many answers one connection has been given, and how many of them are gone.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    given: AtomicU64,
    gone: AtomicU64,
}

impl StallDetector {
    /// Waits until answers have lain for at least `time` and none of them has gone.
    pub(crate) async fn stalled(&self, time: Duration) {
        loop {
            let (gone, given) = (self.gone.load(Ordering::Acquire), self.given.load(Ordering::Acquire));
            sleep(time).await;
            if given > gone && self.gone.load(Ordering::Acquire) == gone {
                return;
            }
        }
    }
}

/// What a call has until its answer is gone.
#[derive(Debug)]
pub(crate) enum CallGuard {
    /// A call of which there is one answer.
    Call { _in_flight: InFlight },
    /// A watch, whose answers come as long as it lasts.
    Watch { _counted: ActiveGuard },
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    body: tonic::body::Body,
    held: Option<CallGuard>,
    stall_detector: Arc<StallDetector>,
}

impl Answer {
    pub(crate) fn new(body: tonic::body::Body, held: Option<CallGuard>, stall_detector: &Arc<StallDetector>) -> Self {
        Self { body, held, stall_detector: Arc::clone(stall_detector) }
    }

    fn octets(&mut self, bytes: Bytes) -> TrackedBytes {
        self.stall_detector.given.fetch_add(1, Ordering::AcqRel);
        // A call has one message, and it is over when that has gone.
        let call = self.held.take_if(|held| matches!(held, CallGuard::Call { .. }));
        TrackedBytes { bytes, _call: call, stall_detector: Arc::clone(&self.stall_detector) }
    }
}

impl Body for Answer {
    type Data = TrackedBytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<TrackedBytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| self.octets(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of an answer. HTTP/2 drops them when it has written the last of them, or when their stream has ended.
#[derive(Debug)]
pub(crate) struct TrackedBytes {
    bytes: Bytes,
    _call: Option<CallGuard>,
    stall_detector: Arc<StallDetector>,
}

impl Buf for TrackedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

impl Drop for TrackedBytes {
    fn drop(&mut self) {
        self.stall_detector.gone.fetch_add(1, Ordering::AcqRel);
    }
}
