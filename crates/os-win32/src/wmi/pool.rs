//! A pool of threads with one connection each, and the queue of their requests.
//!
//! A deadline ends the wait, not the work. A request that has not started in time is withdrawn and
//! never runs. A method that has started keeps running, and a [`PendingCall`] reports its end. A
//! thread whose caller has stopped waiting may hang forever, so the pool replaces it, up to a
//! limit.
//!
//! The pool replaces a broken connection. It then repeats a query once. It does not repeat a
//! method, because the broken connection may have delivered it: the caller receives the error and
//! must read the state. Before a method is sent, its signature is read, which can be repeated and
//! detects a connection that broke while it was idle.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use os::{
    CallStatus, Clock, Instance, OsError, OsResult, PendingCall, Returned, Time, Value, lock,
};

use crate::clock::Monotonic;

/// The maximum number of connections that serve callers: the number of threads of a worker pool of
/// `storage-ops`, so that a slow server or disk delays only its own requests. A connection is made
/// only when all connections are busy, so most nodes have one or two.
const MAX_CONNECTIONS: usize = 16;

/// After this time in which at least one connection was always idle, one connection is closed. The
/// last one stays.
const CLOSE_IDLE_AFTER: Duration = Duration::from_mins(1);

/// The maximum number of further connections, which replace connections whose callers have stopped
/// waiting.
const MAX_REPLACEMENTS: usize = 16;

/// The maximum time that a request waits for a connection. The thread of its caller waits too, even
/// if the client has gone.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of requests that wait for a connection. A further request fails with
/// `WMI_QUEUE_FULL`.
const QUEUE_CAPACITY: usize = 64;

/// A method call.
pub(super) struct Method {
    pub(super) path: String,
    pub(super) name: String,
    pub(super) arguments: Vec<(String, Value)>,
}

/// Makes connections.
pub(super) trait Connect: Send + Sync + 'static {
    type Session: Session;

    fn connect(&self) -> OsResult<Self::Session>;
}

/// A connection. It stays on the thread that made it.
pub(super) trait Session {
    /// A method call that is ready to be sent.
    type Prepared;

    fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>>;
    fn prepare(&self, method: &Method) -> OsResult<Self::Prepared>;
    /// Calls the method. The outer error is that of the connection, the inner one that of the
    /// provider.
    fn execute(&self, prepared: Self::Prepared) -> OsResult<OsResult<Returned>>;
}

/// The threads of one namespace.
pub(super) struct Pool<C: Connect> {
    shared: Arc<Shared<C>>,
    start_timeout: Duration,
}

struct Shared<C: Connect> {
    connector: C,
    clock: Monotonic,
    queue: Mutex<Queue<C>>,
    /// Notified when a request is added, ends or is abandoned.
    changed: Condvar,
}

struct Queue<C: Connect> {
    last_id: u64,
    waiting: VecDeque<Request<C>>,
    running: BTreeMap<u64, Running>,
    threads: usize,
    idle: usize,
    /// When no thread was idle for the last time, or a thread ended because it was not needed.
    all_needed_at: Time,
    close_idle_after: Duration,
    closed: bool,
}

/// Runs a request and stores its result.
type Work<C> = Box<dyn FnOnce(&Shared<C>, &mut Option<<C as Connect>::Session>) + Send>;

/// A request that no thread has started.
struct Request<C: Connect> {
    id: u64,
    is_method: bool,
    deadline: Time,
    work: Work<C>,
}

/// A request that a thread runs.
struct Running {
    is_method: bool,
    /// Whether the caller has stopped waiting.
    is_abandoned: bool,
    /// The function to call at the end of the request.
    then: Option<Box<dyn FnOnce() + Send>>,
}

/// The id of a request that is still running at its deadline.
struct StillRunning(u64);

impl<C: Connect> Queue<C> {
    /// Returns the number of threads that run a method.
    fn methods(&self) -> usize {
        self.running
            .values()
            .filter(|running| running.is_method)
            .count()
    }

    /// Returns the number of threads that run a request whose caller has stopped waiting.
    fn hung(&self) -> usize {
        self.running
            .values()
            .filter(|running| running.is_abandoned)
            .count()
    }

    fn max_threads(&self) -> usize {
        MAX_CONNECTIONS + self.hung().min(MAX_REPLACEMENTS)
    }

    /// Takes the first request that may start. Methods never occupy the last thread: it remains for
    /// queries, which end at their deadlines. A request whose deadline has passed is skipped here,
    /// because its caller withdraws the request.
    fn take(&mut self, now: Time) -> Option<Request<C>> {
        let methods_may_start = self.methods() + 1 < self.max_threads();
        let may_start = |request: &Request<C>| {
            now < request.deadline && (methods_may_start || !request.is_method)
        };
        let request = self
            .waiting
            .remove(self.waiting.iter().position(may_start)?)?;
        let running = Running {
            is_method: request.is_method,
            is_abandoned: false,
            then: None,
        };
        self.running.insert(request.id, running);
        if self.idle == 0 {
            self.all_needed_at = now;
        }
        Some(request)
    }

