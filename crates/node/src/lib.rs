//! The storage operations of a Windows node.
//!
//! Each operation is a value with its arguments; a [`Node`] carries it out. There is no gRPC in here: a driver in a
//! HostProcess container, which may do all this itself, links this crate and calls it directly.
//!
//! ```
//! use node::{Config, HostPath, ListVolumesOnDisk, MountVolume, Node, PartitionDisk};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sim = os_sim::node().disk(1 << 30).dir(r"C:\var\lib\kubelet\plugins\mine").build();
//! // On Windows: `let os = Arc::new(os_win32::Windows::new());`
//! let os = sim.process();
//! let node = Node::new(os, Config::default());
//!
//! let disk = node::DiskNumber(1);
//! node.run(&PartitionDisk { disk })?;
//! let volume = node.run(&ListVolumesOnDisk { disk, partition: 0 })?[0];
//! if !node.run(&node::IsVolumeFormatted { volume })? {
//!     node.run(&node::FormatVolume { volume })?;
//! }
//! let target = HostPath::parse(r"C:\var\lib\kubelet\plugins\mine")?;
//! node.run(&MountVolume { volume, target })?;
//! # Ok(())
//! # }
//! ```
//!
//! Operations on one object wait for each other; equal ones, asked for through a [`Desk`], share their answer. All
//! are idempotent: what is already so, exactly so, is success. Whatever could destroy data is looked at again under
//! its lock, and what cannot be told is an error.

mod buffer;
mod config;
mod desk;
mod disk;
mod disk_number;
mod disks;
mod error;
mod filesystem;
mod host_path;
mod identifiers;
mod iscsi;
mod lanes;
mod locks;
mod node;
mod operation;
mod reparse;
mod services;
mod signature;
mod smb;
mod smbios;
mod storage_provider;
mod tree;
mod unc_path;
mod volume;
mod volume_id;
mod volumes;
mod walk;
mod wmi;

pub use config::{Config, Patience};
pub use desk::Desk;
pub use disk_number::DiskNumber;
pub use disks::{
    DiskIds, GetDiskNumberByName, GetDiskState, GetDiskStats, ListDiskIds, ListDiskLocations, PartitionDisk, Rescan,
    SetDiskState,
};
pub use error::{Error, Fault, Kind, Outcome};
pub use filesystem::{CreateSymlink, IsSymlink, Mkdir, PathExists, Rmdir, RmdirContents};
pub use host_path::HostPath;
pub use identifiers::DiskLocation;
pub use iscsi::{
    AddTargetPortal, Authentication, ConnectTarget, DisconnectTarget, DiscoverTargetPortal, GetTargetDisks, Iqn,
    ListTargetPortals, Portal, RemoveTargetPortal, SetMutualChapSecret,
};
pub use lanes::BLOCKING_THREADS;
pub use locks::Object;
pub use node::Node;
pub use operation::{Joins, Lane, Operation, Run};
pub use os::Secret;
pub use services::{GetBiosSerialNumber, GetService, ServiceInfo, ServiceName, StartService, StopService};
pub use smb::{NewSmbGlobalMapping, RemoveSmbGlobalMapping};
pub use unc_path::UncPath;
pub use volume::VolumeStats;
pub use volume_id::VolumeId;
pub use volumes::{
    FormatVolume, GetClosestVolumeIdFromTargetPath, GetDiskNumberFromVolumeId, GetVolumeIdFromTargetPath,
    GetVolumeStats, IsVolumeFormatted, ListVolumesOnDisk, MountVolume, ResizeFirstVolume, ResizeVolume, UnmountVolume,
    WriteVolumeCache,
};
pub use walk::Context;

/// As much of `text` from a request as belongs into a sentence.
pub(crate) fn excerpt(text: &str) -> &str {
    let mut end = text.len().min(80);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
