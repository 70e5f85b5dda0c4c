//! The daemon on the node that it runs on: serving in the console or as the Windows service, and what
//! `doctor` examines.
//!
//! csi-proxy-sim runs on every system. csi-proxy needs Windows: on other systems its commands fail
//! and name csi-proxy-sim.

#[cfg(windows)]
#[path = "daemon/windows/node.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "daemon/unix.rs"]
mod imp;

pub use imp::*;
