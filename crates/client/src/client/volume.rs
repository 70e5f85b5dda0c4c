//! The volume group.

use std::fmt;
use std::num::NonZeroU64;

use api::Request as _;
use api::volume::{v1, v2alpha1};

use super::Client;
use super::disk::DiskNumber;
use super::rpc;
use crate::error::{Error, ErrorKind};

/// Volumes of the node, each known by its GUID path.
///
/// Paths without a drive are on the drive of kubelet's directory. Paths may have forward slashes.
#[derive(Clone, Debug)]
pub struct Volume(pub(crate) Client);

/// The GUID path of a volume with the final backslash, `\\?\Volume{...}\`. It is the same after a
/// restart of the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(String);

impl VolumeId {
    /// Takes a GUID path that an earlier call returned. The daemon checks its form.
    pub fn new(guid_path: impl Into<String>) -> Self {
        Self(guid_path.into())
    }

    /// The GUID path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The size of a volume's file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct VolumeStats {
    /// The size in bytes.
    pub total_bytes: u64,
    /// The size minus the free space, in bytes.
    pub used_bytes: u64,
}

impl Volume {
    /// Lists the volumes on the disk or on one of its partitions, the data volume first. If a
    /// partition is new, waits until its volume arrives. The list is never empty, except from the
    /// csi-proxy written in Go.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the disk does not exist or has no volume.
    pub async fn list_volumes_on_disk(
        &self,
        DiskNumber(disk_number): DiskNumber,
        partition_number: Option<u32>,
    ) -> Result<Vec<VolumeId>, Error> {
        let partition_number = partition_number.unwrap_or(0);
        let response = self
            .0
            .read(v1::ListVolumesOnDiskRequest {
                disk_number,
                partition_number,
            })
            .await?;
        Ok(response.volume_ids.into_iter().map(VolumeId).collect())
    }

    /// Returns whether the volume has a file system of any kind.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// An error if the file system cannot be determined. The answer is never a guess.
    pub async fn is_volume_formatted(&self, volume_id: &VolumeId) -> Result<bool, Error> {
        let response = self
            .0
            .read(v1::IsVolumeFormattedRequest {
                volume_id: volume_id.0.clone(),
            })
            .await?;
        Ok(response.formatted)
    }

    /// Formats the volume with NTFS, or as the flags of csi-proxy say. A volume that already has
    /// such a file system is left unchanged if it is empty. One with content is refused, or
    /// formatted again if the flag `-format-again` allows that.
    ///
    /// The csi-proxy written in Go formats every volume, also a formatted one. If it may serve the
    /// node, call [`is_volume_formatted`](Self::is_volume_formatted) first.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`FailedPrecondition`](crate::ErrorKind::FailedPrecondition) if the volume has content, or
    /// another file system.
    pub async fn format_volume(&self, volume_id: &VolumeId) -> Result<(), Error> {
        self.0
            .change(v1::FormatVolumeRequest {
                volume_id: volume_id.0.clone(),
            })
            .await
            .map(drop)
    }

    /// Mounts the volume at an existing, empty directory. Succeeds if the volume is already mounted
    /// there, and replaces a mount point whose volume no longer exists.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`FailedPrecondition`](crate::ErrorKind::FailedPrecondition) if the directory is not empty
    /// or has another volume.
    pub async fn mount_volume(&self, volume_id: &VolumeId, target_path: &str) -> Result<(), Error> {
        let (volume_id, target_path) = (volume_id.0.clone(), target_path.to_owned());
        self.0
            .change(v1::MountVolumeRequest {
                volume_id,
                target_path,
            })
            .await
            .map(drop)
    }

    /// Flushes the volume and removes its mount point. Succeeds if the path is an empty directory.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// An error if another volume is mounted there, if nothing is mounted there and the directory has
    /// entries, or if flushing fails. If flushing fails, the volume stays mounted.
    pub async fn unmount_volume(
        &self,
        volume_id: &VolumeId,
        target_path: &str,
    ) -> Result<(), Error> {
        let (volume_id, target_path) = (volume_id.0.clone(), target_path.to_owned());
        self.0
            .change(v1::UnmountVolumeRequest {
                volume_id,
                target_path,
            })
            .await
            .map(drop)
    }

    /// Grows the volume to `size_bytes`, or as far as its disk allows if that is `None`. Succeeds
    /// without a change if the volume already has the size or more. A disk that has grown needs no
    /// [`rescan`](crate::Disk::rescan) first.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if the size exceeds [`i64::MAX`],
    /// which the wire cannot carry; an error if the disk has too little room.
    pub async fn resize_volume(
        &self,
        volume_id: &VolumeId,
        size_bytes: Option<NonZeroU64>,
    ) -> Result<(), Error> {
        let size_bytes = size_bytes.map_or(0, NonZeroU64::get);
        let size_bytes = size_bytes.try_into().map_err(|_| {
            let message = format!("{size_bytes} bytes are more than a volume can have");
            Error::new(
                ErrorKind::InvalidArgument,
                v1::ResizeVolumeRequest::RPC,
                message,
            )
        })?;
        self.0
            .change(v1::ResizeVolumeRequest {
                volume_id: volume_id.0.clone(),
                size_bytes,
            })
            .await
            .map(drop)
    }

    /// Returns the size of the volume's file system and how much of it is used.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn get_volume_stats(&self, volume_id: &VolumeId) -> Result<VolumeStats, Error> {
        let stats = self
            .0
            .read(v1::GetVolumeStatsRequest {
                volume_id: volume_id.0.clone(),
            })
            .await?;
        let bytes = |size| rpc::unsigned(v1::GetVolumeStatsRequest::RPC, size);
        Ok(VolumeStats {
            total_bytes: bytes(stats.total_bytes)?,
            used_bytes: bytes(stats.used_bytes)?,
        })
    }

    /// Returns the number of the disk that the volume is on, whether it is mounted or not.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn get_disk_number_from_volume_id(
        &self,
        volume_id: &VolumeId,
    ) -> Result<DiskNumber, Error> {
        let response = self
            .0
            .read(v1::GetDiskNumberFromVolumeIdRequest {
                volume_id: volume_id.0.clone(),
            })
            .await?;
        Ok(DiskNumber(response.disk_number))
    }

    /// Returns the volume that is mounted at the path. Links are followed.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if nothing is mounted there, whether the path is
    /// missing or a plain directory.
    pub async fn get_volume_id_from_target_path(
        &self,
        target_path: &str,
    ) -> Result<VolumeId, Error> {
        let target_path = target_path.to_owned();
        let response = self
            .0
            .read(v1::GetVolumeIdFromTargetPathRequest { target_path })
            .await?;
        Ok(VolumeId(response.volume_id))
    }

    /// Returns the volume on which the path lies, whether it is mounted at the path or above it.
    /// Links are followed.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`Unimplemented`](crate::ErrorKind::Unimplemented) if the node does not serve volume
    /// v2alpha1.
    pub async fn get_closest_volume_id_from_target_path(
        &self,
        target_path: &str,
    ) -> Result<VolumeId, Error> {
        let target_path = target_path.to_owned();
        let response = self
            .0
            .read(v2alpha1::GetClosestVolumeIdFromTargetPathRequest { target_path })
            .await?;
        Ok(VolumeId(response.volume_id))
    }

    /// Writes what Windows has cached of the volume to its disk.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn write_volume_cache(&self, volume_id: &VolumeId) -> Result<(), Error> {
        self.0
            .change(v1::WriteVolumeCacheRequest {
                volume_id: volume_id.0.clone(),
            })
            .await
            .map(drop)
    }
}
