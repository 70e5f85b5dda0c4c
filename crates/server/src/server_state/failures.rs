//! The last failures, for the status: one for each RPC and code, so that a flood of one failure leaves the others
//! listed.
//!
//! NotFound from a query is not listed, because it is the answer to the query.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use tonic::Code;

/// Maximum failures. At the limit a new failure replaces the oldest.
const MAX_FAILURES: usize = 32;

/// Maximum bytes of a message. A longer message is cut off.
const MAX_MESSAGE: usize = 512;

/// The last failure of an RPC with a code.
#[derive(Clone, Debug)]
pub(crate) struct LastFailure {
    pub(crate) rpc: &'static str,
    pub(crate) code: Code,
    /// The number of the call.
    pub(crate) call: u64,
    pub(crate) message: String,
    pub(crate) when: Instant,
    /// How many times the RPC has failed with this code since the failure was first listed.
    pub(crate) count: u64,
}

/// The last failures.
#[derive(Debug, Default)]
pub(crate) struct LastFailures(Mutex<Vec<LastFailure>>);

impl LastFailures {
    /// Adds the failure of the call `call`.
    pub(crate) fn add(&self, rpc: &'static str, call: u64, code: Code, message: &str) {
        let when = Instant::now();
        let message = &message[..message.floor_char_boundary(MAX_MESSAGE)];
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = failures.iter_mut().find(|known| known.rpc == rpc && known.code == code) {
            (known.call, known.when) = (call, when);
            known.count += 1;
            message.clone_into(&mut known.message);
            return;
        }
        if failures.len() == MAX_FAILURES
            && let Some(oldest) = (0..MAX_FAILURES).min_by_key(|at| failures[*at].when)
        {
            failures.swap_remove(oldest);
        }
        failures.push(LastFailure { rpc, code, call, message: message.to_owned(), when, count: 1 });
    }

    /// Returns the failures, the last one first.
    pub(crate) fn list(&self) -> Vec<LastFailure> {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failures.sort_unstable_by_key(|failure| std::cmp::Reverse((failure.when, failure.call)));
        failures
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::{LastFailures, MAX_FAILURES, MAX_MESSAGE};

    #[test]
    fn a_flood_of_one_failure_leaves_the_others_listed() {
        let failures = LastFailures::default();
        failures.add("/v1.Disk/PartitionDisk", 1, Code::Internal, "a defect");
        (2..500).for_each(|call| failures.add("/v1.Disk/PartitionDisk", call, Code::NotFound, "no disk"));
        let listed = failures.list();
        assert_eq!(
            listed.iter().map(|failure| (failure.call, failure.count)).collect::<Vec<_>>(),
            [(499, 498), (1, 1)]
        );
        assert_eq!(listed[1].message, "a defect");
    }

    #[test]
    fn the_list_and_its_messages_are_bounded() {
        let failures = LastFailures::default();
        for (call, row) in (1..).zip(&api::GROUP_VERSIONS) {
            failures.add(row.rpcs[0].path, call, Code::Internal, &"\u{e9}".repeat(MAX_MESSAGE));
            failures.add(row.rpcs[0].path, call, Code::NotFound, "");
        }
        let listed = failures.list();
        assert_eq!(listed.len(), MAX_FAILURES);
        assert!(listed.iter().all(|failure| failure.message.len() <= MAX_MESSAGE));
        assert_eq!(usize::try_from(listed[0].call).unwrap(), api::GROUP_VERSIONS.len(), "the last one is first");
        assert!(listed.iter().all(|failure| failure.call > 7), "the oldest are gone");
    }
}
