//! Worker threads, a bounded number for each kind of work.
//!
//! An operation that may have no thread yet waits in a queue, in which it is overtaken only by operations for other
//! resources or clients. The threads and the places in the queue are shared as [`Usage`] describes.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use os::{Clock, Time};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::operation::Operation;
use crate::executor::pool_kind::PoolKind;
use crate::executor::shares::{Holder, Usage};

/// The number of threads of a pool.
const THREADS_PER_POOL: usize = 16;

/// The number of operations that may wait for a thread of a pool.
const QUEUE_CAPACITY: usize = 1024;

/// The number of threads that a [`crate::Executor`] uses at most. The tokio runtime must allow as many blocking
/// threads.
pub const BLOCKING_THREADS: usize = THREADS_PER_POOL * PoolKind::COUNT;

/// Whether the limits apply to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueLimit {
    /// The operation waits until its shares allow it a thread, and is refused if too many wait already.
    Applies,
    /// The operation has already changed something, so it waits in any case, and needs no share.
    DoesNotApply,
}

/// The pools of one executor.
#[derive(Default)]
pub(crate) struct WorkerPools([Arc<WorkerPool>; PoolKind::COUNT]);

/// A pool of worker threads.
struct WorkerPool(Mutex<State>);

struct State {
    next_id: u64,
    threads: Usage,
    queue: Usage,
    /// The operations in the queue, in the order of their arrival. None of them may have a thread now.
    waiting: BTreeMap<u64, Waiting>,
    /// The operations that run on a thread, and since when they have had it.
    running: BTreeMap<u64, (Time, Arc<dyn Work>)>,
}

struct Waiting {
    holder: Holder,
    limit: QueueLimit,
    waker: Option<Waker>,
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
        Self(Mutex::new(State {
            next_id: 0,
            threads: Usage::new(THREADS_PER_POOL),
            queue: Usage::new(QUEUE_CAPACITY),
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
        }))
    }
}

impl WorkerPools {
    /// Waits for a thread of the pool `kind`. Fails if the limit applies and too many operations wait already.
    pub(crate) async fn thread(
        &self,
        kind: PoolKind,
        holder: Holder,
        clock: &dyn Clock,
        limit: QueueLimit,
    ) -> OperationResult<Thread> {
        let place = WorkerPool::enter(&self.0[kind as usize], holder, limit);
        let place = place.ok_or_else(|| self.0[kind as usize].state().exhausted(kind, clock.now()))?;
        poll_fn(|context| place.poll_thread(context)).await;
        Ok(Thread { place, since: clock.now() })
    }
}

impl WorkerPool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a thread or a place in the queue. Returns `None` if there is neither.
    fn enter(pool: &Arc<Self>, holder: Holder, limit: QueueLimit) -> Option<Place> {
        let mut state = pool.state();
        if state.may_run(&holder, limit) {
            state.threads.add(&holder);
        } else if limit == QueueLimit::DoesNotApply || state.queue.admits(&holder) {
            state.queue.add(&holder);
            let (id, holder) = (state.next_id, holder.clone());
            state.waiting.insert(id, Waiting { holder, limit, waker: None });
        } else {
            return None;
        }
        let id = state.next_id;
        state.next_id += 1;
        drop(state);
        Some(Place { pool: Arc::clone(pool), id, holder })
    }
}

impl State {
    fn may_run(&self, holder: &Holder, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Applies => self.threads.admits(holder),
            QueueLimit::DoesNotApply => !self.threads.is_full(),
        }
    }

    /// Gives threads to the operations in the queue that may have one now, and returns their wakers.
    fn advance_queue(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        let ids: Vec<u64> = self.waiting.keys().copied().collect();
        for id in ids {
            if self.threads.is_full() {
                break;
            }
            let waiting = &self.waiting[&id];
            if self.may_run(&waiting.holder, waiting.limit)
                && let Some(waiting) = self.waiting.remove(&id)
            {
                self.queue.remove(&waiting.holder);
                self.threads.add(&waiting.holder);
                woken.extend(waiting.waker);
            }
        }
        woken
    }

    fn exhausted(&self, kind: PoolKind, now: Time) -> OperationError {
        let oldest = self.running.values().next().map_or_else(String::new, |(since, work)| {
            format!("; the oldest has been trying to {} for {} s", work.describe(), (now - *since).as_secs())
        });
        let (running, waiting, purpose) = (self.running.len(), self.waiting.len(), kind.purpose());
        OperationError::new(
            Kind::Unavailable,
            format!(
                "too many operations wait for a thread for {purpose} ({running} running, {waiting} waiting){oldest}"
            ),
        )
    }
}

