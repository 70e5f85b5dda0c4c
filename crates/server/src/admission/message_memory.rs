//! The memory of messages: reading request bodies, and the buffer that large messages share.
//!
//! The body of a call is read in full before the call is processed.
//!
//! A client may send the headers of a call and then nothing, or half a message, on every stream
//! that it may open. The time to read a body is therefore limited, and so is the memory of all
//! bodies together. Bodies of an ordinary size are exempt from the memory limit, so that no client
//! fails because of the requests of another client. A large response shares the limit, because its
//! client may not read it.

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

use crate::admission::limits::{LARGEST_REQUEST, Limits, ORDINARY_MESSAGE};

/// The length of the prefix of a gRPC message: a flag for compression, and the length of the
/// message.
pub(crate) const PREFIX: usize = 5;

/// The shared buffer of large messages, and counts of what was refused.
#[derive(Debug)]
pub(crate) struct MessageMemory {
    timeout: Duration,
    /// Maximum bytes that messages may hold beyond the ordinary size of each.
    capacity: usize,
    held: AtomicUsize,
    late: AtomicU64,
    refused: AtomicU64,
}

/// The share of one message in the shared buffer; returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<MessageMemory>,
    bytes: usize,
}

impl MessageMemory {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            timeout: limits.request_timeout,
            capacity: limits.large_message_bytes,
            held: AtomicUsize::new(0),
            late: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Reads the body of a call that `began` when its headers arrived. Its memory stays reserved
    /// until the reservation is dropped.
    pub(crate) async fn read(
        self: &Arc<Self>,
        body: &mut RecvStream,
        began: Instant,
    ) -> Result<(Bytes, Reservation), Status> {
        ready_by(began + self.timeout, pin!(self.read_all(body))).await.unwrap_or_else(|| {
            self.late.fetch_add(1, Ordering::Relaxed);
            let seconds = self.timeout.as_secs();
            Err(Status::invalid_argument(format!(
                "the request was incomplete {seconds} s after its headers; send it within that time"
            )))
        })
    }

    async fn read_all(
        self: &Arc<Self>,
        body: &mut RecvStream,
    ) -> Result<(Bytes, Reservation), Status> {
        let mut reservation = Reservation {
            memory: Arc::clone(self),
            bytes: 0,
        };
        let mut buffer = BytesMut::new();
        while let Some(data) = body.data().await {
            let data = data
                .map_err(|error| Status::cancelled(format!("cannot read the request: {error}")))?;
            // At once, because all calls of the connection share its window. Fails only on a stream
            // that has ended.
            let _ = body.flow_control().release_capacity(data.len());
            if buffer.is_empty() && body.is_end_stream() && data.len() <= ORDINARY_MESSAGE {
                return Ok((data, reservation));
            }
            reservation.grow_to(buffer.len() + data.len())?;
            buffer.extend_from_slice(&data);
            check_length(declared_length(&buffer).max(buffer.len().saturating_sub(PREFIX)))?;
        }
        Ok((buffer.freeze(), reservation))
    }

    /// Reserves the memory of a response until the reservation is dropped.
    pub(crate) fn reserve_response(
        self: &Arc<Self>,
        length: usize,
    ) -> Result<Option<Reservation>, Status> {
        if length <= ORDINARY_MESSAGE {
            return Ok(None);
        }
        let mut reservation = Reservation {
            memory: Arc::clone(self),
            bytes: 0,
        };
        reservation.grow_to(length).map(|()| Some(reservation))
    }

    /// How many bytes messages hold beyond the ordinary size of each.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How many bodies were incomplete when their time limit expired.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// How many messages did not fit into the shared buffer.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
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
        return Err(Status::out_of_range(format!(
            "the request has {length} bytes, but the limit is {LARGEST_REQUEST}; send a smaller \
             request"
        )));
    }
    Ok(())
}

impl Reservation {
    /// Reserves what a message of `length` bytes needs.
    fn grow_to(&mut self, length: usize) -> Result<(), Status> {
        let more = length
            .saturating_sub(ORDINARY_MESSAGE)
            .saturating_sub(self.bytes);
        self.bytes += more;
        let before = self.memory.held.fetch_add(more, Ordering::Relaxed);
        if more > 0 && before + more > self.memory.capacity {
            self.memory.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Status::unavailable(
                "the buffer for large messages is full; try again later",
            ));
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
