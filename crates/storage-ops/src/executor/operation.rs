//! The trait that every storage operation implements.

use std::fmt;
use std::hash::Hash;

use crate::error::{Error, OperationResult};
use crate::executor::progress::Requester;
use crate::node::Node;
use crate::node::run::Run;
use crate::scheduling::{LockKey, PoolKind, Resource, RunResult};

/// A storage operation with its arguments. Two equal operations request the same thing.
///
/// [`Node::run`] and [`crate::Executor::run`] run an operation. The trait is sealed: only this
/// crate can implement it, because it does not export `Run`. How an operation is run is hidden from
/// the documentation, and may change with any release.
pub trait Operation: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// The result of the operation.
    type Output: Clone + fmt::Debug + Send + Sync + 'static;

    /// The name of the operation.
    const NAME: &'static str;

    /// The pool on whose threads the operation starts.
    #[doc(hidden)]
    const POOL: PoolKind;

    /// Whether an equal operation may share the result.
    #[doc(hidden)]
    const COALESCE: Coalesce = Coalesce::Never;

    /// Whether [`Self::lock_keys`] calls Windows, and so needs a thread of [`Self::POOL`].
    #[doc(hidden)]
    const RESOLVES_LOCKS: bool = false;

    /// Describes the operation with a phrase that can follow "cannot": `mount volume ... at ...`.
    fn describe(&self) -> String;

    /// Refuses the operation if the administrator does not allow it on this object. Runs before
    /// everything else.
    #[doc(hidden)]
    fn check_allowed(&self, _node: &Node) -> OperationResult<()> {
        Ok(())
    }

    /// Returns the resource that the operation waits for, whose quota of the threads limits the
    /// operation.
    #[doc(hidden)]
    fn resource(&self) -> Option<Resource> {
        None
    }

    /// Returns the keys that the operation must lock; none for an operation that only reads.
    ///
    /// A volume is locked by the key of its disk, which is looked up here and checked again by
    /// [`Self::run`].
    #[doc(hidden)]
    fn lock_keys(&self, _node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(Vec::new())
    }

    /// Runs the operation under its locks.
    #[doc(hidden)]
    fn run(&self, run: Run<'_>) -> RunResult<Self::Output>;
}

/// How often an operation is run before it fails: it is run again because its volume has moved to
/// another disk, or because it needs a thread of another pool.
pub(crate) const MAX_RUNS: usize = 6;

/// Converts the result of an operation to that of its request: adds the name and the description of
/// the operation to an error, and records a refused link.
pub(crate) fn conclude<O: Operation>(
    node: &Node,
    operation: &O,
    requester: Requester,
    result: OperationResult<O::Output>,
) -> Result<O::Output, Error> {
    result.map_err(|error| {
        let error = Error::new(O::NAME, operation.describe(), error);
        node.refused_links.record(&error, || requester.span());
        error
    })
}

/// Whether an operation may share the result of an equal one that is in progress (request
/// coalescing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coalesce {
    /// Never, because it changes nothing: a result must not be older than its request.
    Never,
    /// Only while the other operation is queued. A running operation may have read a state that is
    /// older than this request.
    Queued,
    /// While the other operation is queued or running. Its object is locked, so no operation undoes
    /// its change before it ends.
    InFlight,
}
