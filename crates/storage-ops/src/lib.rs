#![doc = include_str!("../README.md")]
//!
//! # Operations
//!
//! Each operation is a value that holds its arguments; a [`Node`] runs it. Operations on the same
//! object run one after the other. Equal operations that are requested through an [`Executor`] at
//! the same time may share one result. All operations are idempotent: they succeed without a change
//! if the node is already in the requested state. Before a change that could destroy data, the
//! state is read again under the lock. If the state cannot be determined, the operation fails.
//!
//! # Layers
//!
//! A folder is a layer. These are the layers, from the lowest to the highest: a module uses only
//! itself and those before it; `cargo xtask lint` checks this.
//!
//! | module | contents |
//! |---|---|
//! | `error` | errors: their kinds, from which a caller decides what to do |
//! | `error_class` | the meaning of Windows' error codes |
//! | `types` | domain types, into which requests are parsed |
//! | `config` | settings |
//! | `sync` | the locks and limits of the executor, which its model replaces |
//! | `devices` | requests to devices and file systems, and the decoding of their answers; uses no provider, thread or lock |
//! | `scheduling` | locks, worker threads and their quotas, the context of a running operation |
//! | `windows` | Windows as the crate uses it: primitives, timeouts, queries of devices that may hang, counters |
//! | `paths` | paths below a working directory, opened handle by handle; links; removal of trees |
//! | `node` | the state of a node, and one run of an operation on it |
//! | `provider` | WMI, and the storage provider behind it |
//! | `readings` | the state of disks and volumes, from a device or, if the device gives no usable answer, from the storage provider |
//! | `executor` | the execution of operations: [`Node`] on the caller's thread, [`Executor`] for many callers |
//! | `ops` | the operations, one file for each API group |
//! | [`inspect`] | single native readings, for diagnosing a node |
//!
//! Five modules ask Windows for the state of a disk or volume. They differ in whom they ask:
//!
//! - `devices` sends one request to one open device, and decodes the answer.
//! - `windows::device_queries` asks many devices, one after the other, and leaves out those that do
//!   not answer in time: another thread then asks the next device.
//! - `provider::report` asks the storage provider, through WMI.
//! - `readings` combines devices and provider: the device decides, and the provider is asked only if
//!   the device gives no usable answer. Operations use `readings`.
//! - [`inspect`] makes one native attempt for each reading and never asks the provider; each reading
//!   fails by itself. `doctor` uses it.

mod config;
mod devices;
mod error;
mod error_class;
mod executor;
pub mod inspect;
mod node;
mod ops;
mod paths;
mod provider;
mod readings;
mod scheduling;
mod sync;
mod types;
mod windows;

pub use config::{Config, NewFileSystem, Timeouts};
pub use error::{Error, ErrorKind, OperationError, OperationResult};
pub use executor::Executor;
pub use executor::activity::{ActiveRequest, Activity, LockUse, RequestState};
pub use executor::operation::{Coalesce, Operation};
pub use executor::progress::LockWaitCount;
pub use node::Node;
pub use ops::volume::{format::*, mount::*, resize::*, target_path::*};
pub use ops::{disk::*, filesystem::*, iscsi::*, smb::*, system::*, volume::*};
pub use os::abi::Sid;
pub use scheduling::locks::LockKey;
pub use scheduling::pool_kind::PoolKind;
pub use scheduling::quotas::ConnectionId;
pub use scheduling::requester::{Call, Requester};
pub use scheduling::worker_pools::{BLOCKING_THREADS, OPERATIONS_MEMORY, PoolUse};
pub use types::{
    AllowedPortal, Authentication, DiskIds, DiskLocation, DiskNumber, HostPath, Iqn, PathContext,
    SecretText, ServiceInfo, ServiceName, SmbServer, SmbUser, TargetPortal, UncPath, VolumeId,
    VolumeStats,
};
pub use windows::fallback::FallbackCount;
pub use windows::wmi_calls::WmiCallCount;
