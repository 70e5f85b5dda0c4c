//! Worker threads, a bounded number for each kind of work.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os::{Clock, Time};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::operation::Operation;
use crate::executor::pool_kind::PoolKind;

/// The number of threads of a pool.
const THREADS_PER_POOL: usize = 16;

/// The number of operations that may wait for a thread of a pool.
const QUEUE_CAPACITY: usize = 256;

/// The number of threads that a [`crate::Executor`] uses at most. The tokio runtime must allow as many blocking
/// threads.
pub const BLOCKING_THREADS: usize = THREADS_PER_POOL * 5;

/// Whether the limit on waiting operations applies to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueLimit {
    /// The operation is refused if too many wait already.
    Applies,
    /// The operation has already changed something, so it waits in any case.
    DoesNotApply,
}

/// The pools of one executor.
#[derive(Default)]
pub(crate) struct WorkerPools([Arc<WorkerPool>; 5]);

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

/// Work that can describe itself.
trait Work: Send + Sync {
    /// Describes the work with a phrase that can follow "cannot".
    fn describe(&self) -> String;
}

impl<O: Operation> Work for O {
    fn describe(&self) -> String {
        Operation::describe(self)
    }
}

impl Default for WorkerPool {
    fn default() -> Self {
        Self {
            threads: Arc::new(Semaphore::new(THREADS_PER_POOL)),
            admission: Arc::new(Semaphore::new(THREADS_PER_POOL + QUEUE_CAPACITY)),
            running: Mutex::default(),
        }
    }
}

impl WorkerPools {
    /// Waits for a thread of the pool `kind`. Fails if the limit applies and too many operations wait already.
    pub(crate) async fn thread(&self, kind: PoolKind, clock: &dyn Clock, limit: QueueLimit) -> OperationResult<Thread> {
        let pool = &self.0[kind as usize];
        let admitted = Arc::clone(&pool.admission).try_acquire_owned().ok();
        if admitted.is_none() && limit == QueueLimit::Applies {
            return Err(pool.exhausted(kind, clock.now()));
        }
        let permit = Arc::clone(&pool.threads).acquire_owned().await.expect("the semaphore is never closed");
        Ok(Thread { pool: Arc::clone(pool), since: clock.now(), permits: (Some(permit), admitted) })
    }
}

/// The permission to use a thread of a pool.
pub(crate) struct Thread {
    pool: Arc<WorkerPool>,
    since: Time,
    permits: (Option<OwnedSemaphorePermit>, Option<OwnedSemaphorePermit>),
}

impl Thread {
    /// Runs `body`, which is a part of `operation`, and returns its result.
    pub(crate) async fn run<O: Operation, T: Send + 'static>(
        self,
        operation: Arc<O>,
        body: impl FnOnce() -> OperationResult<T> + Send + 'static,
    ) -> OperationResult<T> {
        // Log events of the thread belong to the same request.
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let registration = self.pool.register(self.since, operation);
            let result = span.in_scope(|| catch_panic(body));
            drop(registration);
            drop(self.permits);
            result
        });
        // The runtime is shutting down if it does not run the body.
        done.await.unwrap_or_else(|_| Err(OperationError::new(Kind::Internal, "the daemon is shutting down")))
    }
}

/// The reason in the error of an operation that panicked.
pub(crate) const DEFECT: &str = "a defect in csi-proxy stopped the operation; see the log";

/// Runs `body` and converts a panic, which the panic hook has logged, into an error.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> OperationResult<T>) -> OperationResult<T> {
    panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(OperationError::new(Kind::Internal, DEFECT)))
}

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

    #[test]
    fn blocking_threads_is_the_number_of_threads_of_all_pools() {
        let pools = WorkerPools::default();
        let all: usize = pools.0.iter().map(|pool| pool.threads.available_permits()).sum();
        assert_eq!(all, BLOCKING_THREADS);
    }
}
