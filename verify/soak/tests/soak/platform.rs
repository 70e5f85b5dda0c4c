//! What differs by system: where the daemon listens, how large it is, and how it is stopped.

#[cfg(windows)]
#[path = "platform/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "platform/linux.rs"]
mod imp;

pub(crate) use imp::{place, size, stop};
