//! Simulated time: advanced by waiting threads, held, or following the wall clock.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use os::{CallStatus, MethodCall, Namespace, Os, OsResult, Time, Value};
use os_sim::{Sim, node};

fn try_format(node: &Sim, deadline: Time) -> OsResult<CallStatus> {
    let soon = node.now() + Duration::from_mins(1);
    let rows = node.wmi().query(
        Namespace::Storage,
        "SELECT * FROM MSFT_Volume WHERE FileSystemType = 0",
        soon,
    );
    let path = &rows.unwrap()[0].path;
    let arguments = [("FileSystem", Value::Text("NTFS".into()))];
    node.wmi().call(
        &MethodCall::new(Namespace::Storage, path, "Format", &arguments),
        deadline,
    )
}

fn format(node: &Sim, deadline: Time) -> CallStatus {
    try_format(node, deadline).unwrap()
}

fn raw_volume() -> Sim {
    node().disk(1 << 30).partitioned().build()
}

#[test]
fn a_method_call_waits_until_its_deadline() {
    let node = raw_volume();
    let deadline = Time(Duration::from_millis(700));
    assert!(matches!(
        format(&node, deadline),
        CallStatus::StillRunning(_)
    ));
    assert_eq!(node.now(), deadline);
}

#[test]
fn waiting_for_a_job_advances_the_clock_to_its_end() {
    let node = raw_volume();
    let CallStatus::StillRunning(pending) = format(&node, node.now()) else {
        panic!("no time has passed")
    };
    let (sender, receiver) = mpsc::channel();
    let mut pending = Some(pending);
    let wait = poll_fn(|context| {
        if let Some(pending) = pending.take() {
            let (sender, waker) = (sender.clone(), context.waker().clone());
            pending.when_ended(Box::new(move || {
                sender.send(()).unwrap();
                waker.wake();
            }));
        }
        if receiver.try_recv().is_ok() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    node.clock().block_on(pin!(wait));
    assert_eq!(node.now(), Time(Duration::from_secs(2)));
    assert_eq!(node.volume_on(1).unwrap().formats, 1);
}

#[test]
fn the_callback_of_an_ended_job_runs_at_once() {
    let node = raw_volume();
    let CallStatus::StillRunning(pending) = format(&node, node.now()) else {
        panic!("no time has passed")
    };
    node.advance(Duration::from_secs(5));
    let (sender, receiver) = mpsc::channel();
    pending.when_ended(Box::new(move || sender.send(()).unwrap()));
    receiver.try_recv().unwrap();
}

#[test]
fn a_held_clock_moves_only_when_it_is_advanced() {
    let node = raw_volume().held();
    let deadline = node.now() + Duration::from_mins(1);
    let caller = thread::spawn({
        let node = node.clone();
        move || matches!(format(&node, deadline), CallStatus::Done(returned) if returned.code == 0)
    });
    while node.running_jobs() == 0 {
        thread::yield_now();
    }
    assert_eq!(node.now(), Time::default());
    node.advance(Duration::from_millis(1999));
    assert_eq!(node.running_jobs(), 1);
    node.advance(Duration::from_millis(1));
    assert!(caller.join().unwrap());
}

#[test]
fn a_clock_that_follows_real_time_lets_jobs_end_without_calls() {
    let node = raw_volume().real_time();
    node.set_timing(|timing| timing.format = Duration::from_millis(20));
    let CallStatus::StillRunning(pending) = format(&node, node.now()) else {
        panic!("it takes 20 ms")
    };
    let (sender, receiver) = mpsc::channel();
    pending.when_ended(Box::new(move || sender.send(()).unwrap()));
    receiver.recv().expect("the job ends without another call");
    assert!(node.now() >= Time(Duration::from_millis(20)));
    let before = node.now();
    node.clock().sleep(Duration::from_millis(5));
    assert!(node.now() - before >= Duration::from_millis(5));
}

#[test]
fn waiting_for_a_job_that_is_lost_in_a_restart_fails() {
    let node = raw_volume().held();
    let deadline = node.now() + Duration::from_mins(1);
    let caller = thread::spawn({
        let node = node.clone();
        move || try_format(&node, deadline).err()
    });
    while node.running_jobs() == 0 {
        thread::yield_now();
    }
    node.reboot();
    assert_eq!(caller.join().unwrap(), Some(os::OsError::RPC_CALL_FAILED));
    assert_eq!(node.volume_on(1).unwrap().formats, 0);
}

/// Runs work that sleeps for each of `steps`. Returns whether it ended in time, and what each step
/// was told.
fn sleep_in_steps(
    node: &Sim,
    patience: Duration,
    steps: &'static [u64],
) -> (bool, mpsc::Receiver<bool>) {
    let (told, receiver) = mpsc::channel();
    let process = node.process();
    let work = move |step_ended: &dyn Fn() -> bool| {
        for seconds in steps {
            process.clock().sleep(Duration::from_secs(*seconds));
            told.send(step_ended()).unwrap();
        }
    };
    (node.clock().run_watched(patience, Box::new(work)), receiver)
}

const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn a_step_that_waits_for_too_long_is_late() {
    let node = node().build();
    let (in_time, told) = sleep_in_steps(&node, PATIENCE, &[5, 4, 3]);
    assert!(in_time && told.iter().eq([true, true, true]));
    let (in_time, told) = sleep_in_steps(&node, PATIENCE, &[4, 6, 1]);
    assert!(
        !in_time && told.iter().eq([true, false, false]),
        "late, although it has ended"
    );
    assert_eq!(node.now(), Time(Duration::from_secs(23)));
}

#[test]
fn several_waits_of_one_step_count_together() {
    let node = node().build();
    let process = node.process();
    let sleep = |count| {
        let process = process.clone();
        let sleeps = move |_: &dyn Fn() -> bool| {
            (0..count).for_each(|_| process.clock().sleep(PATIENCE / 5));
        };
        node.clock().run_watched(PATIENCE, Box::new(sleeps))
    };
    assert!(sleep(5));
    assert!(!sleep(6));
}

#[test]
fn a_step_is_not_late_because_others_advance_the_time() {
    let node = node().build();
    let (others, process) = (node.clone(), node.process());
    let work = move |_: &dyn Fn() -> bool| {
        for _ in 0..4 {
            others.advance(Duration::from_hours(1));
            process.clock().sleep(Duration::from_secs(1));
        }
    };
    assert!(node.clock().run_watched(PATIENCE, Box::new(work)));
}

#[test]
fn a_step_that_blocks_on_a_future_for_too_long_is_late() {
    for (patience, in_time) in [(PATIENCE, true), (Duration::from_secs(1), false)] {
        let node = raw_volume();
        // A job, whose end is what the clock advances to.
        drop(format(&node, node.now()));
        let process = node.process();
        let end = node.now() + Duration::from_secs(2);
        let work = move |_: &dyn Fn() -> bool| {
            let is_over = |_: &mut std::task::Context<'_>| {
                if process.clock().now() >= end {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            };
            process.clock().block_on(pin!(poll_fn(is_over)));
        };
        assert_eq!(node.clock().run_watched(patience, Box::new(work)), in_time);
    }
}

#[test]
fn on_a_held_clock_late_work_is_left_behind() {
    let node = node().build().held();
    let other = node.clone();
    let run = thread::spawn(move || sleep_in_steps(&other, PATIENCE, &[1_000_000_000]));
    while !run.is_finished() {
        node.advance(Duration::from_secs(1));
        thread::yield_now();
    }
    let (in_time, told) = run.join().unwrap();
    assert!(!in_time);
    assert_eq!(
        told.try_recv(),
        Err(mpsc::TryRecvError::Empty),
        "it still waits"
    );
    node.advance(Duration::from_secs(1_000_000_000));
    assert_eq!(told.recv(), Ok(false));
}

#[test]
fn in_real_time_late_work_is_left_behind() {
    let node = node().build().real_time();
    let (in_time, told) = sleep_in_steps(&node, Duration::from_millis(1), &[1]);
    assert!(!in_time);
    assert_eq!(told.recv(), Ok(false));
}
