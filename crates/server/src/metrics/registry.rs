//! All metrics of a server, as its metrics endpoint shows them.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use api::{GROUP_VERSIONS, GroupVersion};
use storage_ops::{
    ActiveRequest, Activity, FallbackCount, LockWaitCount, PoolUse, RequestState, WmiCallCount,
};
use tokio::time::Instant;

use crate::metrics::rpc::{self, RpcMetrics};
use crate::metrics::text_format::{counter, gauge, write_head, write_labelled};
use crate::seconds::seconds;
use crate::server_state::ServerState;

/// The metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    /// For each row of [`GROUP_VERSIONS`], its RPCs in their order.
    rpcs: Vec<Vec<Arc<RpcMetrics>>>,
    state: Arc<ServerState>,
}

impl Metrics {
    pub(crate) fn new(state: Arc<ServerState>) -> Self {
        let row = |row: &GroupVersion| {
            row.rpcs
                .iter()
                .map(|rpc| Arc::new(RpcMetrics::new(*rpc, row.service)))
                .collect::<Vec<_>>()
        };
        Self {
            rpcs: GROUP_VERSIONS.iter().map(row).collect(),
            state,
        }
    }

    /// The metrics of the RPCs of one row of [`GROUP_VERSIONS`].
    pub(crate) fn of_row(&self, row: usize) -> &[Arc<RpcMetrics>] {
        &self.rpcs[row]
    }

    pub(crate) fn state(&self) -> &ServerState {
        &self.state
    }

    /// Returns the metrics of all RPCs.
    pub(crate) fn rpcs(&self) -> impl Iterator<Item = &RpcMetrics> {
        self.rpcs.iter().flatten().map(|rpc| &**rpc)
    }

