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

use crate::metrics::active_count::Counted;

/// How many answers one connection has been given, and how many of them are gone.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    given: AtomicU64,
    gone: AtomicU64,
}

impl Tally {
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
pub(crate) enum Held {
    /// A call of which there is one answer.
    Call { _in_flight: InFlight },
    /// A watch, whose answers come as long as it lasts.
    Watch { _counted: Counted },
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Answer {
    body: tonic::body::Body,
    held: Option<Held>,
    tally: Arc<Tally>,
}

impl Answer {
    pub(crate) fn new(body: tonic::body::Body, held: Option<Held>, tally: &Arc<Tally>) -> Self {
        Self { body, held, tally: Arc::clone(tally) }
    }

    fn octets(&mut self, bytes: Bytes) -> Octets {
        self.tally.given.fetch_add(1, Ordering::AcqRel);
        // A call has one message, and it is over when that has gone.
        let call = self.held.take_if(|held| matches!(held, Held::Call { .. }));
        Octets { bytes, _call: call, tally: Arc::clone(&self.tally) }
    }
}

impl Body for Answer {
    type Data = Octets;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Octets>, Status>>> {
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

/// Octets of an answer. HTTP/2 drops them when it has written the last of them, or when their stream has ended.
#[derive(Debug)]
pub(crate) struct Octets {
    bytes: Bytes,
    _call: Option<Held>,
    tally: Arc<Tally>,
}

impl Buf for Octets {
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

impl Drop for Octets {
    fn drop(&mut self) {
        self.tally.gone.fetch_add(1, Ordering::AcqRel);
    }
}
