//! What decides when an operation runs: its locks, and the worker threads and their quotas.

pub(crate) mod context;
pub(crate) mod locks;
pub(crate) mod pool_kind;
pub(crate) mod quotas;
pub(crate) mod requester;
pub(crate) mod worker_pools;

pub(crate) use context::OperationContext;
pub(crate) use locks::LockKey;
pub(crate) use pool_kind::{PoolKind, Resource};