    /// Returns all metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(1 << 15);
        rpc::write_all(self.rpcs(), &mut text)
            .and_then(|()| self.write_state(&mut text))
            .expect("a string takes all text");
        text
    }

    fn write_state(&self, text: &mut String) -> fmt::Result {
        let ServerState {
            connections,
            message_memory,
            executor,
            ..
        } = &*self.state;
        let counts = connections.counts();

        write_labelled(
            text,
            ("csi_proxy_connections", "gauge"),
            "Open connections by state: silent = no HTTP/2 preface received, unused = no \
             call received, idle = no call in flight, busy = calls in flight, leaving = \
             evicted and not closed yet.",
            "state",
            &[
                ("busy", number(counts.busy)),
                ("idle", number(counts.idle)),
                ("leaving", number(counts.leaving)),
                ("silent", number(counts.silent)),
                ("unused", number(counts.unused)),
            ],
        )?;
        counter(
            text,
            "csi_proxy_connections_accepted_total",
            "Connections accepted.",
            counts.accepted,
        )?;
        write_labelled(
            text,
            ("csi_proxy_connections_closed_total", "counter"),
            "Connections closed by csi-proxy: idle_made_room and silent_made_room = evicted \
             at the limit of -max-connections, silent = no HTTP/2 preface within \
             two minutes, answer_not_taken = the client does not read its responses, \
             idle_grown = idle after many calls at once.",
            "reason",
            &[
                ("answer_not_taken", self.state.stalled_connections()),
                ("idle_grown", counts.closed_grown),
                ("idle_made_room", counts.evicted_idle),
                ("silent", counts.closed_silent),
                ("silent_made_room", counts.evicted_silent),
            ],
        )?;

        write_labelled(
            text,
            ("csi_proxy_calls", "gauge"),
            "Calls by state: running = calls that hold a slot, waiting \
             = calls that wait for a slot, transferring = calls whose request is incomplete \
             or whose response the client has not read.",
            "state",
            &[
                ("running", number(counts.running)),
                ("transferring", number(counts.transferring())),
                ("waiting", number(counts.waiting)),
            ],
        )?;
        write_labelled(
            text,
            ("csi_proxy_calls_refused_total", "counter"),
            "Calls refused: connections_busy = -max-connections connections have calls in \
             flight, or the connection was evicted, running = too many calls wait, or no \
             slot became free in time, message_late = the request was \
             incomplete when its time was over, messages_large = the buffer for large \
             responses was full, watches = the connection had too many watches of the health \
             service.",
            "reason",
            &[
                ("connections_busy", counts.refused_connections_busy),
                ("message_late", message_memory.late()),
                ("messages_large", message_memory.refused()),
                ("running", counts.refused_calls),
                ("watches", self.state.refused_health_watches()),
            ],
        )?;
        gauge(
            text,
            "csi_proxy_large_messages_bytes",
            "Bytes in use in the buffer for responses larger than 32 KiB.",
            message_memory.held(),
        )?;
        gauge(
            text,
            "csi_proxy_memory_ceiling_bytes",
            "The largest memory of the daemon, whatever its clients do. It depends on \
             -max-connections only.",
            self.state.limits.memory_ceiling(),
        )?;

        gauge(
            text,
            "csi_proxy_ready",
            "1 while all pipes accept connections, as /readyz; 0 otherwise, and during the drain.",
            u8::from(self.state.readiness.check().is_ok()),
        )?;

        gauge(
            text,
            "csi_proxy_operations",
            "Changes (not reads) that run or wait for a lock or a thread, including those \
             without a caller.",
            executor.running(),
        )?;
        self.write_activity(text)?;
        counter(
            text,
            "csi_proxy_smb_password_differs_total",
            "Requests for an existing SMB mapping whose password differs from the one the \
             share was mapped with.",
            executor.node().smb_password_differences(),
        )?;
        counter(
            text,
            "csi_proxy_links_refused_total",
            "Requests refused because of a link or mount point on a path.",
            executor.node().links_refused(),
        )?;
        gauge(
            text,
            "csi_proxy_health_watches",
            "Watches of the health service.",
            self.state.health_watches.len(),
        )?;
        write_fallbacks(text, &executor.node().fallbacks())?;
        write_wmi_calls(text, &executor.node().wmi_calls())
    }

    /// Writes what operations wait for.
    fn write_activity(&self, text: &mut String) -> fmt::Result {
        let executor = &self.state.executor;
        let Activity {
            requests,
            pools,
            locks,
        } = executor.activity();
        let now = self.state.since_start(Instant::now());
        let ages = requests
            .iter()
            .filter_map(|request| Some(now.saturating_sub(request.call?.began)));
        let oldest = seconds(ages.max().unwrap_or(Duration::ZERO));
        gauge(
            text,
            "csi_proxy_oldest_call_seconds",
            "Age of the oldest call in progress; 0 if no call is in progress.",
            oldest,
        )?;

        let of_pools = |value: OfPool| -> Vec<(&str, u64)> {
            pools
                .iter()
                .map(|pool| (pool.pool.name(), number(value(pool))))
                .collect()
        };
        write_labelled(
            text,
            ("csi_proxy_pool_threads", "gauge"),
            "Maximum threads of a pool.",
            "pool",
            &of_pools(|pool| pool.threads),
        )?;
        write_labelled(
            text,
            ("csi_proxy_pool_busy", "gauge"),
            "Threads of a pool in use.",
            "pool",
            &of_pools(|pool| pool.busy),
        )?;
        write_labelled(
            text,
            ("csi_proxy_pool_waiting", "gauge"),
            "Operations that wait for a thread of a pool.",
            "pool",
            &of_pools(|pool| pool.waiting),
        )?;

        let waits =
            |request: &&ActiveRequest| matches!(request.state, RequestState::WaitingForLock(_));
        gauge(
            text,
            "csi_proxy_lock_waiting",
            "Operations that wait for a lock.",
            requests.iter().filter(waits).count(),
        )?;
        let held_by_hung_calls = locks.iter().map(|lock| lock.held_by_others).sum::<usize>();
        gauge(
            text,
            "csi_proxy_locks_held_by_hung_calls",
            "Locks held by Windows calls that still hang after their request has ended; \
             their objects stay locked.",
            held_by_hung_calls,
        )?;
        let LockWaitCount { waits, time, .. } = executor.lock_waits();
        counter(
            text,
            "csi_proxy_lock_waits_total",
            "Times that an operation has waited for a lock.",
            waits,
        )?;
        counter(
            text,
            "csi_proxy_lock_wait_seconds_total",
            "Total time that operations have waited for locks.",
            seconds(time),
        )?;
        counter(
            text,
            "csi_proxy_coalesced_calls_total",
            "Calls that shared the result of an equal call in progress.",
            executor.coalesced_requests(),
        )
    }
}

/// A figure of a pool.
type OfPool = fn(&PoolUse) -> usize;

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Writes how many WMI calls were made, by class and method. The program has about fifty pairs of
/// class and method.
fn write_wmi_calls(text: &mut String, calls: &[WmiCallCount]) -> fmt::Result {
    let name = "csi_proxy_wmi_call_seconds";
    write_head(
        text,
        name,
        "summary",
        "Duration of WMI calls, by class and method; the method query reads the instances of the \
         class.",
    )?;
    for WmiCallCount {
        class,
        method,
        calls,
        time,
        ..
    } in calls
    {
        let labels = format!("class=\"{class}\",method=\"{method}\"");
        writeln!(
            text,
            "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {calls}",
            seconds(*time)
        )?;
    }
    let name = "csi_proxy_wmi_call_failures_total";
    write_head(
        text,
        name,
        "counter",
        "WMI calls that failed or timed out, by class and method.",
    )?;
    for WmiCallCount {
        class,
        method,
        failures,
        ..
    } in calls
    {
        writeln!(
            text,
            "{name}{{class=\"{class}\",method=\"{method}\"}} {failures}"
        )?;
    }
    Ok(())
}

