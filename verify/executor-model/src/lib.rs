//! The executor of storage-ops under the scheduler of shuttle.
//!
//! shuttle runs all tasks and threads on one thread and chooses which of them continues after each
//! access to a lock, an atomic or a channel. The executor is compiled from its sources. They take
//! their locks and limits from `crate::sync`, which is shuttle's here; `tokio` is shuttle's
//! stand-in for it. The node is the model's own.
//!
//! `tests/model.rs` runs each scenario under many schedules. The patches `model-*.patch` in
//! `verify/sensitivity` break the executor; `cargo xtask sensitivity` checks that the scenarios
//! detect them.

mod node;
pub mod scenarios;
mod sync;
mod types;

#[path = "../../../crates/storage-ops/src"]
#[expect(
    dead_code,
    reason = "storage-ops uses all of its sources, the scenarios a part of them"
)]
mod sources {
    pub(crate) mod error;
    pub(crate) mod error_class;
    pub(crate) mod executor;
    pub(crate) mod scheduling;
}

use sources::{error, executor, scheduling};
