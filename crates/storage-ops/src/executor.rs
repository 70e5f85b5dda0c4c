//! The executor, which runs operations for many callers. It coalesces equal operations, waits for
//! locks without occupying a thread, and has a separate pool of threads for each kind of work. A
//! call that follows a fallback to WMI may run on a thread of the pool for WMI.
//!
//! A read ([`Coalesce::Never`]) runs for one caller and needs no lock. A read of local files runs
//! on the thread that polls it, as long as another thread of the runtime remains free.
//!
//! A change is a job of its own. A request that equals a job in progress shares its result if
//! [`Operation::COALESCE`] allows it. A job may first look up what it must lock, on a thread that it
//! gives back. It waits for its locks and for every thread without occupying a thread, and keeps
//! its locks and its values when it enters another pool. So an operation that waits delays others
//! only by its locks. If every caller cancels before the first change, the job is cancelled; after
//! the first change it runs to its end, and a retry joins it.

pub(crate) mod activity;
mod inline_reads;
mod on_this_thread;
pub(crate) mod operation;
pub(crate) mod progress;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::hash::{DefaultHasher, Hasher};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;
use tracing::Instrument as _;

use crate::error::{Error, ErrorKind, OperationError, OperationResult};
use crate::executor::inline_reads::InlineReads;
use crate::executor::operation::{Coalesce, Operation, conclude, conduct};
use crate::executor::progress::{Entry, LockWaitCount, Requests, Stage, Tracked, Waiting};
use crate::node::Node;
use crate::scheduling::context::{Commit, Wait};
use crate::scheduling::locks::{Guard, Owner};
use crate::scheduling::quotas::{ConnectionId, Holder};
use crate::scheduling::requester::Requester;
use crate::scheduling::worker_pools::{DEFECT, Thread, WorkerPools, catch_panic};
use crate::scheduling::{LockKey, OperationContext, PoolKind};
use crate::sync::{Arc, Mutex, lock, spawn};

type JobResult<O> = Result<<O as Operation>::Output, Error>;

type ResultReceiver<O> = watch::Receiver<Option<JobResult<O>>>;

type Jobs = HashMap<(TypeId, u64), Vec<Arc<dyn Any + Send + Sync>>>;

/// Runs operations on a node for many callers. Its futures need a tokio runtime.
pub struct Executor {
    node: Arc<Node>,
    pools: Arc<WorkerPools>,
    inline_reads: InlineReads,
    /// The jobs that equal requests may join, by type and hash of their operation.
    pub(crate) jobs: Mutex<Jobs>,
    requests: Arc<Requests>,
    lock_waits: Mutex<LockWaitCount>,
    /// The number of jobs that are queued or running, whether they can be joined or not.
    running: Arc<watch::Sender<usize>>,
}

/// A change in progress, with all callers that wait for its result.
struct Job<O: Operation> {
    work: Arc<Tracked<O>>,
    /// The number of the first request, and the connection over which it came.
    request: u64,
    connection: Option<ConnectionId>,
    /// The number of the call of that request.
    call: Option<u64>,
    phase: Mutex<JobPhase>,
    result: watch::Sender<Option<JobResult<O>>>,
}

/// How an operation runs.
enum Execution<O: Operation> {
    /// As a read for one caller, with the context in its [`Tracked`]. A read that has a thread runs
    /// until it ends or waits.
    Read {
        _entry: Entry,
    },
    Change(Change<O>),
}

/// A change, which several callers may share.
struct Change<O: Operation> {
    job: Arc<Job<O>>,
    /// Has the locks until the operation has been dropped, which may be after the job has ended.
    context: Arc<OperationContext>,
}

impl<O: Operation> Clone for Change<O> {
    fn clone(&self) -> Self {
        Self {
            job: Arc::clone(&self.job),
            context: Arc::clone(&self.context),
        }
    }
}

/// How far a job is, which decides whether callers may join it and whether it can be cancelled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JobPhase {
    /// Waiting for locks or its first thread.
    Queued,
    /// Before the first change, after its first thread under its locks.
    Reading,
    /// After the first change has begun; runs to its end.
    Changing,
    /// Cancelled, because every caller has cancelled.
    Cancelled,
}

impl<O: Operation> Execution<O> {
    fn change(&self) -> Option<&Change<O>> {
        match self {
            Self::Read { .. } => None,
            Self::Change(change) => Some(change),
        }
    }
}