/// Writes how often an operation used a fallback, by call and code; docs/appendix-fallbacks.md
/// lists the calls. A call has at most seventeen codes.
fn write_fallbacks(text: &mut String, fallbacks: &[FallbackCount]) -> fmt::Result {
    let help = "Uses of a fallback, by the Windows call that gave an unexpected answer and the \
                code of the answer; docs/appendix-fallbacks.md lists the calls.";
    let name = "csi_proxy_fallbacks_total";
    write_head(text, name, "counter", help)?;
    for FallbackCount { call, code, count } in fallbacks {
        let code = match code {
            None => "other".to_owned(),
            Some(code @ 0..=0xffff) => code.to_string(),
            Some(code) => format!("0x{code:08x}"),
        };
        writeln!(text, "{name}{{call=\"{call}\",code=\"{code}\"}} {count}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tonic::Code;

    use storage_ops::{FallbackCount, WmiCallCount};

    use super::{Metrics, write_fallbacks, write_wmi_calls};
    use crate::admission::limits::Limits;
    use crate::metrics::rpc::BUCKETS;
    use crate::server_state::ServerState;

    fn metrics() -> Metrics {
        let node = storage_ops::Node::new(
            os_sim::node().build().process(),
            storage_ops::Config::default(),
        );
        let executor = Arc::new(storage_ops::Executor::new(Arc::new(node)));
        Metrics::new(Arc::new(ServerState::new(executor, Limits::default())))
    }

    #[test]
    fn a_call_is_counted_by_rpc_code_and_duration() {
        let metrics = metrics();
        let row = api::GROUP_VERSIONS
            .iter()
            .position(|row| row.service == "v1.Filesystem")
            .unwrap();
        let rpc = metrics
            .of_row(row)
            .iter()
            .find(|rpc| rpc.rpc.name == "CreateSymlink")
            .unwrap();
        rpc.started();
        rpc.ended(Code::NotFound, Duration::from_micros(1500));
        let text = metrics.render();
        let labels =
            r#"grpc_method="CreateSymlink",grpc_service="v1.Filesystem",grpc_type="unary""#;
        for line in [
            format!("grpc_server_started_total{{{labels}}} 1"),
            format!("grpc_server_handled_total{{grpc_code=\"NotFound\",{labels}}} 1"),
            format!("grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} 0"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"0.001\"}} 0"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"+Inf\"}} 1"),
            format!("grpc_server_handling_seconds_sum{{{labels}}} 0.0015"),
            format!("grpc_server_handling_seconds_count{{{labels}}} 1"),
        ] {
            assert_eq!(
                text.lines().filter(|other| **other == line).count(),
                1,
                "{line}"
            );
        }
    }

    #[test]
    fn a_fallback_is_counted_by_call_and_code() {
        let mut text = String::new();
        let count = |code, count| FallbackCount {
            call: "mount",
            code,
            count,
        };
        let counts = [
            count(Some(32), 2),
            count(Some(0x8004_1001), 1),
            count(None, 3),
        ];
        write_fallbacks(&mut text, &counts).unwrap();
        for line in [
            r#"csi_proxy_fallbacks_total{call="mount",code="32"} 2"#,
            r#"csi_proxy_fallbacks_total{call="mount",code="0x80041001"} 1"#,
            r#"csi_proxy_fallbacks_total{call="mount",code="other"} 3"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{text}");
        }
    }

    #[test]
    fn an_rpc_has_series_from_its_first_call_on() {
        let metrics = metrics();
        let series = || {
            metrics
                .render()
                .lines()
                .filter(|line| line.starts_with("grpc_server_"))
                .count()
        };
        assert_eq!(series(), 0);
        metrics.of_row(0)[0].started();
        // Started, handled with OK, the buckets with the one without a bound, sum and count.
        assert_eq!(series(), 2 + BUCKETS.len() + 1 + 2);
    }

    #[test]
    fn calls_of_wmi_are_a_summary_by_class_and_method() {
        let mut text = String::new();
        let (class, method) = ("MSFT_Disk".to_owned(), "query".to_owned());
        let time = Duration::from_nanos(1_500_000_400);
        write_wmi_calls(
            &mut text,
            &[WmiCallCount {
                class,
                method,
                calls: 3,
                failures: 1,
                time,
            }],
        )
        .unwrap();
        let labels = r#"{class="MSFT_Disk",method="query"}"#;
        for line in [
            "call_seconds_sum{} 1.5",
            "call_seconds_count{} 3",
            "call_failures_total{} 1",
        ] {
            let line = format!("csi_proxy_wmi_{}", line.replace("{}", labels));
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }

    #[test]
    fn a_bound_belongs_to_its_bucket_and_is_written_in_seconds() {
        for (bound, text) in BUCKETS {
            assert!(
                (text.parse::<f64>().unwrap() - Duration::from_micros(bound).as_secs_f64()).abs()
                    < 1e-12,
                "{text}"
            );
        }
        let metrics = metrics();
        let rpc = &metrics.of_row(0)[0];
        rpc.started();
        rpc.ended(Code::Ok, Duration::from_millis(1));
        rpc.ended(Code::Ok, Duration::from_hours(1));
        assert!(metrics.render().contains(r#"le="0.001"} 1"#));
        assert!(metrics.render().contains(r#"le="600"} 1"#));
        assert!(metrics.render().contains(r#"le="+Inf"} 2"#));
    }
}
