//! A daemon under 64 clients that behave, and misbehave, as they do in the field.
//!
//! It runs for ten seconds, or for as many as `CSI_PROXY_SOAK_SECONDS` says (`cargo xtask soak --seconds N`). Then every
//! call has had its one answer, the daemon's own counts agree, and it is no larger than it was when it was warm.
#![cfg(target_os = "linux")]

mod client;
mod daemon;
mod ledger;
mod size;

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::Client;
use daemon::Daemon;
use ledger::Ledger;
use size::{Samples, Size};
use tokio::task::JoinSet;

const CLIENTS: u32 = 64;

/// A call to an SMB server that takes its time, while which the others must get on.
const SLOW_CALL: Duration = Duration::from_secs(30);

fn length() -> Duration {
    let seconds = env::var("CSI_PROXY_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(10))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_64_clients_no_call_is_lost_and_the_daemon_stays_as_large_as_it_was() {
    let length = length();
    // In a short run the slow call is shorter, too, so that it ends.
    let daemon = Daemon::start(CLIENTS, SLOW_CALL.min(length / 2));
    let (ledger, over) = (Arc::new(Ledger::default()), Arc::new(AtomicBool::new(false)));
    let mut clients = JoinSet::new();
    for number in 1..=CLIENTS {
        let client = Client::new(number, daemon.place(), Arc::clone(&ledger), Arc::clone(&over));
        clients.spawn(client.work());
    }
    let slow = tokio::spawn(client::slow_call(daemon.place(), Arc::clone(&ledger)));

    let mut samples = Samples::default();
    while samples.took() < length {
        samples.take(Size::of(daemon.id()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let during_slow_call = slow.await.expect("the slow call is answered");
    over.store(true, Ordering::Relaxed);
    let mut cycles = 0;
    while let Some(client) = clients.join_next().await {
        cycles += client.expect("each client comes to its end");
    }

    println!("{cycles} volumes staged, published and unstaged; {ledger}");
    println!("{samples}");
    println!("during a call of {} s: {during_slow_call} calls answered", SLOW_CALL.min(length / 2).as_secs());
    assert!(cycles >= CLIENTS.into(), "each client has been through the life of a volume");
    assert!(during_slow_call > u64::from(CLIENTS), "the others got on while one call was slow");
    ledger.agrees_with(&daemon.metrics().await);
    samples.are_flat();
    daemon.stop();
}
