//! The counts of calls, and how they are taken.

use std::alloc::System;
use std::error::Error;
use std::ops::Sub;
use std::sync::Arc;

use faults::{Probed, Trace};
use os_sim::Sim;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::call::Call;
use crate::client::Client;
use crate::daemon::{Daemon, Threads};
use crate::excluded::{self, excluded};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls before those that are counted. By then the header tables of the connection are full, as after an hour of use.
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
    pub const EXACT: Self = Self { warm_up: WARM_UP, counted: 1024 };
    /// For differences between nodes.
    pub const FEW: Self = Self { warm_up: 4, counted: 8 };
}

/// The allocations and reallocations of this process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// How many.
    pub count: usize,
    /// How many bytes were allocated; of a reallocation, those by which it is larger.
    pub bytes: usize,
}

impl Allocations {
    pub(crate) fn of_process() -> Self {
        let stats = INSTRUMENTED_SYSTEM.stats();
        // The bytes of reallocations count as allocated if they grow, and as freed if they shrink.
        Self { count: stats.allocations + stats.reallocations, bytes: stats.bytes_allocated }
    }
}

impl Sub for Allocations {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { count: self.count - other.count, bytes: self.bytes - other.bytes }
    }
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

/// A daemon whose costs are counted.
struct Counted<'a> {
    daemon: &'a Daemon,
    trace: &'a Trace,
}

/// Runs a daemon on a node, and counts what `body` lets it do.
fn with_daemon<T>(
    sim: &Sim,
    body: impl AsyncFnOnce(Counted<'_>) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let trace = Arc::new(Trace::counting());
    let node = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
    Daemon::run(node, Threads::AsInService, async |daemon: &Daemon| body(Counted { daemon, trace: &trace }).await)
}

/// Returns the cost of each step, which is a list of calls, while `others` further connections are open that have each made
/// a call.
pub fn of(sim: &Sim, steps: &[&[Call]], rounds: Rounds, others: usize) -> Result<Vec<Cost>, Box<dyn Error>> {
    with_daemon(sim, async |counted: Counted<'_>| {
        let mut idle = Vec::new();
        for _ in 0..others {
            let mut client = Client::connect(counted.daemon, &steps[0][0]).await?;
            client.call(1).await?;
            idle.push(client);
        }
        let mut costs = Vec::new();
        for calls in steps {
            let mut clients = Vec::new();
            for call in *calls {
                clients.push(Client::connect(counted.daemon, call).await?);
            }
            for _ in 0..rounds.warm_up {
                for client in &mut clients {
                    client.call(1).await?;
                }
            }
            let name = calls[0].name;
            costs.push(counted.count(&mut clients, rounds.counted).await.map_err(|error| format!("{name}: {error}"))?);
        }
        Ok(costs)
    })
}

/// Returns the cost of one call, on a connection on which another one was made some times before.
pub fn of_one(sim: &Sim, before: &Call, call: &Call) -> Result<Cost, Box<dyn Error>> {
    with_daemon(sim, async |counted: Counted<'_>| {
        let mut client = Client::connect(counted.daemon, before).await?;
        client.call(8).await?;
        client.set_call(call);
        counted.count(&mut [client], 1).await
    })
}

impl Counted<'_> {
    /// Lets each client make its call so many times, and returns the average cost.
    async fn count(&self, clients: &mut [Client], rounds: usize) -> Result<Cost, Box<dyn Error>> {
        // Prepared before, so that the counts are of calls only.
        let requests: Vec<Vec<_>> =
            (0..rounds).map(|_| clients.iter_mut().map(|client| client.prepare(1)).collect()).collect();
        let (calls, writes) = (excluded(|| self.trace.counts()), self.daemon.writes());
        let allocations = Allocations::of_process() - excluded::allocations();
        for round in &requests {
            for (client, request) in clients.iter_mut().zip(round) {
                client.send(request).await?;
            }
        }
        let allocations = Allocations::of_process() - excluded::allocations() - allocations;
        let calls = self.trace.counts() - &calls;
        let average = |total: u64| average(usize::try_from(total).unwrap_or(usize::MAX), rounds);
        let average_of_size = |total: usize| crate::counts::average(total, rounds);
        Ok(Cost {
            primitives: average(calls.primitives),
            wmi: average(calls.wmi),
            writes: average_of_size(self.daemon.writes() - writes),
            allocations: average_of_size(allocations.count),
            bytes: average_of_size(allocations.bytes),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^52")]
pub(crate) fn average(total: usize, calls: usize) -> f64 {
    total as f64 / calls as f64
}
