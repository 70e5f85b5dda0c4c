//! The counts of calls, and how they are taken.

use std::alloc::System;
use std::error::Error;
use std::ops::Sub;
use std::sync::Arc;

use faults::{Probed, Trace};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use crate::call::Call;
use crate::client::Client;
use crate::daemon::{Daemon, Threads};
use crate::excluded;
use crate::table::Row;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls before those that are counted. By then the header tables of the connection are full, as after an hour of use.
pub(crate) const WARM_UP: usize = 128;
/// Calls that are counted.
const COUNTED: usize = 1024;
/// Calls of which the primitive calls are counted, before and after the first of them.
const TRACED: usize = 8;

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

    pub(crate) fn counted() -> Self {
        Self::of_process() - excluded::allocations()
    }
}

impl Sub for Allocations {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { count: self.count - other.count, bytes: self.bytes - other.bytes }
    }
}

/// Returns the row of a call in [`crate::table::COUNTS`]: averages over many calls.
pub fn of(call: &Call) -> Result<Row, Box<dyn Error>> {
    let sim = crate::call::node();
    let daemon = Daemon::start(sim.process(), Threads::AsInService)?;
    let (allocations, writes) = daemon.run(async |daemon: &Daemon| {
        let mut client = Client::connect(daemon, call).await?;
        client.call(WARM_UP).await?;
        // Prepared before, so that the counts are of calls only.
        let requests = client.prepare(COUNTED);
        let (allocations, writes) = (Allocations::counted(), daemon.writes());
        client.send(&requests).await?;
        Ok((Allocations::counted() - allocations, daemon.writes() - writes))
    })?;

    let trace = Arc::new(Trace::counting());
    let daemon = Daemon::start(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Threads::AsInService)?;
    let calls = daemon.run(async |daemon: &Daemon| {
        let mut client = Client::connect(daemon, call).await?;
        client.call(TRACED).await?;
        let before = trace.counts();
        client.call(TRACED).await?;
        Ok(trace.counts() - &before)
    })?;
    let calls = [calls.primitives, calls.wmi].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let calls = calls.map(|count| average(count, TRACED));
    let totals = [writes, allocations.count, allocations.bytes].map(|total| average(total, COUNTED));
    Ok((call.name.to_owned(), [&calls[..], &totals].concat()))
}

#[expect(clippy::cast_precision_loss, reason = "counts are below 2^52")]
pub(crate) fn average(total: usize, calls: usize) -> f64 {
    total as f64 / calls as f64
}
