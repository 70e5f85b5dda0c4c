//! What every storage operation is: a value with its arguments, and how it runs.

use std::fmt;
use std::hash::Hash;

use crate::error::OperationResult;
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::node::Node;

/// One storage operation with its arguments. Two that are equal ask for the same thing.
pub trait Operation: sealed::Sealed + Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
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

/// Keeps other crates from implementing [`Operation`].
pub(crate) mod sealed {
    /// Implemented for the operations of this crate, in `ops`.
    pub trait Sealed {}
}
