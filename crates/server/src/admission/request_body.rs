//! The message of a call, read whole before anything else happens for it.
//!
//! A client may send the headers of a call and then nothing, or half a message, and do so on every stream that it
//! has. What comes is therefore awaited for a while only, and what is held of it is bounded for all calls together.
//! Messages of an ordinary size do not count towards that, so that nobody is refused for what another client sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;
use tonic::Status;

use crate::admission::limits::{LARGEST_REQUEST, Limits, ORDINARY_REQUEST};

/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// What there is for all messages together, and what has been refused.
#[derive(Debug)]
pub(crate) struct Messages {
    /// How long one may take.
    time: Duration,
    /// How many bytes may be held beyond what is ordinary.
    room: usize,
    held: AtomicUsize,
    late: AtomicU64,
    refused: AtomicU64,
}

/// What one message takes of the room for all.
#[derive(Debug)]
pub(crate) struct Taken {
    messages: Arc<Messages>,
    bytes: usize,
}

impl Messages {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let (held, late, refused) = Default::default();
        Arc::new(Self { time: limits.message, room: limits.messages, held, late, refused })
    }

    /// Reads the message of a call. It counts as held until what comes with it is dropped.
    pub(crate) async fn read(self: &Arc<Self>, body: Incoming) -> Result<(Full<Bytes>, Taken), Status> {
        let Ok(read) = timeout(self.time, self.whole(body)).await else {
            self.late.fetch_add(1, Ordering::Relaxed);
            let time = self.time.as_secs();
            return Err(Status::invalid_argument(format!("the message did not come within {time} s of its headers")));
        };
        read
    }

    async fn whole(self: &Arc<Self>, mut body: Incoming) -> Result<(Full<Bytes>, Taken), Status> {
        let mut taken = Taken { messages: Arc::clone(self), bytes: 0 };
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Status::cancelled(format!("the message broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if whole.is_empty() && body.is_end_stream() && data.len() <= ORDINARY_REQUEST {
                return Ok((Full::new(data), taken));
            }
            taken.grow(whole.len() + data.len())?;
            whole.extend_from_slice(&data);
            let length =
                whole.first_chunk().map_or(0, |&[_, a, b, c, d]: &[u8; PREFIX]| u32::from_be_bytes([a, b, c, d]));
            let length = whole.len().saturating_sub(PREFIX).max(usize::try_from(length).unwrap_or(usize::MAX));
            if length > LARGEST_REQUEST {
                return Err(Status::out_of_range(format!(
                    "the message has {length} bytes, and {LARGEST_REQUEST} is the most"
                )));
            }
        }
        Ok((Full::new(whole.freeze()), taken))
    }

    /// How many bytes are held beyond what is ordinary.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How many messages did not come in time.
    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    /// For how many there was no room.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Taken {
    /// Takes what a message of so many bytes needs.
    fn grow(&mut self, length: usize) -> Result<(), Status> {
        let more = length.saturating_sub(ORDINARY_REQUEST).saturating_sub(self.bytes);
        self.bytes += more;
        let before = self.messages.held.fetch_add(more, Ordering::Relaxed);
        if more > 0 && before + more > self.messages.room {
            self.messages.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Status::unavailable("too much is being sent at once; try again later"));
        }
        Ok(())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.messages.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
