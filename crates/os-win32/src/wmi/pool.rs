//! A pool of threads with one connection each, and the queue of their requests.
//!
//! A deadline ends the wait, not the work. A request that has not started at its deadline is withdrawn and never runs. A
//! method that has started keeps running, and a [`PendingCall`] reports its end.
//!
//! A broken connection is replaced. A query is then repeated once. A method is not repeated, because it is unknown
//! whether the broken connection delivered it: the caller receives the error and must read the state. Reading the
//! signature of a method before it is sent can be repeated, and detects a connection that broke while it was idle.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use os::{CallStatus, Clock, Instance, OsError, OsResult, PendingCall, Returned, Time, Value};

use crate::clock::Monotonic;

/// The maximum number of connections to a namespace. A connection is made only when all others are busy, so most nodes
/// have one. Several are needed because formatting a volume occupies its connection for minutes.
const MAX_CONNECTIONS: usize = 4;

/// The maximum number of requests that wait for a connection. A further request fails with `BUSY`.
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
    fn execute(&self, prepared: Self::Prepared) -> OsResult<Returned>;
}

/// The threads of one namespace.
pub(super) struct Pool<C: Connect> {
    shared: Arc<Shared<C>>,
    clock: Monotonic,
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
    closed: bool,
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
}

impl<C: Connect> Pool<C> {
    pub(super) fn new(connector: C, clock: Monotonic) -> Self {
        let shared = Shared { connector, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), clock }
    }

    pub(super) fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let completion = Arc::new(Completion::new(deadline, self.clock));
        self.submit(Request::Query { wql: wql.to_owned(), completion: Arc::clone(&completion) })?;
        match completion.wait() {
            WaitOutcome::Ended(result) => result,
            // A query that is running ends at the same deadline, and its session is free again.
            WaitOutcome::Withdrawn | WaitOutcome::Running => Err(OsError::WAIT_TIMEOUT),
        }
    }

    pub(super) fn call(&self, method: Method, deadline: Time) -> OsResult<CallStatus> {
        let completion = Arc::new(Completion::new(deadline, self.clock));
        self.submit(Request::Call { method, completion: Arc::clone(&completion) })?;
        match completion.wait() {
            WaitOutcome::Ended(result) => result.map(CallStatus::Done),
            WaitOutcome::Withdrawn => Err(OsError::WAIT_TIMEOUT),
            WaitOutcome::Running => Ok(CallStatus::StillRunning(Box::new(RunningMethod(completion)))),
        }
    }

    fn submit(&self, request: Request) -> OsResult<()> {
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= QUEUE_CAPACITY {
            queue.waiting.retain(|request| !request.is_withdrawn());
        }
        if queue.waiting.len() >= QUEUE_CAPACITY {
            return Err(OsError::BUSY);
        }
        if queue.idle <= queue.waiting.len() && queue.threads < MAX_CONNECTIONS {
            let shared = Arc::clone(&self.shared);
            match thread::Builder::new().name("wmi".to_owned()).spawn(move || shared.run_worker()) {
                Ok(_) => queue.threads += 1,
                Err(_) if queue.threads == 0 => return Err(OsError::NOT_ENOUGH_MEMORY),
                Err(_) => {} // the existing threads serve the request
            }
        }
        queue.waiting.push_back(request);
        self.shared.changed.notify_one();
        Ok(())
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
    /// Runs requests until the pool is dropped.
    fn run_worker(&self) {
        let mut session = None;
        while let Some(request) = self.next_request() {
            match request {
                Request::Query { wql, completion } => {
                    let deadline = completion.deadline;
                    completion.run(|| self.with_session(&mut session, |session| session.query(&wql, deadline)));
                }
                Request::Call { method, completion } => completion.run(|| self.call(&mut session, &method)),
            }
        }
    }

    /// Waits for the next request. Returns `None` when the pool is dropped.
    fn next_request(&self) -> Option<Request> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(request) = queue.waiting.pop_front() {
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
        if matches!(result, Err(error) if is_disconnect(error)) {
            *session = None;
        }
        result
    }

    /// Does work that can be repeated. If the connection is broken, repeats the work once with a new connection.
    fn with_session<T>(
        &self,
        session: &mut Option<C::Session>,
        work: impl Fn(&C::Session) -> OsResult<T>,
    ) -> OsResult<T> {
        let was_connected = session.is_some();
        let result = self.try_with_session(session, &work);
        match result {
            Err(error) if is_disconnect(error) => {
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

/// Returns whether the error means that the connection is broken, and not that the request failed.
fn is_disconnect(error: OsError) -> bool {
    const RPC_CALL_FAILED_DNE: OsError = OsError(1727);
    const RPC_DISCONNECTED: OsError = OsError(0x8001_0108);
    const RPC_SERVER_DIED: OsError = OsError(0x8001_0007);
    const RPC_SERVER_DIED_DNE: OsError = OsError(0x8001_0012);
    const CO_OBJECT_NOT_CONNECTED: OsError = OsError(0x8004_01fd);
    const WBEM_SHUTTING_DOWN: OsError = OsError(0x8004_1033);
    [
        OsError::RPC_SERVER_UNAVAILABLE,
        OsError::RPC_CALL_FAILED,
        OsError::WBEM_TRANSPORT_FAILURE,
        RPC_CALL_FAILED_DNE,
        RPC_DISCONNECTED,
        RPC_SERVER_DIED,
        RPC_SERVER_DIED_DNE,
        CO_OBJECT_NOT_CONNECTED,
        WBEM_SHUTTING_DOWN,
    ]
    .contains(&error)
}

/// The state of a request, shared by its caller and the thread that runs it.
struct Completion<T> {
    deadline: Time,
    clock: Monotonic,
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    /// No thread has started the request.
    Queued,
    /// No thread will start the request.
    Withdrawn,
    /// A thread runs the request, and then calls the function.
    Running(Option<Box<dyn FnOnce() + Send>>),
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
    fn new(deadline: Time, clock: Monotonic) -> Self {
        Self { deadline, clock, state: Mutex::new(State::Queued), changed: Condvar::new() }
    }

    fn time_left(&self) -> Duration {
        self.deadline - self.clock.now()
    }

    fn is_withdrawn(&self) -> bool {
        matches!(*lock(&self.state), State::Withdrawn)
    }

    /// Does the work and stores the result, unless the deadline has passed.
    fn run(&self, work: impl FnOnce() -> OsResult<T>) {
        {
            let mut state = lock(&self.state);
            if !matches!(*state, State::Queued) || self.time_left().is_zero() {
                return; // the caller withdraws the request, or has withdrawn it
            }
            *state = State::Running(None);
        }
        // A panic fails this request and does not end the thread.
        let result = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(OsError::WBEM_FAILED));
        let before = std::mem::replace(&mut *lock(&self.state), State::Ended(Some(result)));
        self.changed.notify_all();
        if let State::Running(Some(then)) = before {
            let _ = panic::catch_unwind(AssertUnwindSafe(then));
        }
    }

    /// Waits for the result until the deadline, then withdraws the request if it has not started.
    fn wait(&self) -> WaitOutcome<T> {
        let mut state = lock(&self.state);
        loop {
            let left = self.time_left();
            match &mut *state {
                State::Ended(result) => return WaitOutcome::Ended(result.take().unwrap_or(Err(OsError::WBEM_FAILED))),
                State::Queued | State::Running(_) if !left.is_zero() => {
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                State::Running(_) => return WaitOutcome::Running,
                State::Queued | State::Withdrawn => {
                    *state = State::Withdrawn;
                    return WaitOutcome::Withdrawn;
                }
            }
        }
    }
}

/// A method that is still running at its deadline.
struct RunningMethod(Arc<Completion<Returned>>);

impl PendingCall for RunningMethod {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        let mut state = lock(&self.0.state);
        if let State::Running(waiter) = &mut *state {
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
