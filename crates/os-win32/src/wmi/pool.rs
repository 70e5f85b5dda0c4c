//! Threads that each hold one connection, and the requests that wait for them.
//!
//! A deadline ends the waiting, never the work. A request that no thread has begun when its deadline comes is
//! withdrawn and has done nothing; a method that has begun goes on, and a [`PendingCall`] says when it has ended.
//!
//! A connection that broke is made anew. A query is then asked again, once. A method is not: whether the broken
//! connection still carried the request nobody can say, so its caller learns of the failure and looks at the state.
//! What comes before a method is sent, reading the signature of it, is safe to repeat and finds a connection that
//! broke while nobody used it.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use os::{CallStatus, Clock, Instance, OsError, OsResult, PendingCall, Returned, Time, Value};

use crate::clock::Monotonic;

/// Connections per namespace. They are made when all others are busy, so most nodes have one; a few volumes being
/// formatted, which takes minutes, must not keep everyone else from asking questions.
const CONNECTIONS: usize = 4;

/// Requests that may wait for a connection. One more is told that WMI is busy, at once.
const WAITING: usize = 64;

/// A method to call.
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

/// A connection, which stays on the thread that made it.
pub(super) trait Session {
    /// A method call that has not been sent.
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
    Query { wql: String, answer: Arc<Answer<Vec<Instance>>> },
    Call { method: Method, answer: Arc<Answer<Returned>> },
}

impl Request {
    fn is_withdrawn(&self) -> bool {
        match self {
            Self::Query { answer, .. } => answer.is_withdrawn(),
            Self::Call { answer, .. } => answer.is_withdrawn(),
        }
    }
}

impl<C: Connect> Pool<C> {
    pub(super) fn new(connector: C, clock: Monotonic) -> Self {
        let shared = Shared { connector, queue: Mutex::default(), changed: Condvar::new() };
        Self { shared: Arc::new(shared), clock }
    }

    pub(super) fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let answer = Arc::new(Answer::new(deadline, self.clock));
        self.submit(Request::Query { wql: wql.to_owned(), answer: Arc::clone(&answer) })?;
        match answer.wait() {
            Waited::Ended(result) => result,
            // If it runs, its session gives up at the same deadline and is free again.
            Waited::Withdrawn | Waited::Running => Err(OsError::WAIT_TIMEOUT),
        }
    }

    pub(super) fn call(&self, method: Method, deadline: Time) -> OsResult<CallStatus> {
        let answer = Arc::new(Answer::new(deadline, self.clock));
        self.submit(Request::Call { method, answer: Arc::clone(&answer) })?;
        match answer.wait() {
            Waited::Ended(result) => result.map(CallStatus::Done),
            Waited::Withdrawn => Err(OsError::WAIT_TIMEOUT),
            Waited::Running => Ok(CallStatus::StillRunning(Box::new(Pending(answer)))),
        }
    }

    fn submit(&self, request: Request) -> OsResult<()> {
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= WAITING {
            queue.waiting.retain(|request| !request.is_withdrawn());
        }
        if queue.waiting.len() >= WAITING {
            return Err(OsError::BUSY);
        }
        if queue.idle <= queue.waiting.len() && queue.threads < CONNECTIONS {
            let shared = Arc::clone(&self.shared);
            match thread::Builder::new().name("wmi".to_owned()).spawn(move || shared.serve()) {
                Ok(_) => queue.threads += 1,
                Err(_) if queue.threads == 0 => return Err(OsError::NOT_ENOUGH_MEMORY),
                Err(_) => {} // those there are will come to it
            }
        }
        queue.waiting.push_back(request);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl<C: Connect> Drop for Pool<C> {
    /// Lets the threads go. They are not waited for: one may be in a call that takes minutes.
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.changed.notify_all();
    }
}

impl<C: Connect> Shared<C> {
    fn serve(&self) {
        let mut session = None;
        while let Some(request) = self.next() {
            match request {
                Request::Query { wql, answer } => {
                    let deadline = answer.deadline;
                    answer.run(|| self.with_session(&mut session, |session| session.query(&wql, deadline)));
                }
                Request::Call { method, answer } => answer.run(|| self.execute(&mut session, &method)),
            }
        }
    }

