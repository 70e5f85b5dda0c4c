//! Runs an operation on the thread of its caller.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::error::{Error, OperationResult};
use crate::executor::operation::{Operation, conclude, conduct};
use crate::node::Node;
use crate::scheduling::context::Wait;
use crate::scheduling::locks::Guard;
use crate::scheduling::requester::Requester;
use crate::scheduling::{LockKey, OperationContext};
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
        let context = OperationContext::new(None);
        let mut course = pin!(conduct(self, operation, &context));
        loop {
            let polled = course
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()));
            match (polled, context.take_wait()) {
                (Poll::Ready(result), _) => return result,
                (Poll::Pending, Some(Wait::ForLocks(keys))) => {
                    context.set_locks(Some(Arc::new(self.lock(keys))));
                }
                // This thread belongs to every pool.
                (Poll::Pending, Some(Wait::ForThread(pool, _))) => context.grant_thread(pool),
                (Poll::Pending, None) => unreachable!("an operation waits only for its context"),
            }
        }
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