/// Returns the context of an operation, which is a read unless there is a `change`.
fn context_of<'a, O: Operation>(
    work: &'a Tracked<O>,
    change: Option<&'a Change<O>>,
) -> &'a OperationContext {
    change.map_or(&work.context, |change| &*change.context)
}

impl<O: Operation> Job<O> {
    /// Returns the owner of its locks.
    fn owner(&self) -> Owner {
        Owner {
            request: self.request,
            call: self.call,
        }
    }

    /// Cancels the job if every caller has cancelled and no change has begun, and moves it to
    /// `next` otherwise. Returns whether the job goes on. No caller can join in between.
    fn advance(&self, next: Option<JobPhase>) -> bool {
        let mut phase = lock(&self.phase);
        if *phase != JobPhase::Changing {
            if self.result.receiver_count() == 0 {
                *phase = JobPhase::Cancelled;
            } else if *phase != JobPhase::Cancelled {
                *phase = next.unwrap_or(*phase);
            }
        }
        *phase != JobPhase::Cancelled
    }

    /// Adds a caller, if the phase allows it.
    fn join(&self) -> Option<ResultReceiver<O>> {
        let phase = lock(&self.phase);
        let open = match O::COALESCE {
            Coalesce::Never => false,
            Coalesce::Queued => *phase == JobPhase::Queued,
            Coalesce::InFlight => *phase != JobPhase::Cancelled,
        };
        open.then(|| self.result.subscribe())
    }

    /// Waits for `wait`, unless every caller cancels. A job that has begun a change is not
    /// cancelled.
    async fn while_wanted<T>(&self, wait: impl Future<Output = T>) -> OperationResult<T> {
        tokio::select! {
            value = wait => Ok(value),
            () = self.unwanted() => Err(OperationError::cancelled()),
        }
    }

    /// Returns when every caller has cancelled; never if a change has begun.
    async fn unwanted(&self) {
        loop {
            self.result.closed().await;
            if !self.advance(None) {
                return;
            }
            if *lock(&self.phase) == JobPhase::Changing {
                return std::future::pending().await;
            }
        }
    }
}

