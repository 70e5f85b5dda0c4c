//! The proof that csi-proxy's operations can be relied on, by exhaustion and not by example.
//!
//! * [`fault_sweep`]: for each operation, in each state that matters to it, each primitive call is made to fail with
//!   each error Windows has for it, to take too long, to lose its disk, or to be the last of its process. Then the
//!   operation is asked for again, and the node must be what it is after an undisturbed run.
//! * [`race_sweep`]: before each call of an operation on a path, an attacker who may write in kubelet's directory
//!   does each thing it can. Nothing outside may be read, written or deleted.
//! * [`pair_sweep`]: two operations at once, at each pair of their calls, come to what one after the other comes to.
//! * [`random_run`]: all of it together, from a seed.
//!
//! The program `prove` runs all and prints a table (`cargo xtask prove`); `cargo test` runs a part. What is promised,
//! and what is not covered, is in `docs/reliability.md`.

pub mod answering;
pub mod attack;
pub mod error_codes;
pub mod fault_sweep;
mod forward;
pub mod interleaver;
pub mod invariants;
pub mod job_conflicts;
pub mod pair_sweep;
pub mod race_sweep;
pub mod random_run;
pub mod report;
pub mod request;
pub mod rng;
pub mod runner;
pub mod scenarios;
pub mod watch;
