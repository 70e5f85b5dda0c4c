//! The last failures, for the status: one for each RPC and code, so that a flood of one failure
//! leaves the others listed.
//!
//! NotFound from a query is not listed, because it is the answer to the query.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tokio::time::Instant;

use crate::seconds::seconds;

/// Maximum failures. At the limit a new failure replaces the oldest.
const MAX_FAILURES: usize = 32;

/// Maximum bytes of a message. A longer message is cut off.
const MAX_MESSAGE: usize = 512;

/// The last failure of an RPC with a code.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The number of the call.
    pub call: u64,
    /// The path of the RPC.
    pub rpc: &'static str,
    /// The name of the status code, as in the metrics.
    pub code: &'static str,
    /// The message of the status.
    pub message: String,
    /// How long ago it was.
    pub seconds_ago: f64,
    /// How many times the RPC has failed with this code since the failure was first listed.
    pub count: u64,
}

/// The last failures, and when each was.
#[derive(Debug, Default)]
pub(crate) struct LastFailures(Mutex<Vec<(Instant, Failure)>>);

impl LastFailures {
    /// Adds the failure of the call `call`.
    pub(crate) fn add(&self, rpc: &'static str, call: u64, code: &'static str, message: &str) {
        let now = Instant::now();
        let message = message[..message.floor_char_boundary(MAX_MESSAGE)].to_owned();
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |(_, known): &(Instant, Failure)| known.rpc == rpc && known.code == code;
        let known = failures
            .iter()
            .position(is_known)
            .map(|at| failures.swap_remove(at));
        if failures.len() == MAX_FAILURES
            && let Some(oldest) = (0..MAX_FAILURES).min_by_key(|at| failures[*at].0)
        {
            failures.swap_remove(oldest);
        }
        let count = known.map_or(0, |(_, known)| known.count) + 1;
        failures.push((
            now,
            Failure {
                call,
                rpc,
                code,
                message,
                seconds_ago: 0.0,
                count,
            },
        ));
    }

    /// Returns the failures, the last one first.
    pub(crate) fn list(&self) -> Vec<Failure> {
        let mut failures = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        failures.sort_unstable_by_key(|(when, failure)| Reverse((*when, failure.call)));
        let aged = |(when, failure): (Instant, Failure)| Failure {
            seconds_ago: seconds(when.elapsed()),
            ..failure
        };
        failures.into_iter().map(aged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{LastFailures, MAX_FAILURES, MAX_MESSAGE};

    #[test]
    fn a_flood_of_one_failure_leaves_the_others_listed() {
        let failures = LastFailures::default();
        failures.add("/v1.Disk/PartitionDisk", 1, "Internal", "a defect");
        (2..500)
            .for_each(|call| failures.add("/v1.Disk/PartitionDisk", call, "NotFound", "no disk"));
        let listed = failures.list();
        assert_eq!(
            listed
                .iter()
                .map(|failure| (failure.call, failure.count))
                .collect::<Vec<_>>(),
            [(499, 498), (1, 1)]
        );
        assert_eq!(listed[1].message, "a defect");
    }

    #[test]
    fn the_list_and_its_messages_are_bounded() {
        let failures = LastFailures::default();
        for (call, row) in (1..).zip(&api::GROUP_VERSIONS) {
            failures.add(
                row.rpcs[0].path,
                call,
                "Internal",
                &"\u{e9}".repeat(MAX_MESSAGE),
            );
            failures.add(row.rpcs[0].path, call, "NotFound", "");
        }
        let listed = failures.list();
        assert_eq!(listed.len(), MAX_FAILURES);
        assert!(
            listed
                .iter()
                .all(|failure| failure.message.len() <= MAX_MESSAGE)
        );
        assert_eq!(
            usize::try_from(listed[0].call).unwrap(),
            api::GROUP_VERSIONS.len(),
            "the last one is first"
        );
        assert!(
            listed.iter().all(|failure| failure.call > 7),
            "the oldest are gone"
        );
    }
}
