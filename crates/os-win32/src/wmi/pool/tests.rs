//! The pool with connections that do what a test tells them; time and threads are real.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use os::{CallStatus, Clock as _, Instance, OsError, OsResult, Returned, Time, Value};

use super::{CONNECTIONS, Connect, Method, Pool, Session, WAITING, lock};
use crate::clock::Monotonic;

/// What a scripted WMI does next, one step for each thing asked of it; without a step it succeeds.
#[derive(Clone, Default)]
struct Script(Arc<Shared>);

#[derive(Default)]
struct Shared {
    steps: Mutex<Vec<(Asked, Step)>>,
    asked: Mutex<Vec<Asked>>,
    connections: AtomicU32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Connect,
    Query,
    Prepare,
    Execute,
}

enum Step {
    Fail(OsError),
    Panic,
    /// Says that it has begun, then waits to be told to go on.
    Hang(Sender<()>, Receiver<()>),
}

impl Script {
    fn next(&self, asked: Asked, step: Step) {
        lock(&self.0.steps).push((asked, step));
    }

    /// Makes the next of `asked` hang; receives when it has begun, and is dropped to let it go on.
    fn hang(&self, asked: Asked) -> (Receiver<()>, Sender<()>) {
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        self.next(asked, Step::Hang(begun, may_go_on));
        (has_begun, go_on)
    }

    fn ask(&self, asked: Asked) -> OsResult<()> {
        lock(&self.0.asked).push(asked);
        let step = {
            let mut steps = lock(&self.0.steps);
            let place = steps.iter().position(|(of, _)| *of == asked);
            place.map(|place| steps.remove(place).1)
        };
        match step {
            None => Ok(()),
            Some(Step::Fail(error)) => Err(error),
            Some(Step::Panic) => panic!("as the test has asked"),
            Some(Step::Hang(begun, may_go_on)) => {
                let _ = begun.send(());
                let _ = may_go_on.recv();
                Ok(())
            }
        }
    }

    fn asked(&self) -> Vec<Asked> {
        lock(&self.0.asked).clone()
    }

    fn pool(&self) -> (Pool<Self>, Monotonic) {
        let clock = Monotonic::start();
        (Pool::new(self.clone(), clock), clock)
    }
}

impl Connect for Script {
    type Session = Self;

    fn connect(&self) -> OsResult<Self> {
        self.ask(Asked::Connect)?;
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        Ok(self.clone())
    }
}

impl Session for Script {
    type Prepared = ();

    fn query(&self, wql: &str, _: Time) -> OsResult<Vec<Instance>> {
        self.ask(Asked::Query)?;
        Ok(vec![Instance { path: wql.to_owned(), ..Instance::default() }])
    }

    fn prepare(&self, _: &Method) -> OsResult<()> {
        self.ask(Asked::Prepare)
    }

    fn execute(&self, (): ()) -> OsResult<Returned> {
        self.ask(Asked::Execute)?;
        Ok(Returned { code: 7, ..Returned::default() })
    }
}

/// A pool with one connection, which has nothing to do.
fn connected(script: &Script) -> Pool<Script> {
    let (pool, _) = script.pool();
    pool.query("first", LONG).unwrap();
    while lock(&pool.shared.queue).idle == 0 {
        std::thread::yield_now();
    }
    pool
}

fn method() -> Method {
    Method { path: "A".into(), name: "B".into(), arguments: vec![("C".into(), Value::Bool(true))] }
}

const LONG: Time = Time(Duration::from_mins(1));

/// A moment from now, long enough for a thread to begin and short enough to wait for.
fn soon(clock: Monotonic) -> Time {
    clock.now() + Duration::from_millis(200)
}

#[test]
fn a_connection_is_made_when_first_needed_and_kept() {
    let script = Script::default();
    let (pool, _) = script.pool();
    assert!(script.asked().is_empty());
    for _ in 0..5 {
        assert_eq!(pool.query("x", LONG).unwrap()[0].path, "x");
        while lock(&pool.shared.queue).idle == 0 {
            std::thread::yield_now();
        }
    }
    assert_eq!(script.0.connections.load(Ordering::Relaxed), 1);
}

#[test]
fn a_query_that_outlives_its_deadline_times_out() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let (_begun, _go_on) = script.hang(Asked::Query);
    assert_eq!(pool.query("x", soon(clock)), Err(OsError::WAIT_TIMEOUT));
}

#[test]
fn a_method_that_outlives_its_deadline_goes_on_and_says_when_it_has_ended() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let (_begun, go_on) = script.hang(Asked::Execute);
    let Ok(CallStatus::StillRunning(ticket)) = pool.call(method(), soon(clock)) else { panic!("it has ended") };
    let (ended, has_ended) = mpsc::channel();
    ticket.when_ended(Box::new(move || ended.send(()).unwrap()));
    assert!(has_ended.try_recv().is_err(), "it still runs");
    drop(go_on);
    has_ended.recv().unwrap();
}

