//! Runs an operation on the thread of its caller.

use std::pin::pin;

use crate::error::{Error, OperationError, OperationResult};
use crate::executor::operation::{MAX_RUNS, Operation, conclude};
use crate::executor::progress::Requester;
use crate::node::Node;
use crate::node::run::Run;
use crate::scheduling::locks::Guard;
use crate::scheduling::{LockKey, OperationContext, RunResult, caught};
use crate::sync::Arc;

impl Node {
    /// Runs `operation` on this thread and blocks until it has ended.
    pub fn run<O: Operation>(&self, operation: &O) -> Result<O::Output, Error> {
        conclude(
            self,
            operation,
            Requester::default(),
            self.result_of(operation),
        )
    }

    fn result_of<O: Operation>(&self, operation: &O) -> OperationResult<O::Output> {
        operation.check_allowed(self)?;
        for _ in 0..MAX_RUNS {
            if let Ok(result) = caught(self.run_locked(operation)) {
                return result;
            }
        }
        Err(OperationError::too_many_reruns(MAX_RUNS))
    }

    fn run_locked<O: Operation>(&self, operation: &O) -> RunResult<O::Output> {
        let keys = operation.lock_keys(self)?;
        let context = OperationContext::new(Arc::new(self.lock(keys)), None, None);
        operation.run(Run::new(self, &context))
    }

    fn lock(&self, keys: Vec<LockKey>) -> Guard {
        let mut guard = None;
        {
            let mut wait = pin!(async { guard = Some(self.locks.acquire(keys).await) });
            self.windows.clock().block_on(wait.as_mut());
        }
        guard.expect("block_on returns when the locks are acquired")
    }
}
