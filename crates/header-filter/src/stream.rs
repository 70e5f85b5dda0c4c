//! The filter on the byte stream of a connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::frames::FrameFilter;
use crate::hpack::MAX_KEPT;

/// A client's connection. The server reads requests from it without the headers that it does not
/// use, among them `:authority`. Bytes to the client pass unchanged.
#[derive(Debug)]
pub struct HeaderFilter<S> {
    stream: S,
    filter: FrameFilter,
    /// Filtered bytes that the server has yet to read.
    pending: Vec<u8>,
    /// How many of the pending bytes the server has read.
    read: usize,
    /// Bytes of the client that are filtered once the server has read the pending bytes.
    waiting: Vec<u8>,
    /// How long a client may take to complete a header block that it has begun.
    block_time: Duration,
    /// The number of the block that is incomplete, and the time left for it.
    deadline: Option<(u64, Pin<Box<Sleep>>)>,
    /// How many bytes of the client have been read since reading was pending.
    burst: usize,
}

/// How many bytes of a client are read before other connections have a turn.
///
/// The h2 crate handles frames as long as there are any: without a limit, a client that floods its
/// connection with small frames occupies a thread for seconds.
const MAX_BURST: usize = 32 * 1024;

impl<S> HeaderFilter<S> {
    /// Filters `stream`, from which nothing may have been read. Allocates nothing until the client
    /// sends bytes.
    ///
    /// Reading fails with `TimedOut` if a header block is still incomplete `block_time` after the
    /// filter found it so.
    pub fn new(stream: S, block_time: Duration) -> Self {
        Self {
            stream,
            filter: FrameFilter::new(),
            pending: Vec::new(),
            read: 0,
            waiting: Vec::new(),
            block_time,
            deadline: None,
            burst: 0,
        }
    }
}

impl<S: AsyncRead + Unpin> HeaderFilter<S> {
    /// Waits until the client has sent its HTTP/2 preface. The server still reads the preface
    /// afterwards.
    ///
    /// A server that calls this first allocates no HTTP/2 state for silent clients.
    pub async fn preface(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_preface(cx)).await
    }

    fn poll_preface(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.filter.preface_left() > 0 {
            let mut octets = [0; 24];
            let mut buffer = ReadBuf::new(&mut octets[..self.filter.preface_left()]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            self.filter.feed(buffer.filled(), &mut self.pending)?;
        }
        Poll::Ready(Ok(()))
    }

    fn read_pending(&mut self, buffer: &mut ReadBuf<'_>) {
        let rest = &self.pending[self.read..];
        let some = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..some]);
        self.read += some;
        if self.read == self.pending.len() {
            self.pending.clear();
            self.pending.shrink_to(MAX_KEPT);
            self.read = 0;
        }
    }

    /// Filters bytes that had to wait.
    fn filter_waiting(&mut self) -> io::Result<()> {
        let taken = self.filter.feed(&self.waiting, &mut self.pending)?;
        self.waiting.drain(..taken);
        self.waiting.shrink_to(MAX_KEPT);
        Ok(())
    }

    /// Fails if the time for an incomplete header block is over. Call this when the client has sent
    /// no further bytes.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let unfinished = self.filter.unfinished_block();
        self.deadline
            .take_if(|(block, _)| unfinished != Some(*block));
        let Some(block) = unfinished else {
            return Poll::Pending;
        };
        let time = self.block_time;
        let (_, deadline) = self
            .deadline
            .get_or_insert_with(|| (block, Box::pin(sleep(time))));
        ready!(deadline.as_mut().poll(cx));
        let error = format!(
            "the client sent an incomplete header block and not the rest of it within {time:?}"
        );
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, error)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeaderFilter<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if !this.pending.is_empty() {
                this.read_pending(buffer);
                return Poll::Ready(Ok(()));
            }
            if !this.waiting.is_empty() {
                this.filter_waiting()?;
                continue;
            }
            if this.burst >= MAX_BURST {
                this.burst = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(cx, buffer) else {
                this.burst = 0;
                return this.poll_deadline(cx);
            };
            read?;
            let octets = &buffer.filled()[before..];
            this.burst += octets.len();
            if octets.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let fed = this.filter.feed(octets, &mut this.pending);
            this.waiting
                .extend_from_slice(&octets[fed.unwrap_or(octets.len())..]);
            buffer.set_filled(before);
            fed?;
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeaderFilter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, octets)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
