//! A count of active things, such as open connections, with a way to wait until it is zero.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many [`ActiveGuard`]s exist.
#[derive(Debug, Default)]
pub(crate) struct ActiveCount {
    count: AtomicUsize,
    zero: Notify,
}

/// Counts as one until it is dropped.
#[derive(Debug)]
pub(crate) struct ActiveGuard(Arc<ActiveCount>);

impl ActiveCount {
    /// Adds one until the returned guard is dropped.
    pub(crate) fn add(self: &Arc<Self>) -> ActiveGuard {
        self.count.fetch_add(1, Ordering::AcqRel);
        ActiveGuard(Arc::clone(self))
    }

    pub(crate) fn get(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Waits until the count is zero.
    pub(crate) async fn zero(&self) {
        loop {
            let mut notified = pin!(self.zero.notified());
            // Subscribes before the check, so that a drop between the check and the wait is not missed.
            notified.as_mut().enable();
            if self.get() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.zero.notify_waiters();
        }
    }
}
