//! Why a run of an operation stops before its end.

use os::OsError;

use crate::error::{OperationError, OperationResult};
use crate::scheduling::pool_kind::{PoolKind, Resource};

/// Why a run of an operation stops before its end.
///
/// A rerun is no error: code that handles an [`OperationError`] cannot handle a rerun by mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The operation must be run again from its beginning.
    Rerun(Rerun),
    /// The operation has failed.
    Failed(OperationError),
}

/// Why an operation must be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// The next call may hang, so a thread of this pool must make it. The call waits for this
    /// resource, or for the resource of the operation if this is `None`.
    InPool(PoolKind, Option<Resource>),
    /// The volume is not on the disk that is locked.
    WithOtherLocks,
}

/// The result of a part of an operation that may request a rerun.
pub(crate) type RunResult<T> = Result<T, Stop>;

impl Stop {
    /// Changes the error. A rerun stays as it is.
    pub(crate) fn map(self, change: impl FnOnce(OperationError) -> OperationError) -> Self {
        match self {
            Self::Failed(error) => Self::Failed(change(error)),
            Self::Rerun(rerun) => Self::Rerun(rerun),
        }
    }
}

/// Returns the result of a part of an operation, for code that handles its error. Passes a rerun
/// on.
pub(crate) fn caught<T>(result: RunResult<T>) -> RunResult<OperationResult<T>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Stop::Failed(error)) => Ok(Err(error)),
        Err(rerun) => Err(rerun),
    }
}

/// Returns the result of a part of an operation that has failed.
pub(crate) fn failed<T>(error: OperationError) -> RunResult<T> {
    Err(Stop::Failed(error))
}

/// Returns the result of a part of an operation that the state of the node does not allow.
pub(crate) fn failed_precondition<T>(reason: impl Into<String>) -> RunResult<T> {
    failed(OperationError::precondition(reason))
}

impl From<OperationError> for Stop {
    fn from(error: OperationError) -> Self {
        Self::Failed(error)
    }
}

impl From<OsError> for Stop {
    fn from(code: OsError) -> Self {
        Self::Failed(code.into())
    }
}
