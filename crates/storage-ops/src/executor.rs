//! The executor, which runs operations for many callers. It coalesces equal operations, waits for locks without
//! occupying a thread, and has a separate pool of threads for each kind of work.
//!
//! A request that equals one in progress shares its result if [`Operation::COALESCE`] allows it. Any other request
//! waits for its locks as a future, then for a thread of its pool, and only then occupies a thread. If every caller
//! cancels before the first change, the operation is cancelled; after the first change it runs to its end, and a retry
//! joins it.

pub(crate) mod context;
pub(crate) mod locks;
pub(crate) mod operation;
pub(crate) mod pool_kind;
pub(crate) mod worker_pools;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tracing::Instrument as _;

use crate::error::{Error, Kind, OperationError, OperationResult, Rerun};
use crate::executor::context::{Caller, OperationContext};
use crate::executor::locks::{Guard, LockKey};
use crate::executor::operation::{Coalesce, Operation};
use crate::executor::pool_kind::PoolKind;
use crate::executor::worker_pools::{DEFECT, Work, WorkerPools};
use crate::node::{MAX_RUNS, Node, described};

type JobResult<O> = Result<<O as Operation>::Output, Error>;

type Jobs = HashMap<(TypeId, u64), Vec<Arc<dyn Any + Send + Sync>>>;

/// Runs operations on a node for many callers. Its futures need a tokio runtime.
pub struct Executor {
    node: Arc<Node>,
    pools: WorkerPools,
    /// The jobs that equal requests may join, by type and hash of their operation.
    jobs: Mutex<Jobs>,
    /// The number of jobs that are queued or running, whether they can be joined or not.
    running: AtomicUsize,
    /// Notified when the last job has ended.
    idle: Notify,
}

/// An operation in progress, with all callers that wait for its result.
struct Job<O: Operation> {
    operation: O,
    phase: Mutex<Phase>,
    result: watch::Sender<Option<JobResult<O>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for locks or a thread.
    Queued,
    /// Running on a thread, before the first change.
    Reading,
    /// Running on a thread, after the first change has begun; runs to its end.
    Changing,
    /// Cancelled, because every caller has cancelled.
    Cancelled,
}

impl<O: Operation> Job<O> {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the job if every caller has cancelled and no change has begun. Returns whether the job is cancelled.
    fn cancel_if_unwanted(&self) -> bool {
        let mut phase = self.phase();
        if *phase != Phase::Changing && self.result.receiver_count() == 0 {
            *phase = Phase::Cancelled;
        }
        *phase == Phase::Cancelled
    }

    /// Adds a caller, if the phase allows it.
    fn join(&self) -> Option<watch::Receiver<Option<JobResult<O>>>> {
        let phase = self.phase();
        let open = match O::COALESCE {
            Coalesce::Never => false,
            Coalesce::Queued => *phase == Phase::Queued,
            Coalesce::InFlight => *phase != Phase::Cancelled,
        };
        open.then(|| self.result.subscribe())
    }
}

impl<O: Operation> Caller for Job<O> {
    fn commit(&self) -> bool {
        if self.cancel_if_unwanted() {
            return false;
        }
        *self.phase() = Phase::Changing;
        true
    }
}

impl<O: Operation> Work for Job<O> {
    fn describe(&self) -> String {
        self.operation.describe()
    }
}

impl Executor {
    /// Creates an executor for `node`.
    pub fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            pools: WorkerPools::default(),
            jobs: Mutex::default(),
            running: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// Returns the node.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Runs `operation`, or joins an equal one that is in progress.
    pub async fn run<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output, Error> {
        let mut receiver = self.join_or_begin(operation);
        let result = receiver.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
        result.unwrap_or_else(|| {
            let error = OperationError::new(Kind::Internal, "the operation ended without a result");
            Err(Error::new(O::NAME, format!("run {}", O::NAME), error))
        })
    }

