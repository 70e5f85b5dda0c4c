//! The metrics of each RPC: calls started, calls ended by status code, and durations, named as
//! go-grpc-prometheus does.
//!
//! Labels are in alphabetical order, because tools that read the metrics of the Go csi-proxy search
//! for them as text. Counting takes no lock and allocates nothing, because all RPCs are known at
//! the start. An RPC has series only from its first call on, because most of the 139 RPCs are never
//! called on a node.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::Rpc;
use tonic::Code;

use crate::metrics::text_format::write_head;
use crate::seconds::seconds;

/// The upper bounds of the histogram buckets, in microseconds and as text in seconds.
pub(super) const BUCKETS: [(u64, &str); 10] = [
    (1_000, "0.001"),
    (5_000, "0.005"),
    (25_000, "0.025"),
    (100_000, "0.1"),
    (500_000, "0.5"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (120_000_000, "120"),
    (600_000_000, "600"),
];

/// The names of the status codes in Go, by number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// Returns the name of a status code in Go.
pub(crate) fn code_name(code: Code) -> &'static str {
    CODES[usize::try_from(i32::from(code)).unwrap_or_default()]
}

/// The metrics of one RPC.
#[derive(Debug)]
pub(crate) struct RpcMetrics {
    pub(crate) rpc: Rpc,
    service: &'static str,
    started: AtomicU64,
    ended: [AtomicU64; CODES.len()],
    /// The queries that ended with NotFound, which is their answer.
    found_nothing: AtomicU64,
    /// The number of calls in each bucket, without the buckets below it. The last bucket is for
    /// calls above all bounds.
    durations: [AtomicU64; BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
    /// The nanoseconds of the longest call.
    longest: AtomicU64,
}

impl RpcMetrics {
    pub(super) fn new(rpc: Rpc, service: &'static str) -> Self {
        Self {
            rpc,
            service,
            started: AtomicU64::new(0),
            ended: Default::default(),
            found_nothing: AtomicU64::new(0),
            durations: Default::default(),
            nanoseconds: AtomicU64::new(0),
            longest: AtomicU64::new(0),
        }
    }

    /// Counts a call that starts.
    pub(crate) fn started(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that ends.
    pub(crate) fn ended(&self, code: Code, duration: Duration) {
        let number = usize::try_from(i32::from(code)).unwrap_or_default();
        self.ended[number].fetch_add(1, Ordering::Relaxed);
        let bucket = BUCKETS.partition_point(|(bound, _)| Duration::from_micros(*bound) < duration);
        self.durations[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        self.longest.fetch_max(nanoseconds, Ordering::Relaxed);
    }

    /// Notes that the call which has just ended with NotFound did not fail: it queried whether
    /// something exists.
    pub(crate) fn was_answered(&self) {
        self.found_nothing.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many calls have been started.
    pub(crate) fn calls_started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// Returns how many calls have succeeded.
    pub(crate) fn calls_succeeded(&self) -> u64 {
        self.ended[0].load(Ordering::Relaxed) + self.found_nothing.load(Ordering::Relaxed)
    }

    /// Returns how many calls have failed.
    pub(crate) fn calls_failed(&self) -> u64 {
        let others: u64 = self.ended[1..]
            .iter()
            .map(|ended| ended.load(Ordering::Relaxed))
            .sum();
        others.saturating_sub(self.found_nothing.load(Ordering::Relaxed))
    }

    /// Returns how long a call took on average, if any has ended.
    pub(crate) fn mean(&self) -> Option<Duration> {
        let ended = self.calls_succeeded() + self.calls_failed();
        self.nanoseconds
            .load(Ordering::Relaxed)
            .checked_div(ended)
            .map(Duration::from_nanos)
    }

    /// Returns how long the longest call took, if any has ended.
    pub(crate) fn max(&self) -> Option<Duration> {
        let longest = Duration::from_nanos(self.longest.load(Ordering::Relaxed));
        (!longest.is_zero()).then_some(longest)
    }

    fn labels(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            let (method, service) = (self.rpc.name, self.service);
            write!(
                f,
                "grpc_method=\"{method}\",grpc_service=\"{service}\",grpc_type=\"unary\""
            )
        })
    }

    fn write_histogram(&self, text: &mut String) -> fmt::Result {
        let labels = self.labels();
        let mut count = 0;
        let bounds = BUCKETS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
        for (bound, bucket) in bounds.zip(&self.durations) {
            count += bucket.load(Ordering::Relaxed);
            writeln!(
                text,
                "grpc_server_handling_seconds_bucket{{{labels},le=\"{bound}\"}} {count}"
            )?;
        }
        let sum = seconds(Duration::from_nanos(
            self.nanoseconds.load(Ordering::Relaxed),
        ));
        writeln!(text, "grpc_server_handling_seconds_sum{{{labels}}} {sum}")?;
        writeln!(
            text,
            "grpc_server_handling_seconds_count{{{labels}}} {count}"
        )
    }
}

/// Writes the metrics of those of `rpcs` that have been called.
pub(super) fn write_all<'a>(
    rpcs: impl Iterator<Item = &'a RpcMetrics>,
    text: &mut String,
) -> fmt::Result {
    let rpcs: Vec<&RpcMetrics> = rpcs.filter(|rpc| rpc.calls_started() > 0).collect();
    write_head(
        text,
        "grpc_server_started_total",
        "counter",
        "Total number of RPCs started on the server.",
    )?;
    for rpc in &rpcs {
        let started = rpc.started.load(Ordering::Relaxed);
        writeln!(
            text,
            "grpc_server_started_total{{{}}} {started}",
            rpc.labels()
        )?;
    }
    let help = "Total number of RPCs completed on the server, regardless of success or failure.";
    write_head(text, "grpc_server_handled_total", "counter", help)?;
    for rpc in &rpcs {
        for (code, ended) in CODES.iter().zip(&rpc.ended) {
            let ended = ended.load(Ordering::Relaxed);
            if ended > 0 || *code == "OK" {
                writeln!(
                    text,
                    "grpc_server_handled_total{{grpc_code=\"{code}\",{}}} {ended}",
                    rpc.labels()
                )?;
            }
        }
    }
    let help = "Histogram of response latency (seconds) of gRPC that had been application-level \
                handled by the server.";
    write_head(text, "grpc_server_handling_seconds", "histogram", help)?;
    rpcs.iter().try_for_each(|rpc| rpc.write_histogram(text))
}

#[cfg(test)]
mod tests {
    use super::CODES;

    #[test]
    fn each_status_code_is_listed_at_its_number() {
        for (number, code) in [
            (0, "OK"),
            (1, "Canceled"),
            (5, "NotFound"),
            (13, "Internal"),
            (16, "Unauthenticated"),
        ] {
            assert_eq!(CODES[number], code);
        }
    }
}
