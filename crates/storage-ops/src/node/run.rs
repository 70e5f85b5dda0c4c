//! One run of an operation on a node.

use std::ops::Deref;

use os::{Clock, Os};

use crate::config::Timeouts;
use crate::error::OperationResult;
use crate::node::Node;
use crate::scheduling::{OperationContext, PoolKind, RunResult};
use crate::windows::{Fallback, Windows};

/// Whether the storage provider may be asked if the answer of a device says nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderUse {
    /// The provider may not be asked, because a wrong answer could destroy data.
    Forbidden,
    /// The provider may be asked on the current thread, but not changed: the operation has no locks
    /// yet.
    QueriesOnly,
    /// The provider may be asked on a thread of the pool for WMI.
    Allowed,
}

/// One run of an operation: the node, the context, and how the storage provider may be used.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    node: &'a Node,
    context: &'a OperationContext,
    provider_use: ProviderUse,
}

/// A run can do what its context can: request other pools or locks, and begin a change.
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

    /// Returns the same run, in which the storage provider may only be queried, on the current
    /// thread.
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

    /// Waits for volumes to arrive: calls `check` until it returns a value or the time has passed.
    /// Makes only the first call on the current thread, and all others on a thread that does
    /// nothing else.
    pub(crate) fn poll_arrival<T>(
        self,
        mut check: impl FnMut() -> RunResult<Option<T>>,
    ) -> RunResult<Option<T>> {
        if let Some(value) = check()? {
            return Ok(Some(value));
        }
        self.require_pool(PoolKind::Arrivals)?;
        self.windows().poll(self.timeouts().arrival, check)
    }

    /// Returns `first`, the result of a primary call. If its error says nothing about the object,
    /// returns the result of the fallback, `second`. If the fallback fails too, returns the error
    /// of `first` with both reasons.
    pub(crate) fn or_fallback<T>(
        self,
        fallback: Fallback,
        first: OperationResult<T>,
        second: impl FnOnce() -> OperationResult<T>,
    ) -> RunResult<T> {
        let error = match first {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(code) = error
            .inconclusive()
            .filter(|_| self.provider_use != ProviderUse::Forbidden)
        else {
            return Err(error.into());
        };
        if self.provider_use == ProviderUse::Allowed {
            self.require_pool(PoolKind::Wmi)?;
        }
        let outcome = second();
        self.windows().fallbacks.record(fallback, code);
        Ok(outcome.map_err(|failed| error.with_failed_fallback(&failed))?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Run;
    use crate::scheduling::locks::Locks;
    use crate::scheduling::pool_kind::PoolSet;
    use crate::scheduling::{OperationContext, PoolKind, Rerun, RunResult, Stop};
    use crate::{Config, Node};

    #[test]
    fn a_wait_for_volumes_does_not_occupy_a_thread_for_disks() {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        let guard = Arc::new(Locks::default().none());
        // Runs `looks` looks until something has arrived.
        let wait = |pools: &[PoolKind], looks: u32| -> RunResult<bool> {
            let ctx = OperationContext::new(
                Arc::clone(&guard),
                None,
                Some(
                    pools
                        .iter()
                        .fold(PoolSet::default(), |set, pool| set.with(*pool)),
                ),
            );
            let mut count = 0;
            let arrived = Run::new(&node, &ctx).poll_arrival(|| {
                count += 1;
                Ok((count == looks).then_some(()))
            });
            Ok(arrived?.is_some())
        };
        assert_eq!(
            wait(&[PoolKind::Disks], 1),
            Ok(true),
            "it has arrived already"
        );
        let moved = Err(Stop::Rerun(Rerun::InPool(PoolKind::Arrivals, None)));
        assert_eq!(wait(&[PoolKind::Disks], 2), moved);
        assert_eq!(wait(&[PoolKind::Disks, PoolKind::Arrivals], 2), Ok(true));
        assert_eq!(
            wait(&[PoolKind::Disks, PoolKind::Arrivals], u32::MAX),
            Ok(false)
        );
    }
}
