//! Threads for each kind of work, and an answer where they are all taken.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os::{Clock, Time};
use tokio::sync::Semaphore;

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::PoolKind;

/// How many threads a lane has.
const THREADS: usize = 16;

/// How many requests may wait for a thread of a lane.
const QUEUE: usize = 256;

/// All threads that a [`crate::Executor`] can keep at once; the runtime must allow as many for blocking work.
pub const BLOCKING_THREADS: usize = THREADS * 5;

/// Work that can say what it is.
pub(crate) trait Work: Send + Sync {
    /// What it does, to go after "cannot".
    fn describe(&self) -> String;
}

/// The lanes of one executor.
#[derive(Default)]
pub(crate) struct WorkerPools(Mutex<HashMap<PoolKind, Arc<WorkerPool>>>);

/// One lane.
struct WorkerPool {
    threads: Arc<Semaphore>,
    places: Arc<Semaphore>,
    busy: Mutex<Busy>,
}

#[derive(Default)]
struct Busy {
    next: u64,
    running: BTreeMap<u64, (Time, Arc<dyn Work>)>,
}

impl WorkerPools {
    /// Runs `body` on a thread of `lane`, waiting for one if there is room to wait.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        lane: PoolKind,
        work: Arc<dyn Work>,
        clock: &dyn Clock,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> OperationResult<T> {
        let track = self.track(lane);
        let Ok(place) = Arc::clone(&track.places).try_acquire_owned() else {
            return Err(track.full(lane, clock.now()));
        };
        let thread = Arc::clone(&track.threads).acquire_owned().await.expect("never closed");
        let since = clock.now();
        // What is logged on that thread belongs to the same request.
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let entry = track.enter(since, work);
            let value = span.in_scope(body);
            drop(entry);
            drop((thread, place));
            value
        });
        done.await.map_err(|failure| {
            tracing::error!(%failure, "an operation panicked");
            OperationError::new(Kind::Internal, "a defect in csi-proxy stopped it; the log has more")
        })
    }

    fn track(&self, lane: PoolKind) -> Arc<WorkerPool> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lanes.entry(lane).or_insert_with(|| {
            let busy = Mutex::default();
            let (threads, places) = (Arc::new(Semaphore::new(THREADS)), Arc::new(Semaphore::new(THREADS + QUEUE)));
            Arc::new(WorkerPool { threads, places, busy })
        }))
    }
}

impl WorkerPool {
    fn busy(&self) -> MutexGuard<'_, Busy> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, since: Time, work: Arc<dyn Work>) -> Entry {
        let mut busy = self.busy();
        let id = busy.next;
        busy.next += 1;
        busy.running.insert(id, (since, work));
        drop(busy);
        Entry { track: Arc::clone(self), id }
    }

    fn full(&self, lane: PoolKind, now: Time) -> OperationError {
        let busy = self.busy();
        let oldest = busy.running.values().next().map_or_else(String::new, |(since, work)| {
            format!("; the longest tries to {} for {} s", work.describe(), (now - *since).as_secs())
        });
        let running = busy.running.len();
        OperationError::new(
            Kind::Unavailable,
            format!("all threads for {} are taken ({running} running){oldest}", lane.what()),
        )
    }
}

/// A thread's entry in the list of what runs, taken out when dropped.
struct Entry {
    track: Arc<WorkerPool>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.track.busy().running.remove(&self.id);
    }
}

impl PoolKind {
    fn what(self) -> &'static str {
        match self {
            Self::Files => "local files",
            Self::Remote => "remote paths",
            Self::Disks => "disks",
            Self::Wmi => "WMI",
            Self::System => "services",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKING_THREADS, WorkerPools};
    use crate::executor::context::PoolKind;

    #[test]
    fn all_lanes_together_keep_as_many_threads_as_the_runtime_is_asked_for() {
        let lanes = WorkerPools::default();
        let threads = |lane| lanes.track(lane).threads.available_permits();
        let all: usize = [PoolKind::Files, PoolKind::Remote, PoolKind::Disks, PoolKind::Wmi, PoolKind::System]
            .map(threads)
            .iter()
            .sum();
        assert_eq!(all, BLOCKING_THREADS);
    }
}
