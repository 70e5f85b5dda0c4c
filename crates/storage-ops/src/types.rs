//! Domain types. Parsing a request into them validates it.

mod allowed_portal;
mod disk_location;
mod disk_number;
mod host_path;
mod iqn;
mod service;
mod smb_server;
mod target_portal;
mod unc_path;
mod volume_id;

pub use allowed_portal::AllowedPortal;
pub use disk_location::DiskLocation;
pub use disk_number::DiskNumber;
pub use host_path::HostPath;
pub(crate) use host_path::{components, split_last, upper_case};
pub use iqn::Iqn;
pub use service::{ServiceInfo, ServiceName};
pub use smb_server::SmbServer;
pub use target_portal::TargetPortal;
pub use unc_path::UncPath;
pub(crate) use unc_path::lower_case;
pub use volume_id::VolumeId;

use std::net::Ipv4Addr;

/// Returns whether a text that an administrator lists has only digits and dots but is not an IPv4 address. Taken as a name,
/// it would never match.
fn is_mistyped_address(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<Ipv4Addr>().is_err()
}

/// The authentication method of an iSCSI session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// No authentication.
    None,
    /// The initiator authenticates with CHAP.
    OneWayChap,
    /// Initiator and target authenticate with CHAP.
    MutualChap,
}

impl Authentication {
    /// Returns the name that `MSFT_iSCSITarget.Connect` expects.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::OneWayChap => "ONEWAYCHAP",
            Self::MutualChap => "MUTUALCHAP",
        }
    }
}

/// The identifiers of a disk that do not depend on where it is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DiskIds {
    /// The SCSI page 83 identifier; empty if the disk has none.
    pub page83: String,
    /// The serial number, untrimmed; empty if the disk has none.
    pub serial: String,
}

/// The purpose that a request of an old API version states for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathContext {
    /// The path is in the directory of a plugin.
    Plugin,
    /// The path is in the directory of a pod.
    Pod,
}

/// The size of a file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VolumeStats {
    /// The size.
    pub total: u64,
    /// The size minus the free space.
    pub used: u64,
}
