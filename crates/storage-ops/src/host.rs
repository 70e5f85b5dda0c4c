//! The Windows host: its primitives and its clock, how long to wait for it, and what is counted about it.

pub(crate) mod device_queries;
pub(crate) mod fallback;
pub(crate) mod wmi_calls;

use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Os};

use crate::config::Timeouts;
use crate::host::device_queries::DeviceQueries;
use crate::host::fallback::Fallbacks;
use crate::host::wmi_calls::ProviderCalls;
use crate::scheduling::context::OperationContext;
use crate::scheduling::pool_kind::PoolKind;
use crate::scheduling::stop::RunResult;

/// The Windows host: its primitives, its clock, and how long to wait for it.
pub(crate) struct Host {
    os: Arc<dyn Os>,
    timeouts: Timeouts,
    fallbacks: Fallbacks,
    provider_calls: ProviderCalls,
    device_queries: DeviceQueries,
}

impl Host {
    pub(crate) fn new(os: Arc<dyn Os>, timeouts: Timeouts) -> Self {
        Self {
            os,
            timeouts,
            fallbacks: Fallbacks::default(),
            provider_calls: ProviderCalls::default(),
            device_queries: DeviceQueries::default(),
        }
    }

    /// Returns how long operations wait for Windows.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn os(&self) -> &dyn Os {
        &*self.os
    }

    pub(crate) fn device_queries(&self) -> &DeviceQueries {
        &self.device_queries
    }

    pub(crate) fn provider_calls(&self) -> &ProviderCalls {
        &self.provider_calls
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.os.clock()
    }

    /// Waits for volumes to arrive: calls `check` and, on a thread that does nothing else, calls it until it returns a
    /// value or the time has passed.
    pub(crate) fn poll_arrival<T>(
        &self,
        ctx: &OperationContext,
        mut check: impl FnMut() -> RunResult<Option<T>>,
    ) -> RunResult<Option<T>> {
        if let Some(value) = check()? {
            return Ok(Some(value));
        }
        ctx.require_pool(PoolKind::Arrivals)?;
        self.poll(self.timeouts.arrival, check)
    }

    /// Calls `check` until it returns a value or `timeout` has passed, with pauses that double up to one second.
    pub(crate) fn poll<T, E>(
        &self,
        timeout: Duration,
        mut check: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let end = self.clock().now() + timeout;
        let mut pause = Duration::from_millis(10);
        loop {
            if let Some(value) = check()? {
                return Ok(Some(value));
            }
            if self.clock().now() >= end {
                return Ok(None);
            }
            self.clock().sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use super::Host;
    use crate::Timeouts;
    use crate::scheduling::context::OperationContext;
    use crate::scheduling::locks::Locks;
    use crate::scheduling::pool_kind::PoolKind;
    use crate::scheduling::stop::{Rerun, RunResult, Stop};

    #[test]
    fn a_wait_for_volumes_does_not_occupy_a_thread_for_disks() {
        let host = Host::new(os_sim::node().build().process(), Timeouts::default());
        let mut lock = pin!(Locks::default().acquire(Vec::new()));
        let Poll::Ready(guard) = lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { panic!("no key") };
        let guard = Arc::new(guard);
        // Runs `looks` looks until something has arrived.
        let wait = |pools: &[PoolKind], looks: u32| -> RunResult<bool> {
            let ctx = OperationContext::new(Arc::clone(&guard), None, Some(pools.to_vec()));
            let mut count = 0;
            let arrived = host.poll_arrival(&ctx, || {
                count += 1;
                Ok((count == looks).then_some(()))
            });
            Ok(arrived?.is_some())
        };
        assert_eq!(wait(&[PoolKind::Disks], 1), Ok(true), "it has arrived already");
        let moved = Err(Stop::Rerun(Rerun::InPool(PoolKind::Arrivals, None)));
        assert_eq!(wait(&[PoolKind::Disks], 2), moved);
        assert_eq!(wait(&[PoolKind::Disks, PoolKind::Arrivals], 2), Ok(true));
        assert_eq!(wait(&[PoolKind::Disks, PoolKind::Arrivals], u32::MAX), Ok(false));
    }
}
