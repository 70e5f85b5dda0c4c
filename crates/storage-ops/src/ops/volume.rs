//! Operations on volumes: listing, formatting, mounting and growing them.
//!
//! A volume is known by its GUID path, `\\?\Volume{...}\`. Mounting a volume makes an empty NTFS
//! directory its volume mount point; drive letters are never assigned.

pub(crate) mod format;
mod format_again;
pub(crate) mod mount;
pub(crate) mod resize;
pub(crate) mod target_path;

use os::abi::DiskAttributes;

use crate::devices::{Disk, FileSystem, Partition};
use crate::error::{OperationError, OperationResult, failed_precondition};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::run::Run;
use crate::ops::disk::partitioned::offline_error;
use crate::readings;
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::{DiskNumber, VolumeId, VolumeStats};

/// Returns the key of the disk that `volume` is on.
pub(crate) async fn disk_lock_key(run: Run<'_>, volume: VolumeId) -> OperationResult<LockKey> {
    Ok(LockKey::Disk(readings::volume::disk_of(run, volume).await?))
}

/// Lists the volumes on a disk: those on data partitions first, in the order of the partitions. The
/// list of a disk without partitions is empty. A partition without a volume is an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListVolumesOnDisk {
    /// The disk.
    pub disk: DiskNumber,
    /// The number of the partition, counted from 1, or 0 for all.
    pub partition: u32,
}

impl Operation for ListVolumesOnDisk {
    type Output = Vec<VolumeId>;
    const NAME: &'static str = "ListVolumesOnDisk";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Disk(self.disk))
    }

    fn describe(&self) -> String {
        match self.partition {
            0 => format!("list the volumes on {}", self.disk),
            number => format!("list the volumes on partition {number} of {}", self.disk),
        }
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<Self::Output> {
        let disk = Disk::open_for_read(run.os(), self.disk)?;
        let attributes = readings::disk::attributes(run, &disk).await?;
        if attributes & DiskAttributes::OFFLINE != 0 {
            let table = readings::disk::partition_table(run, &disk)
                .await
                .map_err(|error| {
                    error.in_context("the disk is offline, and its partition table cannot be read")
                })?;
            return if table.is_partitioned() || self.partition != 0 {
                Err(offline_error(run, &disk, attributes).await?)
            } else {
                Ok(Vec::new())
            };
        }
        // A new partition has no volume yet. A partition that never gets a volume must not make the
        // listing of the other volumes fail.
        let mut pauses = run.pauses(run.timeouts().arrival);
        let (volumes, first_has_arrived, is_partitioned) = loop {
            let table = readings::disk::partition_table(run, &disk).await?;
            let found = readings::volume::on_disk(run, self.disk, &table.partitions).await?;
            let data: Vec<_> = table
                .data()
                .filter(|partition| self.wants(partition))
                .collect();
            let has_volume = |partition: &&Partition| {
                found.iter().any(|(offset, _)| *offset == partition.offset)
            };
            if data.iter().all(has_volume) || !pauses.again().await {
                let wanted = found
                    .iter()
                    .filter(|(offset, _)| table.holds(self.partition, *offset));
                let volumes: Vec<_> = wanted.map(|(_, volume)| *volume).collect();
                let first_has_arrived = data.first().is_none_or(has_volume);
                break (volumes, first_has_arrived, table.is_partitioned());
            }
        };
        // Drivers use the first volume of the list, so it must be the first volume of the disk.
        if !first_has_arrived {
            return failed_precondition(
                "the volume of the first data partition has not arrived, or cannot be read",
            );
        }
        // A driver may list the volumes to learn whether it must partition the disk.
        if volumes.is_empty() && (is_partitioned || self.partition != 0) {
            Err(OperationError::not_found(format!(
                "no volume was found on {}",
                self.disk
            )))
        } else {
            Ok(volumes)
        }
    }
}

impl ListVolumesOnDisk {
    fn wants(&self, partition: &Partition) -> bool {
        self.partition == 0 || partition.number == self.partition
    }
}

/// Checks whether a volume has a file system of any kind. A state that cannot be determined is an
/// error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IsVolumeFormatted {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for IsVolumeFormatted {
    type Output = bool;
    const NAME: &'static str = "IsVolumeFormatted";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("check whether volume {} is formatted", self.volume)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<bool> {
        let detected = readings::file_system::detect(run.windows(), self.volume);
        let found = readings::file_system::or_reported(run, self.volume, detected).await?;
        Ok(found != FileSystem::Raw)
    }
}

/// Queries the size and usage of the file system of a volume: `NtQueryVolumeInformationFile` with
/// `FileFsFullSizeInformation` (`full_size` in `devices/file_system.rs`). If that fails with an error
/// that says nothing about the volume, asks the storage provider (`stats` in `readings/volume.rs`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetVolumeStats {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for GetVolumeStats {
    type Output = VolumeStats;
    const NAME: &'static str = "GetVolumeStats";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("query the size of volume {}", self.volume)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<VolumeStats> {
        readings::volume::stats(run, self.volume).await
    }
}

/// Finds the disk that a volume is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskNumberFromVolumeId {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for GetDiskNumberFromVolumeId {
    type Output = DiskNumber;
    const NAME: &'static str = "GetDiskNumberFromVolumeID";
    const POOL: PoolKind = PoolKind::Disks;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("find the disk of volume {}", self.volume)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<DiskNumber> {
        readings::volume::disk_of(run, self.volume).await
    }
}

/// Writes the cache of a volume to its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteVolumeCache {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for WriteVolumeCache {
    type Output = ();
    const NAME: &'static str = "WriteVolumeCache";
    const POOL: PoolKind = PoolKind::Disks;
    // A job, so that the drain waits for it. One that already runs does not write what was cached
    // after it began.
    const COALESCE: Coalesce = Coalesce::Queued;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("write the cache of volume {}", self.volume)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        readings::volume::flush(run, self.volume).await
    }
}
