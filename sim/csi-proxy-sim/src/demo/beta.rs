//! The calls that drivers made before v1: disk/v1beta2, filesystem/v1beta1, smb/v1beta1, and one of two of volume.
//!
//! Disks are decimal text here, and the answers of the file system carry an `error` beside the status; drivers take
//! a text in it for a failure, so that it must be empty.

use std::collections::BTreeMap;

use api::Group;
use api::disk::v1beta2 as disk;
use api::filesystem::v1beta1 as filesystem;
use api::smb::v1beta1 as smb;
use api::volume::v1beta1 as volume;

use super::call::{Bytes, Call, Tell, VolumeSize, unsigned};
use super::driver::{Difference, Driver, Outcome};
use super::screen::short;

const DISK: (Group, &str) = (Group::Disk, "v1beta2");
const SMB: (Group, &str) = (Group::Smb, "v1beta1");
const FILESYSTEM: (Group, &str) = (Group::Filesystem, "v1beta1");

/// What a response of those days says: an answer, and in words what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WithError<T> {
    /// The answer.
    pub(super) answer: T,
    /// Empty when nothing went wrong.
    pub(super) error: String,
}

impl<T> WithError<T> {
    /// The answer, if no error is named.
    pub(super) fn checked(self) -> Outcome<T> {
        if self.error.is_empty() { Ok(self.answer) } else { Err(Difference(self.error)) }
    }
}

impl<T: Tell> Tell for WithError<T> {
    fn tell(&self) -> String {
        if self.error.is_empty() { self.answer.tell() } else { format!("error: {}", self.error) }
    }
}

/// The RPCs of disk/v1beta2.
#[derive(Clone, Copy)]
pub(super) struct Disk<'a>(pub(super) &'a Driver<'a>);

impl<'a> Disk<'a> {
    pub(super) fn rescan(self) -> Call<'a, ()> {
        self.0.call(DISK, "Rescan", &"", disk::RescanRequest {}, |_: disk::RescanResponse| ())
    }

    pub(super) fn list_disk_locations(self) -> Call<'a, BTreeMap<String, disk::DiskLocation>> {
        let read = |answer: disk::ListDiskLocationsResponse| answer.disk_locations;
        self.0.call(DISK, "ListDiskLocations", &"", disk::ListDiskLocationsRequest {}, read)
    }

    pub(super) fn list_disk_ids(self) -> Call<'a, BTreeMap<String, disk::DiskIDs>> {
        let read = |answer: disk::ListDiskIDsResponse| answer.disk_ids;
        self.0.call(DISK, "ListDiskIDs", &"", disk::ListDiskIDsRequest {}, read)
    }

    pub(super) fn partition_disk(self, id: &str) -> Call<'a, ()> {
        let request = disk::PartitionDiskRequest { disk_id: id.to_owned() };
        self.0.call(DISK, "PartitionDisk", &format!("disk {id}"), request, |_: disk::PartitionDiskResponse| ())
    }

    pub(super) fn disk_stats(self, id: &str) -> Call<'a, Bytes> {
        let request = disk::DiskStatsRequest { disk_id: id.to_owned() };
        let read = |answer: disk::DiskStatsResponse| Bytes(unsigned(answer.disk_size));
        self.0.call(DISK, "DiskStats", &format!("disk {id}"), request, read)
    }

    pub(super) fn set_attach_state(self, id: &str, online: bool) -> Call<'a, ()> {
        let request = disk::SetAttachStateRequest { disk_id: id.to_owned(), is_online: online };
        let about = format!("disk {id}, {}", if online { "online" } else { "offline" });
        self.0.call(DISK, "SetAttachState", &about, request, |_: disk::SetAttachStateResponse| ())
    }
}

/// The RPCs of volume/v1beta1, or of volume/v1beta2, which has the same and one more.
#[derive(Clone, Copy)]
pub(super) struct Volume<'a> {
    driver: &'a Driver<'a>,
    api: (Group, &'static str),
}

impl<'a> Volume<'a> {
    pub(super) fn v1beta1(driver: &'a Driver<'a>) -> Self {
        Self { driver, api: (Group::Volume, "v1beta1") }
    }

    pub(super) fn v1beta2(driver: &'a Driver<'a>) -> Self {
        Self { driver, api: (Group::Volume, "v1beta2") }
    }

