//! Logs calls that take long.
//!
//! A call is logged when it ends and, with `-v=2`, when it begins. A call that hangs would leave no
//! line, so it is also logged while it is in progress: after ten seconds, and then ever more
//! rarely.

use std::collections::HashMap;
use std::time::Duration;

use storage_ops::{ActiveRequest, Activity, Call, RequestState};
use tokio::time::{Instant, sleep};

use crate::server_state::ServerState;

/// How often to look for calls that take long.
const INTERVAL: Duration = Duration::from_secs(5);

/// The ages at which a call is reported. From the last age on, it is reported again each time that
/// this much time has passed.
const AGES: [Duration; 4] = [
    Duration::from_secs(10),
    Duration::from_mins(1),
    Duration::from_mins(10),
    Duration::from_hours(1),
];

/// Maximum lines in one interval. Further calls are only counted.
const MAX_LINES: usize = 10;

/// Reports calls that take long. Runs until the future is dropped.
pub(crate) async fn report(state: &ServerState) {
    let mut reported = Reported::default();
    loop {
        sleep(INTERVAL).await;
        reported.log(
            &state.executor.activity(),
            state.since_start(Instant::now()),
        );
    }
}

/// How many times each call in progress has been reported, by its number.
#[derive(Default)]
struct Reported(HashMap<u64, u64>);

impl Reported {
    /// Logs the calls of `activity` that have reached one of the [`AGES`].
    fn log(&mut self, activity: &Activity, now: Duration) {
        let in_progress = activity
            .requests
            .iter()
            .filter_map(|request| Some((request, request.call?)));
        let ages: Vec<(&ActiveRequest, Call, u64)> = in_progress
            .map(|(request, call)| (request, call, reports_by(now.saturating_sub(call.began))))
            .collect();
        let mut due = ages
            .iter()
            .filter(|(_, call, reports)| self.0.get(&call.number).copied().unwrap_or(0) < *reports);
        for (request, call, _) in due.by_ref().take(MAX_LINES) {
            log_line(activity, request, call, now.saturating_sub(call.began));
        }
        let calls = due.count();
        if calls > 0 {
            tracing::warn!(
                calls,
                "more calls are still in progress; /statusz lists them"
            );
        }
        self.0 = ages
            .iter()
            .filter(|(_, _, reports)| *reports > 0)
            .map(|(_, call, n)| (call.number, *n))
            .collect();
    }
}

/// Returns how many times a call of this age should have been reported.
fn reports_by(age: Duration) -> u64 {
    let reached = AGES.iter().filter(|reached| age >= **reached).count() as u64;
    let last = AGES[AGES.len() - 1];
    // Each time that the last age has passed again counts once.
    reached + (age.as_secs() / last.as_secs()).saturating_sub(1)
}

fn log_line(activity: &Activity, request: &ActiveRequest, call: &Call, age: Duration) {
    let Call {
        number: id,
        label: rpc,
        ..
    } = *call;
    let (seconds, object, state) = (age.as_secs_f64(), &request.description, &request.state);
    let held_by = match state {
        RequestState::WaitingForLock(key) => activity.locks.iter().find(|lock| lock.key == *key),
        _ => None,
    };
    // Absent unless the call waits for a lock.
    let held_by = held_by.map(|lock| tracing::field::debug(&lock.held_by));
    let has_caller = request.has_caller;
    if age < AGES[1] {
        tracing::info!(
            id, rpc, seconds, object, %state, held_by, has_caller,
            "the call is still in progress"
        );
    } else {
        tracing::warn!(
            id, rpc, seconds, object, %state, held_by, has_caller,
            "the call is still in progress"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use storage_ops::{ConnectionId, DiskNumber, LockKey, LockUse, PoolKind};
    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    fn request(number: u64, state: RequestState) -> ActiveRequest {
        let call = Call {
            number,
            label: "/v1.Disk/PartitionDisk",
            connection: ConnectionId(3),
            began: Duration::ZERO,
        };
        let description = "partition disk 1".to_owned();
        ActiveRequest {
            call: Some(call),
            operation: "PartitionDisk",
            description,
            has_caller: true,
            state,
        }
    }

    fn activity(requests: Vec<ActiveRequest>) -> Activity {
        let lock = LockUse {
            key: LockKey::Disk(DiskNumber(1)),
            held_by: vec![1],
            held_by_others: 0,
            waiting: vec![2],
        };
        Activity {
            requests,
            pools: Vec::new(),
            locks: vec![lock],
        }
    }

    /// Returns the lines that `act` logs.
    fn lines(act: impl FnOnce()) -> Vec<String> {
        let log = tempfile::NamedTempFile::new().unwrap();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(LevelFilter::INFO);
        let subscriber = subscriber
            .with_writer(Arc::new(log.reopen().unwrap()))
            .finish();
        tracing::subscriber::with_default(subscriber, act);
        fs::read_to_string(log.path())
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_call_that_hangs_is_reported_with_what_it_waits_for_and_then_rarely() {
        let (running, waiting) = (
            RequestState::Running(PoolKind::Disks),
            RequestState::WaitingForLock(LockKey::Disk(DiskNumber(1))),
        );
        let activity = activity(vec![request(1, running), request(2, waiting)]);
        let mut reported = Reported::default();
        let mut at = |seconds: u64| lines(|| reported.log(&activity, Duration::from_secs(seconds)));
        assert!(at(9).is_empty());
        let first = at(12);
        assert_eq!(first.len(), 2, "{first:?}");
        for part in [
            " INFO ",
            "id=1 ",
            "rpc=\"/v1.Disk/PartitionDisk\"",
            "seconds=12",
            "partition disk 1",
            "state=running",
        ] {
            assert!(first[0].contains(part), "{part} in {}", first[0]);
        }
        assert!(!first[0].contains("held_by"), "{}", first[0]);
        assert!(
            first[1].contains("state=waiting for lock disk 1 held_by=[1]"),
            "{}",
            first[1]
        );
        let counts: Vec<usize> = [13, 50, 60, 599, 600, 3599, 3600, 7199, 7200, 7300, 10_800]
            .map(|seconds| at(seconds).len())
            .into();
        assert_eq!(counts, [0, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2]);
        assert!(at(14_400)[0].contains(" WARN "));
    }

    #[test]
    fn of_many_calls_that_hang_some_are_reported_and_the_others_counted() {
        let many = activity(
            (0..50)
                .map(|number| request(number, RequestState::Starting))
                .collect(),
        );
        let mut reported = Reported::default();
        let lines = lines(|| reported.log(&many, Duration::from_secs(10)));
        assert_eq!(lines.len(), MAX_LINES + 1, "{lines:?}");
        assert!(
            lines[MAX_LINES].contains("calls=40"),
            "{}",
            lines[MAX_LINES]
        );
        reported.log(&activity(Vec::new()), Duration::from_secs(11));
        assert!(reported.0.is_empty(), "calls that have ended are forgotten");
    }
}
