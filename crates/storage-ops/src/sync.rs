//! The locks and limits of the executor.
//!
//! `verify/executor-model` compiles the executor with another version of this file, whose locks are
//! those of a scheduler that chooses every interleaving, and whose limits are small.

use std::pin::Pin;
pub(crate) use std::sync::{Arc, Mutex};

pub(crate) use os::lock;

/// How many threads a worker pool has.
pub(crate) const THREADS_PER_POOL: usize = 16;

/// Runs `task` on the current runtime, unless that is shutting down.
pub(crate) fn spawn(task: Pin<Box<dyn Future<Output = ()> + Send>>) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(task);
    }
}
