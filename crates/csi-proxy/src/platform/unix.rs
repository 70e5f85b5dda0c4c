//! Systems other than Windows.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use super::Resources;

/// Does nothing: the loader of this system looks neither beside the program nor in the current
/// directory.
pub fn limit_dll_search() -> io::Result<()> {
    Ok(())
}

/// Makes a file that these options create readable and writable for its owner alone.
pub fn restrict_to_owner(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// Returns the time for a line of the log, in UTC: `1124 02:12:23.812345`.
pub(crate) fn log_time() -> String {
    let mut text = String::new();
    // Writing to a String does not fail. The text is in the form of RFC 3339, with six digits of a
    // second.
    let _ = SystemTime.format_time(&mut Writer::new(&mut text));
    format!("{}{} {}", &text[5..7], &text[8..10], &text[11..26])
}

/// Raises the limit on open files to `wanted` if it is lower, or as far as is allowed. Returns the
/// limit, or `None` without one.
pub(crate) fn raise_open_files(wanted: usize) -> Option<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (current, wanted) = (current?, u64::try_from(wanted).unwrap_or(u64::MAX));
    let higher = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = if higher > current
        && setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(higher),
                maximum,
            },
        )
        .is_ok()
    {
        higher
    } else {
        current
    };
    Some(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Returns the resources that this process uses, which Linux has in `/proc`.
pub(crate) fn resources() -> Resources {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a process does not run for 2^53 seconds"
    )]
    let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    Resources {
        cpu_seconds: Some(cpu_seconds),
        resident_memory: fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| resident_memory(&status)),
        open_files: fs::read_dir("/proc/self/fd")
            .ok()
            .map(|files| files.count() as u64),
    }
}

/// Returns the resident memory in the text of `/proc/self/status`, which has it in KiB.
fn resident_memory(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// The signals that tell the program to stop: SIGINT (Ctrl-C) and SIGTERM.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// Listens to the signals from now on. Must be called within a tokio runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_its_owner_can_read_a_new_log_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csi-proxy.log");
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        super::restrict_to_owner(&mut options);
        options.open(&path).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
