//! A pool of threads with one connection each, and the queue of their requests.
//!
//! A deadline ends the wait, not the work. A request that has not started in time is withdrawn and never runs. A method
//! that has started keeps running, and a [`PendingCall`] reports its end. A thread whose caller has stopped waiting may hang
//! forever, so the pool replaces it, up to a limit.
//!
//! The pool replaces a broken connection. It then repeats a query once. It does not repeat a method, because the broken
//! connection may have delivered it: the caller receives the error and must read the state. Before a method is sent, its
//! signature is read, which can be repeated and detects a connection that broke while it was idle.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use os::{CallStatus, Clock, Instance, OsError, OsResult, PendingCall, Returned, Time, Value};

use crate::clock::Monotonic;

/// The maximum number of connections that serve callers: the number of threads of a worker pool of `storage-ops`, so that a slow
/// server or disk delays only its own requests. A connection is made only when all connections are busy, so most nodes have
/// one or two.
const MAX_CONNECTIONS: usize = 16;

/// The maximum number of further connections, which replace connections whose callers have stopped waiting.
const MAX_REPLACEMENTS: usize = 16;

/// The maximum time that a request waits for a connection. The thread of its caller waits too, even if the client has gone.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of requests that wait for a connection. A further request fails with `WMI_QUEUE_FULL`.
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
    /// Calls the method. The outer error is that of the connection, the inner one that of the provider.
    fn execute(&self, prepared: Self::Prepared) -> OsResult<OsResult<Returned>>;
}

/// The threads of one namespace.
pub(super) struct Pool<C: Connect> {
    shared: Arc<Shared<C>>,
    clock: Monotonic,
    start_timeout: Duration,
}

struct Shared<C> {
    connector: C,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Request>,
    threads: usize,
    idle: usize,
    /// The threads that run a method.
    methods: usize,
    /// The threads that run a request whose caller has stopped waiting.
    hung: usize,
    closed: bool,
}

impl Queue {
    fn max_threads(&self) -> usize {
        MAX_CONNECTIONS + self.hung.min(MAX_REPLACEMENTS)
    }

    /// Takes the first request that may start. Methods leave one thread to queries, which end at their deadlines.
    fn take(&mut self) -> Option<Request> {
        let methods_may_start = self.methods + 1 < self.max_threads();
        let may_start = |request: &Request| methods_may_start || matches!(request, Request::Query { .. });
        let request = self.waiting.remove(self.waiting.iter().position(may_start)?)?;
        self.methods += usize::from(request.is_method());
        Some(request)
    }
}

enum Request {
    Query { wql: String, completion: Arc<Completion<Vec<Instance>>> },
    Call { method: Method, completion: Arc<Completion<Returned>> },
}

impl Request {
    fn is_withdrawn(&self) -> bool {
        match self {
            Self::Query { completion, .. } => completion.is_withdrawn(),
            Self::Call { completion, .. } => completion.is_withdrawn(),
        }
    }

    fn is_method(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

impl<C: Connect> Pool<C> {
    pub(super) fn new(connector: C, clock: Monotonic) -> Self {
        let shared = Shared { connector, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), clock, start_timeout: START_TIMEOUT }
    }

    pub(super) fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let completion = self.completion(deadline);
        self.submit(Request::Query { wql: wql.to_owned(), completion: Arc::clone(&completion) })?;
        match self.wait(&completion) {
            WaitOutcome::Ended(result) => result,
            // A query that is running ends at the same deadline, and its session is free again.
            WaitOutcome::Withdrawn | WaitOutcome::Running => Err(OsError::WMI_TIMED_OUT),
        }
    }

    pub(super) fn call(&self, method: Method, deadline: Time) -> OsResult<CallStatus> {
        let completion = self.completion(deadline);
        self.submit(Request::Call { method, completion: Arc::clone(&completion) })?;
        match self.wait(&completion) {
            WaitOutcome::Ended(result) => result.map(CallStatus::Done),
            WaitOutcome::Withdrawn => Err(OsError::WMI_TIMED_OUT),
            WaitOutcome::Running => Ok(CallStatus::StillRunning(Box::new(RunningMethod(completion)))),
        }
    }

