//! Responses: a call is in flight until its client has read the response.
//!
//! The client controls how fast a response is sent, through HTTP/2 flow control and by how fast it
//! reads. A call therefore counts until the bytes of its response have been written to the
//! connection. A connection is closed if its client leaves any one response unread for too long.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderMap, Response, StatusCode};

use crate::admission::connections::calls::InFlightCall;
use crate::admission::message_memory::Reservation;

/// Counts the unread response frames of a connection by the period in which each was queued, to
/// detect a client that leaves a response unread.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    /// The unread frames of the current period and of the one before.
    unread: [AtomicUsize; 2],
    /// The index of the current period in `unread`.
    current: AtomicUsize,
}

impl StallDetector {
    /// Begins the next period. Returns whether a frame was queued before the period that ends and
    /// is still unread.
    ///
    /// A frame is therefore unread for one to two periods when it is detected.
    pub(crate) fn begin_period(&self) -> bool {
        let next = 1 - self.current.load(Ordering::Relaxed);
        let is_stalled = self.unread[next].load(Ordering::Relaxed) > 0;
        self.current.store(next, Ordering::Relaxed);
        is_stalled
    }

    /// Counts a frame that is queued now, and returns its period.
    fn queued(&self) -> usize {
        let period = self.current.load(Ordering::Relaxed);
        self.unread[period].fetch_add(1, Ordering::Relaxed);
        period
    }

    /// Counts a frame of a period as read.
    fn released(&self, period: usize) {
        self.unread[period].fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a call holds until its response message has been sent.
#[derive(Debug)]
pub(crate) struct CallGuard {
    pub(crate) _in_flight: InFlightCall,
    pub(crate) _memory: Option<Reservation>,
}

/// The response to a call, which is sent in parts. After the client has reset the stream, sending
/// has no effect.
#[derive(Debug)]
pub struct ResponseStream {
    head: SendResponse<TrackedBytes>,
    /// Present after the headers.
    body: Option<SendStream<TrackedBytes>>,
    stall_detector: Arc<StallDetector>,
}

impl ResponseStream {
    /// Creates the response on a stream whose reading is not tracked.
    pub fn new(head: SendResponse<TrackedBytes>) -> Self {
        Self::tracked(head, &Arc::default())
    }

    pub(crate) fn tracked(
        head: SendResponse<TrackedBytes>,
        stall_detector: &Arc<StallDetector>,
    ) -> Self {
        Self {
            head,
            body: None,
            stall_detector: Arc::clone(stall_detector),
        }
    }

    /// Sends the headers, first of all. The response may end with them.
    pub fn send_headers(&mut self, headers: HeaderMap, is_end: bool) {
        self.send_head(StatusCode::OK, headers, is_end);
    }

    /// Sends the response to a request that is not one of gRPC: a status of HTTP, and headers.
    pub(crate) fn refuse(&mut self, status: StatusCode, headers: HeaderMap) {
        self.send_head(status, headers, true);
    }

    fn send_head(&mut self, status: StatusCode, headers: HeaderMap, is_end: bool) {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        self.body = self.head.send_response(response, is_end).ok();
    }

    /// Waits until the client accepts a part of the body, or has reset the stream.
    pub async fn ready(&mut self) {
        let Some(body) = &mut self.body else { return };
        body.reserve_capacity(1);
        while body.capacity() == 0 {
            if !matches!(poll_fn(|cx| body.poll_capacity(cx)).await, Some(Ok(_))) {
                return;
            }
        }
    }

    /// Sends a part of the body. Never waits: what the client does not accept yet is buffered. A
    /// body of many parts waits for [`Self::ready`] before each.
    pub fn send(&mut self, bytes: Bytes) {
        self.send_holding(bytes, None);
    }

    /// Sends a part of the body, and drops `guard` when the part has been written to the
    /// connection.
    pub(crate) fn send_holding(&mut self, bytes: Bytes, guard: Option<CallGuard>) {
        let Some(body) = &mut self.body else { return };
        let _ = body.send_data(
            TrackedBytes {
                bytes,
                _guard: guard,
                period: self.stall_detector.queued(),
                stall_detector: Arc::clone(&self.stall_detector),
            },
            false,
        );
    }

    /// Sends the trailers, which end the response.
    pub fn send_trailers(&mut self, trailers: HeaderMap) {
        let _ = self
            .body
            .take()
            .map(|mut body| body.send_trailers(trailers));
    }

    /// Is ready when the client has reset the stream or the connection has ended.
    pub(crate) fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.body {
            None => self.head.poll_reset(cx).map(drop),
            Some(body) => body.poll_reset(cx).map(drop),
        }
    }

    /// Waits until the client has reset the stream or the connection has ended.
    pub async fn reset(&mut self) {
        poll_fn(|cx| self.poll_reset(cx)).await;
    }
}

/// Bytes of a response. HTTP/2 drops them after it has written them, or when their stream ends.
#[derive(Debug)]
pub struct TrackedBytes {
    bytes: Bytes,
    _guard: Option<CallGuard>,
    /// The period in which the bytes were queued.
    period: usize,
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
        self.stall_detector.released(self.period);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::{HeaderMap, Request};
    use tokio::io::duplex;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::ResponseStream;

    #[tokio::test(start_paused = true)]
    async fn a_part_of_a_response_waits_until_the_client_accepts_it() {
        let (client, server) = duplex(1 << 16);
        let (waits, has_waited) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let mut connection = h2::server::Builder::new().handshake(server).await.unwrap();
            let (_, head) = connection.accept().await.unwrap().unwrap();
            tokio::spawn(async move { connection.accept().await.is_none() });
            let mut response = ResponseStream::new(head);
            response.send_headers(HeaderMap::new(), false);
            response.ready().await;
            response.send(Bytes::from_static(b"a"));
            timeout(Duration::from_secs(1), response.ready())
                .await
                .expect_err("the client accepts one byte");
            waits.send(()).unwrap();
            response.ready().await;
            response.send(Bytes::from_static(b"b"));
            response.ready().await;
        });
        let handshake = h2::client::Builder::new()
            .initial_window_size(1)
            .handshake::<_, Bytes>(client);
        let (mut requests, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let (response, _) = requests.send_request(Request::new(()), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        has_waited.await.unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), "a");
        body.flow_control().release_capacity(1).unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), "b");
        drop(body);
        serving.await.unwrap();
    }
}
