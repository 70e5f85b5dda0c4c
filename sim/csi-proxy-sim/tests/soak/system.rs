//! What differs by system: where the daemon listens, how large it is, and how it is stopped.

#[cfg(windows)]
#[path = "system/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "system/linux.rs"]
mod imp;

pub(crate) use imp::{place, size, stop};
