//! The open connections of a daemon.
//!
//! A client may open a connection and never say anything on it; one real driver leaves one more behind on every stage
//! of a volume. Such connections are kept for a while, because a client may be slow, and cost next to nothing; then
//! they are closed. A new connection is never refused: where too many are open, the one that has been silent longest
//! makes room. One that has spoken is never closed from here.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use crate::authority::Mended;

/// How many connections may be open, and for how long one may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From this many open connections on, a new one closes the one that has been silent longest.
    pub open: usize,
    /// How long a client has for its preface.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open: 4096, silence: Duration::from_mins(2) }
    }
}

/// The connections of a daemon, over all its endpoints. Clones are the same book.
#[derive(Clone, Debug)]
pub struct Connections {
    limits: Limits,
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    admitted: u64,
    spoken: usize,
    /// Those that have said nothing, oldest first. Dropping the sender tells the connection nothing; using it does.
    silent: BTreeMap<ConnectionId, oneshot::Sender<()>>,
}

/// The number of a connection; a later connection has a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Connections {
    /// No connections, and what will be allowed to them.
    pub fn new(limits: Limits) -> Self {
        Self { limits, book: Arc::default() }
    }

    /// Counts one more connection until the guard is dropped. Never waits and never refuses.
    pub fn admit(&self) -> Connection {
        let (make_room, told) = oneshot::channel();
        let mut book = self.lock();
        if book.spoken + book.silent.len() >= self.limits.open
            && let Some((_, oldest)) = book.silent.pop_first()
        {
            // A connection that is just closing does not hear it; it has made room.
            let _ = oldest.send(());
        }
        book.admitted += 1;
        let id = ConnectionId(book.admitted);
        book.silent.insert(id, make_room);
        drop(book);
        let silent = Silent { told, over: Box::pin(sleep(self.limits.silence)) };
        Connection { id, connections: self.clone(), state: State::Silent(silent) }
    }

    /// How many connections are open, without those that have been told to close.
    pub fn open(&self) -> usize {
        let book = self.lock();
        book.spoken + book.silent.len()
    }

    /// Which open connections have said nothing yet, oldest first.
    pub fn silent(&self) -> Vec<ConnectionId> {
        self.lock().silent.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // No code panics while it holds the lock, and each change to the book is whole by itself.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a connection that had said nothing is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// It was silent for as long as is allowed.
    Silent(Duration),
    /// Too many were open, and this one had been silent longest.
    MadeRoom,
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(time) => write!(f, "the client said nothing for {} s", time.as_secs()),
            Self::MadeRoom => f.write_str("the client said nothing, and another needed the room"),
        }
    }
}

impl std::error::Error for Eviction {}

impl From<Eviction> for io::Error {
    fn from(eviction: Eviction) -> Self {
        Self::new(io::ErrorKind::ConnectionAborted, eviction)
    }
}

/// One open connection: counted for as long as this exists.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    connections: Connections,
    state: State,
}

#[derive(Debug)]
enum State {
    Silent(Silent),
    Spoken,
    Evicted(Eviction),
}

#[derive(Debug)]
struct Silent {
    told: oneshot::Receiver<()>,
    over: Pin<Box<Sleep>>,
}

impl Connection {
    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Tells that the client has said its preface, so that its silence is over. Too late once it is evicted.
    pub fn spoke(&mut self) {
        let mut book = self.connections.lock();
        if book.silent.remove(&self.id).is_some() {
            book.spoken += 1;
            self.state = State::Spoken;
        }
    }

    /// Waits until the connection is to be closed, which never happens to one that spoke.
    pub async fn evicted(&mut self) -> Eviction {
        poll_fn(|cx| self.poll_evicted(cx)).await
    }

    /// Polls for what [`Connection::evicted`] waits for.
    pub fn poll_evicted(&mut self, cx: &mut Context<'_>) -> Poll<Eviction> {
        let eviction = match &mut self.state {
            State::Spoken => return Poll::Pending,
            State::Evicted(eviction) => return Poll::Ready(*eviction),
            // The book drops its sender without using it only where this guard takes itself out of the book.
            State::Silent(silent) => match Pin::new(&mut silent.told).poll(cx) {
                Poll::Ready(_) => Eviction::MadeRoom,
                Poll::Pending => {
                    ready!(silent.over.as_mut().poll(cx));
                    self.connections.lock().silent.remove(&self.id);
                    Eviction::Silent(self.connections.limits.silence)
                }
            },
        };
        self.state = State::Evicted(eviction);
        Poll::Ready(eviction)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut book = self.connections.lock();
        book.silent.remove(&self.id);
        if matches!(self.state, State::Spoken) {
            book.spoken -= 1;
        }
    }
}

/// An admitted connection's stream, filtered. Reading fails with `ConnectionAborted` once the connection is evicted.
#[derive(Debug)]
pub struct Admitted<S> {
    stream: Mended<S>,
    connection: Connection,
}

