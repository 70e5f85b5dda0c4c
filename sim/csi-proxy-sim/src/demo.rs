//! The demonstration: CSI drivers at work on a simulated node. It is played over Unix sockets, so not on Windows.

#[cfg(windows)]
#[path = "demo/elsewhere.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "demo/played.rs"]
mod imp;

pub use imp::*;