    /// Returns the number of operations that are queued or running, including those whose callers have cancelled.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Waits until no operation is queued or running.
    pub async fn idle(&self) {
        loop {
            let mut notified = pin!(self.idle.notified());
            // Registers before the check, so that the end of a job between the check and the wait is not missed.
            notified.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            notified.await;
        }
    }

    fn join_or_begin<O: Operation>(self: &Arc<Self>, operation: O) -> watch::Receiver<Option<JobResult<O>>> {
        if O::COALESCE == Coalesce::Never {
            return self.begin(operation).1;
        }
        let key = key_of(&operation);
        let mut jobs = self.jobs();
        let equal = jobs.get(&key).into_iter().flatten().filter_map(|job| job.downcast_ref::<Job<O>>());
        if let Some(receiver) = equal.filter(|job| job.operation == operation).find_map(Job::join) {
            return receiver;
        }
        let (job, receiver) = self.begin(operation);
        jobs.entry(key).or_default().push(job);
        receiver
    }

    fn begin<O: Operation>(self: &Arc<Self>, operation: O) -> (Arc<Job<O>>, watch::Receiver<Option<JobResult<O>>>) {
        let (result, receiver) = watch::channel(None);
        let job = Arc::new(Job { operation, phase: Mutex::new(Phase::Queued), result });
        let registration = JobRegistration::new(Arc::clone(self), Arc::clone(&job));
        let work = async move {
            let (executor, job) = (&registration.executor, &registration.job);
            let mut guard = None;
            let result = tokio::select! {
                result = executor.drive(job, &mut guard) => result,
                () = executor.cancelled(job) => Err(described(&job.operation, OperationError::cancelled())),
            };
            registration.end(result, guard);
        };
        tokio::spawn(work.in_current_span());
        (job, receiver)
    }

    /// Waits until every caller of a queued job has cancelled. Never returns for a job that has a thread, because its
    /// operation checks for cancellation itself.
    async fn cancelled<O: Operation>(&self, job: &Job<O>) {
        loop {
            job.result.closed().await;
            if *job.phase() != Phase::Queued {
                return std::future::pending().await;
            }
            if job.cancel_if_unwanted() {
                return;
            }
        }
    }

    /// Runs the job, and stores in `held` the locks under which its result was produced.
    async fn drive<O: Operation>(&self, job: &Arc<Job<O>>, held: &mut Option<Arc<Guard>>) -> JobResult<O> {
        let mut pool = O::POOL;
        for _ in 0..MAX_RUNS {
            let keys = self.lock_keys(job).await?;
            let guard = Arc::new(self.node.locks.acquire(keys).await);
            let result = self.run_in(pool, job, Arc::clone(&guard)).await?;
            match result.as_ref().err().and_then(|error| error.rerun) {
                Some(Rerun::InPool(other)) => pool = other,
                Some(Rerun::WithOtherLocks) => {}
                None => {
                    *held = Some(guard);
                    return result.map_err(|error| described(&job.operation, error));
                }
            }
        }
        Err(described(&job.operation, OperationError::too_many_reruns()))
    }

    async fn lock_keys<O: Operation>(&self, job: &Arc<Job<O>>) -> Result<Vec<LockKey>, Error> {
        let keys = if O::RESOLVES_LOCKS {
            let (node, resolved) = (Arc::clone(&self.node), Arc::clone(job));
            let resolve = move || resolved.operation.lock_keys(&node);
            self.pools.run(PoolKind::Disks, Arc::clone(job) as Arc<dyn Work>, self.node.host.clock(), resolve).await
        } else {
            Ok(job.operation.lock_keys(&self.node))
        };
        keys.and_then(|keys| keys).map_err(|error| described(&job.operation, error))
    }

