//! The open connections of a daemon, and which of them makes room for another.
//!
//! A client may open a connection and never say anything on it; one real driver leaves one more behind on every stage
//! of a volume. Others dial for each call, or keep one connection for months. So a new connection is never refused.
//! Where too many are open, the least useful one goes: one that has said nothing, then one on which nobody has called
//! yet, then the one that has been without a call longest. A connection with a call in flight is never closed from
//! here. If all have one, the newest is let in all the same, but its calls are refused until another has none.
//!
//! A client with a thousand connections so competes with its own idle ones first, and costs another client at most
//! the connection that this one does not use, which gRPC dials again with the next call.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::AsyncRead;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use authority_filter::AuthorityFilter;

/// How many connections may be told to close and take their time over it.
const LEAVING: usize = 64;

/// How many connections may be open, with how many calls, and for how long one may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From this many open connections on, a new one closes one that has no call in flight.
    pub open: usize,
    /// How long a client has for its preface.
    pub silence: Duration,
    /// How many calls may be in flight on all of them, from the headers until the client has taken the answer.
    ///
    /// Half of them are kept for the first call of each connection.
    pub calls: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open: 4096, silence: Duration::from_mins(2), calls: 4096 }
    }
}

/// The number of a connection; a later connection has a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The connections of a daemon, over all its endpoints. Clones are the same book.
#[derive(Clone, Debug)]
pub struct Connections {
    limits: Limits,
    book: Arc<Mutex<Book>>,
}

/// Why a connection without a call in flight is worth keeping; the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// It has not said its preface.
    Silent,
    /// It has, and nothing else.
    Unused,
    /// Calls came over it, and the next one may.
    Idle,
}

/// Where a connection without a call stands in the row of those that make room, and since when.
type Rank = (Worth, u64);

#[derive(Debug, Default)]
struct Book {
    admitted: u64,
    /// Counts the moments at which connections have taken their places in the row.
    moment: u64,
    members: HashMap<ConnectionId, Member>,
    /// The connections without a call, in the order in which they make room.
    row: BTreeMap<Rank, ConnectionId>,
    busy: usize,
    calls: usize,
    /// How many have been told to go.
    leaving: usize,
    /// For the last of those: what tells them that their time is over.
    hurry: VecDeque<oneshot::Sender<()>>,
    closed_silent: u64,
    made_room_silent: u64,
    made_room_idle: u64,
    refused_busy: u64,
    refused_calls: u64,
}

#[derive(Debug)]
struct Member {
    calls: usize,
    rank: Option<Rank>,
    /// Used up when the connection is told to go.
    make_room: Option<oneshot::Sender<EvictionDeadline>>,
}

/// What is open, and what has been closed or refused so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Open, without a preface so far.
    pub silent: usize,
    /// Open, without a call so far.
    pub unused: usize,
    /// Open, without a call at the moment.
    pub idle: usize,
    /// Open, with calls in flight.
    pub busy: usize,
    /// Told to make room, and not yet gone.
    pub leaving: usize,
    /// Calls in flight.
    pub calls: usize,
    /// Ever admitted.
    pub admitted: u64,
    /// Closed because nothing was said for too long.
    pub closed_silent: u64,
    /// Closed to make room, having said nothing.
    pub made_room_silent: u64,
    /// Closed to make room, without a call in flight.
    pub made_room_idle: u64,
    /// Calls refused because every connection has one in flight.
    pub refused_busy: u64,
    /// Calls refused because too many are in flight.
    pub refused_calls: u64,
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
        while book.staying() >= self.limits.open && book.make_room() {}
        book.admitted += 1;
        let id = ConnectionId(book.admitted);
        book.members.insert(id, Member { calls: 0, rank: None, make_room: Some(make_room) });
        book.line_up(id, Worth::Silent);
        drop(book);
        Connection { caller: Caller(Arc::new(Line { id, connections: self.clone(), quiet: Notify::new() })), told }
    }

    /// How many connections are open, without those that have been told to close.
    pub fn open(&self) -> usize {
        self.lock().staying()
    }

    /// What is open, and what has been closed or refused so far.
    pub fn counts(&self) -> Counts {
        let book = self.lock();
        let standing = |worth| book.row.range((worth, 0)..=(worth, u64::MAX)).count();
        Counts {
            silent: standing(Worth::Silent),
            unused: standing(Worth::Unused),
            idle: standing(Worth::Idle),
            busy: book.busy,
            leaving: book.leaving,
            calls: book.calls,
            admitted: book.admitted,
            closed_silent: book.closed_silent,
            made_room_silent: book.made_room_silent,
            made_room_idle: book.made_room_idle,
            refused_busy: book.refused_busy,
            refused_calls: book.refused_calls,
        }
    }

    /// Which open connections have said nothing yet, oldest first.
    pub fn silent(&self) -> Vec<ConnectionId> {
        self.lock().row.iter().filter(|((worth, _), _)| *worth == Worth::Silent).map(|(_, id)| *id).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        // No code panics while it holds the lock, and each change to the book is whole by itself.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn staying(&self) -> usize {
        self.members.len() - self.leaving
    }

    /// Puts a connection without a call at the end of those that are worth as much.
    fn line_up(&mut self, id: ConnectionId, worth: Worth) {
        self.moment += 1;
        let rank = (worth, self.moment);
        self.row.insert(rank, id);
        if let Some(member) = self.members.get_mut(&id) {
            member.rank = Some(rank);
        }
    }

    fn step_out(&mut self, id: ConnectionId) {
        let rank = self.members.get_mut(&id).and_then(|member| member.rank.take());
        if let Some(rank) = rank {
            self.row.remove(&rank);
        }
    }

    /// Tells the first in the row to go; says whether there was one.
    fn make_room(&mut self) -> bool {
        let Some((_, id)) = self.row.pop_first() else { return false };
        let Some(member) = self.members.get_mut(&id) else { return false };
        match member.rank.take() {
            Some((Worth::Silent, _)) => self.made_room_silent += 1,
            _ => self.made_room_idle += 1,
        }
        let (hurry, hurried) = oneshot::channel();
        if let Some(make_room) = member.make_room.take() {
            // A connection that is just closing does not hear it; it has made room.
            let _ = make_room.send(EvictionDeadline(hurried));
        }
        self.leaving += 1;
        self.hurry.push_back(hurry);
        if self.hurry.len() > LEAVING
            && let Some(oldest) = self.hurry.pop_front()
        {
            // One that is gone does not hear it.
            let _ = oldest.send(());
        }
        true
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
    caller: Caller,
    told: oneshot::Receiver<EvictionDeadline>,
}

