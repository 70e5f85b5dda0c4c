//! Domain types. Parsing a request into them validates it.

mod allowed_portal;
mod authentication;
mod disk_ids;
mod disk_location;
mod disk_number;
mod host_path;
mod iqn;
mod path_context;
mod service;
mod smb_server;
mod target_portal;
mod unc_path;
mod volume_id;
mod volume_stats;

pub use allowed_portal::AllowedPortal;
pub use authentication::Authentication;
pub use disk_ids::DiskIds;
pub use disk_location::DiskLocation;
pub use disk_number::DiskNumber;
pub use host_path::HostPath;
pub(crate) use host_path::{components, split_last, upper_case};
pub use iqn::Iqn;
pub use path_context::PathContext;
pub use service::{ServiceInfo, ServiceName};
pub use smb_server::SmbServer;
pub use target_portal::TargetPortal;
pub use unc_path::UncPath;
pub(crate) use unc_path::lower_case;
pub use volume_id::VolumeId;
pub use volume_stats::VolumeStats;

use std::net::Ipv4Addr;

/// Returns whether a text that an administrator lists has only digits and dots but is not an IPv4 address. Taken as a name,
/// it would never match.
fn is_mistyped_address(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<Ipv4Addr>().is_err()
}
