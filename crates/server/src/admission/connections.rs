//! The open connections of a server, and which of them is evicted when there are too many.
//!
//! A client may open a connection and never use it; one real driver leaves one more behind on every
//! stage of a volume. Others dial for each call, or keep one connection for months. A new
//! connection is therefore never refused. At the limit it evicts the least useful connection: one
//! that has sent no HTTP/2 preface, else one that has had no call yet, else the one whose last call
//! ended longest ago. A connection with a call in flight is never evicted. If every connection has
//! a call in flight, the new connection is accepted, but its calls are refused until some other
//! connection has no call in flight.
//!
//! A flood of dials would thus evict the connection of another client before its first call.
//! Connections of a process that has more than an eighth of the limit are therefore evicted before
//! all others.

pub(crate) mod calls;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use header_filter::HeaderFilter;
use storage_ops::ConnectionId;
use tokio::io::AsyncRead;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::admission::connections::calls::CallQueue;
use crate::admission::limits::Limits;

/// How many evicted connections may use their grace period at the same time.
const MAX_LEAVING: usize = 64;

/// A process has few connections if it has at most this fraction of the limit.
const FEW_CONNECTIONS: usize = 8;

/// The connections of a server, over all its endpoints. Clones share one state.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    limits: Limits,
    /// Each call looks its connection up several times, which takes longer if the number must be
    /// hashed.
    members: BTreeMap<ConnectionId, Member>,
    /// How often a connection has become idle.
    idle_count: u64,
    /// How many connections have calls in flight.
    busy: usize,
    calls: CallQueue,
    /// How many connections have been evicted, have had no call since, and are not closed yet.
    leaving: usize,
    is_draining: bool,
    /// The grace periods of the connections that were evicted last.
    grace_periods: VecDeque<oneshot::Sender<()>>,
    /// The counts of what has happened so far. The fields for what is open now are 0.
    totals: ConnectionCounts,
}

#[derive(Debug)]
struct Member {
    /// The process of the client, if the system returns it.
    process: Option<u32>,
    /// The calls in flight.
    calls: usize,
    /// The calls that hold a slot.
    slots: usize,
    /// Present while the connection is idle.
    rank: Option<Rank>,
    /// Taken when the connection is evicted (`Some`), or when the server drains (`None`).
    evict: Option<oneshot::Sender<Option<EvictionGrace>>>,
    evicted_at: Option<Instant>,
    /// Cancelled when the connection must close because of its many transferring calls.
    unfinished: CancellationToken,
    /// Whether the connection does not count as open.
    is_leaving: bool,
}

/// What a connection without a call in flight has been used for. The first class is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EvictionClass {
    /// No HTTP/2 preface received yet.
    Silent,
    /// No call received yet.
    Unused,
    /// Calls have been received, and the next one may follow.
    Idle,
}

/// The class of an idle connection, and its place in the order in which connections became idle.
type Rank = (EvictionClass, u64);

/// How many connections and calls are open, and how many were closed or refused so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Open connections without an HTTP/2 preface.
    pub silent: usize,
    /// Open connections that have had no call.
    pub unused: usize,
    /// Open connections that have had calls and have none in flight.
    pub idle: usize,
    /// Open connections with calls in flight.
    pub busy: usize,
    /// Evicted connections that are not closed yet and have had no call since.
    pub leaving: usize,
    /// Calls in flight, from their headers until the client has read the response.
    pub calls: usize,
    /// Calls that hold a slot.
    pub running: usize,
    /// Calls that wait for a slot.
    pub waiting: usize,
    /// Connections accepted so far.
    pub accepted: u64,
    /// Connections closed because their client sent no preface in time.
    pub closed_silent: u64,
    /// Connections evicted without a preface.
    pub evicted_silent: u64,
    /// Connections evicted without a call in flight.
    pub evicted_idle: u64,
    /// Idle connections closed because many calls had been open at once on them.
    pub closed_grown: u64,
    /// Calls refused because every other connection had a call in flight, or because theirs had
    /// been evicted.
    pub refused_connections_busy: u64,
    /// Calls refused because too many waited, or because they waited too long.
    pub refused_calls: u64,
}

impl ConnectionCounts {
    /// Returns the number of calls whose request is incomplete or whose response the client has not
    /// read.
    pub fn transferring(&self) -> usize {
        self.calls.saturating_sub(self.running + self.waiting)
    }
}