    fn next(&self) -> Option<Request> {
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

    fn execute(&self, session: &mut Option<C::Session>, method: &Method) -> OsResult<Returned> {
        let prepared = self.with_session(session, |session| session.prepare(method))?;
        let Some(connected) = session else { return Err(OsError::WBEM_TRANSPORT_FAILURE) };
        let result = connected.execute(prepared);
        if matches!(result, Err(error) if is_disconnect(error)) {
            *session = None;
        }
        result
    }

    /// Does what may be done twice: if the connection breaks, with another one, once.
    fn with_session<T>(
        &self,
        session: &mut Option<C::Session>,
        work: impl Fn(&C::Session) -> OsResult<T>,
    ) -> OsResult<T> {
        let had_one = session.is_some();
        let result = self.attempt(session, &work);
        match result {
            Err(error) if is_disconnect(error) => {
                *session = None;
                // A connection made just now and broken already will not be better the next time.
                if had_one { self.attempt(session, &work) } else { Err(error) }
            }
            other => other,
        }
    }

    fn attempt<T>(&self, session: &mut Option<C::Session>, work: impl Fn(&C::Session) -> OsResult<T>) -> OsResult<T> {
        let connected = match session {
            Some(connected) => connected,
            None => session.insert(self.connector.connect()?),
        };
        work(connected)
    }
}

/// Whether the error says that the connection is of no more use, rather than that the request was bad.
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

/// Where a request's answer is left, and what has become of the request until then.
struct Answer<T> {
    deadline: Time,
    clock: Monotonic,
    state: Mutex<State<T>>,
    changed: Condvar,
}

enum State<T> {
    /// No thread has begun it.
    Waiting,
    /// No thread ever will.
    Withdrawn,
    /// A thread is at it; then it will call what is here.
    Running(Option<Box<dyn FnOnce() + Send>>),
    /// It has ended. The answer is gone once somebody has taken it.
    Ended(Option<OsResult<T>>),
}

enum Waited<T> {
    Ended(OsResult<T>),
    Withdrawn,
    Running,
}

impl<T> Answer<T> {
    fn new(deadline: Time, clock: Monotonic) -> Self {
        Self { deadline, clock, state: Mutex::new(State::Waiting), changed: Condvar::new() }
    }

    fn time_left(&self) -> Duration {
        self.deadline - self.clock.now()
    }

    fn is_withdrawn(&self) -> bool {
        matches!(*lock(&self.state), State::Withdrawn)
    }

    /// Does the work, unless its deadline has come, and leaves the result.
    fn run(&self, work: impl FnOnce() -> OsResult<T>) {
        {
            let mut state = lock(&self.state);
            if !matches!(*state, State::Waiting) || self.time_left().is_zero() {
                return; // its caller withdraws it, or has done so
            }
            *state = State::Running(None);
        }
        // A panic may cost this request its answer, but not the pool its thread.
        let result = panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(OsError::WBEM_FAILED));
        let before = std::mem::replace(&mut *lock(&self.state), State::Ended(Some(result)));
        self.changed.notify_all();
        if let State::Running(Some(then)) = before {
            let _ = panic::catch_unwind(AssertUnwindSafe(then));
        }
    }

    /// Waits for the answer until the deadline, then withdraws the request if it has not begun.
    fn wait(&self) -> Waited<T> {
        let mut state = lock(&self.state);
        loop {
            let left = self.time_left();
            match &mut *state {
                State::Ended(result) => return Waited::Ended(result.take().unwrap_or(Err(OsError::WBEM_FAILED))),
                State::Waiting | State::Running(_) if !left.is_zero() => {
                    state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                State::Running(_) => return Waited::Running,
                State::Waiting | State::Withdrawn => {
                    *state = State::Withdrawn;
                    return Waited::Withdrawn;
                }
            }
        }
    }
}

/// A method that outlived its deadline.
struct Pending(Arc<Answer<Returned>>);

impl PendingCall for Pending {
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

/// Locks, also after a panic: nothing here is left half done by one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