    fn completion<T>(&self, deadline: Time) -> Arc<Completion<T>> {
        let start_by = deadline.min(self.clock.now() + self.start_timeout);
        Arc::new(Completion { deadline, start_by, clock: self.clock, state: Mutex::default(), changed: Condvar::new() })
    }

    fn submit(&self, request: Request) -> OsResult<()> {
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= QUEUE_CAPACITY {
            queue.waiting.retain(|request| !request.is_withdrawn());
        }
        if queue.waiting.len() >= QUEUE_CAPACITY {
            return Err(OsError::WMI_QUEUE_FULL);
        }
        queue.waiting.push_back(request);
        self.start_thread_if_needed(&mut queue);
        if queue.threads == 0 {
            queue.waiting.pop_back();
            return Err(OsError::NOT_ENOUGH_MEMORY);
        }
        Ok(())
    }

    /// Starts a thread if more requests wait than threads. The existing threads serve them if that fails.
    fn start_thread_if_needed(&self, queue: &mut Queue) {
        if queue.waiting.len() > queue.idle && queue.threads < queue.max_threads() {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new().name("wmi".to_owned()).spawn(move || shared.run_worker());
            queue.threads += usize::from(started.is_ok());
        }
        // Wake all threads, because not every thread may start every request.
        self.shared.changed.notify_all();
    }

