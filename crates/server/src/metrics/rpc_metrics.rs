//! Counts and times of all calls, named as go-grpc-prometheus names them, and what there is of all that is bounded.
//!
//! Labels come in alphabetical order, `grpc_method` first: what reads the metrics of the Go csi-proxy looks for them
//! as text. Counting takes no lock and no memory, since the RPCs that can be counted are known from the start.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::{GROUP_VERSIONS, GroupVersion, Rpc};
use tonic::Code;

use crate::metrics::server_state::ServerState;

/// The upper bounds of the histograms' buckets in microseconds, as they are written in seconds.
const BUCKETS: [(u64, &str); 22] = [
    (50, "5e-05"),
    (100, "0.0001"),
    (200, "0.0002"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_000, "0.002"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (20_000, "0.02"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (200_000, "0.2"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_000_000, "2"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
    (120_000_000, "120"),
    (300_000_000, "300"),
    (600_000_000, "600"),
];

/// The status codes by number, as Go spells them.
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

/// The counters of a server.
#[derive(Debug)]
pub struct Metrics {
    /// In the order of [`GROUP_VERSIONS`], and of the RPCs in each row.
    rows: Vec<Vec<RpcMetrics>>,
    load: Arc<ServerState>,
}

/// The counters of one RPC.
#[derive(Debug)]
pub(crate) struct RpcMetrics {
    pub(crate) rpc: Rpc,
    service: &'static str,
    started: AtomicU64,
    ended: [AtomicU64; CODES.len()],
    /// Each bucket alone; the last is for what took longer than all bounds.
    took: [AtomicU64; BUCKETS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Metrics {
    pub(crate) fn new(load: Arc<ServerState>) -> Self {
        let row = |row: &GroupVersion| row.rpcs.iter().map(|rpc| RpcMetrics::new(*rpc, row.service)).collect();
        Self { rows: GROUP_VERSIONS.iter().map(row).collect(), load }
    }

    /// The counters of one group-version's RPC.
    pub(crate) fn of(&self, row: usize, path: &str) -> Option<&RpcMetrics> {
        self.rows[row].iter().find(|metrics| metrics.rpc.path == path)
    }

    /// All of them in the text format of Prometheus. RPCs that nobody has called are there with their zeros.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(1 << 18);
        self.write(&mut text).expect("a string takes all");
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let all = || self.rows.iter().flatten();
        head(text, "grpc_server_started_total", "counter", "Total number of RPCs started on the server.")?;
        for rpc in all() {
            let started = rpc.started.load(Ordering::Relaxed);
            writeln!(text, "grpc_server_started_total{{{}}} {started}", rpc.labels())?;
        }
        let help = "Total number of RPCs completed on the server, regardless of success or failure.";
        head(text, "grpc_server_handled_total", "counter", help)?;
        for rpc in all() {
            for (code, ended) in CODES.iter().zip(&rpc.ended) {
                let ended = ended.load(Ordering::Relaxed);
                if ended > 0 || *code == "OK" {
                    writeln!(text, "grpc_server_handled_total{{grpc_code=\"{code}\",{}}} {ended}", rpc.labels())?;
                }
            }
        }
        let help =
            "Histogram of response latency (seconds) of gRPC that had been application-level handled by the server.";
        head(text, "grpc_server_handling_seconds", "histogram", help)?;
        all().try_for_each(|rpc| rpc.write_histogram(text))?;
        self.load.write(text)
    }
}

pub(crate) fn head(text: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

impl RpcMetrics {
    fn new(rpc: Rpc, service: &'static str) -> Self {
        Self {
            rpc,
            service,
            started: AtomicU64::new(0),
            ended: Default::default(),
            took: Default::default(),
            nanoseconds: AtomicU64::new(0),
        }
    }

    pub(crate) fn started(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self, code: Code, took: Duration) {
        let number = usize::try_from(i32::from(code)).unwrap_or_default();
        self.ended[number].fetch_add(1, Ordering::Relaxed);
        let bucket = BUCKETS.partition_point(|(bound, _)| Duration::from_micros(*bound) < took);
        self.took[bucket].fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    fn labels(&self) -> impl fmt::Display {
        fmt::from_fn(|f| {
            let (method, service) = (self.rpc.name, self.service);
            write!(f, "grpc_method=\"{method}\",grpc_service=\"{service}\",grpc_type=\"unary\"")
        })
    }

    fn write_histogram(&self, text: &mut String) -> fmt::Result {
        let labels = self.labels();
        let mut count = 0;
        let bounds = BUCKETS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
        for (bound, bucket) in bounds.zip(&self.took) {
            count += bucket.load(Ordering::Relaxed);
            writeln!(text, "grpc_server_handling_seconds_bucket{{{labels},le=\"{bound}\"}} {count}")?;
        }
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        writeln!(text, "grpc_server_handling_seconds_sum{{{labels}}} {sum}")?;
        writeln!(text, "grpc_server_handling_seconds_count{{{labels}}} {count}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tonic::Code;

    use super::{BUCKETS, CODES, Metrics};
    use crate::admission::limits::Limits;
    use crate::server::Server;

    fn metrics() -> Metrics {
        let node = storage_ops::Node::new(os_sim::node().build().process(), storage_ops::Config::default());
        let executor = Arc::new(storage_ops::Executor::new(Arc::new(node)));
        Metrics::new(Arc::clone(Server::new(executor, Limits::default()).load()))
    }

    #[test]
    fn a_call_is_counted_by_rpc_code_and_time() {
        let metrics = metrics();
        let row = api::GROUP_VERSIONS.iter().position(|row| row.service == "v1.Filesystem").unwrap();
        let rpc = metrics.of(row, "/v1.Filesystem/CreateSymlink").unwrap();
        rpc.started();
        rpc.ended(Code::NotFound, Duration::from_micros(150));
        let text = metrics.render();
        let labels = r#"grpc_method="CreateSymlink",grpc_service="v1.Filesystem",grpc_type="unary""#;
        for line in [
            format!("grpc_server_started_total{{{labels}}} 1"),
            format!("grpc_server_handled_total{{grpc_code=\"NotFound\",{labels}}} 1"),
            format!("grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} 0"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"0.0001\"}} 0"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"0.0002\"}} 1"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"+Inf\"}} 1"),
            format!("grpc_server_handling_seconds_sum{{{labels}}} 0.00015"),
            format!("grpc_server_handling_seconds_count{{{labels}}} 1"),
        ] {
            assert_eq!(text.lines().filter(|other| **other == line).count(), 1, "{line}");
        }
    }

    #[test]
    fn each_rpc_of_each_group_version_is_there_before_its_first_call() {
        let text = metrics().render();
        let counts = text.lines().filter(|line| line.starts_with("grpc_server_handling_seconds_count{"));
        assert_eq!(counts.count(), api::GROUP_VERSIONS.iter().map(|row| row.rpcs.len()).sum::<usize>());
    }

    #[test]
    fn a_bound_belongs_to_its_bucket_and_is_written_in_seconds() {
        for (bound, text) in BUCKETS {
            assert!(
                (text.parse::<f64>().unwrap() - Duration::from_micros(bound).as_secs_f64()).abs() < 1e-12,
                "{text}"
            );
        }
        let metrics = metrics();
        let rpc = &metrics.rows[0][0];
        rpc.ended(Code::Ok, Duration::from_micros(50));
        rpc.ended(Code::Ok, Duration::from_hours(1));
        assert!(metrics.render().contains(r#"le="5e-05"} 1"#));
        assert!(metrics.render().contains(r#"le="600"} 1"#));
        assert!(metrics.render().contains(r#"le="+Inf"} 2"#));
    }

    #[test]
    fn the_codes_have_their_numbers() {
        for (number, code) in [(0, "OK"), (1, "Canceled"), (5, "NotFound"), (13, "Internal"), (16, "Unauthenticated")] {
            assert_eq!(CODES[number], code);
        }
    }
}
