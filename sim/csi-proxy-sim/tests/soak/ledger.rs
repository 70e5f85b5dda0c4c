//! What clients sent and what was answered, to be held against what the daemon counts.
//!
//! A call is known by its path without the slash before it, such as `v1.Disk/PartitionDisk`. A client that is a process
//! writes its entries to its standard output, each before what it tells of goes on; so they outlive the client.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonic::{Code, Status};

/// Before each entry that is a line of text.
const MARK: &str = "ledger: ";

/// Calls by path, of all clients.
#[derive(Default)]
pub(crate) struct Ledger {
    calls: Mutex<BTreeMap<String, Calls>>,
    /// Whether each entry is written to standard output.
    written: bool,
}

#[derive(Default)]
struct Calls {
    sent: u64,
    /// Answers by status.
    answered: BTreeMap<String, u64>,
    /// Those whose client went away first: the daemon may have answered them, or never seen them.
    abandoned: u64,
}

/// One line of a ledger.
pub(crate) enum Entry<'a> {
    Sent(&'a str),
    Answered(&'a str, &'a str),
    Abandoned(&'a str),
}

impl<'a> Entry<'a> {
    /// Reads what another process's ledger wrote; nothing if that is no entry.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<_> = line.strip_prefix(MARK)?.split(' ').collect();
        match words[..] {
            ["sent", call] => Some(Self::Sent(call)),
            ["answered", call, code] => Some(Self::Answered(call, code)),
            ["abandoned", call] => Some(Self::Abandoned(call)),
            _ => None,
        }
    }
}

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(call) => write!(f, "{MARK}sent {call}"),
            Self::Answered(call, code) => write!(f, "{MARK}answered {call} {code}"),
            Self::Abandoned(call) => write!(f, "{MARK}abandoned {call}"),
        }
    }
}

impl Ledger {
    /// One that writes each entry to standard output.
    pub(crate) fn written() -> Self {
        Self { written: true, ..Self::default() }
    }

    pub(crate) fn sent(&self, call: &str) {
        self.enter(&Entry::Sent(call));
    }

    pub(crate) fn answered<T>(&self, call: &str, outcome: &Result<T, Status>) {
        let code = outcome.as_ref().err().map_or(Code::Ok, Status::code);
        self.enter(&Entry::Answered(call, &name(code)));
    }

    pub(crate) fn abandoned(&self, call: &str) {
        self.enter(&Entry::Abandoned(call));
    }

    pub(crate) fn enter(&self, entry: &Entry<'_>) {
        let mut calls = self.lock();
        if self.written {
            println!("{entry}");
        }
        let (Entry::Sent(call) | Entry::Answered(call, _) | Entry::Abandoned(call)) = entry;
        let calls = calls.entry((*call).to_owned()).or_default();
        match entry {
            Entry::Sent(_) => calls.sent += 1,
            Entry::Answered(_, code) => *calls.answered.entry((*code).to_owned()).or_default() += 1,
            Entry::Abandoned(_) => calls.abandoned += 1,
        }
    }

    pub(crate) fn answers(&self) -> u64 {
        self.lock().values().flat_map(|calls| calls.answered.values()).sum()
    }

    /// Each call has one answer or was abandoned; the daemon has begun and ended as many, and by call and status differs
    /// only by what was abandoned.
    pub(crate) fn agrees_with(&self, metrics: &str) {
        for (call, calls) in self.lock().iter() {
            let answered: u64 = calls.answered.values().sum();
            assert_eq!(calls.sent, answered + calls.abandoned, "{call}: sent, and answered or abandoned");
            let (service, method) = call.split_once('/').expect("a path");
            let labels = format!("grpc_method=\"{method}\",grpc_service=\"{service}\"");
            let of = |metric: &str, code: &str| sum(metrics, metric, &[&labels, code]);
            let (started, handled) = (of("grpc_server_started_total{", ""), of("grpc_server_handled_total{", ""));
            assert_eq!(started, handled, "{call}: what the daemon began has ended");
            let range = answered..=calls.sent;
            assert!(range.contains(&handled), "{call}: {handled} by the daemon's count, {range:?} by the clients'");
            let mut beyond = 0;
            for (code, answers) in &calls.answered {
                let count = of("grpc_server_handled_total{", &format!("grpc_code=\"{code}\""));
                assert!(count >= *answers, "{call} {code}: {count} by the daemon's count, {answers} came");
                beyond += count - answers;
            }
            assert!(beyond <= calls.abandoned, "{call}: {beyond} answers that nobody got");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Calls>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sum of a metric's lines that have all of these words.
pub(crate) fn sum(metrics: &str, metric: &str, words: &[&str]) -> u64 {
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

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::{Entry, Ledger};

    const CALL: &str = "v1.Disk/Rescan";

    /// What a daemon tells that has begun and ended so many of that call.
    fn metrics(begun: u64, ended: u64) -> String {
        let labels = "grpc_method=\"Rescan\",grpc_service=\"v1.Disk\",grpc_type=\"unary\"";
        format!(
            "grpc_server_started_total{{{labels}}} {begun}\n\
             grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} {ended}\n"
        )
    }

    fn ledger(sent: u64, answered: u64, abandoned: u64) -> Ledger {
        let ledger = Ledger::default();
        (0..sent).for_each(|_| ledger.sent(CALL));
        (0..answered).for_each(|_| ledger.answered(CALL, &Ok::<(), Status>(())));
        (0..abandoned).for_each(|_| ledger.abandoned(CALL));
        ledger
    }

    #[test]
    fn what_was_abandoned_may_have_been_answered_or_not() {
        for handled in [2, 3] {
            ledger(3, 2, 1).agrees_with(&metrics(handled, handled));
        }
    }

    #[test]
    #[should_panic(expected = "sent, and answered or abandoned")]
    fn a_call_that_is_never_answered_is_noticed() {
        ledger(3, 2, 0).agrees_with(&metrics(3, 3));
    }

    #[test]
    #[should_panic(expected = "4 by the daemon's count")]
    fn a_call_that_is_carried_out_twice_is_noticed() {
        ledger(3, 2, 1).agrees_with(&metrics(4, 4));
    }

    #[test]
    #[should_panic(expected = "what the daemon began has ended")]
    fn a_call_that_never_ends_is_noticed() {
        ledger(3, 2, 1).agrees_with(&metrics(3, 2));
    }

    #[test]
    fn entries_of_another_process_are_entered_as_its_own() {
        let ledger = Ledger::default();
        for entry in [Entry::Sent(CALL), Entry::Sent(CALL), Entry::Answered(CALL, "OK"), Entry::Abandoned(CALL)] {
            ledger.enter(&Entry::parse(&entry.to_string()).expect("an entry"));
        }
        assert_eq!(ledger.to_string(), "2 calls sent, 1 answered, 1 abandoned");
        assert_eq!(ledger.answers(), 1);
        assert!(Entry::parse("test a_test ... ok").is_none());
    }
}
