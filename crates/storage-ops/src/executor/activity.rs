//! A snapshot of what an executor does: requests, pools and locks.

use std::fmt;

use terminal_text::escaped;

use crate::executor::Executor;
use crate::executor::progress::{LockWaitCount, Request, Stage};
use crate::scheduling::locks::{KeyUse, QueuedRequest};
use crate::scheduling::quotas::Holder;
use crate::scheduling::requester::Call;
use crate::scheduling::worker_pools::PoolUse;
use crate::scheduling::{LockKey, PoolKind};
use crate::sync::lock;

/// The activity of an executor at one moment. The parts are read one after the other, so they may
/// contradict each other.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The requests in progress, in the order of their arrival.
    pub requests: Vec<ActiveRequest>,
    /// The pools of worker threads.
    pub pools: Vec<PoolUse>,
    /// The objects that are locked, or that a request waits for.
    pub locks: Vec<LockUse>,
}

/// A request in progress.
#[derive(Clone, Debug)]
pub struct ActiveRequest {
    /// The call that requests the operation.
    pub call: Option<Call>,
    /// The name of the operation.
    pub operation: &'static str,
    /// The operation with its object, as it follows "cannot" in errors. It contains neither a
    /// secret nor a user name.
    pub description: String,
    /// Whether a caller waits for the result. Without a caller, an operation that has begun a
    /// change runs to its end, and a read that has a thread runs until Windows answers or the read
    /// needs another thread.
    pub has_caller: bool,
    /// What the request does.
    pub state: RequestState,
}

/// What a request in progress does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestState {
    /// The request is about to run or to wait.
    Starting,
    /// The request waits for the lock of this object, which an earlier request has.
    WaitingForLock(LockKey),
    /// The request waits for a thread of a pool: in words, for what.
    WaitingForThread(String),
    /// The request runs on a thread of this pool or, if it reads local files, on a thread of the
    /// runtime.
    Running(PoolKind),
    /// The request waits for the result of an equal request that it has joined: the number of the
    /// call of that request.
    Joined(Option<u64>),
}

impl fmt::Display for RequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::WaitingForLock(key) => write!(f, "waiting for lock {key}"),
            Self::WaitingForThread(wait) => f.write_str(wait),
            Self::Running(_) => f.write_str("running"),
            Self::Joined(Some(call)) => write!(f, "sharing the result of call {call}"),
            Self::Joined(None) => f.write_str("sharing the result of another request"),
        }
    }
}

/// The calls that hold a lock and the calls that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// The object.
    pub key: LockKey,
    /// The numbers of the calls that hold the lock.
    pub held_by: Vec<u64>,
    /// How many calls of Windows, and cancelled requests whose handles are not closed yet, hold the
    /// lock although their request has ended.
    pub held_by_others: usize,
    /// The numbers of the calls that wait for the lock, in their order.
    pub waiting: Vec<u64>,
}

impl Executor {
    /// Returns what the executor does now.
    pub fn activity(&self) -> Activity {
        let requests = self.requests.all();
        let keys = self.node.locks.in_use();
        let lock = |key: &KeyUse| {
            let call = |request: &QueuedRequest| request.call;
            let (outlived, held): (Vec<_>, Vec<_>) =
                key.granted.iter().partition(|one| one.is_outlived);
            LockUse {
                key: key.key.clone(),
                held_by: held.into_iter().filter_map(call).collect(),
                held_by_others: outlived.len(),
                waiting: key.waiting.iter().filter_map(call).collect(),
            }
        };
        Activity {
            requests: requests
                .iter()
                .map(|(_, request)| ActiveRequest {
                    call: request.call,
                    operation: request.work.name(),
                    description: request.work.describe(),
                    has_caller: request.has_caller,
                    state: self.state(request, &requests, &keys),
                })
                .collect(),
            pools: self.pools.in_use(),
            // The directories above a locked path are locked too, but with shared locks, which
            // nobody has to wait for.
            locks: keys
                .iter()
                .filter(|key| key.is_exclusive || !key.waiting.is_empty())
                .map(lock)
                .collect(),
        }
    }

    /// Returns the description of the operation that a call has requested, if it is in progress.
    /// Unlike [`Self::activity`], this is cheap if many calls are in progress. As in an error,
    /// misleading characters are written as code points.
    pub fn description(&self, call: u64) -> Option<String> {
        let work = self.requests.of_call(call)?;
        Some(escaped(&work.describe()).into_owned())
    }

    /// Returns how often and how long changes have waited for locks.
    pub fn lock_waits(&self) -> LockWaitCount {
        *lock(&self.lock_waits)
    }

    /// Returns how many requests have joined an equal one and shared its result.
    pub fn coalesced_requests(&self) -> u64 {
        self.requests.shared()
    }

    fn state(&self, request: &Request, all: &[(u64, Request)], keys: &[KeyUse]) -> RequestState {
        if let Some(shared) = request.shares {
            let other = all
                .binary_search_by_key(&shared, |(number, _)| *number)
                .ok();
            return RequestState::Joined(
                other.and_then(|at| all[at].1.call).map(|call| call.number),
            );
        }
        match request.work.stage() {
            Stage::Requested => RequestState::Starting,
            Stage::WaitingForThread { pool, is_exempt } => {
                let connection = request.call.map(|call| call.connection);
                let holder = Holder {
                    resource: request.work.resource(),
                    connection,
                    is_exempt,
                };
                RequestState::WaitingForThread(self.pools.wait(pool, &holder))
            }
            Stage::Running(pool) => RequestState::Running(pool),
            Stage::WaitingForLocks(number) => keys
                .iter()
                .find(|key| key.waiting.iter().any(|request| request.number == number))
                .map_or(RequestState::Starting, |key| {
                    RequestState::WaitingForLock(key.key.clone())
                }),
        }
    }
}
