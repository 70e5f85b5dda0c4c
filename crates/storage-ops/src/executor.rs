//! Where many callers ask at once: shares answers, waits for locks without a thread, and keeps kinds of work apart.
//!
//! A request equal to one that waits or runs shares its answer, where [`Operation::COALESCE`] says that this is
//! right. Everything else waits for its locks as a future, then for a thread of its lane, and only then takes one.
//! A caller that goes away before the first change takes its request with it; after that the operation runs to
//! its end, and a retry joins it.

pub(crate) mod context;
pub(crate) mod locks;
pub(crate) mod operation;
pub(crate) mod worker_pools;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tracing::Instrument as _;

use crate::error::{Again, Error, Kind, OperationError};
use crate::executor::context::{Caller, OperationContext, PoolKind};
use crate::executor::locks::{Guard, LockKey};
use crate::executor::operation::{Coalesce, Operation};
use crate::executor::worker_pools::{Work, WorkerPools};
use crate::node::{MOVES, Node, failed};

type Answer<O> = Result<<O as Operation>::Output, Error>;

type Jobs = HashMap<(TypeId, u64), Vec<Arc<dyn Any + Send + Sync>>>;

/// A node with many callers. Its futures need a tokio runtime.
pub struct Executor {
    node: Arc<Node>,
    lanes: WorkerPools,
    /// The jobs that may be joined, by type and hash of their operation.
    jobs: Mutex<Jobs>,
    /// How many jobs wait or run, joinable or not.
    running: AtomicUsize,
    /// Told when the last of them has ended.
    idle: Notify,
}

/// One operation under way, and all who wait for its answer.
struct Job<O: Operation> {
    operation: O,
    phase: Mutex<Phase>,
    answer: watch::Sender<Option<Answer<O>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// For locks or a thread.
    Waiting,
    /// On a thread, nothing changed yet.
    Looking,
    /// It will run to its end.
    Changing,
    /// Given up.
    Abandoned,
}

impl<O: Operation> Job<O> {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up if nobody waits for the answer any more; says whether it did.
    fn abandoned(&self) -> bool {
        let mut phase = self.phase();
        if *phase != Phase::Changing && self.answer.receiver_count() == 0 {
            *phase = Phase::Abandoned;
        }
        *phase == Phase::Abandoned
    }

    fn joinable(&self) -> Option<watch::Receiver<Option<Answer<O>>>> {
        let phase = self.phase();
        let open = match O::COALESCE {
            Coalesce::Never => false,
            Coalesce::Queued => *phase == Phase::Waiting,
            Coalesce::InFlight => *phase != Phase::Abandoned,
        };
        open.then(|| self.answer.subscribe())
    }
}

