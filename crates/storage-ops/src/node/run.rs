//! One run of an operation on a node.

use std::ops::Deref;
use std::time::Duration;

use os::{Clock, Os, OsError};

use crate::config::Timeouts;
use crate::error::OperationResult;
use crate::node::Node;
use crate::scheduling::{LockKey, OperationContext, PoolKind};
use crate::windows::{self, Fallback, Windows};

/// Whether the storage provider may be asked if the answer of a device says nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderUse {
    /// The provider may not be asked, because a wrong answer could destroy data.
    Forbidden,
    /// The provider may be queried, but not made to refresh its cache.
    QueriesOnly,
    /// The provider may be queried, and made to refresh its cache.
    Allowed,
}

/// One run of an operation: the node, the context, and how the storage provider may be used.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    node: &'a Node,
    context: &'a OperationContext,
    provider_use: ProviderUse,
}

/// A run can do what its context can: enter other pools, and begin a change.
impl Deref for Run<'_> {
    type Target = OperationContext;

    fn deref(&self) -> &OperationContext {
        self.context
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(node: &'a Node, context: &'a OperationContext) -> Self {
        Self {
            node,
            context,
            provider_use: ProviderUse::Allowed,
        }
    }

    /// Returns the same run, in which the storage provider may not be asked.
    pub(crate) fn without_provider(self) -> Self {
        Self {
            provider_use: ProviderUse::Forbidden,
            ..self
        }
    }

    /// Returns the same run, in which the storage provider may only be queried.
    pub(crate) fn with_queries_only(self) -> Self {
        Self {
            provider_use: ProviderUse::QueriesOnly,
            ..self
        }
    }

    pub(crate) fn provider_use(self) -> ProviderUse {
        self.provider_use
    }

    pub(crate) fn node(self) -> &'a Node {
        self.node
    }

    pub(crate) fn windows(self) -> &'a Windows {
        &self.node.windows
    }

    pub(crate) fn os(self) -> &'a dyn Os {
        self.node.windows.os()
    }

    pub(crate) fn clock(self) -> &'a dyn Clock {
        self.node.windows.clock()
    }

    /// Returns how long operations wait for Windows.
    pub(crate) fn timeouts(self) -> &'a Timeouts {
        &self.node.windows.timeouts
    }

    /// Returns the same run with the locks of `context`, which [`OperationContext::try_lock`] has
    /// returned.
    pub(crate) fn in_context<'b>(self, context: &'b OperationContext) -> Run<'b>
    where
        'a: 'b,
    {
        Run { context, ..self }
    }

    /// Returns the pauses between looks at what Windows is about to do, for `timeout`.
    pub(crate) fn pauses(self, timeout: Duration) -> Pauses<'a> {
        Pauses {
            run: self,
            pauses: self.windows().pauses(timeout),
        }
    }

    /// Returns `first`, the result of a primary call. If its error says nothing about the object,
    /// returns the result of the fallback, `second`, which runs on a thread of the pool for WMI,
    /// where the operation then stays. If the fallback fails too, returns the error of `first` with
    /// both reasons.
    pub(crate) async fn or_fallback<T: Send>(
        self,
        fallback: Fallback,
        first: OperationResult<T>,
        second: impl FnOnce() -> OperationResult<T> + Send,
    ) -> OperationResult<T> {
        if self.needs_fallback(&first).is_some() {
            self.enter(PoolKind::Wmi).await;
        }
        self.or_fallback_here(fallback, first, second)
    }

    /// Like [`Self::or_fallback`], for a fallback that runs on the current thread.
    pub(crate) fn or_fallback_here<T>(
        self,
        fallback: Fallback,
        first: OperationResult<T>,
        second: impl FnOnce() -> OperationResult<T>,
    ) -> OperationResult<T> {
        let (Some(code), Err(error)) = (self.needs_fallback(&first), &first) else {
            return first;
        };
        let outcome = second();
        self.windows().fallbacks.record(fallback, code);
        outcome.map_err(|failed| error.clone().with_failed_fallback(&failed))
    }

    /// Returns whether a request other than this one has locked `key`.
    pub(crate) fn is_locked_by_another(self, key: &LockKey) -> bool {
        self.node.locks.is_locked(key) && self.ensure_locked(key).is_err()
    }

    /// Returns the code of an error that says nothing about the object, unless the provider may not
    /// be asked.
    fn needs_fallback<T>(self, first: &OperationResult<T>) -> Option<OsError> {
        let code = first.as_ref().err()?.inconclusive()?;
        (self.provider_use != ProviderUse::Forbidden).then_some(code)
    }
}

/// The pauses between looks at what Windows is about to do.
///
/// The operation pauses on a thread of the pool for arrivals, and takes the next look there unless
/// the look enters another pool. The first look, before any pause, needs no such thread.
pub(crate) struct Pauses<'a> {
    run: Run<'a>,
    pauses: windows::Pauses<'a>,
}

impl Pauses<'_> {
    /// Pauses. Returns false at once if the time has passed, and true otherwise.
    pub(crate) async fn again(&mut self) -> bool {
        if self.pauses.have_passed() {
            return false;
        }
        self.run.enter(PoolKind::Arrivals).await;
        self.pauses.sleep();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::Run;
    use crate::scheduling::context::Wait;
    use crate::scheduling::{OperationContext, PoolKind};
    use crate::{Config, Node};

    #[test]
    fn a_wait_for_volumes_does_not_occupy_a_thread_for_disks() {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        // Looks until something has arrived, which the look with the number `looks` shows, and
        // returns whether that was in time, and the pools that were entered meanwhile.
        let wait = |looks: u32| {
            let context = OperationContext::new(None);
            context.grant_thread(PoolKind::Disks);
            let run = Run::new(&node, &context);
            let mut wait = pin!(async {
                let mut pauses = run.pauses(run.timeouts().arrival);
                let mut count = 1;
                while count < looks {
                    if !pauses.again().await {
                        return false;
                    }
                    count += 1;
                }
                true
            });
            let mut pools = Vec::new();
            loop {
                match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(arrived) => return (arrived, pools),
                    Poll::Pending => {
                        let Some(Wait::ForThread(pool, None)) = context.take_wait() else {
                            panic!("it waits for no pool");
                        };
                        context.grant_thread(pool);
                        pools.push(pool);
                    }
                }
            }
        };
        assert_eq!(wait(1), (true, vec![]), "it has arrived already");
        assert_eq!(wait(3), (true, vec![PoolKind::Arrivals]));
        assert_eq!(wait(u32::MAX), (false, vec![PoolKind::Arrivals]));
    }
}
