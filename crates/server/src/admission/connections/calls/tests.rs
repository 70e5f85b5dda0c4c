//! Which calls run, which wait, and which are refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::admission::connections::Connection;
use crate::admission::limits::Limits;

const TIMEOUT: Duration = Duration::from_secs(5);

fn connections(calls: usize, queue_timeout: Duration) -> Connections {
    Connections::new(Limits {
        calls,
        queue_timeout,
        ..Limits::default()
    })
}

async fn slot(call: &InFlightCall) -> Result<CallSlot, Status> {
    let connection = call.0.id;
    let described = Call {
        number: connection.0,
        label: "/v1.Disk/Rescan",
        connection,
        began: Duration::ZERO,
    };
    call.slot(described, &|| "rescan".to_owned()).await
}

/// A call that runs.
struct Running {
    // Dropped before the call.
    _slot: CallSlot,
    _call: InFlightCall,
}

async fn run(connection: &Arc<ConnectionHandle>) -> Result<Running, Status> {
    let call = connection.begin_call()?;
    let slot = slot(&call).await?;
    Ok(Running {
        _slot: slot,
        _call: call,
    })
}

/// Makes calls until one is refused.
async fn run_all(connection: &Connection) -> Vec<Running> {
    let mut calls = Vec::new();
    while let Ok(call) = run(connection.handle()).await {
        calls.push(call);
    }
    calls
}

/// Begins a call that has to wait for a slot.
async fn wait(
    connections: &Connections,
    connection: &Connection,
) -> JoinHandle<Result<Running, Status>> {
    let (before, handle) = (connections.counts().waiting, connection.handle().clone());
    let waiting = tokio::spawn(async move { run(&handle).await });
    while connections.counts().waiting == before {
        yield_now().await;
    }
    waiting
}

