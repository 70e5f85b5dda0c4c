//! The locks and limits of the executor.
//!
//! `verify/executor-model` compiles the executor with another version of this file, whose locks are
//! those of a scheduler that chooses every interleaving, and whose limits are small.

use std::sync::PoisonError;

pub(crate) use std::sync::{Arc, Mutex, MutexGuard};

/// How many threads a worker pool has.
pub(crate) const THREADS_PER_POOL: usize = 16;

/// Locks `mutex`, also if a thread has panicked while it had the lock: no code panics between two
/// related changes.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