impl Executor {
    /// Creates an executor for `node`.
    pub fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            pools: Arc::default(),
            inline_reads: InlineReads::default(),
            jobs: Mutex::default(),
            running: Arc::new(watch::channel(0).0),
            requests: Arc::default(),
            lock_waits: Mutex::default(),
        }
    }

    /// Returns the node.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Runs `operation` as [`Self::run_for`] does, without the quota of a connection.
    pub async fn run<O: Operation>(self: &Arc<Self>, operation: O) -> Result<O::Output, Error> {
        self.run_for(Requester::default(), operation).await
    }

    /// Runs `operation`, or joins an equal one that is in progress. The quota of the connection of
    /// `requester` limits its threads.
    pub async fn run_for<O: Operation>(
        self: &Arc<Self>,
        requester: impl Into<Requester>,
        operation: O,
    ) -> Result<O::Output, Error> {
        let requester = requester.into();
        if let Err(error) = operation.check_allowed(&self.node) {
            return conclude(&self.node, &operation, requester, Err(error));
        }
        let work = Arc::new(Tracked::new(operation));
        if O::COALESCE == Coalesce::Never {
            let number = self
                .requests
                .add(requester.call, None, Arc::clone(&work) as _);
            let execution = Execution::Read {
                _entry: self.entry(number),
            };
            let _waiting = Waiting {
                requests: &self.requests,
                number,
            };
            let result = self.run_in_pools(&work, requester, execution).await;
            return conclude(&self.node, &work.operation, requester, result);
        }
        let (mut receiver, number, begun) = self.join_or_begin(work, requester);
        let _entry = begun.is_none().then(|| self.entry(number));
        let _waiting = Waiting {
            requests: &self.requests,
            number,
        };
        if let Some(job) = begun {
            // A runtime that is shutting down drops the future at once, which ends the job.
            // Boxed, so that the code of a task is compiled once and not for each operation.
            let run: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(job.run());
            tokio::spawn(run.instrument(requester.span()));
        }
        let result = receiver
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|result| result.clone());
        result.unwrap_or_else(|| {
            let error = OperationError::new(
                ErrorKind::Internal,
                "the operation ended without a result, because the daemon is shutting down",
            );
            Err(Error::new(O::NAME, format!("run {}", O::NAME), error))
        })
    }

    fn entry(&self, number: u64) -> Entry {
        Entry {
            requests: Arc::clone(&self.requests),
            number,
        }
    }

    /// Returns the number of changes that are queued or running, including those whose callers have
    /// cancelled.
    pub fn running(&self) -> usize {
        *self.running.borrow()
    }

    /// Waits until no change is queued or running.
    pub async fn idle(&self) {
        // The wait fails only without a sender, and `self` has one.
        let _ = self
            .running
            .subscribe()
            .wait_for(|running| *running == 0)
            .await;
    }

    /// Joins an equal job, or registers a new job that the caller has to run. Also returns the
    /// number of the request.
    fn join_or_begin<O: Operation>(
        self: &Arc<Self>,
        work: Arc<Tracked<O>>,
        Requester {
            connection, call, ..
        }: Requester,
    ) -> (ResultReceiver<O>, u64, Option<RegisteredJob<O>>) {
        let key = key_of(&work.operation);
        let mut jobs = lock(&self.jobs);
        let mut equal = jobs
            .get(&key)
            .into_iter()
            .flatten()
            .filter_map(|job| job.downcast_ref::<Job<O>>())
            .filter(|job| job.work.operation == work.operation);
        if let Some((receiver, job)) = equal.find_map(|job| Some((job.join()?, job))) {
            let number = self
                .requests
                .add(call, Some(job.request), Arc::clone(&job.work) as _);
            return (receiver, number, None);
        }
        let (result, receiver) = watch::channel(None);
        let request = self.requests.add(call, None, Arc::clone(&work) as _);
        let call = call.map(|call| call.number);
        let job = Arc::new(Job {
            work,
            request,
            connection,
            call,
            phase: Mutex::new(JobPhase::Queued),
            result,
        });
        self.running.send_modify(|running| *running += 1);
        let registered = Arc::clone(&job) as Arc<dyn Any + Send + Sync>;
        jobs.entry(key).or_default().push(registered);
        (
            receiver,
            request,
            Some(RegisteredJob {
                executor: Arc::clone(self),
                job,
            }),
        )
    }

    async fn lock<O: Operation>(
        &self,
        job: &Arc<Job<O>>,
        keys: Vec<LockKey>,
    ) -> OperationResult<Guard> {
        let mut locks = self.node.locks.acquire_for(job.owner(), keys);
        job.work.enters(Stage::WaitingForLocks(locks.number()));
        if let Poll::Ready(guard) =
            Pin::new(&mut locks).poll(&mut Context::from_waker(Waker::noop()))
        {
            return Ok(guard);
        }
        let clock = self.node.windows.clock();
        let began = clock.now();
        let guard = job.while_wanted(locks).await;
        let mut waits = lock(&self.lock_waits);
        waits.waits += 1;
        waits.time = waits.time.saturating_add(clock.now() - began);
        drop(waits);
        guard
    }

    /// Runs the operation, on a thread of each pool that it enters. Grants what it waits for. A read
    /// of local files runs on the current thread if there is a permission for that.
    async fn run_in_pools<O: Operation>(
        &self,
        work: &Arc<Tracked<O>>,
        requester: Requester,
        execution: Execution<O>,
    ) -> OperationResult<O::Output> {
        let change = execution.change().cloned();
        let job = change.as_ref().map(|change| Arc::clone(&change.job));
        let context = context_of(work, change.as_ref());
        let mut course = Course::new(self, work, execution);
        let mut wait = if job.is_none() {
            // A read waits for this first.
            Some(Wait::ForThread(O::POOL, None))
        } else {
            // Outside all pools, the operation does nothing that can hang.
            if let Poll::Ready(result) = course.go_on(None)? {
                return result;
            }
            context.take_wait()
        };
        loop {
            let progress = match wait {
                None => return Err(OperationError::new(ErrorKind::Internal, DEFECT)),
                Some(Wait::ForLocks(keys)) => {
                    let job = job.as_ref().expect("a read waits for no lock");
                    // Boxed, as below.
                    let guard = Box::pin(self.lock(job, keys)).await?;
                    context.set_locks(Some(Arc::new(guard)));
                    course.go_on(None)?
                }
                Some(Wait::ForThread(pool, resource)) => {
                    context.grant_thread(pool);
                    let is_local_read = job.is_none() && pool == PoolKind::Files;
                    let permit = is_local_read.then(|| self.inline_reads.permit()).flatten();
                    let holder = Holder {
                        resource: resource.or_else(|| work.operation.resource()),
                        connection: requester.connection,
                        is_exempt: false,
                    };
                    if permit.is_some() {
                        work.enters(Stage::Running(pool));
                        course.go_on(Some((pool, holder)))?
                    } else {
                        // Boxed, because this makes the future of a read that needs no other thread
                        // smaller.
                        let on_thread = Box::pin(async {
                            let thread = self.thread(pool, &holder, work, job.as_ref()).await?;
                            work.enters(Stage::Running(pool));
                            let has_locks = context.has_locks();
                            let next = job.clone().map(|job| (job, has_locks));
                            let at = (pool, holder, thread);
                            course.go_on_at(at, requester, next).await
                        });
                        let (other, progress) = on_thread.await?;
                        course = other;
                        progress
                    }
                }
            };
            if let Poll::Ready(result) = progress {
                return result;
            }
            wait = context.take_wait();
        }
    }

    /// Waits for a thread of the pool.
    async fn thread<O: Operation>(
        &self,
        pool: PoolKind,
        holder: &Holder,
        work: &Tracked<O>,
        job: Option<&Arc<Job<O>>>,
    ) -> OperationResult<Thread> {
        // The quotas do not apply to a change in progress, so that it is not left half done.
        let is_exempt = job.is_some_and(|job| *lock(&job.phase) == JobPhase::Changing);
        work.enters(Stage::WaitingForThread { pool, is_exempt });
        let holder = Holder {
            is_exempt,
            ..holder.clone()
        };
        let wait = self.pools.thread(pool, holder);
        match job {
            Some(job) => job.while_wanted(wait).await,
            None => Ok(wait.await),
        }
    }

    fn unregister<O: Operation>(&self, job: &Arc<Job<O>>) {
        self.requests.remove(job.request);
        let key = key_of(&job.work.operation);
        let mut jobs = lock(&self.jobs);
        let Some(equal) = jobs.get_mut(&key) else {
            return;
        };
        equal.retain(|other| !std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(job)));
        if equal.is_empty() {
            jobs.remove(&key);
        }
    }
}

