//! The demonstration: the calls of CSI drivers against a simulated node. It needs Unix sockets, so
//! not on Windows.

#[cfg(windows)]
#[path = "demo/unsupported.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "demo/runner.rs"]
mod imp;

pub use imp::*;
