//! Deterministic simulation tests of csi-proxy's storage operations: exhaustive where possible,
//! random otherwise.
//!
//! * [`fault_sweep`] injects faults. For each operation, in each state that matters to it, each
//!   primitive call fails with each error that Windows is known to return, takes too long, loses
//!   its disk, or is the last call of its process. Then the operation is retried, and the node must
//!   end up as after a run without faults.
//! * [`race_sweep`] runs an attacker who can write to kubelet's directory. Before each call of an
//!   operation on a path, it makes each change that it can make. No file outside may be read,
//!   written or deleted.
//! * [`pair_sweep`] runs two operations concurrently. For every interleaving of their calls, the
//!   node must end up as after one of the two serial orders.
//! * [`random_run`] combines all of these, driven by a seed.
//!
//! Every operation runs on the thread of its caller, by [`storage_ops::Node::run`]; one case in
//! fifty also runs in [`storage_ops::Executor`]. Both run the same course of an operation.
//!
//! The program `fault-injection` runs every case and prints a table
//! (`cargo xtask fault-injection`); `cargo test` runs a sample. `docs/reliability.md` lists the
//! promises, and the cases that are not covered.

pub mod attack;
pub mod error_codes;
pub mod fault_sweep;
pub mod identity;
mod in_executor;
pub mod interleaver;
pub mod invariants;
pub mod job_conflicts;
pub mod outside_access;
pub mod pair_sweep;
pub mod race_sweep;
pub mod random_run;
pub mod report;
pub mod request;
pub mod rng;
pub mod runner;
pub mod scenarios;
pub mod started_node;

/// Longer than any job can take.
const SETTLE_TIME: std::time::Duration = std::time::Duration::from_hours(4);
