//! Worker threads, a bounded number for each kind of work.
//!
//! [`Usage`] has the quotas of a pool. An operation beyond its quota waits. A free thread goes to
//! the connection that has the fewest threads; of connections with equally many, to the operation
//! that has waited longest. So however many slow operations a connection has, another connection
//! waits for at most one of them to end, unless as many connections as threads are slow. The number of waiting operations is not limited here: the
//! server limits the calls that it runs.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe};
use std::task::{Context, Poll, Waker};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::scheduling::pool_kind::PoolKind;
use crate::scheduling::quotas::{Holder, Usage};
use crate::sync::{Arc, Mutex, THREADS_PER_POOL, lock};

/// The number of threads that a [`crate::Executor`] uses at most. The tokio runtime must allow as
/// many blocking threads.
pub const BLOCKING_THREADS: usize = THREADS_PER_POOL * PoolKind::COUNT;

/// The largest memory of the operations of all threads in bytes.
pub const OPERATIONS_MEMORY: usize = {
    let (mut sum, mut index) = (0, 0);
    while index < PoolKind::COUNT {
        sum += THREADS_PER_POOL * PoolKind::ALL[index].operation_memory();
        index += 1;
    }
    sum
};

/// How much of a pool is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolUse {
    /// The pool.
    pub pool: PoolKind,
    /// How many threads the pool may have.
    pub threads: usize,
    /// How many threads are in use.
    pub busy: usize,
    /// How many operations wait for a thread.
    pub waiting: usize,
}

/// The pools of one executor.
#[derive(Default)]
pub(crate) struct WorkerPools([Arc<WorkerPool>; PoolKind::COUNT]);

/// A pool of worker threads.
struct WorkerPool(Mutex<State>);

struct State {
    next_id: u64,
    threads: Usage,
    /// The operations that wait for a thread, in the order of their arrival. The quotas do not
    /// allow them a thread yet.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    holder: Holder,
    waker: Option<Waker>,
}

impl Default for WorkerPool {
    fn default() -> Self {
        Self(Mutex::new(State {
            next_id: 0,
            threads: Usage::new(THREADS_PER_POOL),
            waiting: BTreeMap::new(),
        }))
    }
}

impl WorkerPools {
    /// Waits for a thread of the pool `kind`.
    pub(crate) async fn thread(&self, kind: PoolKind, holder: Holder) -> Thread {
        let request = WorkerPool::enter(&self.0[kind as usize], holder);
        poll_fn(|context| request.poll_thread(context)).await;
        Thread(request)
    }

    /// Returns what an operation that waits for a thread waits for.
    pub(crate) fn wait(&self, kind: PoolKind, holder: &Holder) -> String {
        lock(&self.0[kind as usize].0)
            .threads
            .wait(holder, kind.name())
    }

    /// Returns how much of each pool is in use.
    pub(crate) fn in_use(&self) -> Vec<PoolUse> {
        PoolKind::ALL
            .into_iter()
            .map(|pool| {
                let state = lock(&self.0[pool as usize].0);
                PoolUse {
                    pool,
                    threads: THREADS_PER_POOL,
                    busy: state.threads.in_use(),
                    waiting: state.waiting.len(),
                }
            })
            .collect()
    }
}

impl WorkerPool {
    /// Takes a thread, or joins those that wait for one.
    fn enter(pool: &Arc<Self>, holder: Holder) -> ThreadRequest {
        let mut state = lock(&pool.0);
        let id = state.next_id;
        state.next_id += 1;
        if state.threads.admits(&holder) {
            state.threads.add(&holder);
        } else {
            state.waiting.insert(
                id,
                Waiting {
                    holder: holder.clone(),
                    waker: None,
                },
            );
        }
        drop(state);
        ThreadRequest {
            pool: Arc::clone(pool),
            id,
            holder,
        }
    }
}

impl State {
    /// Gives the threads that are free to operations that may have one now, and returns their
    /// wakers.
    fn hand_out(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(id) = self.next()
            && let Some(Waiting { holder, waker }) = self.waiting.remove(&id)
        {
            self.threads.add(&holder);
            woken.extend(waker);
        }
        woken
    }

    /// Returns the operation that may have the next thread.
    fn next(&self) -> Option<u64> {
        let admitted = self
            .waiting
            .iter()
            .filter(|(_, waiting)| self.threads.admits(&waiting.holder));
        admitted
            .min_by_key(|(_, waiting)| self.threads.of_connection(&waiting.holder))
            .map(|(id, _)| *id)
    }
}

/// A request for a thread. Dropping it cancels it, or returns its thread.
struct ThreadRequest {
    pool: Arc<WorkerPool>,
    id: u64,
    holder: Holder,
}