/// An operation between two polls.
struct Course<O: Operation> {
    /// `None` when the operation has ended.
    future: Option<OperationFuture<O>>,
    pools: Arc<WorkerPools>,
    /// The pool in which the operation has last run, and for whom.
    last: Option<(PoolKind, Holder)>,
    /// The counter of changes, if the operation is one.
    running: Option<Arc<watch::Sender<usize>>>,
}

type OperationFuture<O> =
    Pin<Box<dyn Future<Output = OperationResult<<O as Operation>::Output>> + Send>>;

/// The result of an operation, if it has ended; otherwise it waits.
type Progress<O> = Poll<OperationResult<<O as Operation>::Output>>;

impl<O: Operation> Course<O> {
    fn new(executor: &Executor, work: &Arc<Tracked<O>>, execution: Execution<O>) -> Self {
        let node = Arc::clone(&executor.node);
        let running = execution.change().map(|_| Arc::clone(&executor.running));
        let work = Arc::clone(work);
        let future = async move {
            // The entry of a read stays until the read ends.
            let context = context_of(&work, execution.change());
            conduct(&node, &work.operation, context).await
        };
        Self {
            future: Some(Box::pin(future)),
            pools: Arc::clone(&executor.pools),
            last: None,
            running,
        }
    }

    /// Continues on this thread, which may be of a pool, until the operation has ended or waits.
    /// Fails if it panics.
    fn go_on(&mut self, pool: Option<(PoolKind, Holder)>) -> OperationResult<Progress<O>> {
        self.last = pool.or(self.last.take());
        let future = self.future.as_mut().expect("it has not ended");
        let mut waker = Context::from_waker(Waker::noop());
        let progress = catch_panic(|| future.as_mut().poll(&mut waker))?;
        if progress.is_ready() {
            self.future = None;
        }
        Ok(progress)
    }

    /// Continues on a thread of a pool until the operation has ended or waits. Fails if it panics,
    /// or if the callers of `job`, which may have its locks, have cancelled.
    async fn go_on_at(
        mut self,
        (pool, holder, thread): (PoolKind, Holder, Thread),
        requester: Requester,
        job: Option<(Arc<Job<O>>, bool)>,
    ) -> OperationResult<(Self, Progress<O>)> {
        let body = move || {
            if job.is_some_and(|(job, has_locks)| {
                !job.advance(has_locks.then_some(JobPhase::Reading))
            }) {
                drop(self.future.take());
                return Err(OperationError::cancelled());
            }
            let progress = self.go_on(Some((pool, holder)))?;
            Ok((self, progress))
        };
        let done = thread.run(body).instrument(requester.span()).await;
        done.unwrap_or_else(|| {
            Err(OperationError::new(
                ErrorKind::Internal,
                "the daemon is shutting down",
            ))
        })
    }
}