    pub(super) fn list_volumes_on_disk(self, disk: &str) -> Call<'a, Vec<String>> {
        let request = volume::ListVolumesOnDiskRequest { disk_id: disk.to_owned() };
        let read = |answer: volume::ListVolumesOnDiskResponse| answer.volume_ids;
        self.driver.call(self.api, "ListVolumesOnDisk", &format!("disk {disk}"), request, read)
    }

    pub(super) fn is_volume_formatted(self, id: &str) -> Call<'a, bool> {
        let request = volume::IsVolumeFormattedRequest { volume_id: id.to_owned() };
        let read = |answer: volume::IsVolumeFormattedResponse| answer.formatted;
        self.driver.call(self.api, "IsVolumeFormatted", &short(id), request, read)
    }

    pub(super) fn format_volume(self, id: &str) -> Call<'a, ()> {
        let request = volume::FormatVolumeRequest { volume_id: id.to_owned() };
        self.driver.call(self.api, "FormatVolume", &short(id), request, |_: volume::FormatVolumeResponse| ())
    }

    pub(super) fn mount_volume(self, id: &str, path: &str) -> Call<'a, ()> {
        let request = volume::MountVolumeRequest { volume_id: id.to_owned(), path: path.to_owned() };
        self.driver.call(self.api, "MountVolume", &short(path), request, |_: volume::MountVolumeResponse| ())
    }

    pub(super) fn dismount_volume(self, id: &str, path: &str) -> Call<'a, ()> {
        let request = volume::DismountVolumeRequest { volume_id: id.to_owned(), path: path.to_owned() };
        self.driver.call(self.api, "DismountVolume", &short(path), request, |_: volume::DismountVolumeResponse| ())
    }

    /// Grows the volume as far as its disk allows.
    pub(super) fn resize_volume(self, id: &str) -> Call<'a, ()> {
        let request = volume::ResizeVolumeRequest { volume_id: id.to_owned(), size: 0 };
        self.driver.call(self.api, "ResizeVolume", &short(id), request, |_: volume::ResizeVolumeResponse| ())
    }

    pub(super) fn volume_stats(self, id: &str) -> Call<'a, VolumeSize> {
        let request = volume::VolumeStatsRequest { volume_id: id.to_owned() };
        let read = |answer: volume::VolumeStatsResponse| VolumeSize {
            total: unsigned(answer.volume_size),
            used: unsigned(answer.volume_used_size),
        };
        self.driver.call(self.api, "VolumeStats", &short(id), request, read)
    }

    pub(super) fn get_volume_disk_number(self, id: &str) -> Call<'a, u32> {
        let request = volume::VolumeDiskNumberRequest { volume_id: id.to_owned() };
        let read = |answer: volume::VolumeDiskNumberResponse| u32::try_from(answer.disk_number).unwrap_or(u32::MAX);
        self.driver.call(self.api, "GetVolumeDiskNumber", &short(id), request, read)
    }

    pub(super) fn get_volume_id_from_mount(self, path: &str) -> Call<'a, String> {
        let request = volume::VolumeIdFromMountRequest { mount: path.to_owned() };
        let read = |answer: volume::VolumeIdFromMountResponse| answer.volume_id;
        self.driver.call(self.api, "GetVolumeIDFromMount", &short(path), request, read)
    }

    /// In v1beta2 alone.
    pub(super) fn write_volume_cache(self, id: &str) -> Call<'a, ()> {
        let request = api::volume::v1beta2::WriteVolumeCacheRequest { volume_id: id.to_owned() };
        let read = |_: api::volume::v1beta2::WriteVolumeCacheResponse| ();
        self.driver.call(self.api, "WriteVolumeCache", &short(id), request, read)
    }
}

/// The RPCs of smb/v1beta1.
#[derive(Clone, Copy)]
pub(super) struct Smb<'a>(pub(super) &'a Driver<'a>);

impl<'a> Smb<'a> {
    pub(super) fn new_smb_global_mapping(
        self,
        remote: &str,
        local: &str,
        user: &str,
        password: &str,
    ) -> Call<'a, WithError<()>> {
        let request = smb::NewSmbGlobalMappingRequest {
            remote_path: remote.to_owned(),
            local_path: local.to_owned(),
            username: user.to_owned(),
            password: password.to_owned(),
        };
        let about = format!("{remote} at {}", short(local));
        let read = |answer: smb::NewSmbGlobalMappingResponse| WithError { answer: (), error: answer.error };
        self.0.call(SMB, "NewSmbGlobalMapping", &about, request, read)
    }
}

/// The RPCs of filesystem/v1beta1.
#[derive(Clone, Copy)]
pub(super) struct Filesystem<'a>(pub(super) &'a Driver<'a>);

impl<'a> Filesystem<'a> {
    pub(super) fn path_exists(self, path: &str, context: filesystem::PathContext) -> Call<'a, WithError<bool>> {
        let request = filesystem::PathExistsRequest { path: path.to_owned(), context: context.into() };
        let read = |answer: filesystem::PathExistsResponse| WithError { answer: answer.exists, error: answer.error };
        self.0.call(FILESYSTEM, "PathExists", &short(path), request, read)
    }

    pub(super) fn rmdir(self, path: &str, context: filesystem::PathContext) -> Call<'a, WithError<()>> {
        let request = filesystem::RmdirRequest { path: path.to_owned(), context: context.into(), force: true };
        let read = |answer: filesystem::RmdirResponse| WithError { answer: (), error: answer.error };
        self.0.call(FILESYSTEM, "Rmdir", &format!("{}, force", short(path)), request, read)
    }

    /// A link at `target` that leads to `source`: the names are those of the RPC.
    pub(super) fn link_path(self, source: &str, target: &str) -> Call<'a, WithError<()>> {
        let request = filesystem::LinkPathRequest { source_path: source.to_owned(), target_path: target.to_owned() };
        let read = |answer: filesystem::LinkPathResponse| WithError { answer: (), error: answer.error };
        self.0.call(FILESYSTEM, "LinkPath", &short(target), request, read)
    }

    pub(super) fn is_mount_point(self, path: &str) -> Call<'a, WithError<bool>> {
        let request = filesystem::IsMountPointRequest { path: path.to_owned() };
        let read =
            |answer: filesystem::IsMountPointResponse| WithError { answer: answer.is_mount_point, error: answer.error };
        self.0.call(FILESYSTEM, "IsMountPoint", &short(path), request, read)
    }
}
