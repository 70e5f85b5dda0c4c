//! How many of something there are, and the moment when none is left.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// A number that goes up and down by itself.
#[derive(Debug, Default)]
pub(crate) struct ActiveCount {
    number: AtomicUsize,
    none: Notify,
}

/// One of them; dropping it counts down.
#[derive(Debug)]
pub(crate) struct ActiveGuard(Arc<ActiveCount>);

impl ActiveCount {
    pub(crate) fn up(count: &Arc<Self>) -> ActiveGuard {
        count.number.fetch_add(1, Ordering::AcqRel);
        ActiveGuard(Arc::clone(count))
    }

    pub(crate) fn now(&self) -> usize {
        self.number.load(Ordering::Acquire)
    }

    pub(crate) async fn none(&self) {
        loop {
            let mut told = pin!(self.none.notified());
            // Listens first, so that an end between the look and the wait is not missed.
            told.as_mut().enable();
            if self.now() == 0 {
                return;
            }
            told.await;
        }
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        if self.0.number.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
