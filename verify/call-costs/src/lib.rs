//! What a call costs, in counts that do not depend on the speed of the machine: allocations, writes
//! to the connection, calls of Windows, and instructions.
//!
//! A [`Daemon`](daemon::Daemon) runs in this process on a simulated node, with its log on, and a
//! [`Client`](client::Client) sends it the bytes that a driver written in Go sends. The simulator
//! and the client do not count. `tests/counts.rs` compares the counts with `docs/call-costs.md`.
//! The program of this package counts the instructions with callgrind.

pub mod call;
pub mod client;
pub mod counts;
pub mod daemon;
mod excluded;
pub mod instructions;
pub mod table;
