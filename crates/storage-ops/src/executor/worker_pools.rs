//! Worker threads, a bounded number for each kind of work.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os::{Clock, Time};
use tokio::sync::Semaphore;

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::pool_kind::PoolKind;

/// The number of threads of a pool.
const THREADS_PER_POOL: usize = 16;

/// The number of operations that may wait for a thread of a pool.
const QUEUE_CAPACITY: usize = 256;

/// The number of threads that a [`crate::Executor`] uses at most. The tokio runtime must allow as many blocking
/// threads.
pub const BLOCKING_THREADS: usize = THREADS_PER_POOL * 5;

/// Work that can describe itself.
pub(crate) trait Work: Send + Sync {
    /// Describes the work with a phrase that can follow "cannot".
    fn describe(&self) -> String;
}

/// The pools of one executor.
#[derive(Default)]
pub(crate) struct WorkerPools(Mutex<HashMap<PoolKind, Arc<WorkerPool>>>);

/// A pool of worker threads.
struct WorkerPool {
    threads: Arc<Semaphore>,
    /// One permit for each operation that has a thread or waits for one.
    admission: Arc<Semaphore>,
    running: Mutex<RunningWork>,
}

#[derive(Default)]
struct RunningWork {
    next_id: u64,
    by_id: BTreeMap<u64, (Time, Arc<dyn Work>)>,
}

impl WorkerPools {
    /// Runs `body` on a thread of the pool `kind`. Waits for a thread, or fails if too many operations are waiting
    /// already.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        kind: PoolKind,
        work: Arc<dyn Work>,
        clock: &dyn Clock,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> OperationResult<T> {
        let pool = self.pool(kind);
        let Ok(admitted) = Arc::clone(&pool.admission).try_acquire_owned() else {
            return Err(pool.exhausted(kind, clock.now()));
        };
        let thread = Arc::clone(&pool.threads).acquire_owned().await.expect("the semaphore is never closed");
        let since = clock.now();
        // Log events of the thread belong to the same request.
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let registration = pool.register(since, work);
            let value = span.in_scope(body);
            drop(registration);
            drop((thread, admitted));
            value
        });
        done.await.map_err(|failure| {
            tracing::error!(%failure, "an operation panicked");
            OperationError::new(Kind::Internal, DEFECT)
        })
    }

    fn pool(&self, kind: PoolKind) -> Arc<WorkerPool> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(pools.entry(kind).or_insert_with(|| {
            let (threads, admission) = (
                Arc::new(Semaphore::new(THREADS_PER_POOL)),
                Arc::new(Semaphore::new(THREADS_PER_POOL + QUEUE_CAPACITY)),
            );
            Arc::new(WorkerPool { threads, admission, running: Mutex::default() })
        }))
    }
}

/// The reason in the error of an operation that panicked.
pub(crate) const DEFECT: &str = "a defect in csi-proxy stopped the operation; see the log";

impl WorkerPool {
    fn running(&self) -> MutexGuard<'_, RunningWork> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(self: &Arc<Self>, since: Time, work: Arc<dyn Work>) -> Registration {
        let mut running = self.running();
        let id = running.next_id;
        running.next_id += 1;
        running.by_id.insert(id, (since, work));
        drop(running);
        Registration { pool: Arc::clone(self), id }
    }

    fn exhausted(&self, kind: PoolKind, now: Time) -> OperationError {
        let running = self.running();
        let oldest = running.by_id.values().next().map_or_else(String::new, |(since, work)| {
            format!("; the oldest has been trying to {} for {} s", work.describe(), (now - *since).as_secs())
        });
        let count = running.by_id.len();
        OperationError::new(
            Kind::Unavailable,
            format!("all threads for {} are in use ({count} running){oldest}", kind.purpose()),
        )
    }
}

/// The registration of running work. Dropping it removes the work.
struct Registration {
    pool: Arc<WorkerPool>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.pool.running().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCKING_THREADS, WorkerPools};
    use crate::executor::pool_kind::PoolKind;

    #[test]
    fn blocking_threads_is_the_number_of_threads_of_all_pools() {
        let pools = WorkerPools::default();
        let threads = |kind| pools.pool(kind).threads.available_permits();
        let all: usize = [PoolKind::Files, PoolKind::Remote, PoolKind::Disks, PoolKind::Wmi, PoolKind::System]
            .map(threads)
            .iter()
            .sum();
        assert_eq!(all, BLOCKING_THREADS);
    }
}
