//! The calls that drivers made before v1: disk/v1beta2, volume/v1beta1 and filesystem/v1beta1, as gce-pd mixes them.
//!
//! Disks are decimal text here, and the answers of the file system carry an `error` beside the status; drivers take
//! a text in it for a failure, so that it must be empty.

use std::collections::BTreeMap;

use api::Group;
use api::disk::v1beta2 as disk;
use api::filesystem::v1beta1 as filesystem;
use api::volume::v1beta1 as volume;

use super::call::{Bytes, Call, Tell, VolumeSize, unsigned};
use super::driver::Driver;
use super::screen::short;

const DISK: (Group, &str) = (Group::Disk, "v1beta2");
const VOLUME: (Group, &str) = (Group::Volume, "v1beta1");
const FILESYSTEM: (Group, &str) = (Group::Filesystem, "v1beta1");

/// What a response of those days says: an answer, and in words what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WithError<T> {
    /// The answer.
    pub(super) answer: T,
    /// Empty when nothing went wrong.
    pub(super) error: String,
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

/// The RPCs of volume/v1beta1.
#[derive(Clone, Copy)]
pub(super) struct Volume<'a>(pub(super) &'a Driver<'a>);

impl<'a> Volume<'a> {
    pub(super) fn list_volumes_on_disk(self, disk: &str) -> Call<'a, Vec<String>> {
        let request = volume::ListVolumesOnDiskRequest { disk_id: disk.to_owned() };
        let read = |answer: volume::ListVolumesOnDiskResponse| answer.volume_ids;
        self.0.call(VOLUME, "ListVolumesOnDisk", &format!("disk {disk}"), request, read)
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

    pub(super) fn mount_volume(self, id: &str, path: &str) -> Call<'a, ()> {
        let request = volume::MountVolumeRequest { volume_id: id.to_owned(), path: path.to_owned() };
        self.0.call(VOLUME, "MountVolume", &short(path), request, |_: volume::MountVolumeResponse| ())
    }

    pub(super) fn dismount_volume(self, id: &str, path: &str) -> Call<'a, ()> {
        let request = volume::DismountVolumeRequest { volume_id: id.to_owned(), path: path.to_owned() };
        self.0.call(VOLUME, "DismountVolume", &short(path), request, |_: volume::DismountVolumeResponse| ())
    }

    /// Grows the volume as far as its disk allows.
    pub(super) fn resize_volume(self, id: &str) -> Call<'a, ()> {
        let request = volume::ResizeVolumeRequest { volume_id: id.to_owned(), size: 0 };
        self.0.call(VOLUME, "ResizeVolume", &short(id), request, |_: volume::ResizeVolumeResponse| ())
    }

    pub(super) fn volume_stats(self, id: &str) -> Call<'a, VolumeSize> {
        let request = volume::VolumeStatsRequest { volume_id: id.to_owned() };
        let read = |answer: volume::VolumeStatsResponse| VolumeSize {
            total: unsigned(answer.volume_size),
            used: unsigned(answer.volume_used_size),
        };
        self.0.call(VOLUME, "VolumeStats", &short(id), request, read)
    }

    pub(super) fn get_volume_disk_number(self, id: &str) -> Call<'a, u32> {
        let request = volume::VolumeDiskNumberRequest { volume_id: id.to_owned() };
        let read = |answer: volume::VolumeDiskNumberResponse| u32::try_from(answer.disk_number).unwrap_or(u32::MAX);
        self.0.call(VOLUME, "GetVolumeDiskNumber", &short(id), request, read)
    }

    pub(super) fn get_volume_id_from_mount(self, path: &str) -> Call<'a, String> {
        let request = volume::VolumeIdFromMountRequest { mount: path.to_owned() };
        let read = |answer: volume::VolumeIdFromMountResponse| answer.volume_id;
        self.0.call(VOLUME, "GetVolumeIDFromMount", &short(path), request, read)
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
