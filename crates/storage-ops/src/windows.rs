//! Windows' own formats and interfaces: device buffers, reparse points, SMBIOS tables, WMI and the storage provider.

pub(crate) mod buffer;
pub(crate) mod disk_device;
pub(crate) mod disk_identifiers;
pub(crate) mod error_class;
pub(crate) mod file_system_signatures;
pub(crate) mod msft_storage;
pub(crate) mod partition_table;
pub(crate) mod reparse_point;
pub(crate) mod smbios;
pub(crate) mod volume_device;
pub(crate) mod wmi;

use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Os, Time};

use crate::config::Timeouts;
use crate::error::OperationResult;

/// The system that operations run on, and how long to wait for it.
pub(crate) struct Host {
    os: Arc<dyn Os>,
    timeouts: Timeouts,
}

impl Host {
    pub(crate) fn new(os: Arc<dyn Os>, timeouts: Timeouts) -> Self {
        Self { os, timeouts }
    }

    /// How long to wait for what.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn os(&self) -> &dyn Os {
        &*self.os
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.os.clock()
    }

    /// `span` from now.
    pub(crate) fn after(&self, span: Duration) -> Time {
        self.clock().now() + span
    }

    /// Looks until `found` answers something or `timeout` has run out.
    pub(crate) fn poll<T>(
        &self,
        timeout: Duration,
        mut found: impl FnMut() -> OperationResult<Option<T>>,
    ) -> OperationResult<Option<T>> {
        let end = self.after(timeout);
        let mut pause = Duration::from_millis(10);
        loop {
            if let Some(value) = found()? {
                return Ok(Some(value));
            }
            if self.clock().now() >= end {
                return Ok(None);
            }
            self.clock().sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }
}
