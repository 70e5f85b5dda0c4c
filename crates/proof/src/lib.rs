//! The proof that csi-proxy's operations can be relied on, by exhaustion and not by example.
//!
//! * [`fault_sweep`]: for each operation, in each state that matters to it, each primitive call is made to fail with
//!   each error Windows has for it, to take too long, to lose its disk, or to be the last of its process. Then the
//!   operation is asked for again, and the node must be what it is after an undisturbed run.
//!
//! The program `prove` runs all of it and prints a table; `cargo test` runs a part.

pub mod answering;
pub mod attack;
pub mod code;
pub mod fault_sweep;
mod forward;
pub mod interleaving;
pub mod promise;
pub mod race_sweep;
pub mod report;
pub mod scenario;
pub mod scenarios;
pub mod stage;
pub mod sweep;
pub mod watch;
