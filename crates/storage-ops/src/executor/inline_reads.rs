//! Reads on the threads of the runtime.
//!
//! A read of local files is short, so it runs on the thread that polls it. Should it hang, because its disk no longer
//! answers, two things keep the runtime at work. One thread less than the runtime has may run reads. And if one does for
//! longer than a moment, another thread is woken: in a runtime whose other threads sleep, the hanging one may be the one
//! that waits for network events, and no other would take its place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Builder, Thread};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a read may run before another thread is woken.
const MOMENT: Duration = Duration::from_millis(100);

/// The permits for reads on the threads of the runtime.
#[derive(Default)]
pub(super) struct InlineReads(OnceLock<Option<Watched>>);

/// The permits, and the thread that watches whether they come back. It sleeps while no read has begun.
struct Watched {
    reads: Arc<Reads>,
    watcher: Thread,
}

struct Reads {
    permits: Semaphore,
    count: usize,
    /// Whether a read has begun since the watcher looked.
    has_begun: AtomicBool,
}

impl InlineReads {
    /// Returns the permit to run a read on this thread, if there is one left. Reads on a runtime without a thread to
    /// spare get none.
    pub(super) fn permit(&self) -> Option<SemaphorePermit<'_>> {
        let Watched { reads, watcher } = self.0.get_or_init(watched).as_ref()?;
        let permit = reads.permits.try_acquire().ok()?;
        if !reads.has_begun.swap(true, Ordering::SeqCst) {
            watcher.unpark();
        }
        Some(permit)
    }
}

impl Drop for InlineReads {
    fn drop(&mut self) {
        if let Some(Some(Watched { reads, watcher })) = self.0.take() {
            drop(reads);
            watcher.unpark();
        }
    }
}

fn watched() -> Option<Watched> {
    let runtime = Handle::current();
    let count = runtime.metrics().num_workers().saturating_sub(1);
    if count == 0 {
        return None;
    }
    let reads = Arc::new(Reads { permits: Semaphore::new(count), count, has_begun: AtomicBool::new(false) });
    let weak = Arc::downgrade(&reads);
    let builder = Builder::new().name("inline-reads".into());
    // Without the thread, no read may run here.
    let watcher = builder.spawn(move || wake_while_reads_hang(&runtime, &weak)).ok()?.thread().clone();
    Some(Watched { reads, watcher })
}

/// Wakes a thread of the runtime at each moment at which a read is running on one, until the permits are dropped.
fn wake_while_reads_hang(runtime: &Handle, reads: &Weak<Reads>) {
    while let Some(reads) = reads.upgrade() {
        // Before the permits, so that a read that takes one afterwards finds that it has to wake this thread.
        let has_begun = reads.has_begun.swap(false, Ordering::SeqCst);
        let is_running = reads.permits.available_permits() < reads.count;
        drop(reads);
        if is_running {
            // The thread that runs this then waits for network events.
            runtime.spawn(async {});
        }
        if !is_running && !has_begun {
            thread::park();
        }
        thread::sleep(MOMENT);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::thread;
    use std::time::Duration;

    use super::InlineReads;

    /// Returns the folders in `/proc` of the threads that watch reads.
    fn watchers() -> Vec<PathBuf> {
        let threads = fs::read_dir("/proc/self/task").expect("the threads");
        let folders = threads.filter_map(|thread| Some(thread.ok()?.path()));
        let is_watcher = |folder: &PathBuf| {
            fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.trim_end() == "inline-reads")
        };
        folders.filter(is_watcher).collect()
    }

    /// Returns how many times the threads have slept, as Linux counts it.
    fn sleeps() -> Vec<String> {
        let status = |folder: PathBuf| fs::read_to_string(folder.join("status")).unwrap_or_default();
        let of = |status: String| status.lines().find(|line| line.starts_with("voluntary")).map(ToOwned::to_owned);
        watchers().into_iter().filter_map(|folder| of(status(folder))).collect()
    }

    /// Waits until `holds` returns true.
    fn until(holds: impl Fn() -> bool) {
        let mut attempts = 0;
        while !holds() {
            attempts += 1;
            assert!(attempts < 120);
            thread::sleep(Duration::from_millis(500));
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_wakes_while_no_read_runs_and_the_thread_ends_with_the_permits() {
        if std::env::consts::OS != "linux" {
            let test = "nothing_wakes_while_no_read_runs_and_the_thread_ends_with_the_permits";
            println!("skipped: {test}: only Linux tells in /proc how often a thread has slept");
            return;
        }
        let reads = InlineReads::default();
        for _ in 0..3 {
            drop(reads.permit().expect("a permit"));
            until(|| !watchers().is_empty());
            until(|| {
                let before = sleeps();
                thread::sleep(Duration::from_secs(1));
                sleeps() == before
            });
        }
        // A read that hangs is watched again.
        let permit = reads.permit().expect("a permit");
        let before = sleeps();
        until(|| sleeps() != before);
        drop(permit);
        drop(reads);
        until(|| watchers().is_empty());
    }
}
