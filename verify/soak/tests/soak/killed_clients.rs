//! Clients that are killed, usually during a call.
//!
//! When a client's process ends, Windows closes its connections, and the client sends nothing more.
//! Each generation of clients uses the same disks and paths as the generation before, and must find
//! nothing left behind: no lock that is held, and no call that never ends.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use transport::address::Location;

use crate::call_counts::CallCounts;
use crate::client::Client;
use crate::metrics::Metrics;
use crate::rng::Rng;
use crate::run_control::RunControl;
use crate::service_client::{Connections, PREVIOUS};

/// The longest time between a client's start and its end. A cycle takes about as long.
const MAX_LIFETIME: Duration = Duration::from_millis(400);

/// How many clients were killed, and how many of them during a call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kills {
    clients: u64,
    pub(crate) during_a_call: u64,
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} clients killed, {} of them during a call",
            self.clients, self.during_a_call
        )
    }
}

/// Runs generations of clients, one client for each number. Each client is killed, except in the
/// last generation, whose clients end after one cycle.
///
/// After each generation the daemon must end all its calls. A client therefore starts after the
/// calls of its predecessor have ended, and fails only if a client that no longer exists still
/// holds a resource.
pub(crate) async fn run(
    numbers: RangeInclusive<u32>,
    location: Location,
    counts: Arc<CallCounts>,
    metrics: Metrics,
    control: Arc<RunControl>,
) -> Kills {
    let (mut rng, mut kills) = (Rng::new(0), Kills::default());
    loop {
        let is_last = control.is_stopping();
        let mut clients = JoinSet::new();
        for number in numbers.clone() {
            let client = KilledClient {
                number,
                seed: rng.below(u64::MAX),
                location: location.clone(),
            };
            let lifetime = (!is_last).then(|| rng.duration_below(MAX_LIFETIME));
            clients.spawn(client.run(lifetime, Arc::clone(&counts)));
        }
        for during_a_call in clients.join_all().await {
            kills.clients += u64::from(!is_last);
            kills.during_a_call += u64::from(during_a_call);
        }
        metrics.when_idle(&PREVIOUS).await;
        if is_last {
            return kills;
        }
    }
}

struct KilledClient {
    number: u32,
    seed: u64,
    location: Location,
}

impl KilledClient {
    /// Runs the client for a time, or for one cycle. Returns whether it was killed during a call.
    async fn run(self, lifetime: Option<Duration>, counts: Arc<CallCounts>) -> bool {
        let own_counts = Arc::new(CallCounts::default());
        let (connected, connections) = Connections::to(self.location);
        let mut client = Client::new(
            self.number,
            self.seed,
            PREVIOUS,
            connections,
            Arc::clone(&own_counts),
        );
        let mut work = Box::pin(async move {
            client.open_silent_connections().await;
            loop {
                client.misbehave().await;
                client.cycle().await;
                if lifetime.is_none() {
                    break;
                }
            }
        });
        let Some(lifetime) = lifetime else {
            work.await;
            counts.add(&own_counts);
            return false;
        };
        let outcome = tokio::time::timeout(lifetime, &mut work).await;
        assert!(outcome.is_err(), "the client ends only when it is killed");
        drop(connected);
        let abandoned = own_counts.abandoned();
        drop(work);
        let during_a_call = own_counts.abandoned() > abandoned;
        counts.add(&own_counts);
        during_a_call
    }
}
