//! The transport of csi-proxy: named pipes on Windows, Unix sockets elsewhere. These are the
//! modules, from the lowest to the highest:
//!
//! - [`address`]: the address of an endpoint;
//! - [`listener`]: the listener of an endpoint, and client connections to it;
//! - [`memory`]: an endpoint inside the process, for tests.
//!
//! This crate transports bytes and does not depend on the protocol above it.

pub mod address;
pub mod listener;
pub mod memory;
