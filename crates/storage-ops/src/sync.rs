//! The locks and limits of the executor.
//!
//! `verify/executor-model` compiles the executor with another version of this file, whose locks are
//! those of a scheduler that chooses every interleaving, and whose limits are small.

pub(crate) use std::sync::{Arc, Mutex};

pub(crate) use os::lock;

/// How many threads a worker pool has.
pub(crate) const THREADS_PER_POOL: usize = 16;
