#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod client;
mod connection;
mod credentials;
mod disk;
mod error;
mod filesystem;
mod iscsi;
mod rpc;
mod smb;
mod system;
mod volume;

pub use client::{Builder, Client, DEFAULT_DEADLINE, EncodedRpc, ServedVersion};
pub use credentials::Credentials;
pub use disk::{Disk, DiskIds, DiskLocation, DiskNumber, DiskState};
pub use error::{Error, ErrorKind};
pub use filesystem::{Filesystem, Symlink};
pub use iscsi::{Authentication, Iscsi, TargetPortal};
pub use smb::Smb;
pub use system::{Service, ServiceStatus, StartType, System};
pub use volume::{Volume, VolumeId, VolumeStats};
