//! Sockets, what /proc tells, and signals.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use transport::address::Location;

use crate::size::Size;

/// Where a daemon listens that was told this folder.
pub(crate) fn place(folder: &Path) -> Location {
    Location::Directory(folder.to_owned())
}

/// What the process `id` has.
pub(crate) fn size(id: u32) -> Size {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("the daemon runs");
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux tells");
        line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let handles = fs::read_dir(format!("/proc/{id}/fd")).expect("the daemon runs").count();
    Size { memory: number("VmRSS:"), handles: u64::try_from(handles).expect("few"), threads: number("Threads:") }
}

/// Stops it, and says whether it was given the time to end in order.
pub(crate) fn stop(process: &mut Child) -> bool {
    let status = Command::new("kill").args(["-s", "TERM", &process.id().to_string()]).status();
    assert!(status.expect("the program kill").success());
    true
}