impl ThreadRequest {
    fn poll_thread(&self, context: &mut Context<'_>) -> Poll<()> {
        match lock(&self.pool.0).waiting.get_mut(&self.id) {
            Some(waiting) => {
                waiting.waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for ThreadRequest {
    fn drop(&mut self) {
        let mut state = lock(&self.pool.0);
        if state.waiting.remove(&self.id).is_some() {
            return;
        }
        state.threads.remove(&self.holder);
        let woken = state.hand_out();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// What a thread runs, and its result.
type Body = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// The permission to use a thread of a pool.
pub(crate) struct Thread(ThreadRequest);

impl Thread {
    /// Runs `body`, which is a part of an operation, and returns its result. Returns `None` if the
    /// runtime is shutting down.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let body = Box::new(move || Box::new(body()) as Box<dyn Any + Send>);
        let result = self.run_boxed(body).await?.downcast();
        Some(*result.expect("the result of the body"))
    }

    /// Compiled once, and not for each operation.
    async fn run_boxed(self, body: Body) -> Option<Box<dyn Any + Send>> {
        // Log events of the thread belong to the same request.
        let span = tracing::Span::current();
        let done = tokio::task::spawn_blocking(move || {
            let Self(request) = self;
            let result = span.in_scope(body);
            drop(request);
            result
        });
        done.await.ok()
    }
}

/// The reason in the error of an operation that panicked.
pub(crate) const DEFECT: &str = "a defect in csi-proxy stopped the operation; see the log";

/// Runs `body` and converts a panic, which the panic hook has logged, into an error.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> OperationResult<T> {
    panic::catch_unwind(AssertUnwindSafe(body))
        .map_err(|_| OperationError::new(ErrorKind::Internal, DEFECT))
}

#[cfg(test)]
mod tests {
    use crate::sync::{THREADS_PER_POOL, lock};
    use crate::types::DiskNumber;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use super::{ThreadRequest, WorkerPool};
    use crate::scheduling::pool_kind::Resource;
    use crate::scheduling::quotas::{ConnectionId, Holder};

    fn holder(disk: u32, connection: u64) -> Holder {
        Holder {
            resource: Some(Resource::Disk(DiskNumber(disk))),
            connection: Some(ConnectionId(connection)),
            is_exempt: false,
        }
    }

    fn enter(pool: &Arc<WorkerPool>, disk: u32, connection: u64) -> ThreadRequest {
        WorkerPool::enter(pool, holder(disk, connection))
    }

    fn has_thread(request: &ThreadRequest) -> bool {
        request
            .poll_thread(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn operations_on_other_resources_overtake_those_of_a_slow_one_but_not_each_other() {
        let pool = Arc::default();
        let slow: Vec<_> = (0..40).map(|_| enter(&pool, 0, 0)).collect();
        assert_eq!(slow.iter().filter(|request| has_thread(request)).count(), 5);
        let mut others: Vec<_> = (1..=20)
            .map(|disk| enter(&pool, disk, disk.into()))
            .collect();
        assert_eq!(
            others.iter().map(has_thread).collect::<Vec<_>>(),
            [vec![true; 11], vec![false; 9]].concat()
        );
        others.remove(3);
        assert_eq!(
            others.iter().map(has_thread).collect::<Vec<_>>(),
            [vec![true; 11], vec![false; 8]].concat(),
            "the first that waits is next"
        );
        drop(others);
        assert_eq!(slow.iter().filter(|request| has_thread(request)).count(), 5);
        drop(slow);
        assert!(lock(&pool.0).waiting.is_empty());
        assert_eq!(
            (0..16)
                .map(|disk| enter(&pool, disk, disk.into()))
                .filter(has_thread)
                .count(),
            THREADS_PER_POOL
        );
    }

    fn at(greedy: &[ThreadRequest]) -> usize {
        greedy
            .iter()
            .position(has_thread)
            .expect("they have all threads but three")
    }

    #[test]
    fn the_next_threads_go_to_the_connections_that_have_the_fewest() {
        let pool = Arc::default();
        // Eight connections take all threads, and many more of their operations wait.
        let mut greedy: Vec<_> = (0..400)
            .map(|n| enter(&pool, n, u64::from(n % 8)))
            .collect();
        assert_eq!(
            greedy.iter().filter(|request| has_thread(request)).count(),
            THREADS_PER_POOL
        );
        let modest = [1000, 1001, 1002].map(|disk| enter(&pool, disk, disk.into()));
        for threads in 0..=3 {
            assert_eq!(
                modest.iter().filter(|request| has_thread(request)).count(),
                threads
            );
            greedy.remove(at(&greedy));
        }
    }
}
