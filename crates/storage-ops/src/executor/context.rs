//! What an operation may ask of the executor that runs it.

use std::sync::Arc;

use os::PendingCall;

use crate::error::{Again, OperationError, OperationResult};
use crate::executor::locks::{Guard, LockKey};

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
