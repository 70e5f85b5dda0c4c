//! The context of a running operation.

use std::future::poll_fn;
use std::task::Poll;

use os::PendingCall;

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::scheduling::locks::{Guard, LockKey};
use crate::scheduling::pool_kind::{PoolKind, Resource};
use crate::sync::{Arc, Mutex, lock};
use crate::types::DiskNumber;

/// Returns whether an operation may make a change: whether a caller still waits, or a change has
/// begun. Once this returns true, the operation runs to its end.
pub(crate) type Commit = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a pending operation waits for. Meanwhile it holds neither a thread nor the permission to use
/// one.
#[derive(Debug)]
pub(crate) enum Wait {
    /// Exclusive locks of these keys.
    ForLocks(Vec<LockKey>),
    /// A thread of the pool. The thread counts against the quota of this resource, or of the
    /// resource of the operation if this is `None`.
    ForThread(PoolKind, Option<Resource>),
}

/// The locks, the callers and the thread of a running operation.
///
/// An operation is a future that only waits for what is here: it is pending if and only if it has
/// set [`Wait`]. Whoever polls it grants the wait, and polls again.
pub struct OperationContext {
    commit: Option<Commit>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` if the operation has no locks.
    guard: Option<Arc<Guard>>,
    /// The pool of the thread on which the operation is polled now or next. `None` outside all
    /// pools.
    pool: Option<PoolKind>,
    wait: Option<Wait>,
}

impl OperationContext {
    /// Creates the context of an operation without locks and outside all pools. Without `commit`,
    /// the caller waits until the operation has ended.
    pub(crate) fn new(commit: Option<Commit>) -> Self {
        Self {
            commit,
            state: Mutex::default(),
        }
    }

    /// Cancels the operation if every caller has cancelled. Must precede the first call that makes
    /// a change.
    pub(crate) fn begin_mutation(&self) -> OperationResult<()> {
        if self.commit.as_ref().is_none_or(|commit| commit()) {
            return Ok(());
        }
        Err(OperationError::cancelled())
    }

    /// Continues on a thread of `pool`; does nothing if the current thread is one. Must precede a
    /// call that can hang and is of the kind that the pool is for. The operation waits without a
    /// thread, keeps its locks and its values, and stays in the pool until it enters another one.
    pub(crate) async fn enter(&self, pool: PoolKind) {
        self.enter_for(pool, None).await;
    }

    /// Like [`Self::enter`], for calls that wait for `resource` instead of the resource of the
    /// operation.
    pub(crate) async fn enter_for(&self, pool: PoolKind, resource: Option<Resource>) {
        if lock(&self.state).pool != Some(pool) {
            self.wait(Wait::ForThread(pool, resource)).await;
        }
    }

    /// Waits for exclusive locks of `keys`, for an operation without locks. Gives its thread back.
    pub(crate) async fn lock(&self, keys: Vec<LockKey>) {
        self.wait(Wait::ForLocks(keys)).await;
    }

    async fn wait(&self, wait: Wait) {
        let mut wait = Some(wait);
        poll_fn(|_| match wait.take() {
            None => Poll::Ready(()),
            wait => {
                let mut state = lock(&self.state);
                (state.pool, state.wait) = (None, wait);
                Poll::Pending
            }
        })
        .await;
    }

    /// Takes what the pending operation waits for.
    pub(crate) fn take_wait(&self) -> Option<Wait> {
        lock(&self.state).wait.take()
    }

    /// Gives the operation the thread of `pool` on which it is polled next.
    pub(crate) fn grant_thread(&self, pool: PoolKind) {
        lock(&self.state).pool = Some(pool);
    }

    /// Gives the operation its locks, or drops its share of them.
    pub(crate) fn set_locks(&self, guard: Option<Arc<Guard>>) {
        let before = std::mem::replace(&mut lock(&self.state).guard, guard);
        // Dropped without the lock.
        drop(before);
    }

    fn guard(&self) -> Option<Arc<Guard>> {
        lock(&self.state).guard.clone()
    }

    /// Returns whether the operation has its locks.
    pub(crate) fn has_locks(&self) -> bool {
        lock(&self.state).guard.is_some()
    }

    /// Returns the disk that is locked.
    pub(crate) fn locked_disk(&self) -> Option<DiskNumber> {
        self.guard()?.disk()
    }

    /// Fails unless `key`, which has just been looked up, is locked.
    pub(crate) fn ensure_locked(&self, key: &LockKey) -> OperationResult<()> {
        if self.guard().is_some_and(|guard| guard.covers(key)) {
            return Ok(());
        }
        Err(OperationError::new(
            ErrorKind::Busy,
            format!("the node has changed, and {key} would have to be locked; repeat the request"),
        ))
    }

    /// Returns a context for calls on other objects, unless another request has or waits for one of
    /// their locks.
    pub(crate) fn try_lock(&self, keys: Vec<LockKey>) -> Option<Self> {
        let guard = self.guard()?.try_acquire_more(keys)?;
        let context = Self::new(self.commit.clone());
        context.set_locks(Some(Arc::new(guard)));
        Some(context)
    }

    /// Keeps the locks until `call`, which outlives the operation, has ended.
    pub(crate) fn hold_locks_until(&self, call: Box<dyn PendingCall>) {
        let guard = self.guard();
        call.when_ended(Box::new(move || drop(guard)));
    }
}
