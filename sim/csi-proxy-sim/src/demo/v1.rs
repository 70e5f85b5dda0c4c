//! The calls that today's drivers make: version v1, and the newest of the groups that never had one.

use std::collections::BTreeMap;

use api::Group;
use api::disk::v1 as disk;
use api::filesystem::v1 as filesystem;
use api::iscsi::v1alpha2 as iscsi;
use api::smb::v1 as smb;
use api::system::v1alpha1 as system;
use api::volume::v1 as volume;

use super::call::{Bytes, Call, Tell, VolumeSize, unsigned};
use super::driver::Driver;
use super::screen::short;

const DISK: (Group, &str) = (Group::Disk, "v1");
const VOLUME: (Group, &str) = (Group::Volume, "v1");
const FILESYSTEM: (Group, &str) = (Group::Filesystem, "v1");
const SMB: (Group, &str) = (Group::Smb, "v1");
const SYSTEM: (Group, &str) = (Group::System, "v1alpha1");
const ISCSI: (Group, &str) = (Group::Iscsi, "v1alpha2");

/// The RPCs of disk/v1.
#[derive(Clone, Copy)]
pub(super) struct Disk<'a>(pub(super) &'a Driver<'a>);

impl<'a> Disk<'a> {
    pub(super) fn rescan(self) -> Call<'a, ()> {
        self.0.call(DISK, "Rescan", &"", disk::RescanRequest {}, |_: disk::RescanResponse| ())
    }

    pub(super) fn list_disk_locations(self) -> Call<'a, BTreeMap<u32, disk::DiskLocation>> {
        let read = |answer: disk::ListDiskLocationsResponse| answer.disk_locations;
        self.0.call(DISK, "ListDiskLocations", &"", disk::ListDiskLocationsRequest {}, read)
    }

    pub(super) fn list_disk_ids(self) -> Call<'a, BTreeMap<u32, disk::DiskIDs>> {
        let read = |answer: disk::ListDiskIDsResponse| answer.disk_ids;
        self.0.call(DISK, "ListDiskIDs", &"", disk::ListDiskIDsRequest {}, read)
    }

    pub(super) fn partition_disk(self, number: u32) -> Call<'a, ()> {
        let request = disk::PartitionDiskRequest { disk_number: number };
        self.0.call(DISK, "PartitionDisk", &number.tell(), request, |_: disk::PartitionDiskResponse| ())
    }

    pub(super) fn get_disk_stats(self, number: u32) -> Call<'a, Bytes> {
        let request = disk::GetDiskStatsRequest { disk_number: number };
        let read = |answer: disk::GetDiskStatsResponse| Bytes(unsigned(answer.total_bytes));
        self.0.call(DISK, "GetDiskStats", &number.tell(), request, read)
    }

    pub(super) fn set_disk_state(self, number: u32, online: bool) -> Call<'a, ()> {
        let request = disk::SetDiskStateRequest { disk_number: number, is_online: online };
        let about = format!("{}, {}", number.tell(), if online { "online" } else { "offline" });
        self.0.call(DISK, "SetDiskState", &about, request, |_: disk::SetDiskStateResponse| ())
    }
}

/// The RPCs of volume/v1.
#[derive(Clone, Copy)]
pub(super) struct Volume<'a>(pub(super) &'a Driver<'a>);

