//! The locks of shuttle, and limits that a few callers reach, in place of `sync.rs` of storage-ops.

pub(crate) use std::sync::PoisonError;

pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};

pub(crate) const THREADS_PER_POOL: usize = 2;