impl<S> Admitted<S> {
    /// Joins a stream, from which nothing has been read, to its guard.
    pub fn new(stream: S, connection: Connection) -> Self {
        Self { stream: Mended::new(stream), connection }
    }

    /// The guard.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    fn has_spoken(&self) -> bool {
        matches!(self.connection.state, State::Spoken)
    }
}

impl<S: AsyncRead + Unpin> Admitted<S> {
    /// Waits until the client has said its preface, or fails when it is evicted or goes.
    ///
    /// A server that waits for this, on a task of the connection's own, spends nothing on a silent client.
    pub async fn preface(&mut self) -> io::Result<()> {
        poll_fn(|cx| {
            let said = self.stream.poll_preface(cx);
            self.unless_evicted(cx, said)
        })
        .await
    }

    /// Hands on what the stream said, noting whether the client has spoken by now.
    fn unless_evicted(&mut self, cx: &mut Context<'_>, said: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if self.has_spoken() {
            return said;
        }
        if self.stream.has_preface() {
            self.connection.spoke();
        }
        match self.connection.poll_evicted(cx) {
            Poll::Ready(eviction) => Poll::Ready(Err(eviction.into())),
            Poll::Pending => said,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Admitted<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let said = Pin::new(&mut this.stream).poll_read(cx, buffer);
        this.unless_evicted(cx, said)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Admitted<S> {
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

#[cfg(test)]
mod tests {
    use std::future::Future;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SILENCE: Duration = Duration::from_mins(2);

    fn room_for(open: usize) -> Connections {
        Connections::new(Limits { open, silence: SILENCE })
    }

    fn connect(connections: &Connections) -> (DuplexStream, Admitted<DuplexStream>) {
        let (client, server) = duplex(1024);
        (client, Admitted::new(server, connections.admit()))
    }

    async fn stays<T: fmt::Debug>(future: impl Future<Output = T>) {
        timeout(SILENCE * 100, future).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_closed_when_its_time_is_over() {
        let connections = room_for(10);
        let (_client, mut server) = connect(&connections);
        let start = Instant::now();
        let error = server.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(error.to_string(), "the client said nothing for 120 s");
        assert_eq!(start.elapsed().as_secs(), SILENCE.as_secs());
        assert_eq!(connections.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_spoke_may_be_silent_for_ever() {
        let connections = room_for(1);
        let (mut client, mut server) = connect(&connections);
        client.write_all(PREFACE).await.unwrap();
        server.preface().await.unwrap();
        let (_other_client, _other) = connect(&connections);
        let mut preface = [0; 24];
        server.read_exact(&mut preface).await.unwrap();
        assert_eq!(preface, PREFACE);
        stays(server.read_u8()).await;
        assert_eq!(connections.open(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_preface_is_silence() {
        let connections = room_for(10);
        let (mut client, mut server) = connect(&connections);
        client.write_all(&PREFACE[..23]).await.unwrap();
        assert_eq!(server.preface().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_goes_without_a_word_ends_the_wait() {
        let connections = room_for(10);
        let (client, mut server) = connect(&connections);
        drop(client);
        assert_eq!(server.preface().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_silent_longest_makes_room() {
        let connections = room_for(3);
        let mut spoken = connections.admit();
        spoken.spoke();
        let (mut oldest, mut younger) = (connections.admit(), connections.admit());
        let newest = connections.admit();
        assert_eq!(oldest.evicted().await, Eviction::MadeRoom);
        assert_eq!(connections.silent(), [younger.id(), newest.id()]);
        assert_eq!(connections.open(), 3);
        oldest.spoke();
        assert_eq!(oldest.evicted().await, Eviction::MadeRoom, "speaking comes too late");
        drop(oldest);
        assert_eq!(connections.open(), 3);
        stays(spoken.evicted()).await;
        assert_eq!(younger.evicted().await, Eviction::Silent(SILENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_read_ends_when_room_is_needed() {
        let connections = room_for(1);
        let (_client, mut server) = connect(&connections);
        let reading = tokio::spawn(async move { server.read_u8().await.unwrap_err().kind() });
        tokio::task::yield_now().await;
        let start = Instant::now();
        let _other = connections.admit();
        assert_eq!(reading.await.unwrap(), io::ErrorKind::ConnectionAborted);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_admitted_even_when_all_others_have_spoken() {
        let connections = room_for(2);
        let mut all: Vec<_> = (0..5).map(|_| connections.admit()).collect();
        assert_eq!(connections.open(), 2);
        all.iter_mut().for_each(Connection::spoke);
        let mut more = connections.admit();
        more.spoke();
        let last = connections.admit();
        assert_eq!(connections.open(), 4);
        assert_eq!(connections.silent(), [last.id()]);
        drop((all, more, last));
        assert_eq!(connections.open(), 0);
    }
}
