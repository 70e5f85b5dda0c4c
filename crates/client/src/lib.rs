#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

// The modules, from the lowest: `error`, `connection`, `credentials`, `client`.

mod client;
mod connection;
mod credentials;
mod error;

pub use client::disk::{Disk, DiskIds, DiskLocation, DiskNumber, DiskState};
pub use client::filesystem::{Filesystem, Symlink};
pub use client::iscsi::{Authentication, Iscsi, TargetPortal};
pub use client::smb::Smb;
pub use client::system::{Service, ServiceStatus, StartType, System};
pub use client::volume::{Volume, VolumeId, VolumeStats};
pub use client::{Builder, Client, DEFAULT_DEADLINE, EncodedRpc, ServedVersion};
pub use credentials::Credentials;
pub use error::{Error, ErrorKind};