#[tokio::test(start_paused = true)]
async fn connections_that_take_all_they_can_leave_slots_for_the_others() {
    let all = connections(64, Duration::ZERO);
    let [modest, greedy @ ..] = [(); 9].map(|()| all.admit(None));
    let mut running = Vec::new();
    for connection in &greedy {
        running.push(run_all(connection).await);
    }
    assert_eq!(
        running.iter().map(Vec::len).collect::<Vec<_>>(),
        [17, 9, 5, 3, 2, 2, 1, 1]
    );
    assert!(run(modest.handle()).await.is_ok());
    drop(running);
    assert_eq!(
        run_all(&modest).await.len(),
        17,
        "released slots can be taken again"
    );
    assert_eq!((all.counts().calls, all.counts().busy), (0, 0));

    let limits = Limits {
        queue_timeout: Duration::ZERO,
        ..Limits::default()
    };
    let all = Connections::new(limits);
    let [modest, greedy @ ..] = [(); 10].map(|()| all.admit(None));
    let mut running = Vec::new();
    for connection in greedy
        .iter()
        .flat_map(|connection| vec![connection; limits.streams as usize])
    {
        running.extend(run(connection.handle()).await);
    }
    assert_eq!(
        run_all(&modest).await.len(),
        18,
        "nine connections have as many calls as HTTP/2 lets them"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_get_slots_in_fifo_order() {
    let all = connections(1, TIMEOUT);
    let [one, other, third] = [(); 3].map(|()| all.admit(None));
    let first = run(one.handle()).await.expect("the slot is free");
    let of_other = wait(&all, &other).await;
    let cancelled = wait(&all, &third).await;
    let listed = || {
        all.waiting_calls()
            .iter()
            .map(|waiting| waiting.call.connection)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(), [other.id(), third.id()]);
    cancelled.abort();
    cancelled.await.err().expect("it was aborted");
    assert_eq!((all.counts().waiting, listed()), (1, vec![other.id()]));
    let last = wait(&all, &third).await;
    drop(first);
    let second = of_other
        .await
        .expect("no panic")
        .expect("it is the first in the queue");
    assert!(!last.is_finished());
    drop(second);
    drop(
        last.await
            .expect("no panic")
            .expect("it is the last in the queue"),
    );
    let counts = all.counts();
    assert_eq!(
        (
            counts.calls,
            counts.running,
            counts.waiting,
            counts.refused_calls
        ),
        (0, 0, 0, 0)
    );
}

#[test]
fn a_call_that_waits_is_not_overtaken() {
    // Several calls wait all the time, and each slot that one of them releases is for another of
    // them.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("built");
    let all = connections(1, TIMEOUT);
    let stop = Arc::new(AtomicBool::new(false));
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let (connection, stop) = (all.admit(None), Arc::clone(&stop));
            runtime.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    drop(run(connection.handle()).await);
                }
            })
        })
        .collect();
    for _ in 0..100_000 {
        let state = all.lock();
        let somebody_waits = state.calls.waiting().next().is_some();
        assert!(
            !(somebody_waits && state.calls.admits(0)),
            "a new call would overtake one that waits"
        );
    }
    stop.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for task in waiting {
            task.await.expect("no panic");
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_call_above_the_limit_is_refused_at_once_and_a_waiting_call_after_the_timeout() {
    let all = connections(2, TIMEOUT);
    let [one, other] = [(); 2].map(|()| all.admit(None));
    let _running = [run(one.handle()).await, run(other.handle()).await];
    let start = tokio::time::Instant::now();
    let waiting = [wait(&all, &one).await, wait(&all, &other).await];
    assert_eq!(
        one.handle().begin_call().unwrap_err().message(),
        TOO_MANY_CALLS
    );
    let new = all.admit(None);
    let first_of_new = wait(&all, &new).await;
    assert_eq!(
        new.handle().begin_call().unwrap_err().message(),
        TOO_MANY_CALLS,
        "only its first call may wait"
    );
    assert_eq!(
        (
            start.elapsed(),
            all.counts().refused_calls,
            all.counts().waiting
        ),
        (Duration::ZERO, 2, 3)
    );
    for call in waiting.into_iter().chain([first_of_new]) {
        assert_eq!(
            call.await
                .expect("no panic")
                .err()
                .expect("it is refused")
                .message(),
            TOO_MANY_CALLS
        );
    }
    assert_eq!(
        (
            start.elapsed(),
            all.counts().refused_calls,
            all.counts().waiting
        ),
        (TIMEOUT, 5, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_waits_no_more() {
    let all = connections(1, TIMEOUT);
    let [running, other] = [(); 2].map(|()| all.admit(None));
    let _running = run(running.handle()).await.expect("the slot is free");
    for _ in 0..100 {
        let cancelled = timeout(Duration::ZERO, run(other.handle())).await;
        assert!(cancelled.is_err(), "it waits");
    }
    assert_eq!(all.lock().calls.waiting.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_request_is_incomplete_holds_no_slot() {
    let all = connections(1, TIMEOUT);
    let [slow, other] = [(); 2].map(|()| all.admit(None));
    let _incomplete = slow.handle().begin_call().expect("there is room");
    assert_eq!((all.counts().calls, all.counts().running), (1, 0));
    assert!(run(other.handle()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_the_connection_with_the_most_transferring_calls_is_closed() {
    const MANY: usize = FEW_TRANSFERRING + 1;
    let all = connections(MANY + FEW_TRANSFERRING, TIMEOUT);
    let [most, fewer, other] = [(); 3].map(|()| all.admit(None));
    let begin = |connection: &Connection| connection.handle().begin_call();
    let transferring = [(&most, MANY), (&fewer, FEW_TRANSFERRING)].map(|(connection, calls)| {
        let calls = (0..calls).map(|_| begin(connection).expect("there is room"));
        calls.collect::<Vec<_>>()
    });
    let _first = run(other.handle()).await.expect("it is the first call");
    assert!(!most.handle().unfinished.is_cancelled());
    // Those that are closing make room for as many.
    let _more: Vec<_> = (0..MANY)
        .map(|_| begin(&other).expect("another connection has more calls"))
        .collect();
    assert!(most.handle().unfinished.is_cancelled());
    for kept in [&fewer, &other] {
        assert!(!kept.handle().unfinished.is_cancelled());
    }
    drop(transferring);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_its_connection_is_counted_until_it_ends() {
    let all = connections(1, TIMEOUT);
    let [connection, other] = [(); 2].map(|()| all.admit(None));
    let running = run(connection.handle()).await.expect("the slot is free");
    let waiting = wait(&all, &other).await;
    let handle = connection.handle().clone();
    drop((connection, other));
    assert_eq!(
        waiting
            .await
            .expect("no panic")
            .err()
            .expect("it is refused")
            .message(),
        TOO_MANY_CALLS,
        "its connection is closed"
    );
    let counts = all.counts();
    assert_eq!(
        (counts.busy, counts.calls, counts.running, all.open()),
        (0, 1, 1, 0)
    );
    handle.begin_call().unwrap_err();
    drop(running);
    let counts = all.counts();
    assert_eq!((counts.calls, counts.running), (0, 0));
}