impl<'a> Volume<'a> {
    pub(super) fn list_volumes_on_disk(self, disk_number: u32) -> Call<'a, Vec<String>> {
        let request = volume::ListVolumesOnDiskRequest { disk_number, partition_number: 0 };
        let read = |answer: volume::ListVolumesOnDiskResponse| answer.volume_ids;
        self.0.call(VOLUME, "ListVolumesOnDisk", &disk_number.tell(), request, read)
    }

    pub(super) fn is_volume_formatted(self, id: &str) -> Call<'a, bool> {
        let request = volume::IsVolumeFormattedRequest { volume_id: id.to_owned() };
        let read = |answer: volume::IsVolumeFormattedResponse| answer.formatted;
        self.0.call(VOLUME, "IsVolumeFormatted", &short(id), request, read)
    }

    pub(super) fn format_volume(self, id: &str) -> Call<'a, ()> {
        let request = volume::FormatVolumeRequest { volume_id: id.to_owned() };
        self.0.call(VOLUME, "FormatVolume", &short(id), request, |_: volume::FormatVolumeResponse| ())
    }

    pub(super) fn mount_volume(self, id: &str, target: &str) -> Call<'a, ()> {
        let request = volume::MountVolumeRequest { volume_id: id.to_owned(), target_path: target.to_owned() };
        self.0.call(VOLUME, "MountVolume", &short(target), request, |_: volume::MountVolumeResponse| ())
    }

    pub(super) fn unmount_volume(self, id: &str, target: &str) -> Call<'a, ()> {
        let request = volume::UnmountVolumeRequest { volume_id: id.to_owned(), target_path: target.to_owned() };
        self.0.call(VOLUME, "UnmountVolume", &short(target), request, |_: volume::UnmountVolumeResponse| ())
    }

    /// Grows the volume as far as its disk allows.
    pub(super) fn resize_volume(self, id: &str) -> Call<'a, ()> {
        let request = volume::ResizeVolumeRequest { volume_id: id.to_owned(), size_bytes: 0 };
        self.0.call(VOLUME, "ResizeVolume", &short(id), request, |_: volume::ResizeVolumeResponse| ())
    }

    pub(super) fn get_volume_stats(self, id: &str) -> Call<'a, VolumeSize> {
        let request = volume::GetVolumeStatsRequest { volume_id: id.to_owned() };
        let read = |answer: volume::GetVolumeStatsResponse| VolumeSize {
            total: unsigned(answer.total_bytes),
            used: unsigned(answer.used_bytes),
        };
        self.0.call(VOLUME, "GetVolumeStats", &short(id), request, read)
    }

    pub(super) fn get_disk_number_from_volume_id(self, id: &str) -> Call<'a, u32> {
        let request = volume::GetDiskNumberFromVolumeIdRequest { volume_id: id.to_owned() };
        let read = |answer: volume::GetDiskNumberFromVolumeIdResponse| answer.disk_number;
        self.0.call(VOLUME, "GetDiskNumberFromVolumeID", &short(id), request, read)
    }

    pub(super) fn get_volume_id_from_target_path(self, path: &str) -> Call<'a, String> {
        let request = volume::GetVolumeIdFromTargetPathRequest { target_path: path.to_owned() };
        let read = |answer: volume::GetVolumeIdFromTargetPathResponse| answer.volume_id;
        self.0.call(VOLUME, "GetVolumeIDFromTargetPath", &short(path), request, read)
    }

    pub(super) fn write_volume_cache(self, id: &str) -> Call<'a, ()> {
        let request = volume::WriteVolumeCacheRequest { volume_id: id.to_owned() };
        self.0.call(VOLUME, "WriteVolumeCache", &short(id), request, |_: volume::WriteVolumeCacheResponse| ())
    }
}

/// The RPCs of filesystem/v1.
#[derive(Clone, Copy)]
pub(super) struct Filesystem<'a>(pub(super) &'a Driver<'a>);

impl<'a> Filesystem<'a> {
    pub(super) fn path_exists(self, path: &str) -> Call<'a, bool> {
        let request = filesystem::PathExistsRequest { path: path.to_owned() };
        self.0.call(FILESYSTEM, "PathExists", &short(path), request, |answer: filesystem::PathExistsResponse| {
            answer.exists
        })
    }

    pub(super) fn mkdir(self, path: &str) -> Call<'a, ()> {
        let request = filesystem::MkdirRequest { path: path.to_owned() };
        self.0.call(FILESYSTEM, "Mkdir", &short(path), request, |_: filesystem::MkdirResponse| ())
    }

    pub(super) fn rmdir(self, path: &str, force: bool) -> Call<'a, ()> {
        let request = filesystem::RmdirRequest { path: path.to_owned(), force };
        let about = format!("{}{}", short(path), if force { ", force" } else { "" });
        self.0.call(FILESYSTEM, "Rmdir", &about, request, |_: filesystem::RmdirResponse| ())
    }

    /// A link at `target` that leads to `source`: the names are those of the RPC.
    pub(super) fn create_symlink(self, source: &str, target: &str) -> Call<'a, ()> {
        let request =
            filesystem::CreateSymlinkRequest { source_path: source.to_owned(), target_path: target.to_owned() };
        self.0.call(FILESYSTEM, "CreateSymlink", &short(target), request, |_: filesystem::CreateSymlinkResponse| ())
    }

    pub(super) fn is_symlink(self, path: &str) -> Call<'a, bool> {
        let request = filesystem::IsSymlinkRequest { path: path.to_owned() };
        self.0.call(FILESYSTEM, "IsSymlink", &short(path), request, |answer: filesystem::IsSymlinkResponse| {
            answer.is_symlink
        })
    }
}

