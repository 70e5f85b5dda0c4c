//! The endpoints of csi-proxy: where they are, accepting connections there, and connecting to them.
//!
//! - [`address`]: the address of an endpoint, a named pipe or a Unix socket;
//! - [`listener`]: accepting connections at an address, and making them;
//! - [`memory`]: an endpoint inside the process, for tests.
//!
//! This crate moves bytes and knows nothing of the protocol that they carry.

pub mod address;
pub mod listener;
pub mod memory;
