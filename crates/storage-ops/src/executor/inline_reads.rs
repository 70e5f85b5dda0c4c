//! Reads on the threads of the runtime.
//!
//! A read of local files is short, so it runs on the thread that polls it. Should it hang, because its disk no longer
//! answers, two things keep the runtime at work. One thread less than the runtime has may run reads. And if one does for
//! longer than a moment, another thread is woken: in a runtime whose other threads sleep, the hanging one may be the one
//! that waits for network events, and no other would take its place.

use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Builder};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a read may run before another thread is woken.
const MOMENT: Duration = Duration::from_millis(100);

/// The permits for reads on the threads of the runtime.
#[derive(Default)]
pub(super) struct InlineReads(OnceLock<Option<Arc<Semaphore>>>);

impl InlineReads {
    /// Returns the permit to run a read on this thread, if there is one left. Reads on a runtime without a thread to
    /// spare get none.
    pub(super) fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.0.get_or_init(permits).as_ref()?.try_acquire().ok()
    }
}

fn permits() -> Option<Arc<Semaphore>> {
    let runtime = Handle::current();
    let count = runtime.metrics().num_workers().checked_sub(1).filter(|count| *count > 0)?;
    let permits = Arc::new(Semaphore::new(count));
    let watched = Arc::downgrade(&permits);
    let builder = Builder::new().name("inline-reads".into());
    // Without the thread, no read may run here.
    builder.spawn(move || wake_while_reads_hang(&runtime, &watched, count)).ok()?;
    Some(permits)
}

/// Wakes a thread of the runtime at each moment at which a read is running on one, until the permits are dropped.
fn wake_while_reads_hang(runtime: &Handle, permits: &Weak<Semaphore>, count: usize) {
    while let Some(permits) = permits.upgrade() {
        if permits.available_permits() < count {
            // The thread that runs this then waits for network events.
            runtime.spawn(async {});
        }
        drop(permits);
        thread::sleep(MOMENT);
    }
}