#[test]
fn a_method_that_has_ended_meanwhile_says_so_at_once() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let (_begun, go_on) = script.hang(Asked::Execute);
    let Ok(CallStatus::StillRunning(ticket)) = pool.call(method(), soon(clock)) else { panic!("it has ended") };
    drop(go_on);
    // The thread that ran it is free again only after it has left its answer; so all four having hung and begun
    // something new means that it has.
    let hung: Vec<_> = (0..CONNECTIONS).map(|_| script.hang(Asked::Query)).collect();
    std::thread::scope(|scope| {
        let asking: Vec<_> = hung.iter().map(|_| scope.spawn(|| pool.query("x", LONG))).collect();
        for (begun, _) in &hung {
            begun.recv().unwrap();
        }
        let (ended, has_ended) = mpsc::channel();
        ticket.when_ended(Box::new(move || ended.send(()).unwrap()));
        has_ended.try_recv().unwrap();
        drop(hung);
        for asked in asking {
            asked.join().unwrap().unwrap();
        }
    });
}

#[test]
fn what_no_connection_has_begun_when_its_deadline_comes_is_never_done() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let hung: Vec<_> = (0..CONNECTIONS).map(|_| script.hang(Asked::Query)).collect();
    std::thread::scope(|scope| {
        for (begun, _) in &hung {
            scope.spawn(|| pool.query("x", LONG));
            begun.recv().unwrap();
        }
        assert!(matches!(pool.call(method(), soon(clock)), Err(OsError::WAIT_TIMEOUT)));
        drop(hung);
    });
    pool.query("y", LONG).unwrap();
    assert!(!script.asked().contains(&Asked::Prepare), "the method was withdrawn");
}

#[test]
fn one_slow_method_keeps_nobody_else_waiting() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let (_begun, go_on) = script.hang(Asked::Execute);
    let Ok(CallStatus::StillRunning(_)) = pool.call(method(), soon(clock)) else { panic!("it has ended") };
    pool.query("x", LONG).unwrap();
    drop(go_on);
}

#[test]
fn when_too_many_wait_the_next_one_is_told_at_once() {
    let script = Script::default();
    let (pool, _) = script.pool();
    let hung: Vec<_> = (0..CONNECTIONS).map(|_| script.hang(Asked::Query)).collect();
    std::thread::scope(|scope| {
        for (begun, _) in &hung {
            scope.spawn(|| pool.query("x", LONG));
            begun.recv().unwrap();
        }
        for _ in 0..WAITING {
            scope.spawn(|| pool.query("x", LONG).unwrap());
        }
        while lock(&pool.shared.queue).waiting.len() < WAITING {
            std::thread::yield_now();
        }
        assert_eq!(pool.query("x", LONG), Err(OsError::BUSY));
        drop(hung);
    });
}

#[test]
fn a_query_is_asked_again_over_a_new_connection_when_its_own_broke() {
    let script = Script::default();
    let pool = connected(&script);
    script.next(Asked::Query, Step::Fail(OsError::RPC_SERVER_UNAVAILABLE));
    assert_eq!(pool.query("y", LONG).unwrap()[0].path, "y");
    assert_eq!(script.0.connections.load(Ordering::Relaxed), 2);
}

#[test]
fn a_query_is_not_asked_a_third_time() {
    let script = Script::default();
    let pool = connected(&script);
    script.next(Asked::Query, Step::Fail(OsError::WBEM_TRANSPORT_FAILURE));
    script.next(Asked::Query, Step::Fail(OsError::WBEM_TRANSPORT_FAILURE));
    assert_eq!(pool.query("y", LONG), Err(OsError::WBEM_TRANSPORT_FAILURE));
}

#[test]
fn a_method_that_may_have_been_sent_is_never_sent_again() {
    let script = Script::default();
    let pool = connected(&script);
    script.next(Asked::Execute, Step::Fail(OsError::RPC_CALL_FAILED));
    assert_eq!(pool.call(method(), LONG).err(), Some(OsError::RPC_CALL_FAILED));
    assert_eq!(script.asked().iter().filter(|asked| **asked == Asked::Execute).count(), 1);
    assert!(matches!(pool.call(method(), LONG), Ok(CallStatus::Done(_))), "over a new connection");
}

#[test]
fn a_connection_that_broke_unnoticed_is_renewed_before_a_method_is_sent() {
    let script = Script::default();
    let pool = connected(&script);
    script.next(Asked::Prepare, Step::Fail(OsError::RPC_SERVER_UNAVAILABLE));
    assert!(matches!(pool.call(method(), LONG), Ok(CallStatus::Done(Returned { code: 7, .. }))));
    assert_eq!(script.asked().iter().filter(|asked| **asked == Asked::Execute).count(), 1);
}

#[test]
fn an_error_that_is_not_the_connections_keeps_the_connection() {
    let script = Script::default();
    let pool = connected(&script);
    script.next(Asked::Query, Step::Fail(OsError::WBEM_INVALID_CLASS));
    assert_eq!(pool.query("y", LONG), Err(OsError::WBEM_INVALID_CLASS));
    assert_eq!(script.asked(), [Asked::Connect, Asked::Query, Asked::Query]);
}

#[test]
fn a_panic_costs_a_request_its_answer_and_nobody_else_anything() {
    let script = Script::default();
    let (pool, _) = script.pool();
    for _ in 0..2 * CONNECTIONS {
        script.next(Asked::Query, Step::Panic);
        assert_eq!(pool.query("x", LONG), Err(OsError::WBEM_FAILED));
    }
    pool.query("y", LONG).unwrap();
}