impl<O: Operation> Drop for Course<O> {
    /// Drops an operation that has not ended, with its handles and its share of the locks, on a
    /// thread of the pool in which it has last run: a device that hangs may block the thread that
    /// closes a handle. The locks are released after the handles.
    fn drop(&mut self) {
        let (Some(future), Some((pool, holder))) = (self.future.take(), self.last.take()) else {
            return;
        };
        let (pools, running) = (Arc::clone(&self.pools), self.running.take());
        if let Some(running) = &running {
            running.send_modify(|running| *running += 1);
        }
        spawn(Box::pin(async move {
            let thread = pools.thread(pool, holder).await;
            // Nothing is left to do if the runtime is shutting down.
            let _ = thread.run(move || drop(future)).await;
            if let Some(running) = running {
                running.send_modify(|running| *running -= 1);
            }
        }));
    }
}

/// A registered job. Dropping it, also during a panic, unregisters the job, so that no caller joins
/// or waits for a job that has ended.
struct RegisteredJob<O: Operation> {
    executor: Arc<Executor>,
    job: Arc<Job<O>>,
}

impl<O: Operation> RegisteredJob<O> {
    /// Runs the job and publishes the result.
    ///
    /// The job is unregistered before the locks are released: the next holder of the locks may undo
    /// what the job did, so a request that arrives later must not join it.
    async fn run(self) {
        let context = Arc::new(OperationContext::new(Some(self.commit())));
        let requester = Requester {
            connection: self.job.connection,
            ..Requester::default()
        };
        let execution = Execution::Change(Change {
            job: Arc::clone(&self.job),
            context: Arc::clone(&context),
        });
        let result = self
            .executor
            .run_in_pools(&self.job.work, requester, execution)
            .await;
        self.executor.unregister(&self.job);
        drop(context);
        self.publish(result);
    }

    fn commit(&self) -> Commit {
        let job = Arc::clone(&self.job);
        Arc::new(move || job.advance(Some(JobPhase::Changing)))
    }

    fn publish(&self, result: OperationResult<O::Output>) {
        self.executor.node.locks.end(self.job.owner());
        let result = conclude(
            &self.executor.node,
            &self.job.work.operation,
            Requester::default(),
            result,
        );
        self.job.result.send_replace(Some(result));
    }
}

impl<O: Operation> Drop for RegisteredJob<O> {
    fn drop(&mut self) {
        if self.job.result.borrow().is_none() {
            self.executor.unregister(&self.job);
            self.publish(Err(OperationError::new(ErrorKind::Internal, DEFECT)));
        }
        self.executor.running.send_modify(|running| *running -= 1);
    }
}

fn key_of<O: Operation>(operation: &O) -> (TypeId, u64) {
    let mut hasher = DefaultHasher::new();
    operation.hash(&mut hasher);
    (TypeId::of::<O>(), hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;
    use std::sync::Arc;

    use super::Executor;
    use crate::error::{ErrorKind, OperationResult};
    use crate::executor::operation::{Coalesce, Operation};
    use crate::node::run::Run;
    use crate::scheduling::{LockKey, PoolKind};
    use crate::{Config, Node};

    /// An operation that panics when its lock keys are determined, before it has a thread.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Defective;

    impl Operation for Defective {
        type Output = ();
        const NAME: &'static str = "Defective";
        const POOL: PoolKind = PoolKind::Files;
        const COALESCE: Coalesce = Coalesce::InFlight;

        fn describe(&self) -> String {
            "demonstrate a defect".into()
        }

        fn lock_keys(&self) -> Vec<LockKey> {
            resume_unwind(Box::new("a defect, made for this test"))
        }

        async fn run(&self, _run: Run<'_>) -> OperationResult<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_panic_is_reported_as_an_internal_error_and_leaves_no_job_behind() {
        let node = Node::new(os_sim::node().build().process(), Config::default());
        let executor = Arc::new(Executor::new(Arc::new(node)));
        for _ in 0..2 {
            let (one, other) = tokio::join!(executor.run(Defective), executor.run(Defective));
            assert_eq!(
                [one, other].map(|result| result.unwrap_err().kind()),
                [ErrorKind::Internal; 2]
            );
        }
        executor.idle().await;
        assert_eq!(executor.running(), 0);
    }
}
