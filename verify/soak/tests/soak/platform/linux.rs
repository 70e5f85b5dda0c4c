//! Linux: Unix sockets, /proc, and signals.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use transport::address::Location;

use crate::resources::ResourceUsage;

/// Returns where a daemon listens whose socket folder is `folder`.
pub(crate) fn location(folder: &Path) -> Location {
    Location::Directory(folder.to_owned())
}

/// Returns the resources that the process `id` uses.
pub(crate) fn resource_usage(id: u32) -> ResourceUsage {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("the daemon is running");
    let number = |name: &str| {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a field of /proc/PID/status");
        value
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a number")
    };
    let handles = fs::read_dir(format!("/proc/{id}/fd"))
        .expect("the daemon is running")
        .count();
    ResourceUsage {
        memory: number("VmRSS:"),
        handles: u64::try_from(handles).expect("few"),
        threads: number("Threads:"),
    }
}

/// Asks the process to stop. Returns true: it may drain its calls.
pub(crate) fn stop(process: &mut Child) -> bool {
    let status = Command::new("kill")
        .args(["-s", "TERM", &process.id().to_string()])
        .status();
    assert!(status.expect("the program kill").success());
    true
}
