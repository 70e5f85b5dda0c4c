//! The storage operations, one module for each API group.

pub(crate) mod disk;
pub(crate) mod filesystem;
pub(crate) mod iscsi;
pub(crate) mod smb;
pub(crate) mod system;
pub(crate) mod volume;

pub use disk::{
    GetDiskNumberByName, GetDiskState, GetDiskStats, ListDiskIds, ListDiskLocations, PartitionDisk, Rescan,
    SetDiskState,
};
pub use filesystem::{CreateSymlink, IsSymlink, Mkdir, PathExists, Rmdir, RmdirContents};
pub use iscsi::{
    AddTargetPortal, ConnectTarget, DisconnectTarget, DiscoverTargetPortal, GetTargetDisks, ListTargetPortals,
    RemoveTargetPortal, SetMutualChapSecret,
};
pub use smb::{NewSmbGlobalMapping, RemoveSmbGlobalMapping};
pub use system::{GetBiosSerialNumber, GetService, StartService, StopService};
pub use volume::format::FormatVolume;
pub use volume::mount::{MountVolume, UnmountVolume};
pub use volume::resize::{ResizeTarget, ResizeVolume};
pub use volume::target_path::{GetClosestVolumeIdFromTargetPath, GetVolumeIdFromTargetPath};
pub use volume::{GetDiskNumberFromVolumeId, GetVolumeStats, IsVolumeFormatted, ListVolumesOnDisk, WriteVolumeCache};
