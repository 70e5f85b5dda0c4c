//! A daemon under 64 clients that behave, and misbehave, as they do in the field.
//!
//! It runs for ten seconds, or for as many as `CSI_PROXY_SOAK_SECONDS` says (`cargo xtask soak --seconds N`). Then every
//! call has had its one answer, the daemon's own counts agree, and it is no larger than it was when it was warm.
//!
//! Sixty clients are tasks of this program; four are processes that are killed and started again all the time.
#![cfg(any(target_os = "linux", windows))]

mod client;
mod daemon;
mod frames;
mod killed;
mod ledger;
mod metrics;
mod random;
mod service;
mod size;
mod slow;
mod stage;
mod system;

use std::sync::Arc;
use std::time::Duration;

use client::Client;
use daemon::Daemon;
use killed::Processes;
use ledger::Ledger;
use service::{FORMER, PRESENT};
use size::Samples;
use slow::Phase;
use stage::Stage;
use tokio::sync::watch;
use tokio::task::JoinSet;

const CLIENTS: u32 = 64;

/// Those of them that are processes.
const PROCESSES: u32 = 4;

/// A call to an SMB server that takes its time, while which the others must get on.
const SLOW_CALL: Duration = Duration::from_secs(30);

/// The name of the one test here, for the processes that it starts.
const TEST: &str = "under_64_clients_no_call_is_lost_and_the_daemon_stays_as_large_as_it_was";

/// Between two looks at the daemon.
const TICK: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_64_clients_no_call_is_lost_and_the_daemon_stays_as_large_as_it_was() {
    if killed::played().await {
        return;
    }
    let length = stage::length();
    // In a short run the slow call is shorter, too, so that others have a while without it.
    let slow = SLOW_CALL.min(length / 2);
    let daemon = Daemon::start(CLIENTS, slow);
    let at_first = daemon.size();
    let (ledger, stage) = (Arc::new(Ledger::default()), Arc::new(Stage::default()));
    let mut clients = JoinSet::new();
    let (tasks, processes) = (1..=CLIENTS - PROCESSES, CLIENTS - PROCESSES + 1..=CLIENTS);
    for number in tasks {
        let client = Client::new(number, PRESENT, daemon.place(), Arc::clone(&ledger));
        clients.spawn(client.work(Arc::clone(&stage)));
    }
    let processes = Processes::new(processes, daemon.sockets(), Arc::clone(&ledger));
    let killed = tokio::spawn(processes.live(daemon.metrics(), Arc::clone(&stage)));
    // The time is counted from when the daemon has done everything once, which a busy machine takes its time for.
    while stage.been_through() < CLIENTS - PROCESSES {
        tokio::time::sleep(TICK).await;
        assert!(clients.try_join_next().is_none(), "a client failed, for the reason above");
    }
    let (phase, phases) = watch::channel(Phase::Before);
    let slow_call = tokio::spawn(slow::call(daemon.place(), Arc::clone(&ledger), phase));
    let bystander = slow::bystander(daemon.place(), Arc::clone(&ledger), phases, Arc::clone(&stage));

    let mut samples = Samples::default();
    while samples.took() < length {
        samples.take(daemon.size());
        tokio::time::sleep(TICK).await;
        assert!(clients.try_join_next().is_none(), "a client failed, for the reason above");
    }
    let meanwhile = slow_call.await.expect("others got on, else above is why not");
    stage.close();
    let cycles: u64 = clients.join_all().await.into_iter().sum();
    let killed = killed.await.expect("each client that is a process comes to its end");
    let latencies = bystander.join().expect("the bystander is answered");

    println!("{cycles} volumes staged, published and unstaged; {ledger}; {killed}");
    println!("{samples}");
    println!("during a call of {} s: {meanwhile}", slow.as_secs());
    println!("{latencies}");
    assert!(killed.within_a_call > 0, "clients died within a call");
    ledger.agrees_with(&daemon.metrics().once_ended(&[PRESENT.services(), FORMER.services()].concat()).await);
    samples.are_flat();
    // Fewer than one for each client are left.
    daemon.shrinks_to(at_first.handles + u64::from(CLIENTS)).await;
    daemon.stop();
}
