//! The counts of calls, and how they are taken.

use std::alloc::System;
use std::error::Error;

use os_sim::Sim;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::call::Call;
use crate::client::Client;
use crate::daemon::Daemon;
use crate::excluded::{self, excluded};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls before those that are counted. By then the header tables of the connection are full, as
/// after an hour of use.
pub(crate) const WARM_UP: usize = 128;

/// How many times calls are made.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// Before they are counted.
    pub warm_up: usize,
    /// While they are counted.
    pub counted: usize,
}

impl Rounds {
    /// For averages that are exact to a tenth of an allocation.
    pub const EXACT: Self = Self {
        warm_up: WARM_UP,
        counted: 1024,
    };
    /// For differences between nodes.
    pub const FEW: Self = Self {
        warm_up: 4,
        counted: 8,
    };
}

/// What calls cost, as an average over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Calls of primitives.
    pub primitives: f64,
    /// Calls of WMI.
    pub wmi: f64,
    /// Writes to the connection.
    pub writes: f64,
    /// Allocations, without those of the simulator.
    pub allocations: f64,
    /// The bytes of these allocations.
    pub bytes: f64,
}

/// Returns the cost of each step, which is a list of calls, while `others` further connections are
/// open that have each made a call.
pub fn of(
    sim: &Sim,
    steps: &[&[Call]],
    rounds: Rounds,
    others: usize,
) -> Result<Vec<Cost>, Box<dyn Error>> {
    Daemon::run(sim, async |daemon: &Daemon| {
        let mut idle = Vec::new();
        for _ in 0..others {
            let mut client = Client::connect(daemon, &steps[0][0]).await?;
            client.call(1).await?;
            idle.push(client);
        }
        let mut costs = Vec::new();
        for calls in steps {
            let mut clients = Vec::new();
            for call in *calls {
                clients.push(Client::connect(daemon, call).await?);
            }
            for _ in 0..rounds.warm_up {
                for client in &mut clients {
                    client.call(1).await?;
                }
            }
            let name = calls[0].name;
            costs.push(
                count(daemon, &mut clients, rounds.counted)
                    .await
                    .map_err(|error| format!("{name}: {error}"))?,
            );
        }
        Ok(costs)
    })
}

/// Returns the cost of one call, on a connection on which another one was made some times before.
pub fn of_one(sim: &Sim, before: &Call, call: &Call) -> Result<Cost, Box<dyn Error>> {
    Daemon::run(sim, async |daemon: &Daemon| {
        let mut client = Client::connect(daemon, before).await?;
        client.call(8).await?;
        client.set_call(call);
        count(daemon, &mut [client], 1).await
    })
}

/// Lets each client make its call so many times, and returns the average cost.
async fn count(
    daemon: &Daemon,
    clients: &mut [Client],
    rounds: usize,
) -> Result<Cost, Box<dyn Error>> {
    // Prepared before, so that the counts are of calls only.
    let requests: Vec<Vec<_>> = (0..rounds)
        .map(|_| clients.iter_mut().map(|client| client.prepare(1)).collect())
        .collect();
    let (calls, writes) = (excluded(|| daemon.trace.counts()), daemon.writes());
    let (allocations, bytes) = excluded::counted_allocations();
    for round in &requests {
        for (client, request) in clients.iter_mut().zip(round) {
            client.send(request).await?;
        }
    }
    let (allocations_now, bytes_now) = excluded::counted_allocations();
    let calls = daemon.trace.counts() - &calls;
    Ok(Cost {
        primitives: average(usize::try_from(calls.primitives)?, rounds),
        wmi: average(usize::try_from(calls.wmi)?, rounds),
        writes: average(daemon.writes() - writes, rounds),
        allocations: average(allocations_now - allocations, rounds),
        bytes: average(bytes_now - bytes, rounds),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^52")]
fn average(total: usize, calls: usize) -> f64 {
    total as f64 / calls as f64
}
