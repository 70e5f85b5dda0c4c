//! Tests of the pool with scripted connections. Time and threads are real.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use os::{CallStatus, Clock as _, Instance, OsError, OsResult, Returned, Time, Value};

use super::{
    Connect, MAX_CONNECTIONS, MAX_REPLACEMENTS, Method, Pool, QUEUE_CAPACITY, Session, lock,
};
use crate::clock::Monotonic;

/// A scripted WMI: the next step for each kind of call. A call without a step succeeds.
#[derive(Clone, Default)]
struct Script(Arc<Shared>);

#[derive(Default)]
struct Shared {
    steps: Mutex<Vec<(Call, Step)>>,
    calls: Mutex<Vec<Call>>,
    connections: AtomicU32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Connect,
    Query,
    Prepare,
    Execute,
    /// What the provider of a method posts.
    Post,
}

enum Step {
    Fail(OsError),
    Panic,
    /// Sends when the call has started, then waits until the other channel receives or is closed.
    Hang(Sender<()>, Receiver<()>),
}

impl Script {
    fn add(&self, call: Call, step: Step) {
        lock(&self.0.steps).push((call, step));
    }

    /// Makes the next `call` hang. The receiver receives when the call has started; dropping the
    /// sender lets it continue.
    fn hang(&self, call: Call) -> (Receiver<()>, Sender<()>) {
        let (started, has_started) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        self.add(call, Step::Hang(started, resumed));
        (has_started, resume)
    }

    fn run(&self, call: Call) -> OsResult<()> {
        lock(&self.0.calls).push(call);
        let step = {
            let mut steps = lock(&self.0.steps);
            let index = steps.iter().position(|(of, _)| *of == call);
            index.map(|index| steps.remove(index).1)
        };
        match step {
            None => Ok(()),
            Some(Step::Fail(error)) => Err(error),
            Some(Step::Panic) => resume_unwind(Box::new("scripted by the test")),
            Some(Step::Hang(started, resumed)) => {
                let _ = started.send(());
                let _ = resumed.recv();
                Ok(())
            }
        }
    }

    fn calls(&self) -> Vec<Call> {
        lock(&self.0.calls).clone()
    }

    fn pool(&self) -> (Pool<Self>, Monotonic) {
        let clock = Monotonic::start();
        (Pool::new(self.clone(), clock), clock)
    }
}

impl Connect for Script {
    type Session = Self;

    fn connect(&self) -> OsResult<Self> {
        self.run(Call::Connect)?;
        self.0.connections.fetch_add(1, Ordering::Relaxed);
        Ok(self.clone())
    }
}

impl Session for Script {
    type Prepared = ();

    fn query(&self, wql: &str, _: Time) -> OsResult<Vec<Instance>> {
        self.run(Call::Query)?;
        Ok(vec![Instance {
            path: wql.to_owned(),
            ..Instance::default()
        }])
    }

    fn prepare(&self, _: &Method) -> OsResult<()> {
        self.run(Call::Prepare)
    }

    fn execute(&self, (): ()) -> OsResult<OsResult<Returned>> {
        self.run(Call::Execute)?;
        Ok(self.run(Call::Post).map(|()| Returned {
            code: 7,
            ..Returned::default()
        }))
    }
}

/// Returns a pool with one connection, which is idle.
fn connected(script: &Script) -> Pool<Script> {
    let (pool, _) = script.pool();
    assert!(
        script.calls().is_empty(),
        "a connection is made when it is first needed"
    );
    pool.query("first", LONG).unwrap();
    pool
}

fn method() -> Method {
    Method {
        path: "A".into(),
        name: "B".into(),
        arguments: vec![("C".into(), Value::Bool(true))],
    }
}

const LONG: Time = Time(Duration::from_mins(1));

/// Returns a deadline long enough for a thread to start and short enough to wait for.
fn soon(clock: Monotonic) -> Time {
    clock.now() + Duration::from_millis(200)
}

#[test]
fn a_query_that_has_not_ended_at_its_deadline_times_out() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let (_started, _resume) = script.hang(Call::Query);
    assert_eq!(pool.query("x", soon(clock)), Err(OsError::WMI_TIMED_OUT));
}

