//! A Windows service that does nothing but run: what the tests start and stop.
//!
//! `idle_service <name> [<milliseconds before it answers the service control manager>]`

#[cfg(windows)]
#[path = "windows.rs"]
mod imp;

#[cfg(not(windows))]
mod imp {
    /// There are no services here.
    pub(crate) fn run() {}
}

fn main() {
    imp::run();
}
