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
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Body, Frame};
use tokio::time::sleep;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::Status;

use crate::admission::connections::calls::InFlightCall;
use crate::admission::request_body::Reservation;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

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
    Unary { _in_flight: InFlightCall, _memory: Option<Reservation> },
    /// A watch of the health service, which sends responses until it is cancelled.
    Watch { _counted: TaskTrackerToken },
}

/// What a response consists of after its headers.
#[derive(Debug)]
pub(crate) enum Content {
    /// One message, and then a status, OK.
    Message(Bytes),
    /// The status, after the message.
    Status,
    /// Nothing more.
    End,
    /// The content of a response that a library made.
    Other(tonic::body::Body),
}

impl Content {
    /// Returns the next frame of a response to a call that succeeded; `None` at its end.
    fn next(&mut self) -> Option<Frame<Bytes>> {
        match std::mem::replace(self, Self::End) {
            Self::Message(message) => {
                *self = Self::Status;
                Some(Frame::data(message))
            }
            Self::Status => {
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
                Some(Frame::trailers(trailers))
            }
            Self::End | Self::Other(_) => None,
        }
    }
}

/// The body of a response.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    content: Content,
    guard: Option<CallGuard>,
    stall_detector: Arc<StallDetector>,
}

impl ResponseBody {
    pub(crate) fn new(content: Content, guard: Option<CallGuard>, stall_detector: &Arc<StallDetector>) -> Self {
        Self { content, guard, stall_detector: Arc::clone(stall_detector) }
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
        let frame = match &mut self.content {
            Content::Other(body) => ready!(Pin::new(body).poll_frame(cx)),
            content => content.next().map(Ok),
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(|bytes| self.track(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Message(_) | Content::Status => false,
            Content::End => true,
            Content::Other(body) => body.is_end_stream(),
        }
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
