//! The locks of shuttle, and limits that a few callers reach, in place of `sync.rs` of storage-ops.

use std::sync::PoisonError;

pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};

pub(crate) const THREADS_PER_POOL: usize = 2;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    shuttle::future::spawn(task);
}
