//! Windows: named pipes, and the system's lists of processes and handles.
//!
//! Wine provides all three numbers, too. It takes memory from the Linux process of the daemon,
//! including Wine's own code, and keeps handles and threads in its server, as Windows does in its
//! kernel. Wine's handle count of a process is not reliable, so handles are counted in the list of
//! all handles. The tests of `os_win32::process` verify that each number grows and shrinks.

use std::path::Path;
use std::process::Child;

use os_win32::process::usage;
use transport::address::Location;

use crate::resources::ResourceUsage;

/// Returns where every daemon listens. The folder is only for sockets.
pub(crate) fn location(_folder: &Path) -> Location {
    Location::NamedPipes
}

/// Returns the resources that the process `id` uses.
pub(crate) fn resource_usage(id: u32) -> ResourceUsage {
    let usage = usage(id).expect("the daemon is running");
    let memory = u64::try_from(usage.memory / 1024).expect("64 bits");
    let handles = u64::try_from(usage.handles).expect("64 bits");
    ResourceUsage {
        memory,
        handles,
        threads: usage.threads.into(),
    }
}

/// Kills the process. Returns false: it may not drain its calls.
///
/// A console event would reach all programs of the console, this test among them. The tests of the
/// Windows service cover draining.
pub(crate) fn stop(process: &mut Child) -> bool {
    process.kill().expect("a running process");
    false
}
