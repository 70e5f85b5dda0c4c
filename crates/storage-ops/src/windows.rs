//! The data formats and requests of Windows: error codes, device buffers, reparse points, SMBIOS tables, WMI.
//!
//! This layer encodes, sends and decodes a request. The modules in `ops` decide which requests an operation sends, and
//! when.

pub(crate) mod buffer;
pub(crate) mod disk_device;
pub(crate) mod disk_identifiers;
pub(crate) mod error_class;
pub(crate) mod fallback;
pub(crate) mod file_system;
pub(crate) mod mapping_record;
pub(crate) mod msft_storage;
pub(crate) mod reparse_point;
pub(crate) mod smbios;
pub(crate) mod volume_device;
pub(crate) mod wmi;

use std::sync::Arc;
use std::time::Duration;

use os::{Clock, Os};

use crate::config::Timeouts;
use crate::error::OperationResult;
use crate::windows::fallback::Fallbacks;

/// The Windows host: its primitives, its clock, and how long to wait for it.
pub(crate) struct Host {
    os: Arc<dyn Os>,
    timeouts: Timeouts,
    fallbacks: Fallbacks,
}

impl Host {
    pub(crate) fn new(os: Arc<dyn Os>, timeouts: Timeouts) -> Self {
        Self { os, timeouts, fallbacks: Fallbacks::default() }
    }

    /// Returns how long operations wait for Windows.
    pub(crate) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn os(&self) -> &dyn Os {
        &*self.os
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.os.clock()
    }

    /// Calls `check` until it returns a value or `timeout` has passed, with pauses that double up to one second.
    pub(crate) fn poll<T>(
        &self,
        timeout: Duration,
        mut check: impl FnMut() -> OperationResult<Option<T>>,
    ) -> OperationResult<Option<T>> {
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
