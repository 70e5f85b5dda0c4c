//! A daemon under the load of 64 clients, which behave and misbehave as clients do in production.
//!
//! The load lasts ten seconds, or `CSI_PROXY_SOAK_SECONDS` (`cargo xtask soak --seconds N`). After
//! it, every call must have had exactly one answer, the daemon's own counts must agree, and the
//! daemon must use no more memory, handles and threads than after warming up.
//!
//! Sixty clients run all the time. Four are repeatedly killed and started again.
#![cfg(any(target_os = "linux", windows))]

mod call_counts;
mod client;
mod daemon;
mod frames;
mod killed_clients;
mod metrics;
mod platform;
mod program;
mod resources;
mod rng;
mod run_control;
mod service_client;

use std::sync::Arc;

use call_counts::CallCounts;
use client::Client;
use daemon::Daemon;
use resources::{SAMPLE_INTERVAL, Samples};
use run_control::RunControl;
use service_client::{CURRENT, Connections, PREVIOUS};
use tokio::task::JoinSet;

const CLIENTS: u32 = 64;

/// The number of clients that are killed.
const KILLED: u32 = 4;

/// How many more threads than at its start the daemon may keep.
const MORE_THREADS: u64 = 8;

/// The name of the test below.
const TEST: &str = "under_64_clients_no_call_is_lost_and_resource_usage_does_not_grow";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_64_clients_no_call_is_lost_and_resource_usage_does_not_grow() {
    let Some(program) = program::find() else {
        return;
    };
    let duration = run_control::duration();
    let daemon = Daemon::start(&program, CLIENTS);
    let initial_usage = daemon.resource_usage();
    let (counts, control) = (
        Arc::new(CallCounts::default()),
        Arc::new(RunControl::default()),
    );
    let mut clients = JoinSet::new();
    let (_connected, connections) = Connections::to(daemon.location());
    for number in 1..=CLIENTS - KILLED {
        let client = Client::new(
            number,
            number.into(),
            CURRENT,
            connections.clone(),
            Arc::clone(&counts),
        );
        clients.spawn(client.run(Arc::clone(&control)));
    }
    let killed = CLIENTS - KILLED + 1..=CLIENTS;
    let kills = killed_clients::run(
        killed,
        daemon.location(),
        Arc::clone(&counts),
        daemon.metrics(),
        Arc::clone(&control),
    );
    let kills = tokio::spawn(kills);
    // The measurement starts when each client has completed a cycle, which takes long on a busy
    // machine.
    while control.warmed_up() < CLIENTS - KILLED {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        assert!(
            clients.try_join_next().is_none(),
            "a client failed, see above"
        );
    }

    let mut samples = Samples::default();
    while samples.elapsed() < duration {
        samples.add(daemon.resource_usage());
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        assert!(
            clients.try_join_next().is_none(),
            "a client failed, see above"
        );
    }
    control.stop();
    let cycles: u64 = clients.join_all().await.into_iter().sum();
    let kills = kills.await.expect("the last clients end without a failure");

    println!("{cycles} volumes staged, published and unstaged; {counts}; {kills}");
    println!("{samples}");
    assert!(
        kills.during_a_call > 0,
        "no client was killed during a call"
    );
    counts.assert_match(
        &daemon
            .metrics()
            .when_idle(&[CURRENT, PREVIOUS].concat())
            .await,
    );
    assert_eq!(samples.growth(), Vec::<String>::new());
    // Fewer handles than one for each client may remain.
    daemon
        .wait_until_at_most(
            initial_usage.handles + u64::from(CLIENTS),
            initial_usage.threads + MORE_THREADS,
        )
        .await;
    daemon.stop();
}