    async fn run_in<O: Operation>(
        &self,
        pool: PoolKind,
        job: &Arc<Job<O>>,
        guard: Arc<Guard>,
    ) -> Result<OperationResult<O::Output>, Error> {
        let (node, running) = (Arc::clone(&self.node), Arc::clone(job));
        let work = move || {
            {
                let mut phase = running.phase();
                match *phase {
                    Phase::Cancelled => return Err(OperationError::cancelled()),
                    Phase::Queued => *phase = Phase::Reading,
                    Phase::Reading | Phase::Changing => {}
                }
            }
            let ctx = OperationContext::new(guard, Arc::clone(&running) as Arc<dyn Caller>, Some(pool));
            running.operation.run(&node, &ctx)
        };
        let done = self.pools.run(pool, Arc::clone(job) as Arc<dyn Work>, self.node.host.clock(), work).await;
        done.map_err(|error| described(&job.operation, error))
    }

    fn unregister<O: Operation>(&self, job: &Arc<Job<O>>) {
        if O::COALESCE == Coalesce::Never {
            return;
        }
        let key = key_of(&job.operation);
        let mut jobs = self.jobs();
        let Some(equal) = jobs.get_mut(&key) else { return };
        equal.retain(|other| !std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(job)));
        if equal.is_empty() {
            jobs.remove(&key);
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a job in progress. Dropping it, also during a panic, unregisters the job, so that no caller
/// joins or waits for a job that has ended.
struct JobRegistration<O: Operation> {
    executor: Arc<Executor>,
    job: Arc<Job<O>>,
}

impl<O: Operation> JobRegistration<O> {
    fn new(executor: Arc<Executor>, job: Arc<Job<O>>) -> Self {
        executor.running.fetch_add(1, Ordering::AcqRel);
        Self { executor, job }
    }

    /// Publishes the result.
    ///
    /// The job is unregistered before the locks are released: the next holder of the locks may undo what the job did,
    /// so a request that arrives later must not join it.
    fn end(self, result: JobResult<O>, held: Option<Arc<Guard>>) {
        self.executor.unregister(&self.job);
        drop(held);
        self.job.result.send_replace(Some(result));
    }
}

impl<O: Operation> Drop for JobRegistration<O> {
    fn drop(&mut self) {
        if self.job.result.borrow().is_none() {
            let error = OperationError::new(Kind::Internal, DEFECT);
            self.executor.unregister(&self.job);
            self.job.result.send_replace(Some(Err(described(&self.job.operation, error))));
        }
        if self.executor.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.executor.idle.notify_waiters();
        }
    }
}

fn key_of<O: Operation>(operation: &O) -> (TypeId, u64) {
    let mut hasher = DefaultHasher::new();
    operation.hash(&mut hasher);
    (TypeId::of::<O>(), hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Executor;
    use crate::error::{Kind, OperationResult};
    use crate::executor::context::OperationContext;
    use crate::executor::locks::LockKey;
    use crate::executor::operation::{Coalesce, Operation, sealed::Sealed};
    use crate::executor::pool_kind::PoolKind;
    use crate::{Config, Node};

    /// An operation that panics when its lock keys are determined, before it has a thread.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Defective;

    impl Sealed for Defective {}

    impl Operation for Defective {
        type Output = ();
        const NAME: &'static str = "Defective";
        const POOL: PoolKind = PoolKind::Files;
        const COALESCE: Coalesce = Coalesce::InFlight;

        fn describe(&self) -> String {
            "demonstrate a defect".into()
        }

        fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
            panic!("a defect, made for this test")
        }

        fn run(&self, _node: &Node, _ctx: &OperationContext) -> OperationResult<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_panic_is_reported_as_an_internal_error_and_leaves_no_job_behind() {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        let executor = Arc::new(Executor::new(Arc::new(node)));
        for _ in 0..2 {
            let (one, other) = tokio::join!(executor.run(Defective), executor.run(Defective));
            assert_eq!([one, other].map(|result| result.unwrap_err().kind()), [Kind::Internal; 2]);
        }
        executor.idle().await;
        assert_eq!(executor.running(), 0);
    }
}
