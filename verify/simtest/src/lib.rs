//! The proof that csi-proxy's operations can be relied on, by exhaustion and not by example.
//!
//! * [`fault_sweep`]: for each operation, in each state that matters to it, each primitive call is made to fail with
//!   each error Windows has for it, to take too long, to lose its disk, or to be the last of its process. Then the
//!   operation is asked for again, and the node must be what it is after an undisturbed run.
//! * [`race_sweep`]: before each call of an operation on a path, an attacker who may write in kubelet's directory
//!   does each thing it can. Nothing outside may be read, written or deleted.
//! * [`interleaving`]: two operations at once, at each pair of their calls, come to what one after the other comes to.
//! * [`voyage`]: all of it together, from a seed.
//!
//! The program `prove` runs all and prints a table (`cargo xtask prove`); `cargo test` runs a part. What is promised,
//! and what is not covered, is in `docs/reliability.md`.

pub mod attack;
pub mod code;
pub mod fault_sweep;
pub mod interleaving;
pub mod outside_access;
pub mod promise;
pub mod race_sweep;
pub mod random;
pub mod report;
pub mod return_code_fault;
pub mod scenario;
pub mod scenarios;
pub mod stage;
pub mod sweep;
pub mod voyage;
pub mod work;
