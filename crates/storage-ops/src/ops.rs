//! The storage operations, one module for each API group.

use crate::executor::operation::sealed::Sealed;

pub(crate) mod disk;
pub(crate) mod filesystem;
pub(crate) mod iscsi;
pub(crate) mod node_volumes;
pub(crate) mod smb;
pub(crate) mod system;
pub(crate) mod volume;

macro_rules! seal {
    ($($operation:ty,)*) => {
        $(impl Sealed for $operation {})*
    };
}

seal! {
    disk::GetDiskNumberByName,
    disk::GetDiskState,
    disk::GetDiskStats,
    disk::ListDiskIds,
    disk::ListDiskLocations,
    disk::PartitionDisk,
    disk::Rescan,
    disk::SetDiskState,
    filesystem::CreateSymlink,
    filesystem::IsSymlink,
    filesystem::Mkdir,
    filesystem::PathExists,
    filesystem::Rmdir,
    filesystem::RmdirContents,
    iscsi::AddTargetPortal,
    iscsi::ConnectTarget,
    iscsi::DisconnectTarget,
    iscsi::DiscoverTargetPortal,
    iscsi::GetTargetDisks,
    iscsi::ListTargetPortals,
    iscsi::RemoveTargetPortal,
    iscsi::SetMutualChapSecret,
    smb::NewSmbGlobalMapping,
    smb::RemoveSmbGlobalMapping,
    system::GetBiosSerialNumber,
    system::GetService,
    system::StartService,
    system::StopService,
    volume::GetDiskNumberFromVolumeId,
    volume::GetVolumeStats,
    volume::IsVolumeFormatted,
    volume::ListVolumesOnDisk,
    volume::WriteVolumeCache,
    volume::format::FormatVolume,
    volume::mount::MountVolume,
    volume::mount::UnmountVolume,
    volume::resize::ResizeVolume,
    volume::target_path::GetClosestVolumeIdFromTargetPath,
    volume::target_path::GetVolumeIdFromTargetPath,
}
