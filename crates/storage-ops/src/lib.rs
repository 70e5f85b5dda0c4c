//! The storage operations of a Windows node.
//!
//! Each operation is a value with its arguments; a [`Node`] carries it out. There is no gRPC in here: a driver in a
//! HostProcess container, which may do all this itself, links this crate and calls it directly.
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
//! Operations on one object wait for each other; equal ones, asked for through a [`Executor`], share their answer. All
//! are idempotent: what is already so, exactly so, is success. Whatever could destroy data is looked at again under
//! its lock, and what cannot be told is an error.

mod config;
mod error;
mod executor;
mod node;
mod ops;
mod paths;
mod types;
mod windows;

pub use config::{Config, Timeouts};
pub use error::{Error, Kind, OperationError, OperationResult};
pub use executor::Executor;
pub use executor::operation::Operation;
pub use executor::worker_pools::BLOCKING_THREADS;
pub use node::Node;
pub use ops::disk::{
    GetDiskNumberByName, GetDiskState, GetDiskStats, ListDiskIds, ListDiskLocations, PartitionDisk, Rescan,
    SetDiskState,
};
pub use ops::filesystem::{CreateSymlink, IsSymlink, Mkdir, PathExists, Rmdir, RmdirContents};
pub use ops::iscsi::{
    AddTargetPortal, ConnectTarget, DisconnectTarget, DiscoverTargetPortal, GetTargetDisks, ListTargetPortals,
    RemoveTargetPortal, SetMutualChapSecret,
};
pub use ops::smb::{NewSmbGlobalMapping, RemoveSmbGlobalMapping};
pub use ops::system::{GetBiosSerialNumber, GetService, StartService, StopService};
pub use ops::volume::format::FormatVolume;
pub use ops::volume::mount::{MountVolume, UnmountVolume};
pub use ops::volume::resize::{ResizeTarget, ResizeVolume};
pub use ops::volume::target_path::{GetClosestVolumeIdFromTargetPath, GetVolumeIdFromTargetPath};
pub use ops::volume::{
    GetDiskNumberFromVolumeId, GetVolumeStats, IsVolumeFormatted, ListVolumesOnDisk, WriteVolumeCache,
};
pub use os::Secret;
pub use types::{
    Authentication, DiskIds, DiskLocation, DiskNumber, HostPath, Iqn, PathContext, ServiceInfo, ServiceName,
    TargetPortal, UncPath, VolumeId, VolumeStats,
};

/// As much of `text` from a request as belongs into a sentence.
pub(crate) fn excerpt(text: &str) -> &str {
    let mut end = text.len().min(80);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
