//! The memory of messages: reading request bodies, and the buffer that large responses share.
//!
//! The body of a call is read in full before the call is processed. A client may send the headers of
//! a call and then nothing, or half a message, on every stream that it may open. The time to read a
//! body is therefore limited, and its size.
//!
//! The client of a large response may not read it. The memory of all large responses together is
//! therefore limited. Responses of an ordinary size are exempt, so that no client fails because of
//! the responses of another client.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use crate::admission::limits::{LARGEST_REQUEST, Limits, ORDINARY_RESPONSE};

/// The length of the prefix of a gRPC message: a flag for compression, and the length of the
/// message.
pub(crate) const PREFIX: usize = 5;

/// The shared buffer of large responses, and counts of what was refused.
#[derive(Debug)]
pub(crate) struct MessageMemory {
    timeout: Duration,
    /// Maximum bytes that responses may hold beyond the ordinary size of each.
    capacity: usize,
    held: AtomicUsize,
    late: AtomicU64,
    refused: AtomicU64,
}

/// The share of one response in the shared buffer; returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<MessageMemory>,
    bytes: usize,
}

impl MessageMemory {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            timeout: limits.request_timeout,
            capacity: limits.large_response_bytes,
            held: AtomicUsize::new(0),
            late: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Reads the body of a call that `began` when its headers arrived.
    pub(crate) async fn read(
        &self,
        body: &mut RecvStream,
        began: Instant,
    ) -> Result<Bytes, Status> {
        ready_by(began + self.timeout, pin!(read_all(body))).await.unwrap_or_else(|| {
            self.late.fetch_add(1, Ordering::Relaxed);
            let seconds = self.timeout.as_secs();
            Err(Status::invalid_argument(format!(
                "the request was incomplete {seconds} s after its headers; send it within that time"
            )))
        })
    }

    /// Reserves the memory of a response until the reservation is dropped.
    pub(crate) fn reserve(self: &Arc<Self>, length: usize) -> Result<Option<Reservation>, Status> {
        let bytes = length.saturating_sub(ORDINARY_RESPONSE);
        if bytes == 0 {
            return Ok(None);
        }
        let reservation = Reservation {
            memory: Arc::clone(self),
            bytes,
        };
        if self.held.fetch_add(bytes, Ordering::Relaxed) + bytes > self.capacity {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Status::unavailable(
                "the buffer for large responses is full; try again later",
            ));
        }
        Ok(Some(reservation))
    }

    /// How many bytes responses hold beyond the ordinary size of each.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How many bodies were incomplete when their time limit expired.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// How many responses did not fit into the shared buffer.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

async fn read_all(body: &mut RecvStream) -> Result<Bytes, Status> {
    let mut buffer = BytesMut::new();
    while let Some(data) = body.data().await {
        let data =
            data.map_err(|error| Status::cancelled(format!("cannot read the request: {error}")))?;
        // At once, because all calls of the connection share its window. Fails only on a stream
        // that has ended.
        let _ = body.flow_control().release_capacity(data.len());
        if buffer.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        buffer.extend_from_slice(&data);
        check_length(declared_length(&buffer).max(buffer.len().saturating_sub(PREFIX)))?;
    }
    Ok(buffer.freeze())
}

/// Waits until `future` is ready, at most until `deadline`. Needs no timer for a future that is
/// ready at once.
pub(crate) async fn ready_by<F: Future>(
    deadline: Instant,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    match poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => timeout_at(deadline, future).await.ok(),
    }
}

/// Returns the length of the message that `body` begins with, as its prefix declares it; 0 while
/// that is incomplete.
pub(crate) fn declared_length(body: &[u8]) -> usize {
    let length = body
        .first_chunk()
        .map_or(0, |&[_, a, b, c, d]: &[u8; PREFIX]| {
            u32::from_be_bytes([a, b, c, d])
        });
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Refuses a message of more than [`LARGEST_REQUEST`] bytes.
pub(crate) fn check_length(length: usize) -> Result<(), Status> {
    if length > LARGEST_REQUEST {
        return Err(Status::invalid_argument(format!(
            "the request has {length} bytes, but the limit is {LARGEST_REQUEST}; send a smaller \
             request"
        )));
    }
    Ok(())
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
