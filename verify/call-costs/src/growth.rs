//! How the costs of calls grow: with the disks of the node, with its volumes, with the entries of a directory tree that is
//! removed, and with the open connections.

pub mod chart;
pub mod connections;
pub mod deletion;
pub mod node;
pub mod page;

use std::error::Error;
use std::sync::Arc;

use faults::{Probed, Trace};
use os_sim::Sim;

use crate::client::Client;
use crate::counts::{Allocations, average};
use crate::daemon::{Daemon, Threads};
use crate::excluded::excluded;
use crate::growth::node::Step;

/// How many times the calls of a step are made before they are counted.
const WARM_UP: usize = 4;
/// How many times the calls of a step are counted.
const COUNTED: usize = 8;

/// The costs of a step: averages over many calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Calls of primitives.
    pub primitives: f64,
    /// Calls of WMI.
    pub wmi: f64,
    /// Allocations, without those of the simulator.
    pub allocations: f64,
    /// The bytes of these allocations.
    pub bytes: f64,
}

/// Returns the cost of each step on a node, while `others` further connections are open that have each made a call.
pub fn costs(sim: &Sim, steps: &[Step], others: usize) -> Result<Vec<Cost>, Box<dyn Error>> {
    let trace = Arc::new(Trace::counting());
    let daemon = Daemon::start(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Threads::AsInService)?;
    daemon.run(async |daemon: &Daemon| {
        let mut idle = Vec::new();
        for _ in 0..others {
            let call = steps.first().and_then(|step| step.calls.first()).ok_or("no step")?;
            let mut client = Client::connect(daemon, call).await?;
            client.call(1).await?;
            idle.push(client);
        }
        let mut costs = Vec::new();
        for step in steps {
            costs.push(cost(daemon, &trace, step).await.map_err(|error| format!("{}: {error}", step.name))?);
        }
        Ok(costs)
    })
}

async fn cost(daemon: &Daemon, trace: &Trace, step: &Step) -> Result<Cost, Box<dyn Error>> {
    let mut clients = Vec::new();
    for call in &step.calls {
        clients.push(Client::connect(daemon, call).await?);
    }
    for _ in 0..WARM_UP {
        for client in &mut clients {
            client.call(1).await?;
        }
    }
    let rounds: Vec<Vec<_>> =
        (0..COUNTED).map(|_| clients.iter_mut().map(|client| client.prepare(1)).collect()).collect();
    let (calls, allocations) = (excluded(|| trace.counts()), Allocations::counted());
    for round in &rounds {
        for (client, request) in clients.iter_mut().zip(round) {
            client.send(request).await?;
        }
    }
    let allocations = Allocations::counted() - allocations;
    let calls = trace.counts() - &calls;
    let [primitives, wmi] = [calls.primitives, calls.wmi].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let [primitives, wmi, allocations, bytes] =
        [primitives, wmi, allocations.count, allocations.bytes].map(|count| average(count, COUNTED));
    Ok(Cost { primitives, wmi, allocations, bytes })
}