impl Connections {
    /// Creates a server's set of connections, which is empty.
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State {
            limits,
            members: BTreeMap::new(),
            idle_count: 0,
            busy: 0,
            calls: CallQueue::new(limits.calls),
            leaving: 0,
            is_draining: false,
            grace_periods: VecDeque::new(),
            totals: ConnectionCounts::default(),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Adds a connection of a process until the returned guard is dropped, and evicts another at
    /// the limit. Never waits.
    pub(crate) fn admit(&self, process: Option<u32>) -> Connection {
        let (evict, evicted) = oneshot::channel();
        let unfinished = CancellationToken::new();
        let mut state = self.lock();
        while state.open() >= state.limits.connections && state.evict() {}
        state.totals.accepted += 1;
        let id = ConnectionId(state.totals.accepted);
        state.members.insert(
            id,
            Member {
                process,
                calls: 0,
                slots: 0,
                rank: None,
                evict: Some(evict),
                evicted_at: None,
                unfinished: unfinished.clone(),
                is_leaving: false,
            },
        );
        state.set_idle(id, EvictionClass::Silent);
        if state.is_draining {
            state.drain();
        }
        drop(state);
        let handle = Arc::new(ConnectionHandle {
            id,
            connections: self.clone(),
            no_calls: Notify::new(),
            unfinished,
        });
        Connection { handle, evicted }
    }

    /// Signals all connections, also those that are added later, that the server drains.
    pub(crate) fn drain(&self) {
        self.lock().drain();
    }

    /// How many connections are open, without those that have been evicted.
    pub fn open(&self) -> usize {
        self.lock().open()
    }

    /// Returns how many connections and calls are open, and how many were closed or refused so far.
    pub fn counts(&self) -> ConnectionCounts {
        let state = self.lock();
        let ranks = || state.members.values().filter_map(|member| member.rank);
        let count_of = |class| ranks().filter(|(other, _)| *other == class).count();
        ConnectionCounts {
            silent: count_of(EvictionClass::Silent),
            unused: count_of(EvictionClass::Unused),
            idle: count_of(EvictionClass::Idle),
            busy: state.busy,
            leaving: state.leaving,
            calls: state.calls.in_flight(),
            running: state.calls.running(),
            waiting: state.calls.waiting().count(),
            ..state.totals
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open(&self) -> usize {
        self.members.len() - self.leaving
    }

    fn drain(&mut self) {
        self.is_draining = true;
        for evict in self
            .members
            .values_mut()
            .filter_map(|member| member.evict.take())
        {
            // A connection that is closing does not receive the signal, and does not need it.
            let _ = evict.send(None);
        }
    }

    /// Marks a connection as idle now.
    fn set_idle(&mut self, id: ConnectionId, class: EvictionClass) {
        self.idle_count += 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.rank = Some((class, self.idle_count));
        }
    }

    /// Evicts the first of the idle connections. Returns false if no connection is idle.
    fn evict(&mut self) -> bool {
        // Only a new connection at the limit searches. An ordered queue would cost each call an
        // entry.
        let mut open = BTreeMap::<_, usize>::new();
        for member in self.members.values().filter(|member| !member.is_leaving) {
            *open.entry(member.process).or_default() += 1;
        }
        let idle = self.members.iter().filter_map(|(&id, member)| {
            let of_process = open.get(&member.process).copied().unwrap_or_default();
            let has_few = of_process <= self.limits.connections / FEW_CONNECTIONS;
            Some((has_few, member.rank?, id))
        });
        let Some((_, (class, _), id)) = idle.min() else {
            return false;
        };
        match class {
            EvictionClass::Silent => self.totals.evicted_silent += 1,
            EvictionClass::Unused | EvictionClass::Idle => self.totals.evicted_idle += 1,
        }
        self.begin_eviction(id);
        true
    }

    /// Signals an idle connection to close, and counts it as leaving.
    fn begin_eviction(&mut self, id: ConnectionId) {
        let Some(member) = self.members.get_mut(&id) else {
            return;
        };
        member.rank = None;
        member.evicted_at = Some(Instant::now());
        member.is_leaving = true;
        let (revoke, revoked) = oneshot::channel();
        if let Some(evict) = member.evict.take() {
            // A connection that is closing does not receive the signal, and does not need it.
            let _ = evict.send(Some(EvictionGrace(revoked)));
        }
        self.leaving += 1;
        self.grace_periods.push_back(revoke);
        if self.grace_periods.len() > MAX_LEAVING
            && let Some(oldest) = self.grace_periods.pop_front()
        {
            // A connection that is closed already does not receive the signal.
            let _ = oldest.send(());
        }
    }
}

/// Returns the error of a connection that is closed because its client has sent no HTTP/2 preface.
fn no_preface(reason: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        format!("no HTTP/2 preface received{reason}"),
    )
}

/// One open connection; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    handle: Arc<ConnectionHandle>,
    evicted: oneshot::Receiver<Option<EvictionGrace>>,
}