#[test]
fn a_method_that_has_not_ended_at_its_deadline_keeps_running_and_reports_its_end() {
    for has_ended in [false, true] {
        let script = Script::default();
        let (pool, clock) = script.pool();
        let (_started, resume) = script.hang(Call::Execute);
        let Ok(CallStatus::StillRunning(pending)) = pool.call(method(), soon(clock)) else {
            panic!("it has ended")
        };
        let (ended, reported) = mpsc::channel();
        let report = Box::new(move || ended.send(()).unwrap());
        if has_ended {
            drop(resume);
            while lock(&pool.shared.queue).hung() > 0 {
                std::thread::yield_now();
            }
            pending.when_ended(report);
            reported.try_recv().unwrap();
        } else {
            pending.when_ended(report);
            assert!(reported.try_recv().is_err(), "the method is still running");
            drop(resume);
            reported.recv().unwrap();
        }
    }
}

/// Calls `act` while each connection of the pool runs a query that hangs.
fn while_all_are_busy(script: &Script, pool: &Pool<Script>, act: impl FnOnce()) {
    let hung: Vec<_> = (0..MAX_CONNECTIONS)
        .map(|_| script.hang(Call::Query))
        .collect();
    std::thread::scope(|scope| {
        for (started, _) in &hung {
            scope.spawn(|| pool.query("x", LONG));
            started.recv().unwrap();
        }
        act();
        drop(hung);
    });
}

#[test]
fn a_request_waits_for_a_connection_only_for_a_limited_time_and_then_never_runs() {
    let script = Script::default();
    let (mut pool, clock) = script.pool();
    pool.start_timeout = Duration::from_millis(400);
    while_all_are_busy(&script, &pool, || {
        assert_eq!(pool.query("y", LONG), Err(OsError::WMI_TIMED_OUT));
        // The deadline, and the limit of the pool.
        for deadline in [soon(clock), LONG] {
            assert!(matches!(
                pool.call(method(), deadline),
                Err(OsError::WMI_TIMED_OUT)
            ));
        }
    });
    pool.query("y", LONG).unwrap();
    assert!(
        !script.calls().contains(&Call::Prepare),
        "the methods were withdrawn"
    );
}

/// Makes `count` methods hang, for which nobody waits, until the returned senders are dropped.
fn hang_methods(
    script: &Script,
    pool: &Pool<Script>,
    clock: Monotonic,
    count: usize,
) -> Vec<Sender<()>> {
    let hang = |_| {
        let (_, resume) = script.hang(Call::Execute);
        // On a busy machine the method may not start in time.
        while !matches!(
            pool.call(method(), clock.now() + Duration::from_millis(20)),
            Ok(CallStatus::StillRunning(_))
        ) {}
        resume
    };
    (0..count).map(hang).collect()
}

#[test]
fn a_connection_whose_call_never_returns_is_replaced() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let resume = hang_methods(&script, &pool, clock, MAX_REPLACEMENTS);
    assert!(matches!(pool.call(method(), LONG), Ok(CallStatus::Done(_))));
    assert!(lock(&pool.shared.queue).threads <= MAX_REPLACEMENTS + MAX_CONNECTIONS);
    drop(resume);
    while lock(&pool.shared.queue).threads > MAX_CONNECTIONS {
        std::thread::yield_now();
    }
    assert_eq!(lock(&pool.shared.queue).methods(), 0);
}

