//! Windows as this crate uses it: its primitives and its clock, how long to wait for it, and what
//! is counted about it.

pub(crate) mod device_queries;
pub(crate) mod fallback;
pub(crate) mod wmi_calls;

pub(crate) use device_queries::Device;
pub(crate) use fallback::Fallback;

use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Os, OsResult, Time};

use crate::config::Timeouts;
use crate::windows::device_queries::{DeviceQueries, PATIENCE, Query};
use crate::windows::fallback::Fallbacks;
use crate::windows::wmi_calls::WmiCalls;

/// The primitives of Windows, its clock, and how long to wait for it.
pub(crate) struct Windows {
    os: Arc<dyn Os>,
    /// How long operations wait for Windows.
    pub(crate) timeouts: Timeouts,
    pub(crate) fallbacks: Fallbacks,
    pub(crate) wmi_calls: WmiCalls,
    pub(crate) device_queries: DeviceQueries,
}

impl Windows {
    pub(crate) fn new(os: Arc<dyn Os>, timeouts: Timeouts) -> Self {
        Self {
            os,
            timeouts,
            fallbacks: Fallbacks::default(),
            wmi_calls: WmiCalls::default(),
            device_queries: DeviceQueries::default(),
        }
    }

    pub(crate) fn os(&self) -> &dyn Os {
        &*self.os
    }

    /// Asks each device, for which `query` is given its `T`. Returns the answers in the same order:
    /// `None` for a device that does not answer in time, which is logged.
    pub(crate) fn query_each<T: Send + 'static, R: Send + 'static>(
        &self,
        targets: impl Iterator<Item = (Device, T)>,
        query: Query<T, R>,
    ) -> Vec<(Device, Option<OsResult<R>>)> {
        self.query_each_for(PATIENCE, targets, query)
    }

    /// Like [`Self::query_each`], but waits `longest` for the first device that does not answer.
    pub(crate) fn query_each_for<T: Send + 'static, R: Send + 'static>(
        &self,
        longest: Duration,
        targets: impl Iterator<Item = (Device, T)>,
        query: Query<T, R>,
    ) -> Vec<(Device, Option<OsResult<R>>)> {
        self.device_queries
            .query_each(&self.os, longest, targets, query)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.os.clock()
    }

    /// Returns the pauses between looks at what Windows is about to do, for `timeout`.
    pub(crate) fn pauses(&self, timeout: Duration) -> Pauses<'_> {
        Pauses {
            clock: self.clock(),
            end: self.clock().now() + timeout,
            pause: Duration::from_millis(10),
        }
    }

    /// Calls `check` until it returns a value or `timeout` has passed, with [`Pauses`].
    pub(crate) fn poll<T, E>(
        &self,
        timeout: Duration,
        mut check: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let mut pauses = self.pauses(timeout);
        loop {
            if let Some(value) = check()? {
                return Ok(Some(value));
            }
            if pauses.have_passed() {
                return Ok(None);
            }
            pauses.sleep();
        }
    }
}

/// Pauses that double up to one second.
pub(crate) struct Pauses<'a> {
    clock: &'a dyn Clock,
    end: Time,
    pause: Duration,
}

impl Pauses<'_> {
    /// Returns whether the time for them has passed.
    pub(crate) fn have_passed(&self) -> bool {
        self.clock.now() >= self.end
    }

    pub(crate) fn sleep(&mut self) {
        self.clock.sleep(self.pause);
        self.pause = (self.pause * 2).min(Duration::from_secs(1));
    }
}