impl<O: Operation> Caller for Job<O> {
    fn commit(&self) -> bool {
        if self.abandoned() {
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
    /// A executor in front of `node`.
    pub fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            lanes: WorkerPools::default(),
            jobs: Mutex::default(),
            running: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// The node behind it.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Carries `operation` out, or joins an equal one.
    pub async fn run<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output, Error> {
        let mut answer = self.join_or_begin(operation);
        let answer = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| {
            let fault = OperationError::new(Kind::Internal, "it ended without an answer");
            Err(fault.in_request_of(O::NAME))
        })
    }

    /// How many operations wait or run, including those whose callers have gone.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Waits until no operation waits or runs.
    pub async fn idle(&self) {
        loop {
            let mut told = pin!(self.idle.notified());
            // Listens first, so that an end between the look and the wait is not missed.
            told.as_mut().enable();
            if self.running() == 0 {
                return;
            }
            told.await;
        }
    }

    fn join_or_begin<O: Operation>(self: &Arc<Self>, operation: O) -> watch::Receiver<Option<Answer<O>>> {
        if O::COALESCE == Coalesce::Never {
            return self.begin(operation).1;
        }
        let key = key_of(&operation);
        let mut jobs = self.jobs();
        let equal = jobs.get(&key).into_iter().flatten().filter_map(|job| job.downcast_ref::<Job<O>>());
        if let Some(answer) = equal.filter(|job| job.operation == operation).find_map(Job::joinable) {
            return answer;
        }
        let (job, answer) = self.begin(operation);
        jobs.entry(key).or_default().push(job);
        answer
    }

    fn begin<O: Operation>(self: &Arc<Self>, operation: O) -> (Arc<Job<O>>, watch::Receiver<Option<Answer<O>>>) {
        let (answer, receiver) = watch::channel(None);
        let job = Arc::new(Job { operation, phase: Mutex::new(Phase::Waiting), answer });
        let under_way = UnderWay::begin(Arc::clone(self), Arc::clone(&job));
        let work = async move {
            let (executor, job) = (&under_way.executor, &under_way.job);
            let mut held = None;
            let outcome = tokio::select! {
                outcome = executor.drive(job, &mut held) => outcome,
                () = executor.given_up(job) => Err(failed(&job.operation, OperationError::gone())),
            };
            under_way.end(outcome, held);
        };
        tokio::spawn(work.in_current_span());
        (job, receiver)
    }

    /// Ends when nobody waits for the answer of a job that no thread has taken yet.
    async fn given_up<O: Operation>(&self, job: &Job<O>) {
        loop {
            job.answer.closed().await;
            if *job.phase() != Phase::Waiting {
                return std::future::pending().await;
            }
            if job.abandoned() {
                return;
            }
        }
    }

    /// Runs the job, and leaves in `held` the locks under which it has got its answer.
    async fn drive<O: Operation>(&self, job: &Arc<Job<O>>, held: &mut Option<Arc<Guard>>) -> Answer<O> {
        let mut lane = O::POOL;
        for _ in 0..MOVES {
            let objects = self.lock_keys(job).await?;
            let guard = Arc::new(self.node.locks.acquire(objects).await);
            let outcome = self.run_in(lane, job, Arc::clone(&guard)).await?;
            match outcome.as_ref().err().and_then(|fault| fault.again) {
                Some(Again::InLane(other)) => lane = other,
                Some(Again::WithOtherLocks) => {}
                None => {
                    *held = Some(guard);
                    return outcome.map_err(|fault| failed(&job.operation, fault));
                }
            }
        }
        Err(failed(&job.operation, OperationError::unsettled()))
    }

    async fn lock_keys<O: Operation>(&self, job: &Arc<Job<O>>) -> Result<Vec<LockKey>, Error> {
        let found = if O::RESOLVES_LOCKS {
            let (node, looked_up) = (Arc::clone(&self.node), Arc::clone(job));
            let look_up = move || looked_up.operation.lock_keys(&node);
            self.lanes.run(PoolKind::Disks, Arc::clone(job) as Arc<dyn Work>, self.node.host.clock(), look_up).await
        } else {
            Ok(job.operation.lock_keys(&self.node))
        };
        found.and_then(|objects| objects).map_err(|fault| failed(&job.operation, fault))
    }

    async fn run_in<O: Operation>(
        &self,
        lane: PoolKind,
        job: &Arc<Job<O>>,
        guard: Arc<Guard>,
    ) -> Result<crate::error::OperationResult<O::Output>, Error> {
        let (node, running) = (Arc::clone(&self.node), Arc::clone(job));
        let work = move || {
            {
                let mut phase = running.phase();
                match *phase {
                    Phase::Abandoned => return Err(OperationError::gone()),
                    Phase::Waiting => *phase = Phase::Looking,
                    Phase::Looking | Phase::Changing => {}
                }
            }
            let ctx = OperationContext::new(guard, Arc::clone(&running) as Arc<dyn Caller>, Some(lane));
            running.operation.run(&node, &ctx)
        };
        let done = self.lanes.run(lane, Arc::clone(job) as Arc<dyn Work>, self.node.host.clock(), work).await;
        done.map_err(|fault| failed(&job.operation, fault))
    }

    fn forget<O: Operation>(&self, job: &Arc<Job<O>>) {
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

/// A job's entry in the books of its executor. It comes out however the job ends, by a panic too: nobody may wait for, or
/// join, what is no more.
struct UnderWay<O: Operation> {
    executor: Arc<Executor>,
    job: Arc<Job<O>>,
}

impl<O: Operation> UnderWay<O> {
    fn begin(executor: Arc<Executor>, job: Arc<Job<O>>) -> Self {
        executor.running.fetch_add(1, Ordering::AcqRel);
        Self { executor, job }
    }

    /// Nobody may join once the locks are gone: what comes after could undo what was done.
    fn end(self, outcome: Answer<O>, held: Option<Arc<Guard>>) {
        self.executor.forget(&self.job);
        drop(held);
        self.job.answer.send_replace(Some(outcome));
    }
}

impl<O: Operation> Drop for UnderWay<O> {
    fn drop(&mut self) {
        if self.job.answer.borrow().is_none() {
            let fault = OperationError::new(Kind::Internal, "a defect in csi-proxy stopped it; the log has more");
            self.executor.forget(&self.job);
            self.job.answer.send_replace(Some(Err(failed(&self.job.operation, fault))));
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
    use crate::executor::context::{OperationContext, PoolKind};
    use crate::executor::locks::LockKey;
    use crate::executor::operation::{Coalesce, Operation, sealed::Sealed};
    use crate::{Config, Node};

    /// Panics before any thread takes it.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Defective;

    impl Sealed for Defective {}

    impl Operation for Defective {
        type Output = ();
        const NAME: &'static str = "Defective";
        const POOL: PoolKind = PoolKind::Files;
        const COALESCE: Coalesce = Coalesce::InFlight;

        fn describe(&self) -> String {
            "show a defect".into()
        }

        fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
            panic!("a defect, made for this test")
        }

        fn run(&self, _node: &Node, _ctx: &OperationContext) -> OperationResult<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_panic_anywhere_is_an_answer_and_leaves_nothing_to_join_or_to_wait_for() {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        let executor = Arc::new(Executor::new(Arc::new(node)));
        for _ in 0..2 {
            let (one, other) = tokio::join!(executor.run(Defective), executor.run(Defective));
            assert_eq!([one, other].map(|answer| answer.unwrap_err().kind()), [Kind::Internal; 2]);
        }
        executor.idle().await;
        assert_eq!(executor.running(), 0);
    }
}
