//! The resources that this process uses, on Linux: from `/proc`.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use super::Figures;

/// Returns the resources that this process uses.
pub(crate) fn figures() -> Figures {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "a process does not run for 2^53 seconds")]
    let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    Figures {
        cpu_seconds: Some(cpu_seconds),
        resident_memory: fs::read_to_string("/proc/self/status").ok().and_then(|status| resident_memory(&status)),
        open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as u64),
    }
}

/// Returns the resident memory in the text of `/proc/self/status`, which has it in KiB.
fn resident_memory(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
