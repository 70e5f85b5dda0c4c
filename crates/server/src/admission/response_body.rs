//! Response bodies: a call is in flight until its client has read the response.
//!
//! The client controls how fast a response is sent, through HTTP/2 flow control and by how fast it reads. A call
//! therefore counts until the bytes of its response have been written to the connection. A connection is closed if
//! responses are ready on it and its client reads none of them for a while.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame};
use tokio::time::sleep;
use tonic::Status;

use crate::admission::connections::InFlightCall;
use crate::drain::active_count::ActiveGuard;

/// Counts the response frames of a connection, to detect a client that reads none of them.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    queued: AtomicU64,
    released: AtomicU64,
}

impl StallDetector {
    /// Waits until frames have been queued for at least `time` and none was released.
    pub(crate) async fn stalled(&self, time: Duration) {
        loop {
            let (released, queued) = (self.released.load(Ordering::Acquire), self.queued.load(Ordering::Acquire));
            sleep(time).await;
            if queued > released && self.released.load(Ordering::Acquire) == released {
                return;
            }
        }
    }
}

/// What a call holds until its response has been sent.
#[derive(Debug)]
pub(crate) enum CallGuard {
    /// A call with one response message.
    Unary { _in_flight: InFlightCall },
    /// A watch of the health service, which sends responses until it is cancelled.
    Watch { _counted: ActiveGuard },
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    body: tonic::body::Body,
    guard: Option<CallGuard>,
    stall_detector: Arc<StallDetector>,
}

impl ResponseBody {
    pub(crate) fn new(body: tonic::body::Body, guard: Option<CallGuard>, stall_detector: &Arc<StallDetector>) -> Self {
        Self { body, guard, stall_detector: Arc::clone(stall_detector) }
    }

    fn track(&mut self, bytes: Bytes) -> TrackedBytes {
        self.stall_detector.queued.fetch_add(1, Ordering::AcqRel);
        // A unary call has one message, and ends when that has been sent.
        let guard = self.guard.take_if(|guard| matches!(guard, CallGuard::Unary { .. }));
        TrackedBytes { bytes, _guard: guard, stall_detector: Arc::clone(&self.stall_detector) }
    }
}

/// `size_hint` keeps its default: with an exact one, hyper would add a `content-length` header.
impl Body for ResponseBody {
    type Data = TrackedBytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<TrackedBytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| self.track(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

/// Bytes of a response. HTTP/2 drops them after it has written them, or when their stream ends.
#[derive(Debug)]
pub(crate) struct TrackedBytes {
    bytes: Bytes,
    _guard: Option<CallGuard>,
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
        self.stall_detector.released.fetch_add(1, Ordering::AcqRel);
    }
}
