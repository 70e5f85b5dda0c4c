//! What a call costs, in counts that do not depend on the speed of the machine: calls of Windows,
//! writes to the connection, allocations, and instructions.
//!
//! A [`Daemon`](daemon::Daemon) runs in this process on a simulated node, with its log on, and a
//! [`Client`](client::Client) sends it the bytes that a driver written in Go sends. The simulator
//! and the client do not count. `tests/counts.rs` compares the calls of Windows with
//! `docs/call-costs.md`, and bounds the allocations. The program of this package bounds the
//! instructions, which callgrind counts.

pub mod call;
pub mod client;
pub mod counts;
pub mod daemon;
mod excluded;
pub mod instructions;
