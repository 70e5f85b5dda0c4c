//! PathExists while a call runs that takes 30 s, and while none runs.

use std::time::Duration;

use super::client::{Client, Load};
use super::server::{Program, Site};
use super::workload::{Connections, WORKLOADS};
use crate::Error;

/// The long calls, by the names that the Go client knows.
pub(super) const CALLS: [&str; 2] = ["smb", "format"];

/// The latencies of PathExists with one number of callers.
pub(super) struct Latencies {
    pub(super) callers: u32,
    /// p99 in microseconds, by round.
    pub(super) without: Vec<f64>,
    /// During each of [`CALLS`].
    pub(super) during: [Vec<f64>; CALLS.len()],
}

/// Measures with and without a long call, in turn.
pub(super) fn measure(
    site: &Site,
    program: &Program,
    client: &Client,
    callers: &[u32],
    rounds: u32,
    window: Duration,
) -> Result<Vec<Latencies>, Error> {
    let mut all = Vec::new();
    for callers in callers {
        let mut latencies = Latencies { callers: *callers, without: Vec::new(), during: Default::default() };
        let p99 = |during| -> Result<f64, Error> {
            let load =
                Load { workload: &WORKLOADS[0], connections: Connections::Shared, callers: *callers, window, during };
            let sample = client.measure(site, program, &load)?;
            println!("  {callers:>3} during {:<8} {sample}", during.unwrap_or("nothing"));
            Ok(sample.report.p99_us)
        };
        for round in 0..rounds {
            // The order changes, so that nothing else that changes with time is taken for an effect of the long calls.
            let mut order = [None, Some(0), Some(1)];
            order.rotate_left(usize::try_from(round % 3)?);
            for kind in order {
                match kind {
                    None => latencies.without.push(p99(None)?),
                    Some(kind) => latencies.during[kind].push(p99(Some(CALLS[kind]))?),
                }
            }
        }
        all.push(latencies);
    }
    Ok(all)
}

impl Latencies {
    /// The least and the largest p99 without a long call.
    pub(super) fn range_without(&self) -> [f64; 2] {
        range(&self.without)
    }
}

/// The least and the largest value.
pub(super) fn range(values: &[f64]) -> [f64; 2] {
    [values.iter().copied().fold(f64::NAN, f64::min), values.iter().copied().fold(f64::NAN, f64::max)]
}
