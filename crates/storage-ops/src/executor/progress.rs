//! What each request in progress does: which lock or thread it waits for, or that it runs.
//!
//! Recording costs an entry in a table and a few stores for each request. Only [`Executor::activity`] makes texts.
//!
//! [`Executor::activity`]: crate::Executor::activity

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::executor::operation::Operation;
use crate::scheduling::pool_kind::PoolKind;
use crate::scheduling::quotas::ClientId;
use crate::sync::Arc;

/// The call that requests an operation. The executor reports it unchanged in
/// [`Executor::activity`](crate::Executor::activity).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the call. A lock and a shared result name the call by this number.
    pub number: u64,
    /// What the caller names the call.
    pub label: &'static str,
    /// The client that makes the call.
    pub client: ClientId,
    /// When the call began, by a clock of the caller.
    pub began: Duration,
}

/// Who requests an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requester {
    /// The client, whose share of the threads limits the operation.
    pub(crate) client: Option<ClientId>,
    pub(crate) call: Option<Call>,
}

impl From<ClientId> for Requester {
    fn from(client: ClientId) -> Self {
        Self { client: Some(client), call: None }
    }
}

impl From<Call> for Requester {
    fn from(call: Call) -> Self {
        Self { client: Some(call.client), call: Some(call) }
    }
}

/// An operation with its progress.
pub(crate) struct Tracked<O> {
    pub(crate) operation: O,
    pub(crate) progress: Progress,
}

impl<O> Tracked<O> {
    pub(crate) fn new(operation: O) -> Self {
        Self { operation, progress: Progress::default() }
    }
}

/// An operation of any type with its progress.
pub(crate) trait Work: Send + Sync {
    fn name(&self) -> &'static str;
    fn describe(&self) -> String;
    fn progress(&self) -> &Progress;
}

impl<O: Operation> Work for Tracked<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn describe(&self) -> String {
        self.operation.describe()
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// What an operation does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The operation has just been requested.
    Requested,
    WaitingForLocks,
    WaitingForThread(PoolKind),
    Running(PoolKind),
}

const REQUESTED: u8 = 0;
const WAITING_FOR_LOCKS: u8 = 1;
/// Added to the number of a pool.
const WAITING_FOR_THREAD: u8 = 16;
/// Added to the number of a pool.
const RUNNING: u8 = 32;

/// The stage of an operation, and its request for locks. A reader may see an older value of one than of the other.
#[derive(Default)]
pub(crate) struct Progress {
    stage: AtomicU8,
    /// The number of the request for locks, plus one.
    locks: AtomicU64,
}

impl Progress {
    /// Notes that the operation waits for the locks of the request `number`, or has been granted them.
    pub(crate) fn waits_for_locks(&self, number: u64) {
        self.locks.store(number + 1, Ordering::Relaxed);
        self.stage.store(WAITING_FOR_LOCKS, Ordering::Relaxed);
    }

    pub(crate) fn waits_for_thread(&self, pool: PoolKind) {
        self.stage.store(WAITING_FOR_THREAD + pool as u8, Ordering::Relaxed);
    }

    pub(crate) fn runs_in(&self, pool: PoolKind) {
        self.stage.store(RUNNING + pool as u8, Ordering::Relaxed);
    }

    pub(crate) fn stage(&self) -> Stage {
        let pool = |number: u8| PoolKind::ALL[usize::from(number)];
        match self.stage.load(Ordering::Relaxed) {
            REQUESTED => Stage::Requested,
            stage if stage >= RUNNING => Stage::Running(pool(stage - RUNNING)),
            stage if stage >= WAITING_FOR_THREAD => Stage::WaitingForThread(pool(stage - WAITING_FOR_THREAD)),
            _ => Stage::WaitingForLocks,
        }
    }

    /// Returns the number of the request for locks.
    pub(crate) fn locks(&self) -> Option<u64> {
        self.locks.load(Ordering::Relaxed).checked_sub(1)
    }
}

/// The waits of changes for locks that others had.
#[derive(Default)]
pub(crate) struct LockWaits {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl LockWaits {
    pub(crate) fn add(&self, took: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// A request in progress.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) call: Option<Call>,
    /// Whether a caller waits for the result.
    pub(crate) has_caller: bool,
    /// The number of the request whose result this one shares.
    pub(crate) shares: Option<u64>,
    pub(crate) work: Arc<dyn Work>,
}

/// All requests in progress, by number. A later request has a higher number.
#[derive(Default)]
pub(crate) struct Requests(Mutex<Table>);

#[derive(Default)]
struct Table {
    next: u64,
    requests: HashMap<u64, Request>,
    /// How many requests have shared the result of another.
    shared: u64,
}

impl Requests {
    /// Adds a request and returns its number. `shares` is the number of the request whose result it shares.
    pub(crate) fn add(&self, call: Option<Call>, shares: Option<u64>, work: Arc<dyn Work>) -> u64 {
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        table.shared += u64::from(shares.is_some());
        table.requests.insert(number, Request { call, has_caller: true, shares, work });
        number
    }

    pub(crate) fn remove(&self, number: u64) {
        let removed = self.table().requests.remove(&number);
        // Dropped without the lock.
        drop(removed);
    }

    /// Notes that no caller waits for the result of a request any more, if the request is still in progress.
    pub(crate) fn caller_left(&self, number: u64) {
        if let Some(request) = self.table().requests.get_mut(&number) {
            request.has_caller = false;
        }
    }

    /// Returns all requests in the order of their arrival.
    pub(crate) fn all(&self) -> Vec<(u64, Request)> {
        let mut all: Vec<_> = self.table().requests.iter().map(|(number, one)| (*number, one.clone())).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    /// Returns how many requests have shared the result of another.
    pub(crate) fn shared(&self) -> u64 {
        self.table().shared
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that waits for the result of a request. Dropping it notes that the caller no longer waits.
pub(crate) struct Waiting<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.requests.caller_left(self.number);
    }
}

/// The entry of a request that is not a job of its own. Dropping it removes the entry. The thread that runs the request
/// also holds the entry, because a Windows call that hangs continues without the caller.
pub(crate) struct Entry {
    pub(crate) requests: Arc<Requests>,
    pub(crate) number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.requests.remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Stage};
    use crate::scheduling::pool_kind::PoolKind;

    #[test]
    fn progress_tells_the_stage_and_the_locks() {
        let progress = Progress::default();
        assert_eq!((progress.stage(), progress.locks()), (Stage::Requested, None));
        progress.waits_for_locks(0);
        assert_eq!((progress.stage(), progress.locks()), (Stage::WaitingForLocks, Some(0)));
        for pool in PoolKind::ALL {
            progress.waits_for_thread(pool);
            assert_eq!(progress.stage(), Stage::WaitingForThread(pool));
            progress.runs_in(pool);
            assert_eq!((progress.stage(), progress.locks()), (Stage::Running(pool), Some(0)));
        }
    }
}