    /// Waits for the result until the deadline. Replaces the thread of a request that is still running then.
    fn wait<T>(&self, completion: &Completion<T>) -> WaitOutcome<T> {
        loop {
            match completion.wait() {
                WaitOutcome::Running => {
                    let mut queue = lock(&self.shared.queue);
                    // Under the lock of the queue, so that the thread counts itself out only after this.
                    if completion.abandon() {
                        queue.hung += 1;
                        self.start_thread_if_needed(&mut queue);
                        return WaitOutcome::Running;
                    }
                }
                outcome => return outcome,
            }
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
    /// Runs requests until the pool is dropped or has too many threads.
    fn run_worker(&self) {
        let mut session = None;
        while let Some(request) = self.next_request() {
            let is_method = request.is_method();
            let was_abandoned = match request {
                Request::Query { wql, completion } => {
                    let deadline = completion.deadline;
                    completion.run(|| self.with_session(&mut session, |session| session.query(&wql, deadline)))
                }
                Request::Call { method, completion } => completion.run(|| self.call(&mut session, &method)),
            };
            let mut queue = lock(&self.queue);
            queue.methods -= usize::from(is_method);
            queue.hung -= usize::from(was_abandoned);
            if queue.threads > queue.max_threads() {
                queue.threads -= 1;
                return;
            }
        }
    }

    /// Waits for the next request. Returns `None` when the pool is dropped.
    fn next_request(&self) -> Option<Request> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(request) = queue.take() {
                return Some(request);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn call(&self, session: &mut Option<C::Session>, method: &Method) -> OsResult<Returned> {
        let prepared = self.with_session(session, |session| session.prepare(method))?;
        let Some(connected) = session else { return Err(OsError::WBEM_TRANSPORT_FAILURE) };
        let result = connected.execute(prepared);
        if result.as_ref().is_err_and(|error| !blames_request(*error)) {
            *session = None;
        }
        result?
    }

    /// Does work that can be repeated. If the connection may be broken, repeats the work once with a new connection.
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
                if was_connected { self.try_with_session(session, &work) } else { Err(error) }
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

/// Returns whether the request, not the connection, caused an error. After all other errors the connection may be broken: no
/// document lists the codes that COM and RPC then return.
fn blames_request(error: OsError) -> bool {
    /// The codes of WMI for a failure of the service.
    const OF_SERVICE: [OsError; 6] = [
        OsError::WBEM_TRANSPORT_FAILURE,
        OsError::WBEM_CALL_CANCELLED,
        OsError::WBEM_SHUTTING_DOWN,
        OsError::WBEM_SERVER_TOO_BUSY,
        // WBEM_E_CRITICAL_ERROR
        OsError(0x8004_100a),
        // WBEM_E_INITIALIZATION_FAILURE
        OsError(0x8004_1014),
    ];
    match error {
        OsError::ACCESS_DENIED | OsError::INVALID_PARAMETER | OsError::NOT_SUPPORTED | OsError::WMI_TIMED_OUT => true,
        OsError(0x8004_1001..=0x8004_2fff) => !OF_SERVICE.contains(&error),
        _ => false,
    }
}

/// The state of a request, shared by its caller and the thread that runs it.
struct Completion<T> {
    deadline: Time,
    /// When the request is withdrawn unless it has started.
    start_by: Time,
    clock: Monotonic,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Default)]
enum State<T> {
    /// No thread has started the request.
    #[default]
    Queued,
    /// No thread will start the request.
    Withdrawn,
    /// A thread runs the request.
    Running,
    /// A thread runs the request, for which its caller no longer waits, and then calls the function.
    Abandoned(Option<Box<dyn FnOnce() + Send>>),
    /// The request has ended. The result is `None` after the caller has taken it.
    Ended(Option<OsResult<T>>),
}

/// The result of a wait that ends at the deadline.
enum WaitOutcome<T> {
    Ended(OsResult<T>),
    Withdrawn,
    Running,
}

impl<T> Completion<T> {
    fn is_withdrawn(&self) -> bool {
        matches!(*lock(&self.state), State::Withdrawn)
    }

    /// Does the work and stores the result, unless the deadline has passed. Returns whether the caller stopped waiting
    /// meanwhile.
    fn run(&self, work: impl FnOnce() -> OsResult<T>) -> bool {
        {
            let mut state = lock(&self.state);
            if !matches!(*state, State::Queued) || self.clock.now() >= self.deadline {
                return false; // the caller withdraws the request, or has withdrawn it
            }
            *state = State::Running;
        }
        // A panic fails this request and does not end the thread.
        let result = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(OsError::WBEM_FAILED));
        let before = std::mem::replace(&mut *lock(&self.state), State::Ended(Some(result)));
        self.changed.notify_all();
        let State::Abandoned(then) = before else { return false };
        if let Some(then) = then {
            let _ = panic::catch_unwind(AssertUnwindSafe(then));
        }
        true
    }

    /// Waits for the result until the deadline. Withdraws the request if it has not started in time.
    fn wait(&self) -> WaitOutcome<T> {
        let mut state = lock(&self.state);
        loop {
            let now = self.clock.now();
            let until = match &mut *state {
                State::Ended(result) => return WaitOutcome::Ended(result.take().unwrap_or(Err(OsError::WBEM_FAILED))),
                State::Queued if now < self.start_by => self.start_by,
                State::Running if now < self.deadline => self.deadline,
                State::Running | State::Abandoned(_) => return WaitOutcome::Running,
                State::Queued | State::Withdrawn => {
                    *state = State::Withdrawn;
                    return WaitOutcome::Withdrawn;
                }
            };
            state = self.changed.wait_timeout(state, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes that the caller no longer waits. Returns false if the request is not running.
    fn abandon(&self) -> bool {
        let mut state = lock(&self.state);
        let is_running = matches!(*state, State::Running);
        if is_running {
            *state = State::Abandoned(None);
        }
        is_running
    }
}

/// A method that is still running at its deadline.
struct RunningMethod(Arc<Completion<Returned>>);

impl PendingCall for RunningMethod {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        let mut state = lock(&self.0.state);
        if let State::Abandoned(waiter) = &mut *state {
            *waiter = Some(then);
            return;
        }
        drop(state);
        then();
    }
}

/// Locks the mutex, even if a thread has panicked: no critical section leaves inconsistent data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
