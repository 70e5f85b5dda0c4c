//! What each request in progress does: which lock or thread it waits for, or that it runs.
//!
//! Recording costs an entry in a table and a few stores for each request. Only
//! [`Executor::activity`] makes texts.
//!
//! [`Executor::activity`]: crate::Executor::activity

use std::collections::VecDeque;
// Not those of `crate::sync`: an access to the records is no step of the schedules of
// `verify/executor-model`.
use std::sync::Mutex;
use std::time::Duration;

use os::lock;

use crate::executor::operation::Operation;
use crate::scheduling::requester::Call;
use crate::scheduling::{OperationContext, PoolKind, Resource};
use crate::sync::Arc;

/// What an operation does now, as the executor records it. `RequestState` is what the status shows
/// of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The operation has just been requested.
    #[default]
    Requested,
    /// The operation waits for the locks of the lock request with this number, or has been granted
    /// them.
    WaitingForLocks(u64),
    WaitingForThread {
        pool: PoolKind,
        /// Whether the quotas of the pool do not apply.
        is_exempt: bool,
    },
    Running(PoolKind),
}

/// An operation with its stage.
pub(crate) struct Tracked<O> {
    pub(crate) operation: O,
    /// The context of a read. A change has a context of its own.
    pub(crate) context: OperationContext,
    stage: Mutex<Stage>,
}

impl<O> Tracked<O> {
    pub(crate) fn new(operation: O) -> Self {
        Self {
            operation,
            context: OperationContext::new(None),
            stage: Mutex::default(),
        }
    }

    pub(crate) fn enters(&self, stage: Stage) {
        *lock(&self.stage) = stage;
    }
}

/// An operation of any type with its stage.
pub(crate) trait Work: Send + Sync {
    fn name(&self) -> &'static str;
    fn describe(&self) -> String;
    fn resource(&self) -> Option<Resource>;
    fn stage(&self) -> Stage;
}

impl<O: Operation> Work for Tracked<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn describe(&self) -> String {
        self.operation.describe()
    }

    fn resource(&self) -> Option<Resource> {
        self.operation.resource()
    }

    fn stage(&self) -> Stage {
        *lock(&self.stage)
    }
}

/// How often and how long changes have waited for locks of other requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockWaitCount {
    /// How many waits have ended.
    pub waits: u64,
    /// How long all of them took.
    pub time: Duration,
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
    /// In the order of their numbers. Most end in about this order, and then few others move.
    requests: VecDeque<(u64, Request)>,
    /// How many requests have shared the result of another.
    shared: u64,
}

impl Table {
    fn position(&self, number: u64) -> Option<usize> {
        self.requests
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()
    }
}

impl Requests {
    /// Adds a request and returns its number. `shares` is the number of the request whose result it
    /// shares.
    pub(crate) fn add(&self, call: Option<Call>, shares: Option<u64>, work: Arc<dyn Work>) -> u64 {
        let mut table = lock(&self.0);
        let number = table.next;
        table.next += 1;
        table.shared += u64::from(shares.is_some());
        table.requests.push_back((
            number,
            Request {
                call,
                has_caller: true,
                shares,
                work,
            },
        ));
        number
    }

    pub(crate) fn remove(&self, number: u64) {
        let mut table = lock(&self.0);
        let removed = table
            .position(number)
            .and_then(|at| table.requests.remove(at));
        drop(table);
        // Dropped without the lock.
        drop(removed);
    }

    /// Notes that no caller waits for the result of a request any more, if the request is still in
    /// progress.
    pub(crate) fn caller_left(&self, number: u64) {
        let mut table = lock(&self.0);
        if let Some(at) = table.position(number) {
            table.requests[at].1.has_caller = false;
        }
    }

    /// Returns all requests in the order of their arrival.
    pub(crate) fn all(&self) -> Vec<(u64, Request)> {
        lock(&self.0).requests.iter().cloned().collect()
    }

    /// Returns the operation that a call has requested, if it is in progress.
    pub(crate) fn of_call(&self, call: u64) -> Option<Arc<dyn Work>> {
        let table = lock(&self.0);
        table
            .requests
            .iter()
            .find(|request| request.1.call.is_some_and(|own| own.number == call))
            .map(|(_, request)| Arc::clone(&request.work))
    }

    /// Returns how many requests have shared the result of another.
    pub(crate) fn shared(&self) -> u64 {
        lock(&self.0).shared
    }
}

/// A caller that waits for the result of a request. Dropping it notes that the caller no longer
/// waits.
pub(crate) struct Waiting<'a> {
    pub(crate) requests: &'a Requests,
    pub(crate) number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.requests.caller_left(self.number);
    }
}

/// The entry of a request that is not a job of its own. Dropping it removes the entry. The thread
/// that runs the request also holds the entry, because a Windows call that hangs continues without
/// the caller.
pub(crate) struct Entry {
    pub(crate) requests: Arc<Requests>,
    pub(crate) number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.requests.remove(self.number);
    }
}
