//! Domain types. Each is validated when it is parsed.

mod disk_number;
mod host_path;
mod unc_path;
mod volume_id;

pub use disk_number::DiskNumber;
pub use host_path::HostPath;
pub use unc_path::UncPath;
pub use volume_id::VolumeId;
