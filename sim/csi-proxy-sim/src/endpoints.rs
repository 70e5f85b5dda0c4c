//! Where the simulated node is served: on named pipes on Windows, on Unix sockets elsewhere.

#[cfg(windows)]
#[path = "endpoints/pipes.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "endpoints/sockets.rs"]
mod imp;

pub use imp::serve;
