//! The filter on a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::FrameFilter;

/// A client's connection as a server can read it. What the server writes goes out as it is.
#[derive(Debug)]
pub struct AuthorityFilter<S> {
    stream: S,
    filter: FrameFilter,
    /// What the server has not read yet of what did not come from the stream right into its buffer.
    out: Vec<u8>,
    read: usize,
}

impl<S> AuthorityFilter<S> {
    /// Filters `stream`, from which nothing has been read. A client that says nothing costs no memory but this.
    pub fn new(stream: S) -> Self {
        Self { stream, filter: FrameFilter::new(), out: Vec::new(), read: 0 }
    }

    /// Whether the client has said all of its preface.
    pub fn has_preface(&self) -> bool {
        self.filter.has_preface()
    }

    /// The stream itself. Reading from it would take octets away from the filter.
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: AsyncRead + Unpin> AuthorityFilter<S> {
    /// Waits until the client has said all of its preface, which the server reads later as if nobody had waited.
    ///
    /// So a server can leave a silent client alone before spending its own handshake on it.
    pub async fn preface(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_preface(cx)).await
    }

    /// Polls for what [`AuthorityFilter::preface`] waits for.
    pub fn poll_preface(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.has_preface() {
            let mut octets = [0; 24];
            let mut buffer = ReadBuf::new(&mut octets[..self.filter.preface_left()]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            // Of the preface nothing is held back, so all that was read is all that goes on.
            self.filter.feed(buffer.filled(), &mut Vec::new())?;
            self.out.extend_from_slice(buffer.filled());
        }
        Poll::Ready(Ok(()))
    }

    fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let rest = &self.out[self.read..];
        let some = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..some]);
        self.read += some;
        if self.read == self.out.len() {
            self.out.clear();
            self.out.shrink_to(4096);
            self.read = 0;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AuthorityFilter<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if !this.out.is_empty() {
                this.give(buffer);
                return Poll::Ready(Ok(()));
            }
            ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
            let octets = &buffer.filled()[before..];
            if octets.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let passed = this.filter.feed(octets, &mut this.out);
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