impl Connection {
    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.caller.id()
    }

    /// The other end, as its calls know it.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Waits until the client has said its preface, or fails when it is evicted or goes.
    ///
    /// A server that waits for this, on a task of the connection's own, spends nothing on a silent client.
    pub async fn preface<S: AsyncRead + Unpin>(&mut self, stream: &mut AuthorityFilter<S>) -> io::Result<()> {
        let limit = self.line().connections.limits.silence;
        tokio::select! {
            biased;
            _ = self.make_room() => Err(Eviction::MadeRoom.into()),
            said = stream.preface() => {
                said?;
                let mut book = self.line().connections.lock();
                // One that has been told to go meanwhile will be told so when it next asks.
                if book.members.get(&self.id()).is_some_and(|member| member.rank.is_some()) {
                    book.step_out(self.id());
                    book.line_up(self.id(), Worth::Unused);
                }
                Ok(())
            }
            () = sleep(limit) => {
                self.line().connections.lock().closed_silent += 1;
                Err(Eviction::Silent(limit).into())
            }
        }
    }

    /// Waits until the connection is to go because another needs its room. New calls may still come, and run.
    pub async fn make_room(&mut self) -> EvictionDeadline {
        // The book drops the sender without using it only where this guard takes itself out of the book.
        let told = poll_fn(|cx| Pin::new(&mut self.told).poll(cx)).await;
        match told {
            Ok(hurry) => hurry,
            Err(_) => pending().await,
        }
    }

    /// Waits until no call is in flight on a connection that has been told to go.
    pub async fn quiet(&self) {
        while self.calls() > 0 {
            self.line().quiet.notified().await;
        }
    }

    /// How many calls are in flight.
    pub fn calls(&self) -> usize {
        self.line().connections.lock().members.get(&self.id()).map_or(0, |member| member.calls)
    }

    fn line(&self) -> &Line {
        &self.caller.0
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut book = self.line().connections.lock();
        book.step_out(self.id());
        if let Some(member) = book.members.remove(&self.id()) {
            book.busy -= usize::from(member.calls > 0);
            book.leaving -= usize::from(member.make_room.is_none());
        }
    }
}

/// Tells a connection that makes room when its time for that is over, because others have been told to as well.
#[derive(Debug)]
pub struct EvictionDeadline(oneshot::Receiver<()>);

impl EvictionDeadline {
    /// Waits for that.
    pub async fn over(self) {
        if self.0.await.is_err() {
            pending::<()>().await;
        }
    }
}

#[derive(Debug)]
struct Line {
    id: ConnectionId,
    connections: Connections,
    quiet: Notify,
}

/// The other end of a connection, as its calls know it.
#[derive(Clone, Debug)]
pub struct Caller(Arc<Line>);

/// Why a call is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Every other connection has a call in flight, and they are too many.
    AllBusy,
    /// Too many calls are in flight, or too many of this connection's for what is left.
    TooManyCalls,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllBusy => "too many connections have calls in flight; try again later",
            Self::TooManyCalls => "too many calls are in flight; try again later",
        })
    }
}

impl std::error::Error for Refused {}

impl Caller {
    /// The connection's number.
    pub fn id(&self) -> ConnectionId {
        self.0.id
    }

    /// Counts a call that has come over the connection, which stays open until what is returned is dropped.
    pub fn call(&self) -> Result<InFlight, Refused> {
        let limits = self.0.connections.limits;
        let mut guard = self.0.connections.lock();
        let book = &mut *guard;
        let Some(member) = book.members.get_mut(&self.0.id) else { return Err(Refused::AllBusy) };
        let further = book.calls.saturating_sub(book.busy);
        if book.calls >= limits.calls || member.calls > 0 && further >= limits.calls / 2 {
            book.refused_calls += 1;
            return Err(Refused::TooManyCalls);
        }
        if member.calls == 0 && book.busy >= limits.open {
            book.refused_busy += 1;
            return Err(Refused::AllBusy);
        }
        book.busy += usize::from(member.calls == 0);
        book.calls += 1;
        member.calls += 1;
        book.step_out(self.0.id);
        drop(guard);
        Ok(InFlight(Arc::clone(&self.0)))
    }
}

/// A call that has come over a connection; its end is when this is dropped.
#[derive(Debug)]
pub struct InFlight(Arc<Line>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut book = self.0.connections.lock();
        book.calls -= 1;
        let Some(member) = book.members.get_mut(&self.0.id) else { return };
        member.calls -= 1;
        if member.calls > 0 {
            return;
        }
        let leaves = member.make_room.is_none();
        book.busy -= 1;
        if leaves {
            drop(book);
            self.0.quiet.notify_one();
        } else {
            book.line_up(self.0.id, Worth::Idle);
        }
    }
}

#[cfg(test)]
mod tests;
