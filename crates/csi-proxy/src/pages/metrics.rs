//! The metrics of the program and of its process, which every Prometheus client has.

use std::env::consts::{ARCH, OS};
use std::fmt::{Display, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::platform::{Resources, resources};
use crate::program::VERSION;

/// Appends the metrics of the process, which was started at `started`.
pub(super) fn append(text: &mut String, started: SystemTime) {
    let Resources {
        cpu_seconds,
        resident_memory,
        open_files,
    } = resources();
    let since_1970 = started
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs_f64();
    let mut single = |series: &str, kind: &str, help: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            let name = series.split('{').next().unwrap_or_default();
            // Writing to a String does not fail.
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{series} {value}"
            );
        }
    };
    let build =
        format!("csi_proxy_build_info{{arch=\"{ARCH}\",os=\"{OS}\",version=\"{VERSION}\"}}");
    single(
        &build,
        "gauge",
        "1, with the version of the program and its target as labels.",
        Some(&1),
    );
    let help = "Start time of the process since unix epoch in seconds.";
    single(
        "process_start_time_seconds",
        "gauge",
        help,
        Some(&since_1970),
    );
    let help = "Total user and system CPU time spent in seconds.";
    single(
        "process_cpu_seconds_total",
        "counter",
        help,
        cpu_seconds.as_ref().map(|value| value as _),
    );
    let help = "Resident memory size in bytes; on Windows, the working set.";
    single(
        "process_resident_memory_bytes",
        "gauge",
        help,
        resident_memory.as_ref().map(|value| value as _),
    );
    let help = "Number of open file descriptors; on Windows, of handles.";
    single(
        "process_open_fds",
        "gauge",
        help,
        open_files.as_ref().map(|value| value as _),
    );
}