/// A place in the queue of a pool, which becomes a thread. Dropping it frees either.
struct Place {
    pool: Arc<WorkerPool>,
    id: u64,
    holder: Holder,
}

impl Place {
    fn poll_thread(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.pool.state().waiting.get_mut(&self.id) {
            Some(waiting) => {
                waiting.waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        if state.waiting.remove(&self.id).is_some() {
            state.queue.remove(&self.holder);
            return;
        }
        state.running.remove(&self.id);
        state.threads.remove(&self.holder);
        let woken = state.advance_queue();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// The permission to use a thread of a pool.
pub(crate) struct Thread {
    place: Place,
    since: Time,
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
            let Self { place, since } = self;
            place.pool.state().running.insert(place.id, (since, operation));
            let result = span.in_scope(|| catch_panic(body));
            drop(place);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use super::{BLOCKING_THREADS, Place, QUEUE_CAPACITY, QueueLimit, THREADS_PER_POOL, WorkerPool, WorkerPools};
    use crate::executor::pool_kind::{PoolKind, Resource};
    use crate::executor::shares::{ClientId, Holder};

    #[test]
    fn each_kind_of_work_has_a_pool() {
        let pools = WorkerPools::default();
        assert!(!Arc::ptr_eq(&pools.0[PoolKind::Files as usize], &pools.0[PoolKind::System as usize]));
        assert_eq!(BLOCKING_THREADS, pools.0.len() * THREADS_PER_POOL);
    }

    fn holder(disk: u32, client: u64) -> Holder {
        Holder { resource: Some(Resource::Disk(disk)), client: Some(ClientId(client)) }
    }

    fn enter(pool: &Arc<WorkerPool>, disk: u32, client: u64) -> Option<Place> {
        WorkerPool::enter(pool, holder(disk, client), QueueLimit::Applies)
    }

    fn has_thread(place: &Place) -> bool {
        place.poll_thread(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn operations_on_other_resources_overtake_those_of_a_slow_one_but_not_each_other() {
        let pool = Arc::default();
        let slow: Vec<_> = (0..40).map(|_| enter(&pool, 0, 0).expect("a place")).collect();
        assert_eq!(slow.iter().filter(|place| has_thread(place)).count(), 5);
        let mut others: Vec<_> = (1..=20).map(|disk| enter(&pool, disk, disk.into()).expect("a place")).collect();
        let running = |others: &[Place]| others.iter().map(has_thread).collect::<Vec<_>>();
        assert_eq!(running(&others), [vec![true; 11], vec![false; 9]].concat());
        others.remove(3);
        assert_eq!(running(&others), [vec![true; 11], vec![false; 8]].concat(), "the first of the queue is next");
        drop(others);
        assert_eq!(slow.iter().filter(|place| has_thread(place)).count(), 5);
        drop(slow);
        let state = pool.state();
        assert!(state.waiting.is_empty() && state.running.is_empty());
    }

    #[test]
    fn a_client_that_fills_its_share_of_the_queue_leaves_the_rest_to_others() {
        let pool = Arc::default();
        let greedy: Vec<_> = (0..10_000).map_while(|disk| enter(&pool, disk, 1)).collect();
        assert_eq!(greedy.len(), THREADS_PER_POOL / 2 + 1 + QUEUE_CAPACITY / 2 + 1);
        assert!(has_thread(&enter(&pool, 0, 2).expect("a place")));
        // What has begun to change something is not refused, and needs no share.
        let changing = WorkerPool::enter(&pool, holder(0, 1), QueueLimit::DoesNotApply).expect("a place");
        assert!(has_thread(&changing));
        drop((greedy, changing));
        assert!(has_thread(&enter(&pool, 0, 1).expect("a place")));
    }

    #[test]
    fn a_place_in_the_queue_that_is_given_up_goes_to_the_next() {
        let pool = Arc::default();
        let mut places: Vec<_> = (0..8).map(|_| enter(&pool, 0, 0).expect("a place")).collect();
        places.remove(5);
        places.remove(0);
        assert!(has_thread(&places[4]) && !has_thread(&places[5]));
    }
}
