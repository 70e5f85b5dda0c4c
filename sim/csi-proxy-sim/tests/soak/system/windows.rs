//! Named pipes, and what Windows tells of a process.
//!
//! Wine, too, knows all three numbers. Memory it reads from Linux, of the Linux process that the daemon is, with Wine's
//! own code in it; handles and threads its server keeps, as Windows' kernel does. The handle count of a process that
//! Wine answers is not to be trusted, so they are counted in the list of all. Tests of `os_win32::process` see each
//! number grow and shrink.

use std::path::Path;
use std::process::Child;

use os_win32::process::usage;
use transport::address::Location;

use crate::size::Size;

/// Where every daemon listens; a folder is for sockets.
pub(crate) fn place(_folder: &Path) -> Location {
    Location::NamedPipes
}

/// What the process `id` has.
pub(crate) fn size(id: u32) -> Size {
    let usage = usage(id).expect("the daemon runs");
    let memory = u64::try_from(usage.memory / 1024).expect("64 bits");
    let handles = u64::try_from(usage.handles).expect("64 bits");
    Size { memory, handles, threads: usage.threads.into() }
}

/// Stops it, and says whether it was given the time to end in order. It is not: a console's events reach all of its
/// programs, this test among them. How the daemon drains is tested with it as a service.
pub(crate) fn stop(process: &mut Child) -> bool {
    process.kill().expect("a process");
    false
}
