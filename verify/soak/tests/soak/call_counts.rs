//! The clients' counts of calls, to be compared with the daemon's metrics.
//!
//! A call is named by its path without the leading slash, such as `v1.Disk/PartitionDisk`. A client process writes each
//! event to its standard output before it continues, so that the events survive if it is killed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonic::{Code, Status};

/// The prefix of an event in a client process's output.
const PREFIX: &str = "call event: ";

/// The counts of all clients' calls, by path.
#[derive(Default)]
pub(crate) struct CallCounts {
    calls: Mutex<BTreeMap<String, Counts>>,
    /// Whether each event is written to standard output.
    print_events: bool,
}

/// The counts of one path.
#[derive(Default)]
struct Counts {
    sent: u64,
    /// Answers, by status code.
    answered: BTreeMap<String, u64>,
    /// Calls that the client cancelled, or that were unanswered when it was killed. The daemon may have answered them
    /// or never received them.
    abandoned: u64,
}

/// An event in the life of a call.
pub(crate) enum CallEvent<'a> {
    Sent(&'a str),
    Answered(&'a str, &'a str),
    Abandoned(&'a str),
}

impl<'a> CallEvent<'a> {
    /// Parses a line of a client process's output. Returns nothing if it is not an event.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<_> = line.strip_prefix(PREFIX)?.split(' ').collect();
        match words[..] {
            ["sent", call] => Some(Self::Sent(call)),
            ["answered", call, code] => Some(Self::Answered(call, code)),
            ["abandoned", call] => Some(Self::Abandoned(call)),
            _ => None,
        }
    }
}

impl fmt::Display for CallEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(call) => write!(f, "{PREFIX}sent {call}"),
            Self::Answered(call, code) => write!(f, "{PREFIX}answered {call} {code}"),
            Self::Abandoned(call) => write!(f, "{PREFIX}abandoned {call}"),
        }
    }
}

impl CallCounts {
    /// Creates counts that write each event to standard output.
    pub(crate) fn printing_events() -> Self {
        Self { print_events: true, ..Self::default() }
    }

    pub(crate) fn add_sent(&self, call: &str) {
        self.add(&CallEvent::Sent(call));
    }

    pub(crate) fn add_answered<T>(&self, call: &str, outcome: &Result<T, Status>) {
        let code = outcome.as_ref().err().map_or(Code::Ok, Status::code);
        self.add(&CallEvent::Answered(call, &name(code)));
    }

    pub(crate) fn add_abandoned(&self, call: &str) {
        self.add(&CallEvent::Abandoned(call));
    }

    pub(crate) fn add(&self, event: &CallEvent<'_>) {
        let mut calls = self.lock();
        if self.print_events {
            println!("{event}");
        }
        let (CallEvent::Sent(call) | CallEvent::Answered(call, _) | CallEvent::Abandoned(call)) = event;
        let calls = calls.entry((*call).to_owned()).or_default();
        match event {
            CallEvent::Sent(_) => calls.sent += 1,
            CallEvent::Answered(_, code) => *calls.answered.entry((*code).to_owned()).or_default() += 1,
            CallEvent::Abandoned(_) => calls.abandoned += 1,
        }
    }

    /// Returns how many calls have been answered.
    pub(crate) fn answers(&self) -> u64 {
        self.lock().values().flat_map(|calls| calls.answered.values()).sum()
    }

    /// Asserts that each call was answered once or abandoned, that the daemon has ended all calls that it started, and
    /// that its counts by path and status differ from these only by abandoned calls.
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
            let (started, handled) = (of("grpc_server_started_total{", ""), of("grpc_server_handled_total{", ""));
            assert_eq!(started, handled, "{call}: the daemon has started calls that have not ended");
            let range = answered..=calls.sent;
            assert!(range.contains(&handled), "{call}: the daemon handled {handled}, the clients made {range:?}");
            let mut excess = 0;
            for (code, answers) in &calls.answered {
                let count = of("grpc_server_handled_total{", &format!("grpc_code=\"{code}\""));
                assert!(count >= *answers, "{call} {code}: the daemon sent {count}, the clients received {answers}");
                excess += count - answers;
            }
            assert!(excess <= calls.abandoned, "{call}: {excess} answers that no client received");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Counts>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the sum of a metric's values whose labels contain all of these words.
pub(crate) fn sum(metrics: &str, metric: &str, words: &[&str]) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(metric) && words.iter().all(|word| line.contains(word)));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
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
        write!(f, "{sent} calls sent, {} answered, {abandoned} abandoned", sent - abandoned)
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::{CallCounts, CallEvent};

    const CALL: &str = "v1.Disk/Rescan";

    /// Returns the metrics of a daemon that has started and handled this many calls.
    fn metrics(started: u64, handled: u64) -> String {
        let labels = "grpc_method=\"Rescan\",grpc_service=\"v1.Disk\",grpc_type=\"unary\"";
        format!(
            "grpc_server_started_total{{{labels}}} {started}\n\
             grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} {handled}\n"
        )
    }

    fn counts(sent: u64, answered: u64, abandoned: u64) -> CallCounts {
        let counts = CallCounts::default();
        (0..sent).for_each(|_| counts.add_sent(CALL));
        (0..answered).for_each(|_| counts.add_answered(CALL, &Ok::<(), Status>(())));
        (0..abandoned).for_each(|_| counts.add_abandoned(CALL));
        counts
    }

    #[test]
    fn the_daemon_may_have_handled_an_abandoned_call_or_not() {
        for handled in [2, 3] {
            counts(3, 2, 1).assert_match(&metrics(handled, handled));
        }
    }

    #[test]
    #[should_panic(expected = "sent calls differ from answered and abandoned ones")]
    fn a_call_without_an_answer_is_detected() {
        counts(3, 2, 0).assert_match(&metrics(3, 3));
    }

    #[test]
    #[should_panic(expected = "the daemon handled 4")]
    fn a_call_that_the_daemon_handles_twice_is_detected() {
        counts(3, 2, 1).assert_match(&metrics(4, 4));
    }

    #[test]
    #[should_panic(expected = "the daemon has started calls that have not ended")]
    fn a_call_that_never_ends_is_detected() {
        counts(3, 2, 1).assert_match(&metrics(3, 2));
    }

    #[test]
    fn events_of_another_process_are_counted() {
        let counts = CallCounts::default();
        for event in
            [CallEvent::Sent(CALL), CallEvent::Sent(CALL), CallEvent::Answered(CALL, "OK"), CallEvent::Abandoned(CALL)]
        {
            counts.add(&CallEvent::parse(&event.to_string()).expect("an event"));
        }
        assert_eq!(counts.to_string(), "2 calls sent, 1 answered, 1 abandoned");
        assert_eq!(counts.answers(), 1);
        assert!(CallEvent::parse("test a_test ... ok").is_none());
    }
}
