//! What clients sent and what was answered, to be held against what the daemon counts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonic::{Code, Status};

/// Calls by method, of all clients.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<&'static str, Calls>>);

#[derive(Default)]
struct Calls {
    sent: u64,
    /// Answers by status.
    answered: BTreeMap<String, u64>,
    /// Those whose client went away first: the daemon may have answered them, or never seen them.
    abandoned: u64,
}

impl Ledger {
    pub(crate) fn sent(&self, method: &'static str) {
        self.lock().entry(method).or_default().sent += 1;
    }

    pub(crate) fn answered<T>(&self, method: &'static str, outcome: &Result<T, Status>) {
        let code = outcome.as_ref().err().map_or(Code::Ok, Status::code);
        *self.lock().entry(method).or_default().answered.entry(name(code)).or_default() += 1;
    }

    pub(crate) fn abandoned(&self, method: &'static str) {
        self.lock().entry(method).or_default().abandoned += 1;
    }

    pub(crate) fn answers(&self) -> u64 {
        self.lock().values().flat_map(|calls| calls.answered.values()).sum()
    }

    /// Each call has one answer or was abandoned; the daemon has begun and ended as many, and by method and status
    /// differs only by what was abandoned.
    pub(crate) fn agrees_with(&self, metrics: &str) {
        for (method, calls) in self.lock().iter() {
            let answered: u64 = calls.answered.values().sum();
            assert_eq!(calls.sent, answered + calls.abandoned, "{method}: sent, and answered or abandoned");
            let of = |metric: &str, labels: &str| sum(metrics, metric, &[&format!("\"{method}\""), labels]);
            let (started, handled) = (of("grpc_server_started_total{", ""), of("grpc_server_handled_total{", ""));
            assert_eq!(started, handled, "{method}: what the daemon began has ended");
            let range = answered..=calls.sent;
            assert!(range.contains(&handled), "{method}: {handled} by the daemon's count, {range:?} by the clients'");
            let mut beyond = 0;
            for (code, answers) in &calls.answered {
                let count = of("grpc_server_handled_total{", &format!("grpc_code=\"{code}\""));
                assert!(count >= *answers, "{method} {code}: {count} by the daemon's count, {answers} came");
                beyond += count - answers;
            }
            assert!(beyond <= calls.abandoned, "{method}: {beyond} answers that nobody got");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Calls>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sum of a metric's lines that have all of these words.
fn sum(metrics: &str, metric: &str, words: &[&str]) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(metric) && words.iter().all(|word| line.contains(word)));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// A status as the metrics spell it.
fn name(code: Code) -> String {
    match code {
        Code::Ok => "OK".to_owned(),
        Code::Cancelled => "Canceled".to_owned(),
        code => format!("{code:?}"),
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.lock();
        let sum = |of: fn(&Calls) -> u64| calls.values().map(of).sum::<u64>();
        let (sent, abandoned) = (sum(|calls| calls.sent), sum(|calls| calls.abandoned));
        write!(f, "{sent} calls sent, {} answered, {abandoned} abandoned", sent - abandoned)
    }
}