    /// Returns whether the thread that asks may end, because it has not been needed for some time.
    fn release_idle(&mut self, now: Time) -> bool {
        let is_needed = self.threads == 1 || now < self.all_needed_at + self.close_idle_after;
        if !is_needed {
            self.threads -= 1;
            self.all_needed_at = now;
        }
        !is_needed
    }
}

impl<C: Connect> Pool<C> {
    pub(super) fn new(connector: C, clock: Monotonic) -> Self {
        let (waiting, running) = (VecDeque::new(), BTreeMap::new());
        let queue = Queue {
            last_id: 0,
            waiting,
            running,
            threads: 0,
            idle: 0,
            all_needed_at: clock.now(),
            close_idle_after: CLOSE_IDLE_AFTER,
            closed: false,
        };
        let shared = Shared {
            connector,
            clock,
            queue: Mutex::new(queue),
            changed: Condvar::new(),
        };
        Self {
            shared: Arc::new(shared),
            start_timeout: START_TIMEOUT,
        }
    }

    pub(super) fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let wql = wql.to_owned();
        let work = move |shared: &Shared<C>, session: &mut Option<C::Session>| {
            shared.with_session(session, |session| session.query(&wql, deadline))
        };
        // A query that is running ends at the same deadline, and its session is free again.
        self.request(false, deadline, work)?
            .map_err(|StillRunning(_)| OsError::WMI_TIMED_OUT)
    }

    pub(super) fn call(&self, method: Method, deadline: Time) -> OsResult<CallStatus> {
        let work = move |shared: &Shared<C>, session: &mut Option<C::Session>| {
            shared.call(session, &method)
        };
        Ok(match self.request(true, deadline, work)? {
            Ok(returned) => CallStatus::Done(returned),
            Err(StillRunning(id)) => CallStatus::StillRunning(Box::new(RunningMethod {
                id,
                shared: Arc::clone(&self.shared),
            })),
        })
    }

    /// Queues a request and waits for its result until the deadline.
    fn request<T: Send + 'static>(
        &self,
        is_method: bool,
        deadline: Time,
        work: impl FnOnce(&Shared<C>, &mut Option<C::Session>) -> OsResult<T> + Send + 'static,
    ) -> OsResult<Result<T, StillRunning>> {
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let work = move |shared: &Shared<C>, session: &mut Option<C::Session>| {
            // A panic fails this request and does not end the thread.
            let ended = panic::catch_unwind(AssertUnwindSafe(|| work(shared, session)));
            *lock(&slot) = Some(ended.unwrap_or(Err(OsError::WBEM_FAILED)));
        };
        let id = self.submit(is_method, deadline, Box::new(work))?;
        if !self.wait(id, deadline)? {
            return Ok(Err(StillRunning(id)));
        }
        let result = lock(&result).take();
        result.unwrap_or(Err(OsError::WBEM_FAILED)).map(Ok)
    }

    fn submit(&self, is_method: bool, deadline: Time, work: Work<C>) -> OsResult<u64> {
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= QUEUE_CAPACITY {
            return Err(OsError::WMI_QUEUE_FULL);
        }
        queue.last_id += 1;
        let id = queue.last_id;
        queue.waiting.push_back(Request {
            id,
            is_method,
            deadline,
            work,
        });
        self.start_thread_if_needed(&mut queue);
        if queue.threads == 0 {
            queue.waiting.pop_back();
            return Err(OsError::NOT_ENOUGH_MEMORY);
        }
        Ok(id)
    }

    /// Starts a thread if more requests wait than threads are idle. If no thread can be started,
    /// the existing threads serve the requests.
    fn start_thread_if_needed(&self, queue: &mut Queue<C>) {
        if queue.waiting.len() > queue.idle && queue.threads < queue.max_threads() {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name("wmi".to_owned())
                .spawn(move || shared.run_worker());
            queue.threads += usize::from(started.is_ok());
        }
        // Wake all threads, because not every thread may start every request.
        self.shared.changed.notify_all();
    }

    /// Waits for the end of a request until its deadline, and returns whether it has ended.
    /// Withdraws a request that has not started in time. Replaces the thread of a request that is
    /// still running at the deadline.
    fn wait(&self, id: u64, deadline: Time) -> OsResult<bool> {
        let start_by = deadline.min(self.shared.clock.now() + self.start_timeout);
        let mut queue = lock(&self.shared.queue);
        loop {
            let now = self.shared.clock.now();
            let until =
                if let Some(position) = queue.waiting.iter().position(|request| request.id == id) {
                    if now >= start_by {
                        queue.waiting.remove(position);
                        return Err(OsError::WMI_TIMED_OUT);
                    }
                    start_by
                } else if let Some(running) = queue.running.get_mut(&id) {
                    if now >= deadline {
                        running.is_abandoned = true;
                        self.start_thread_if_needed(&mut queue);
                        return Ok(false);
                    }
                    deadline
                } else {
                    return Ok(true);
                };
            queue = self
                .shared
                .changed
                .wait_timeout(queue, until - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl<C: Connect> Drop for Pool<C> {
    /// Ends the threads without waiting for them: one may be in a call that takes minutes.
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.changed.notify_all();
    }
}

impl<C: Connect> Shared<C> {
    /// Runs requests until the pool is dropped, has too many threads, or does not need this one.
    fn run_worker(&self) {
        let mut session = None;
        let mut queue = lock(&self.queue);
        loop {
            let now = self.clock.now();
            let Some(request) = queue.take(now) else {
                if queue.closed || queue.release_idle(now) {
                    return;
                }
                queue.idle += 1;
                let longest = queue.close_idle_after;
                queue = self
                    .changed
                    .wait_timeout(queue, longest)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                queue.idle -= 1;
                continue;
            };
            drop(queue);
            (request.work)(self, &mut session);
            // From here, keep the lock until this thread is idle or has taken the next request.
            // Otherwise the caller could queue its next request before this thread counts as idle,
            // and start a thread that is not needed.
            queue = lock(&self.queue);
            let ended = queue.running.remove(&request.id);
            self.changed.notify_all();
            if let Some(then) = ended.and_then(|running| running.then) {
                drop(queue);
                let _ = panic::catch_unwind(AssertUnwindSafe(then));
                queue = lock(&self.queue);
            }
            if queue.threads > queue.max_threads() {
                queue.threads -= 1;
                return;
            }
        }
    }

    fn call(&self, session: &mut Option<C::Session>, method: &Method) -> OsResult<Returned> {
        let prepared = self.with_session(session, |session| session.prepare(method))?;
        let Some(connected) = session else {
            return Err(OsError::WBEM_TRANSPORT_FAILURE);
        };
        let result = connected.execute(prepared);
        if result.as_ref().is_err_and(|error| !blames_request(*error)) {
            *session = None;
        }
        result?
    }

    /// Does work that can be repeated. If the connection may be broken, repeats the work once with
    /// a new connection.
    fn with_session<T>(
        &self,
        session: &mut Option<C::Session>,
        work: impl Fn(&C::Session) -> OsResult<T>,
    ) -> OsResult<T> {
        let was_connected = session.is_some();
        let result = self.try_with_session(session, &work);
        match result {
            Err(error) if !blames_request(error) => {
                *session = None;
                // If a new connection is broken too, another one would not help.
                if was_connected {
                    self.try_with_session(session, &work)
                } else {
                    Err(error)
                }
            }
            other => other,
        }
    }

    fn try_with_session<T>(
        &self,
        session: &mut Option<C::Session>,
        work: impl Fn(&C::Session) -> OsResult<T>,
    ) -> OsResult<T> {
        let connected = match session {
            Some(connected) => connected,
            None => session.insert(self.connector.connect()?),
        };
        work(connected)
    }
}

/// Returns whether the request, not the connection, caused an error. After all other errors the
/// connection may be broken: no document lists the codes that COM and RPC then return.
fn blames_request(error: OsError) -> bool {
    /// The codes of WMI for a failure of the service.
    const OF_SERVICE: [OsError; 6] = [
        OsError::WBEM_TRANSPORT_FAILURE,
        OsError::WBEM_CALL_CANCELLED,
        OsError::WBEM_SHUTTING_DOWN,
        OsError::WBEM_SERVER_TOO_BUSY,
        OsError::WBEM_CRITICAL_ERROR,
        OsError::WBEM_INITIALIZATION_FAILURE,
    ];
    match error {
        OsError::ACCESS_DENIED
        | OsError::INVALID_PARAMETER
        | OsError::NOT_SUPPORTED
        | OsError::WMI_TIMED_OUT => true,
        OsError(0x8004_1001..=0x8004_2fff) => !OF_SERVICE.contains(&error),
        _ => false,
    }
}

/// A method that is still running at its deadline.
struct RunningMethod<C: Connect> {
    id: u64,
    shared: Arc<Shared<C>>,
}

impl<C: Connect> PendingCall for RunningMethod<C> {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        let mut queue = lock(&self.shared.queue);
        if let Some(running) = queue.running.get_mut(&self.id) {
            running.then = Some(then);
            return;
        }
        drop(queue);
        then();
    }
}

#[cfg(test)]
mod tests;
