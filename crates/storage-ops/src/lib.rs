//! The storage operations of a Windows node.
//!
//! Each operation is a value that holds its arguments; a [`Node`] runs it. The crate does not depend on gRPC: a driver
//! in a HostProcess container, which has the required privileges, can link it and call it directly.
//!
//! ```
//! use storage_ops::{Config, HostPath, ListVolumesOnDisk, MountVolume, Node, PartitionDisk};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sim = os_sim::node().disk(1 << 30).dir(r"C:\var\lib\kubelet\plugins\mine").build();
//! // On Windows: `let os = Arc::new(os_win32::Windows::new());`
//! let os = sim.process();
//! let node = Node::new(os, Config::default());
//!
//! let disk = storage_ops::DiskNumber(1);
//! node.run(&PartitionDisk { disk })?;
//! let volume = node.run(&ListVolumesOnDisk { disk, partition: 0 })?[0];
//! if !node.run(&storage_ops::IsVolumeFormatted { volume })? {
//!     node.run(&storage_ops::FormatVolume { volume })?;
//! }
//! let target = HostPath::parse(r"C:\var\lib\kubelet\plugins\mine")?;
//! node.run(&MountVolume { volume, target })?;
//! # Ok(())
//! # }
//! ```
//!
//! Operations on the same object run one after the other. Equal operations that are requested through an [`Executor`]
//! at the same time may share one result. All operations are idempotent: they succeed without a change if the node is
//! already in the requested state. Before a change that could destroy data, the state is read again under the lock; a
//! state that cannot be determined is an error.
//!
//! # Layers
//!
//! A folder is a layer. A module uses only modules in its own row and in the rows above it.
//!
//! | module | contents |
//! |---|---|
//! | `executor::pool_kind`, `error` | the kinds of work; errors |
//! | `types`, `config` | domain types, into which requests are parsed; settings |
//! | `executor::{locks, context, shares, progress, worker_pools}` | locks, the context of a running operation, threads |
//! | `windows` | the data formats and requests of Windows: device buffers, reparse points, WMI, error codes |
//! | `paths` | paths below a working directory, opened handle by handle; links; removal of trees |
//! | `node`, `executor` (with `executor::activity`) | the execution of operations: [`Node`] on the caller's thread, [`Executor`] for many callers |
//! | `ops` | the operations, one file for each API group |
//! | [`inspect`] | single native readings, for diagnosing a node |

mod config;
mod error;
mod executor;
pub mod inspect;
mod node;
mod ops;
mod paths;
mod types;
mod windows;

pub use config::{Config, Timeouts};
pub use error::{Error, Kind, OperationError, OperationResult};
pub use executor::Executor;
pub use executor::activity::{ActiveRequest, Activity, LockUse, LockWaitCount, PoolUse, RequestState};
pub use executor::locks::LockKey;
pub use executor::operation::{Coalesce, Operation};
pub use executor::pool_kind::PoolKind;
pub use executor::progress::{Call, Requester};
pub use executor::shares::ClientId;
pub use executor::worker_pools::BLOCKING_THREADS;
pub use node::Node;
pub use ops::volume::{format::*, mount::*, resize::*, target_path::*};
pub use ops::{disk::*, filesystem::*, iscsi::*, smb::*, system::*, volume::*};
pub use os::Secret;
pub use types::{
    AllowedPortal, Authentication, DiskIds, DiskLocation, DiskNumber, HostPath, Iqn, PathContext, ServiceInfo,
    ServiceName, SmbServer, TargetPortal, UncPath, VolumeId, VolumeStats,
};
pub use windows::fallback::{FallbackCount, fallback_table};
pub use windows::provider_calls::ProviderCallCount;
