//! The filter on the byte stream of a connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::FrameFilter;

/// A client's connection whose requests have a valid `:authority`. Bytes to the client pass unchanged.
#[derive(Debug)]
pub struct AuthorityFilter<S> {
    stream: S,
    filter: FrameFilter,
    /// Filtered bytes for the server that are not in its own buffer: the preface, and rewritten or buffered blocks.
    pending: Vec<u8>,
    /// How many of the pending bytes the server has read.
    read: usize,
}

impl<S> AuthorityFilter<S> {
    /// Filters `stream`, from which nothing may have been read. Allocates nothing until the client sends bytes.
    pub fn new(stream: S) -> Self {
        Self { stream, filter: FrameFilter::new(), pending: Vec::new(), read: 0 }
    }
}

impl<S: AsyncRead + Unpin> AuthorityFilter<S> {
    /// Waits until the client has sent its HTTP/2 preface. The server still reads the preface afterwards.
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
            // The filter passes a preface unchanged and produces no other bytes.
            self.filter.feed(buffer.filled(), &mut Vec::new())?;
            self.pending.extend_from_slice(buffer.filled());
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
            self.pending.shrink_to(4096);
            self.read = 0;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AuthorityFilter<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if !this.pending.is_empty() {
                this.read_pending(buffer);
                return Poll::Ready(Ok(()));
            }
            ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
            let octets = &buffer.filled()[before..];
            if octets.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let passed = this.filter.feed(octets, &mut this.pending);
            buffer.set_filled(before + passed.as_ref().map_or(0, |passed| *passed));
            if passed? > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AuthorityFilter<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
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
