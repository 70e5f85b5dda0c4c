//! What every storage operation is: a value with its arguments, and how it runs.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use os::PendingCall;

use crate::error::{Again, OperationError, OperationResult};
use crate::executor::locks::{Guard, LockKey};
use crate::node::Node;

/// One storage operation with its arguments. Two that are equal ask for the same thing.
pub trait Operation: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// What it answers.
    type Output: Clone + fmt::Debug + Send + Sync + 'static;

    /// Its name, that of the RPC in its newest version.
    const NAME: &'static str;

    /// Whose threads it takes.
    const POOL: PoolKind;

    /// Whether an equal request may share its answer.
    const COALESCE: Coalesce = Coalesce::Never;

    /// Whether [`Self::lock_keys`] has to ask the system.
    const RESOLVES_LOCKS: bool = false;

    /// What it does, to go after "cannot": `mount volume ... at ...`.
    fn describe(&self) -> String;

    /// What it must hold while it runs; empty for what changes nothing.
    ///
    /// A volume stands for its disk, which is looked up here and again by [`Self::run`].
    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(Vec::new())
    }

    /// Carries it out; [`Node::run`] is the way to call it.
    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<Self::Output>;
}

/// Groups of threads, so that a dead server or a lost disk can hold up only its own kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PoolKind {
    /// Files and directories on local disks.
    Files,
    /// Anything on a server.
    Remote,
    /// Disks and volumes, as devices.
    Disks,
    /// What goes through WMI.
    Wmi,
    /// Services and firmware.
    System,
}

/// Whether a request equal in all its arguments to another may share its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coalesce {
    /// It runs by itself: its answer must not be older than the question.
    Never,
    /// It shares one that has not begun: what has begun may have missed what this one is to see.
    Queued,
    /// It shares one that waits or runs: the object is locked, so nothing can have undone what was done.
    InFlight,
}

/// Who may still want the answer; asked once, right before the first change.
pub(crate) trait Caller: Send + Sync {
    /// Whether to go on. From a yes on, the operation runs to its end.
    fn commit(&self) -> bool;
}

/// A caller that blocks until the answer is there.
pub(crate) struct Blocked;

impl Caller for Blocked {
    fn commit(&self) -> bool {
        true
    }
}

/// One running of an operation.
pub struct OperationContext {
    guard: Arc<Guard>,
    caller: Arc<dyn Caller>,
    lane: Option<PoolKind>,
}

impl OperationContext {
    /// In `lane`, or wherever the caller happens to be.
    pub(crate) fn new(guard: Arc<Guard>, caller: Arc<dyn Caller>, lane: Option<PoolKind>) -> Self {
        Self { guard, caller, lane }
    }

    /// Stands before the first call that changes something: whoever has gone by now has asked in vain.
    pub(crate) fn begin_mutation(&self) -> OperationResult<()> {
        if self.caller.commit() {
            return Ok(());
        }
        Err(OperationError::gone())
    }

    /// Stands before a call that can hang with what `lane` is for: asks to be run there instead.
    pub(crate) fn require_pool(&self, lane: PoolKind) -> OperationResult<()> {
        match self.lane {
            Some(current) if current != lane => Err(OperationError::again(Again::InLane(lane))),
            _ => Ok(()),
        }
    }

    /// Checks that the volume's disk, looked up just now, is the one that is locked.
    pub(crate) fn ensure_locked(&self, object: &LockKey) -> OperationResult<()> {
        if self.guard.covers(object) {
            return Ok(());
        }
        Err(OperationError::again(Again::WithOtherLocks))
    }

    /// Leaves the locks with a job that goes on, until it ends.
    pub(crate) fn hold_locks_until(&self, job: Box<dyn PendingCall>) {
        let guard = Arc::clone(&self.guard);
        job.when_ended(Box::new(move || drop(guard)));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use super::{Blocked, OperationContext};
    use crate::error::Again;
    use crate::executor::locks::{LockKey, Locks};

    #[test]
    fn an_operation_goes_on_only_under_the_lock_of_the_disk_that_its_volume_is_on() {
        let mut lock = pin!(Locks::default().acquire(vec![LockKey::Disk(1)]));
        let Poll::Ready(guard) = lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nobody else wants it")
        };
        let ctx = OperationContext::new(Arc::new(guard), Arc::new(Blocked), None);
        assert_eq!(ctx.ensure_locked(&LockKey::Disk(1)), Ok(()));
        assert_eq!(ctx.ensure_locked(&LockKey::Disk(2)).unwrap_err().again, Some(Again::WithOtherLocks));
    }
}