#[test]
fn connections_that_are_no_longer_needed_are_closed_except_for_the_last() {
    let script = Script::default();
    let pool = connected(&script);
    lock(&pool.shared.queue).close_idle_after = Duration::from_millis(5);
    while_all_are_busy(&script, &pool, || {
        assert_eq!(lock(&pool.shared.queue).threads, MAX_CONNECTIONS);
    });
    let begin = std::time::Instant::now();
    while lock(&pool.shared.queue).threads > 1 {
        assert!(begin.elapsed() < Duration::from_secs(20), "kept");
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(lock(&pool.shared.queue).threads, 1);
    pool.query("x", LONG).unwrap();
}

#[test]
fn methods_that_never_return_leave_a_connection_to_queries() {
    let script = Script::default();
    let (pool, clock) = script.pool();
    let most = MAX_CONNECTIONS + MAX_REPLACEMENTS - 1;
    let resume = hang_methods(&script, &pool, clock, most);
    assert!(matches!(
        pool.call(method(), soon(clock)),
        Err(OsError::WMI_TIMED_OUT)
    ));
    assert_eq!(lock(&pool.shared.queue).methods(), most);
    pool.query("x", LONG).unwrap();
    drop(resume);
    assert!(matches!(pool.call(method(), LONG), Ok(CallStatus::Done(_))));
}

#[test]
fn a_request_to_a_full_queue_fails_at_once() {
    let script = Script::default();
    let (pool, _) = script.pool();
    std::thread::scope(|scope| {
        while_all_are_busy(&script, &pool, || {
            for _ in 0..QUEUE_CAPACITY {
                scope.spawn(|| pool.query("x", LONG).unwrap());
            }
            while lock(&pool.shared.queue).waiting.len() < QUEUE_CAPACITY {
                std::thread::yield_now();
            }
            assert_eq!(pool.query("x", LONG), Err(OsError::WMI_QUEUE_FULL));
        });
    });
}

/// Each case starts with a pool that has one idle connection.
#[test]
fn a_broken_connection_is_replaced_and_a_sent_method_is_not_repeated() {
    let unknown = OsError(0x8001_0fff);
    let query = |error| vec![(Call::Query, error)];
    // The steps that fail, the result of the query or method, how often the method was sent, and
    // the number of connections after another query.
    for (steps, expected, sent, connections) in [
        (query(OsError::RPC_SERVER_UNAVAILABLE), Ok(()), 0, 2),
        (query(unknown), Ok(()), 0, 2),
        (
            query(OsError::WBEM_INVALID_CLASS),
            Err(OsError::WBEM_INVALID_CLASS),
            0,
            1,
        ),
        (
            [
                query(OsError::WBEM_TRANSPORT_FAILURE),
                query(OsError::WBEM_TRANSPORT_FAILURE),
            ]
            .concat(),
            Err(OsError::WBEM_TRANSPORT_FAILURE),
            0,
            2,
        ),
        (
            vec![(Call::Prepare, OsError::RPC_SERVER_UNAVAILABLE)],
            Ok(()),
            1,
            2,
        ),
        (vec![(Call::Prepare, unknown)], Ok(()), 1, 2),
        (
            vec![(Call::Execute, OsError::RPC_CALL_FAILED)],
            Err(OsError::RPC_CALL_FAILED),
            1,
            2,
        ),
        (vec![(Call::Execute, unknown)], Err(unknown), 1, 2),
        (
            vec![(Call::Post, OsError::SESSION_CREDENTIAL_CONFLICT)],
            Err(OsError::SESSION_CREDENTIAL_CONFLICT),
            1,
            1,
        ),
    ] {
        let script = Script::default();
        let pool = connected(&script);
        let is_method = steps[0].0 != Call::Query;
        for (call, error) in &steps {
            script.add(*call, Step::Fail(*error));
        }
        let result = if is_method {
            pool.call(method(), LONG).map(drop)
        } else {
            pool.query("y", LONG).map(drop)
        };
        assert_eq!(result, expected, "{steps:?}");
        assert_eq!(
            script
                .calls()
                .iter()
                .filter(|call| **call == Call::Execute)
                .count(),
            sent,
            "{steps:?}"
        );
        pool.query("z", LONG).unwrap();
        assert_eq!(
            script.0.connections.load(Ordering::Relaxed),
            connections,
            "{steps:?}"
        );
    }
}

#[test]
fn a_panic_fails_only_its_own_request() {
    let script = Script::default();
    let (pool, _) = script.pool();
    for _ in 0..2 * MAX_CONNECTIONS {
        script.add(Call::Query, Step::Panic);
        assert_eq!(pool.query("x", LONG), Err(OsError::WBEM_FAILED));
    }
    pool.query("y", LONG).unwrap();
}
