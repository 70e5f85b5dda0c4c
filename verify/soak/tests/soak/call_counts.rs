//! The clients' counts of calls, to be compared with the daemon's metrics.
//!
//! A call is named by its path without the leading slash, such as `v1.Disk/PartitionDisk`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonic::{Code, Status};

/// The counts of all clients' calls, by path.
#[derive(Default)]
pub(crate) struct CallCounts(Mutex<BTreeMap<String, Counts>>);

/// The counts of one path.
#[derive(Default)]
struct Counts {
    sent: u64,
    /// Answers, by status code.
    answered: BTreeMap<String, u64>,
    /// Calls that the client cancelled, or that were unanswered when it was killed. The daemon may
    /// have answered them or never received them.
    abandoned: u64,
}

/// A call that was sent. Unless it is answered, it is abandoned when this is dropped.
pub(crate) struct SentCall {
    counts: Arc<CallCounts>,
    call: String,
    code: Option<Code>,
}

impl SentCall {
    /// Counts a call that is sent now.
    pub(crate) fn new(counts: &Arc<CallCounts>, call: &str) -> Self {
        counts.lock().entry(call.to_owned()).or_default().sent += 1;
        Self {
            counts: Arc::clone(counts),
            call: call.to_owned(),
            code: None,
        }
    }

    /// Counts the answer.
    pub(crate) fn answered<T>(mut self, outcome: &Result<T, Status>) {
        self.code = Some(outcome.as_ref().err().map_or(Code::Ok, Status::code));
    }
}

impl Drop for SentCall {
    fn drop(&mut self) {
        let mut calls = self.counts.lock();
        let counts = calls.entry(self.call.clone()).or_default();
        match self.code {
            Some(code) => *counts.answered.entry(name(code)).or_default() += 1,
            None => counts.abandoned += 1,
        }
    }
}

impl CallCounts {
    /// Adds the counts of other calls.
    pub(crate) fn add(&self, other: &Self) {
        let mut calls = self.lock();
        for (call, other) in other.lock().iter() {
            let counts = calls.entry(call.clone()).or_default();
            counts.sent += other.sent;
            counts.abandoned += other.abandoned;
            for (code, answers) in &other.answered {
                *counts.answered.entry(code.clone()).or_default() += answers;
            }
        }
    }

    /// Returns how many calls have been abandoned.
    pub(crate) fn abandoned(&self) -> u64 {
        self.lock().values().map(|calls| calls.abandoned).sum()
    }

    /// Asserts that each call was answered once or abandoned, that the daemon has ended all calls
    /// that it started, and that its counts by path and status differ from these only by abandoned
    /// calls.
    pub(crate) fn assert_match(&self, metrics: &str) {
        for (call, calls) in self.lock().iter() {
            let answered: u64 = calls.answered.values().sum();
            assert_eq!(
                calls.sent,
                answered + calls.abandoned,
                "{call}: sent calls differ from answered and abandoned ones"
            );
            let (service, method) = call.split_once('/').expect("a path");
            let labels = format!("grpc_method=\"{method}\",grpc_service=\"{service}\"");
            let of = |metric: &str, code: &str| sum(metrics, metric, &[&labels, code]);
            let (started, handled) = (
                of("grpc_server_started_total{", ""),
                of("grpc_server_handled_total{", ""),
            );
            assert_eq!(
                started, handled,
                "{call}: the daemon has started calls that have not ended"
            );
            let range = answered..=calls.sent;
            assert!(
                range.contains(&handled),
                "{call}: the daemon handled {handled}, the clients made {range:?}"
            );
            let mut excess = 0;
            for (code, answers) in &calls.answered {
                let count = of(
                    "grpc_server_handled_total{",
                    &format!("grpc_code=\"{code}\""),
                );
                assert!(
                    count >= *answers,
                    "{call} {code}: the daemon sent {count}, the clients received {answers}"
                );
                excess += count - answers;
            }
            assert!(
                excess <= calls.abandoned,
                "{call}: {excess} answers that no client received"
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Counts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the sum of a metric's values whose labels contain all of these words.
pub(crate) fn sum(metrics: &str, metric: &str, words: &[&str]) -> u64 {
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(metric) && words.iter().all(|word| line.contains(word)));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// Returns a status code's name as in the metrics.
fn name(code: Code) -> String {
    match code {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    }
}

impl fmt::Display for CallCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.lock();
        let sum = |of: fn(&Counts) -> u64| calls.values().map(of).sum::<u64>();
        let (sent, abandoned) = (sum(|calls| calls.sent), sum(|calls| calls.abandoned));
        write!(
            f,
            "{sent} calls sent, {} answered, {abandoned} abandoned",
            sent - abandoned
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tonic::Status;

    use super::{CallCounts, SentCall};

    const CALL: &str = "v1.Disk/Rescan";

    /// Compares the counts of a client with those of a daemon that has started and handled these
    /// numbers of calls.
    fn assert_match(answered: u64, abandoned: u64, started: u64, handled: u64) {
        let labels = "grpc_method=\"Rescan\",grpc_service=\"v1.Disk\",grpc_type=\"unary\"";
        let counts = Arc::new(CallCounts::default());
        (0..answered).for_each(|_| SentCall::new(&counts, CALL).answered(&Ok::<(), Status>(())));
        (0..abandoned).for_each(|_| drop(SentCall::new(&counts, CALL)));
        counts.assert_match(&format!(
            "grpc_server_started_total{{{labels}}} {started}\n\
             grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} {handled}\n"
        ));
    }

    #[test]
    fn the_daemon_may_have_handled_an_abandoned_call_or_not() {
        assert_match(2, 1, 2, 2);
        assert_match(2, 1, 3, 3);
    }

    #[test]
    #[should_panic(expected = "the daemon handled 4")]
    fn a_call_that_the_daemon_handles_twice_is_detected() {
        assert_match(2, 1, 4, 4);
    }

    #[test]
    #[should_panic(expected = "the daemon has started calls that have not ended")]
    fn a_call_that_never_ends_is_detected() {
        assert_match(2, 1, 3, 2);
    }
}
