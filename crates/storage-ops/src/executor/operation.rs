//! The trait that every storage operation implements.

use std::fmt;
use std::future::{Future, ready};
use std::hash::Hash;

use crate::error::{Error, OperationError, OperationResult};
use crate::node::Node;
use crate::node::run::Run;
use crate::scheduling::requester::Requester;
use crate::scheduling::{LockKey, OperationContext, PoolKind, Resource};

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

    /// Whether [`Self::look_up_lock_keys`] looks at the node.
    #[doc(hidden)]
    const LOOKS_UP_LOCKS: bool = false;

    /// Describes the operation with a phrase that can follow "cannot": `mount volume ... at ...`.
    fn describe(&self) -> String;

    /// Refuses the operation if the administrator does not allow it on this object: a path must be
    /// in a working directory, and a name must be on its list. Runs once for each request, before
    /// everything else, so the operation does not check this again.
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

    /// Returns the keys that the arguments name and that the operation must lock; none for an
    /// operation that only reads.
    #[doc(hidden)]
    fn lock_keys(&self) -> Vec<LockKey> {
        Vec::new()
    }

    /// Looks up the further keys that the operation must lock, such as the disk of a volume, on a
    /// thread of [`Self::POOL`] or, after a fallback, of the pool for WMI. [`conduct`] calls this
    /// before it requests the locks and again when it has them: the object may have moved meanwhile.
    #[doc(hidden)]
    fn look_up_lock_keys(
        &self,
        _run: Run<'_>,
    ) -> impl Future<Output = OperationResult<Vec<LockKey>>> + Send {
        ready(Ok(Vec::new()))
    }

    /// Runs the operation once, under its locks. It begins on a thread of [`Self::POOL`], and may
    /// continue on another thread after [`OperationContext::enter`]. Calls that one thread must make
    /// have no `enter` between them.
    #[doc(hidden)]
    fn run(&self, run: Run<'_>) -> impl Future<Output = OperationResult<Self::Output>> + Send;
}

/// The maximum number of lock requests of one operation whose looked-up keys keep changing.
const MAX_LOCK_REQUESTS: usize = 6;

/// Runs an operation from its beginning to its end. The future is pending only after it has set a
/// [`Wait`](crate::scheduling::context::Wait) in `context`.
///
/// This is the course of every operation, whoever polls it: [`Node::run`] on the thread of its
/// caller, and the executor on the threads of its pools.
pub(crate) async fn conduct<O: Operation>(
    node: &Node,
    operation: &O,
    context: &OperationContext,
) -> OperationResult<O::Output> {
    let run = Run::new(node, context);
    if O::COALESCE == Coalesce::Never {
        run.enter(O::POOL).await;
        return operation.run(run).await;
    }
    let named = operation.lock_keys();
    let mut found = look_up(operation, run).await?;
    for _ in 0..MAX_LOCK_REQUESTS {
        run.lock([&named[..], &found].concat()).await;
        let now = look_up(operation, run).await?;
        if now == found {
            run.enter(O::POOL).await;
            return operation.run(run).await;
        }
        context.set_locks(None);
        found = now;
    }
    Err(OperationError::precondition(format!(
        "gave up after {MAX_LOCK_REQUESTS} attempts, because the objects to lock changed each time"
    )))
}

async fn look_up<O: Operation>(operation: &O, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
    if !O::LOOKS_UP_LOCKS {
        return Ok(Vec::new());
    }
    run.enter(O::POOL).await;
    operation.look_up_lock_keys(run.with_queries_only()).await
}

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
