//! A daemon under the load of 64 clients, which behave and misbehave as clients do in production.
//!
//! The load lasts ten seconds, or `CSI_PROXY_SOAK_SECONDS` (`cargo xtask soak --seconds N`). After it, every call must have
//! had exactly one answer, the daemon's own counts must agree, and the daemon must use no more memory, handles and
//! threads than after warming up.
//!
//! Sixty clients are tasks of this program. Four are processes, which are repeatedly killed and started again.
#![cfg(any(target_os = "linux", windows))]

mod call_counts;
mod client;
mod client_processes;
mod daemon;
mod frames;
mod metrics;
mod platform;
mod program;
mod resources;
mod rng;
mod run_control;
mod service_client;
mod slow_call;

use std::sync::Arc;

use call_counts::CallCounts;
use client::Client;
use client_processes::ClientProcesses;
use daemon::Daemon;
use resources::{SAMPLE_INTERVAL, Samples};
use run_control::RunControl;
use service_client::{CURRENT, PREVIOUS};
use slow_call::CallPhase;
use tokio::sync::watch;
use tokio::task::JoinSet;

const CLIENTS: u32 = 64;

/// The number of clients that are processes.
const PROCESSES: u32 = 4;

/// The name of the test below, for the client processes: each runs it in this program again.
const TEST: &str = "under_64_clients_no_call_is_lost_and_resource_usage_does_not_grow";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_64_clients_no_call_is_lost_and_resource_usage_does_not_grow() {
    if client_processes::run_as_client().await {
        return;
    }
    let Some(program) = program::find() else { return };
    let duration = run_control::duration();
    let slow = slow_call::duration(duration);
    let daemon = Daemon::start(&program, CLIENTS, slow);
    let initial_usage = daemon.resource_usage();
    let (counts, control) = (Arc::new(CallCounts::default()), Arc::new(RunControl::default()));
    let mut clients = JoinSet::new();
    let (tasks, processes) = (1..=CLIENTS - PROCESSES, CLIENTS - PROCESSES + 1..=CLIENTS);
    for number in tasks {
        let client = Client::new(number, CURRENT, daemon.location(), Arc::clone(&counts));
        clients.spawn(client.run(Arc::clone(&control)));
    }
    let processes = ClientProcesses::new(processes, daemon.sockets(), Arc::clone(&counts));
    let kills = tokio::spawn(processes.run(daemon.metrics(), Arc::clone(&control)));
    // The measurement starts when each client has completed a cycle, which takes long on a busy machine.
    while control.warmed_up() < CLIENTS - PROCESSES {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        assert!(clients.try_join_next().is_none(), "a client failed, see above");
    }
    let (phase, phases) = watch::channel(CallPhase::NotSent);
    let slow_call = tokio::spawn(slow_call::run(daemon.location(), Arc::clone(&counts), phase));
    let latency_probe =
        slow_call::start_latency_probe(daemon.location(), Arc::clone(&counts), phases, Arc::clone(&control));

    let mut samples = Samples::default();
    while samples.elapsed() < duration {
        samples.add(daemon.resource_usage());
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        assert!(clients.try_join_next().is_none(), "a client failed, see above");
    }
    let progress = slow_call.await.expect("other clients make progress during the slow call, or see above");
    control.stop();
    let cycles: u64 = clients.join_all().await.into_iter().sum();
    let kills = kills.await.expect("the last client processes end without a failure");
    let latencies = latency_probe.join().expect("the latency probe is answered");

    println!("{cycles} volumes staged, published and unstaged; {counts}; {kills}");
    println!("{samples}");
    println!("during a call of {} s: {progress}", slow.as_secs());
    println!("{latencies}");
    assert!(kills.during_a_call > 0, "no client process was killed during a call");
    counts.assert_match(&daemon.metrics().when_idle(&[CURRENT.services(), PREVIOUS.services()].concat()).await);
    samples.assert_no_growth();
    // Fewer handles than one for each client may remain.
    daemon.wait_until_handles_at_most(initial_usage.handles + u64::from(CLIENTS)).await;
    daemon.stop();
}