impl Connection {
    pub(crate) fn id(&self) -> ConnectionId {
        self.handle.id
    }

    /// The handle by which calls refer to the connection.
    pub(crate) fn handle(&self) -> &Arc<ConnectionHandle> {
        &self.handle
    }

    /// Waits until the client has sent its HTTP/2 preface. Fails if the connection must close
    /// first.
    ///
    /// Until then a connection costs no HTTP/2 state.
    pub(crate) async fn preface<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut HeaderFilter<S>,
    ) -> io::Result<()> {
        let limit = self.connections().lock().limits.silence;
        tokio::select! {
            biased;
            evicted = self.evicted() => {
                let end = match evicted {
                    Some(_) => ", and evicted for another connection",
                    None => " before the shutdown",
                };
                Err(no_preface(end))
            }
            preface = stream.preface() => {
                preface?;
                let mut state = self.connections().lock();
                // A connection that has just been evicted is in no class.
                if state.members.get(&self.id()).is_some_and(|member| member.rank.is_some()) {
                    state.set_idle(self.id(), EvictionClass::Unused);
                }
                Ok(())
            }
            () = sleep(limit) => {
                self.connections().lock().totals.closed_silent += 1;
                Err(no_preface(&format!(" within {} s", limit.as_secs())))
            }
        }
    }

    /// Waits until the connection is evicted. New calls may still arrive in the grace period, and
    /// are answered. Returns `None` when the server drains.
    pub(crate) async fn evicted(&mut self) -> Option<EvictionGrace> {
        match poll_fn(|cx| Pin::new(&mut self.evicted).poll(cx)).await {
            Ok(grace) => grace,
            // The sender is dropped unused only by the drop of this guard.
            Err(_) => pending().await,
        }
    }

    /// Waits until no call is in flight on an evicted connection.
    pub(crate) async fn no_calls(&self) {
        while self.calls() > 0 {
            self.handle.no_calls.notified().await;
        }
    }

    /// How many calls are in flight on the connection.
    pub(crate) fn calls(&self) -> usize {
        self.connections()
            .lock()
            .members
            .get(&self.id())
            .map_or(0, |member| member.calls)
    }

    fn connections(&self) -> &Connections {
        &self.handle.connections
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut state = self.connections().lock();
        if let Some(member) = state.members.remove(&self.id()) {
            state.busy -= usize::from(member.calls > 0);
            state.leaving -= usize::from(member.is_leaving);
            state.calls.remove_connection(self.id(), member.slots);
        }
    }
}

/// The time that an evicted connection has to close. It is revoked if too many evicted connections
/// are still open.
#[derive(Debug)]
pub(crate) struct EvictionGrace(oneshot::Receiver<()>);

impl EvictionGrace {
    /// Waits until the grace period is revoked.
    pub(crate) async fn revoked(self) {
        if self.0.await.is_err() {
            pending::<()>().await;
        }
    }
}

/// A connection, as its calls refer to it. It may outlive the [`Connection`].
#[derive(Debug)]
pub(crate) struct ConnectionHandle {
    pub(crate) id: ConnectionId,
    connections: Connections,
    no_calls: Notify,
    /// Cancelled when the connection must close because of its many transferring calls.
    pub(crate) unfinished: CancellationToken,
}

impl ConnectionHandle {
    /// Closes the connection if it is idle, as an eviction does.
    pub(crate) fn close_if_idle(&self) {
        let mut state = self.connections.lock();
        let member = state.members.get(&self.id);
        if member.is_some_and(|member| member.rank.is_some()) {
            state.totals.closed_grown += 1;
            state.begin_eviction(self.id);
        }
    }
}
