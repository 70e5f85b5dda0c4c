//! Reads on the threads of the runtime.
//!
//! A read of local files is short, so it runs on the thread that polls it. A read can hang, because
//! its disk no longer answers. Two rules keep the runtime at work. First, at least one of its
//! threads runs no read. Second, if a read takes longer than [`PATIENCE`], another thread is woken:
//! the thread that hangs may be the one that waited for network events.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Builder};
use std::time::Duration;

use tokio::runtime::Handle;

/// How long a read may run before another thread is woken.
const PATIENCE: Duration = Duration::from_millis(100);

/// Counts the reads on the threads of the runtime. The first read starts a thread that watches
/// them.
#[derive(Default)]
pub(super) struct InlineReads(OnceLock<Option<Watched>>);

struct Watched {
    running: Arc<AtomicUsize>,
    /// The maximum number of reads.
    limit: usize,
    /// Wakes the thread that watches, which ends when this is dropped.
    begun: SyncSender<()>,
}

/// The permission to run a read on this thread.
pub(super) struct Permit<'a>(&'a AtomicUsize);

impl InlineReads {
    /// Returns the permission to run a read on this thread, unless the runtime has no other thread
    /// to spare.
    pub(super) fn permit(&self) -> Option<Permit<'_>> {
        let Watched {
            running,
            limit,
            begun,
        } = self.0.get_or_init(Watched::start).as_ref()?;
        let permit = Permit(running);
        if running.fetch_add(1, Ordering::SeqCst) >= *limit {
            return None;
        }
        // A full channel means that the thread that watches has yet to look.
        let _ = begun.try_send(());
        Some(permit)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Watched {
    /// Starts the thread that watches. Returns `None` if no read may run on the threads of this
    /// runtime.
    fn start() -> Option<Self> {
        let runtime = Handle::current();
        let limit = runtime
            .metrics()
            .num_workers()
            .checked_sub(1)
            .filter(|limit| *limit > 0)?;
        let running = Arc::new(AtomicUsize::new(0));
        let (begun, reads) = sync_channel(1);
        let watched = Arc::clone(&running);
        // The thread that runs the empty task then waits for network events.
        Builder::new()
            .name("inline-reads".into())
            .spawn(move || {
                wake_while_reads_run(reads, &watched, move || drop(runtime.spawn(async {})));
            })
            .ok()?;
        Some(Self {
            running,
            limit,
            begun,
        })
    }
}

/// Calls `wake` after each [`PATIENCE`] at whose end a read is running. Sleeps while no read
/// begins.
fn wake_while_reads_run(reads: Receiver<()>, running: &AtomicUsize, wake: impl Fn()) {
    for () in reads {
        thread::sleep(PATIENCE);
        while running.load(Ordering::SeqCst) > 0 {
            wake();
            thread::sleep(PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use super::{InlineReads, PATIENCE, wake_while_reads_run};

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn a_read_gets_no_permit_if_it_would_take_the_last_thread() {
        let reads = InlineReads::default();
        let permits = [reads.permit(), reads.permit()];
        assert!(permits.iter().all(Option::is_some) && reads.permit().is_none());
        drop(permits);
        assert!(reads.permit().is_some());
    }

    #[tokio::test]
    async fn a_runtime_with_one_thread_runs_no_read() {
        assert!(InlineReads::default().permit().is_none());
    }

    #[test]
    fn the_runtime_is_woken_while_a_read_runs_and_left_alone_without_reads() {
        let (running, wakes) = (AtomicUsize::new(1), AtomicUsize::new(0));
        let (begun, reads) = sync_channel(1);
        let woken = || wakes.load(Ordering::SeqCst);
        thread::scope(|scope| {
            let (running, wakes) = (&running, &wakes);
            scope.spawn(move || {
                wake_while_reads_run(reads, running, || {
                    wakes.fetch_add(1, Ordering::SeqCst);
                });
            });
            thread::sleep(2 * PATIENCE);
            assert_eq!(woken(), 0, "no read has begun");
            begun.send(()).unwrap();
            while woken() < 3 {
                thread::yield_now();
            }
            running.store(0, Ordering::SeqCst);
            thread::sleep(2 * PATIENCE);
            let before = woken();
            thread::sleep(2 * PATIENCE);
            assert_eq!(woken(), before, "the read has ended");
            // The thread ends with the permits.
            drop(begun);
        });
    }
}
