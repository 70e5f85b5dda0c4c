//! What every storage operation is: a value with its arguments, and how it runs.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use os::Ticket;

use crate::error::{Again, Fault, Outcome};
use crate::executor::locks::{Guard, Object};
use crate::node::Node;

/// One storage operation with its arguments. Two that are equal ask for the same thing.
pub trait Operation: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// What it answers.
    type Output: Clone + fmt::Debug + Send + Sync + 'static;

    /// Its name, that of the RPC in its newest version.
    const NAME: &'static str;

    /// Whose threads it takes.
    const LANE: Lane;

    /// Whether an equal request may share its answer.
    const JOINS: Joins = Joins::Never;

    /// Whether [`Self::objects`] has to ask the system.
    const LOOKS_UP: bool = false;

    /// What it does, to go after "cannot": `mount volume ... at ...`.
    fn attempt(&self) -> String;

    /// What it must hold while it runs; empty for what changes nothing.
    ///
    /// A volume stands for its disk, which is looked up here and again by [`Self::run`].
    fn objects(&self, _node: &Node) -> Outcome<Vec<Object>> {
        Ok(Vec::new())
    }

    /// Carries it out; [`Node::run`] is the way to call it.
    fn run(&self, node: &Node, run: &Run) -> Outcome<Self::Output>;
}

/// Groups of threads, so that a dead server or a lost disk can hold up only its own kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
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
pub enum Joins {
    /// It runs by itself: its answer must not be older than the question.
    Never,
    /// It shares one that has not begun: what has begun may have missed what this one is to see.
    Waiting,
    /// It shares one that waits or runs: the object is locked, so nothing can have undone what was done.
    Running,
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
pub struct Run {
    guard: Arc<Guard>,
    caller: Arc<dyn Caller>,
    lane: Option<Lane>,
}

impl Run {
    /// In `lane`, or wherever the caller happens to be.
    pub(crate) fn new(guard: Arc<Guard>, caller: Arc<dyn Caller>, lane: Option<Lane>) -> Self {
        Self { guard, caller, lane }
    }

    /// Stands before the first call that changes something: whoever has gone by now has asked in vain.
    pub(crate) fn commit(&self) -> Outcome<()> {
        if self.caller.commit() {
            return Ok(());
        }
        Err(Fault::gone())
    }

    /// Stands before a call that can hang with what `lane` is for: asks to be run there instead.
    pub(crate) fn enter(&self, lane: Lane) -> Outcome<()> {
        match self.lane {
            Some(current) if current != lane => Err(Fault::again(Again::InLane(lane))),
            _ => Ok(()),
        }
    }

    /// Checks that the volume's disk, looked up just now, is the one that is locked.
    pub(crate) fn holds(&self, object: &Object) -> Outcome<()> {
        if self.guard.covers(object) {
            return Ok(());
        }
        Err(Fault::again(Again::WithOtherLocks))
    }

    /// Leaves the locks with a job that goes on, until it ends.
    pub(crate) fn outlived_by(&self, job: Box<dyn Ticket>) {
        let guard = Arc::clone(&self.guard);
        job.when_ended(Box::new(move || drop(guard)));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use super::{Blocked, Run};
    use crate::error::Again;
    use crate::executor::locks::{Locks, Object};

    #[test]
    fn an_operation_goes_on_only_under_the_lock_of_the_disk_that_its_volume_is_on() {
        let mut lock = pin!(Locks::default().acquire(vec![Object::Disk(1)]));
        let Poll::Ready(guard) = lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("nobody else wants it")
        };
        let run = Run::new(Arc::new(guard), Arc::new(Blocked), None);
        assert_eq!(run.holds(&Object::Disk(1)), Ok(()));
        assert_eq!(run.holds(&Object::Disk(2)).unwrap_err().again, Some(Again::WithOtherLocks));
    }
}
