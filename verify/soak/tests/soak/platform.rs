//! What differs by operating system: where the daemon listens, what resources it uses, and how it
//! is stopped.

#[cfg(windows)]
#[path = "platform/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "platform/linux.rs"]
mod imp;

pub(crate) use imp::{location, resource_usage, stop};
