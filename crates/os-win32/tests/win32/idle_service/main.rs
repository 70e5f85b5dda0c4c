//! A Windows service that only runs until it is stopped, for the tests of services. As wrappers such
//! as nssm do, it runs the program `Parameters\Application` of its registry key, if there is one.
//!
//! `idle_service <name> [<milliseconds before it connects to the service control manager>]`

#[cfg(windows)]
#[path = "windows.rs"]
mod imp;

#[cfg(not(windows))]
mod imp {
    /// Does nothing: only Windows has services.
    pub(crate) fn run() {}
}

fn main() {
    imp::run();
}
