//! What the executor uses of `std::sync`, with shuttle's locks and atomics.

pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, atomic};
pub(crate) use std::sync::{OnceLock, PoisonError};