/// The RPCs of smb/v1.
#[derive(Clone, Copy)]
pub(super) struct Smb<'a>(pub(super) &'a Driver<'a>);

impl<'a> Smb<'a> {
    pub(super) fn new_smb_global_mapping(self, remote: &str, local: &str, user: &str, password: &str) -> Call<'a, ()> {
        let request = smb::NewSmbGlobalMappingRequest {
            remote_path: remote.to_owned(),
            local_path: local.to_owned(),
            username: user.to_owned(),
            password: password.to_owned(),
        };
        let about = format!("{remote} at {}", short(local));
        let read = |_: smb::NewSmbGlobalMappingResponse| ();
        self.0.call(SMB, "NewSmbGlobalMapping", &about, request, read)
    }

    pub(super) fn remove_smb_global_mapping(self, remote: &str) -> Call<'a, ()> {
        let request = smb::RemoveSmbGlobalMappingRequest { remote_path: remote.to_owned() };
        let read = |_: smb::RemoveSmbGlobalMappingResponse| ();
        self.0.call(SMB, "RemoveSmbGlobalMapping", &remote, request, read)
    }
}

/// The RPCs of system/v1alpha1.
#[derive(Clone, Copy)]
pub(super) struct System<'a>(pub(super) &'a Driver<'a>);

impl<'a> System<'a> {
    pub(super) fn get_bios_serial_number(self) -> Call<'a, String> {
        let read = |answer: system::GetBiosSerialNumberResponse| answer.serial_number;
        let request = system::GetBiosSerialNumberRequest {};
        self.0.call(SYSTEM, "GetBIOSSerialNumber", &"", request, read)
    }
}

/// The RPCs of iscsi/v1alpha2, for one portal.
#[derive(Clone, Copy)]
pub(super) struct Iscsi<'a> {
    /// Who calls.
    pub(super) driver: &'a Driver<'a>,
    /// The address of the portal.
    pub(super) portal: &'a str,
}

impl<'a> Iscsi<'a> {
    #[expect(clippy::unnecessary_wraps, reason = "a message's field that is a message is an Option")]
    fn portal(self) -> Option<iscsi::TargetPortal> {
        Some(iscsi::TargetPortal { target_address: self.portal.to_owned(), target_port: 0 })
    }

    pub(super) fn discover_target_portal(self) -> Call<'a, Vec<String>> {
        let request = iscsi::DiscoverTargetPortalRequest { target_portal: self.portal() };
        let read = |answer: iscsi::DiscoverTargetPortalResponse| answer.iqns;
        self.driver.call(ISCSI, "DiscoverTargetPortal", &self.portal, request, read)
    }

    pub(super) fn add_target_portal(self) -> Call<'a, ()> {
        let request = iscsi::AddTargetPortalRequest { target_portal: self.portal() };
        self.driver.call(ISCSI, "AddTargetPortal", &self.portal, request, |_: iscsi::AddTargetPortalResponse| ())
    }

    pub(super) fn connect_target(self, iqn: &str) -> Call<'a, ()> {
        let request = iscsi::ConnectTargetRequest {
            target_portal: self.portal(),
            iqn: iqn.to_owned(),
            ..iscsi::ConnectTargetRequest::default()
        };
        self.driver.call(ISCSI, "ConnectTarget", &short(iqn), request, |_: iscsi::ConnectTargetResponse| ())
    }

    pub(super) fn get_target_disks(self, iqn: &str) -> Call<'a, Vec<String>> {
        let request = iscsi::GetTargetDisksRequest { target_portal: self.portal(), iqn: iqn.to_owned() };
        let read = |answer: iscsi::GetTargetDisksResponse| answer.disk_ids;
        self.driver.call(ISCSI, "GetTargetDisks", &short(iqn), request, read)
    }

    pub(super) fn disconnect_target(self, iqn: &str) -> Call<'a, ()> {
        let request = iscsi::DisconnectTargetRequest { target_portal: self.portal(), iqn: iqn.to_owned() };
        self.driver.call(ISCSI, "DisconnectTarget", &short(iqn), request, |_: iscsi::DisconnectTargetResponse| ())
    }
}
