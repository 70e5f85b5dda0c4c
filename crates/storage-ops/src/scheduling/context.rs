//! The context of a running operation.

use os::PendingCall;

use crate::error::{OperationError, OperationResult};
use crate::scheduling::locks::{Guard, LockKey};
use crate::scheduling::pool_kind::{PoolKind, PoolSet, Resource};
use crate::scheduling::stop::{Rerun, RunResult, Stop};
use crate::sync::Arc;

/// Asks the callers of an operation whether it may make a change. Once this returns true, the
/// operation runs to its end.
pub(crate) type Commit = Arc<dyn Fn() -> bool + Send + Sync>;

/// One run of an operation: its locks, its callers, and the pools that it has been in.
pub struct OperationContext {
    /// `None` while the operation determines which locks it needs.
    guard: Option<Arc<Guard>>,
    commit: Option<Commit>,
    pools: Option<PoolSet>,
}

impl OperationContext {
    /// Creates the context of a run on a thread of one of `pools`, after runs on threads of the
    /// other pools. If `pools` is `None`, the operation runs on the thread of the caller. Without
    /// `commit`, the caller waits until the operation has ended.
    pub(crate) fn new(guard: Arc<Guard>, commit: Option<Commit>, pools: Option<PoolSet>) -> Self {
        Self {
            guard: Some(guard),
            commit,
            pools,
        }
    }

    /// Creates the context of an operation that determines which locks it needs.
    pub(crate) fn before_locks() -> Self {
        Self {
            guard: None,
            commit: None,
            pools: None,
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

    /// Requests a rerun on a thread of `pool`. Must precede a call that can hang and is of the kind
    /// that the pool is for. An operation that needs several pools enters each of them once, and
    /// stays on the thread of the last.
    pub(crate) fn require_pool(&self, pool: PoolKind) -> RunResult<()> {
        self.require_pool_for(pool, None)
    }

    /// Like [`Self::require_pool`], for a call that waits for `resource` instead of the resource of
    /// the operation.
    pub(crate) fn require_pool_for(
        &self,
        pool: PoolKind,
        resource: Option<Resource>,
    ) -> RunResult<()> {
        match &self.pools {
            Some(pools) if !pools.contains(pool) => Err(Stop::Rerun(Rerun::InPool(pool, resource))),
            _ => Ok(()),
        }
    }

    /// Requests a rerun under other locks unless `key`, which has just been looked up, is locked.
    pub(crate) fn ensure_locked(&self, key: &LockKey) -> RunResult<()> {
        if self.guard.as_ref().is_some_and(|guard| guard.covers(key)) {
            return Ok(());
        }
        Err(Stop::Rerun(Rerun::WithOtherLocks))
    }

    /// Returns a context for calls on other objects, unless another request has or waits for one of
    /// their locks.
    pub(crate) fn try_lock(&self, keys: Vec<LockKey>) -> Option<Self> {
        let guard = Arc::new(self.guard.as_ref()?.try_acquire_more(keys)?);
        Some(Self {
            guard: Some(guard),
            commit: self.commit.clone(),
            pools: self.pools,
        })
    }

    /// Keeps the locks until `call`, which outlives the operation, has ended.
    pub(crate) fn hold_locks_until(&self, call: Box<dyn PendingCall>) {
        let guard = self.guard.clone();
        call.when_ended(Box::new(move || drop(guard)));
    }
}
