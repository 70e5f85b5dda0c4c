//! Growing a volume.

use std::cmp::Ordering;
use std::fmt;

use os::OsError;
use os::abi::{ControlCode, DiskExtent};
use zerocopy::IntoBytes;

use crate::devices::disk::MIB;
use crate::devices::volume::OPEN_FOR_CHANGE;
use crate::devices::{
    Disk, FileSystem, Partition, PartitionTable, TableStyle, buffer, file_system, volume,
};
use crate::error::{OperationError, OperationResult, failed_precondition};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::run::Run;
use crate::ops::volume::{ListVolumesOnDisk, disk_lock_key};
use crate::provider::msft_storage;
use crate::readings::{self, node_volumes};
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::{DiskNumber, VolumeId};

/// The volume to resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResizeTarget {
    /// A volume by its id.
    Volume(VolumeId),
    /// The first volume of a disk: the azuredisk driver since version 1.30 sends a disk number
    /// instead of a volume id.
    FirstVolumeOfDisk(DiskNumber),
}

/// Grows a volume and its partition. Succeeds without a change if the volume is already large
/// enough; never shrinks it. A volume that the node itself uses is not grown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ResizeVolume {
    /// The volume.
    pub target: ResizeTarget,
    /// The size of the partition to reach, in bytes; 0 means as large as possible.
    pub size: u64,
}

impl Operation for ResizeVolume {
    type Output = ();
    const NAME: &'static str = "ResizeVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn resource(&self) -> Option<Resource> {
        Some(match self.target {
            ResizeTarget::Volume(volume) => Resource::Volume(volume),
            ResizeTarget::FirstVolumeOfDisk(disk) => Resource::Disk(disk),
        })
    }

    fn describe(&self) -> String {
        let volume = match self.target {
            ResizeTarget::Volume(volume) => format!("volume {volume}"),
            ResizeTarget::FirstVolumeOfDisk(disk) => format!("the first volume of {disk}"),
        };
        match self.size {
            0 => format!("resize {volume} to its maximum"),
            size => format!("resize {volume} to {size} bytes"),
        }
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        Ok(vec![match self.target {
            ResizeTarget::Volume(volume) => disk_lock_key(run, volume).await?,
            ResizeTarget::FirstVolumeOfDisk(disk) => LockKey::Disk(disk),
        }])
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let volume = match self.target {
            ResizeTarget::Volume(volume) => volume,
            ResizeTarget::FirstVolumeOfDisk(disk) => {
                let volumes = ListVolumesOnDisk { disk, partition: 0 }.run(run).await?;
                *volumes.first().ok_or_else(|| {
                    OperationError::not_found(format!("no volume was found on {disk}"))
                })?
            }
        };
        let number = run.locked_disk().expect("the disk of the volume is locked");
        let disk = Disk::open_for_read(run.os(), number)?;
        readings::disk::update(run, &disk).await?;
        let extent = readings::volume::extent(run, volume).await?;
        if DiskNumber(extent.disk_number) != number {
            return failed_precondition(format!("the disk of the volume is no longer {number}"));
        }
        let table = readings::disk::partition_table(run, &disk).await?;
        let partition = table
            .partitions
            .iter()
            .find(|partition| Ok(partition.offset) == u64::try_from(extent.offset));
        let partition = *partition.ok_or_else(|| {
            OperationError::precondition("no partition begins where the volume begins")
        })?;
        let mut length = length_of(&extent);
        if let Some(size) = self
            .new_size(run, &disk, &table, &partition, volume)
            .await?
        {
            run.enter(PoolKind::Wmi).await;
            // To grow a volume cannot be undone.
            node_volumes::refuse_volume(run, volume).await?;
            let is_largest = self.size == 0;
            length = grow(run, &disk, &partition, volume, size, is_largest).await?;
        }
        fill_partition(run, volume, length).await
    }
}

impl ResizeVolume {
    /// Creates the operation.
    pub fn new(target: ResizeTarget, size: u64) -> Self {
        Self { target, size }
    }

    /// Returns the size to which the partition is to grow in bytes, or `None` if it is large
    /// enough.
    ///
    /// The partition table decides. `GetSupportedSize` of the storage provider also determines the
    /// smallest size, for which it analyses the fragmentation of the volume; that may take longer
    /// than a driver waits.
    async fn new_size(
        &self,
        run: Run<'_>,
        disk: &Disk,
        table: &PartitionTable,
        partition: &Partition,
        volume: VolumeId,
    ) -> OperationResult<Option<u64>> {
        if self.size != 0 && self.size < partition.length + MIB {
            return Ok(None);
        }
        let (space, limit) = match end_of_space(table, partition) {
            Some(end) => (end, Limit::NextPartition),
            // The last mebibyte has the backup partition table.
            None => (
                readings::disk::size(run, disk).await?.saturating_sub(MIB),
                Limit::Disk,
            ),
        };
        let mut max = (space.saturating_sub(partition.offset), limit);
        if table.style == TableStyle::Mbr {
            let of_mbr = end_of_mbr(disk).saturating_sub(partition.offset);
            max = max.min((of_mbr, Limit::Mbr));
        }
        if max.0 > LEAST_NTFS_LIMIT
            && let Some(of_ntfs) = file_system::ntfs_limit(run.os(), volume)?
        {
            max = max.min((of_ntfs, Limit::Ntfs));
        }
        let limit = max.1;
        let max = (partition.offset + max.0) / MIB * MIB - partition.offset;
        // The Go program does not grow a volume by less than this, and succeeds.
        let is_small = self.size < partition.length.saturating_add(LEAST_GROWTH_OF_GO);
        if self.size.saturating_sub(max) >= MIB && !is_small {
            let reason = format!(
                "{} bytes were requested, but the partition can have at most {max}, because {limit}",
                self.size
            );
            return failed_precondition(reason);
        }
        if self.size == 0 && limit != Limit::Disk {
            tracing::warn!(
                %volume, bytes = max, %limit,
                "the volume cannot use the whole disk"
            );
        }
        let size = if self.size == 0 {
            max
        } else {
            self.size.min(max)
        };
        Ok((size >= partition.length + MIB).then_some(size))
    }
}

/// What limits the size of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    NextPartition,
    Disk,
    Mbr,
    Ntfs,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NextPartition => {
                "another partition begins there; the volume can grow if that partition is moved or \
                 deleted"
            }
            Self::Disk => "the disk ends there",
            Self::Mbr => {
                "an MBR cannot describe more of the disk; on a disk with a GPT the volume can grow"
            }
            Self::Ntfs => {
                "NTFS has at most 4294967295 clusters; a volume with larger clusters can grow \
                 further (csi-proxy's flag -format-allocation-unit, for new volumes)"
            }
        })
    }
}

/// The smallest limit of an NTFS volume, with clusters of 512 bytes.
const LEAST_NTFS_LIMIT: u64 = (u32::MAX as u64) * 512;

/// By less than this, the Go program does not grow a volume (contract 26).
const LEAST_GROWTH_OF_GO: u64 = 100 * MIB;

/// Returns the offset up to which a partition can grow: the offset of the next partition, or the
/// end of the extended partition that contains it. `None` means the end of the disk.
fn end_of_space(table: &PartitionTable, partition: &Partition) -> Option<u64> {
    table
        .partitions
        .iter()
        .filter_map(|other| match other.offset.cmp(&partition.offset) {
            Ordering::Greater => Some(other.offset),
            Ordering::Less => Some(other.offset.saturating_add(other.length))
                .filter(|limit| *limit >= partition.offset.saturating_add(partition.length)),
            Ordering::Equal => None,
        })
        .min()
}

/// Returns the end of the space that an MBR can describe: its numbers of sectors have 32 bits.
pub(crate) fn end_of_mbr(disk: &Disk) -> u64 {
    let sector = disk
        .geometry()
        .map_or(0, |geometry| u64::from(geometry.bytes_per_sector));
    sector.max(512) << 32
}

/// Returns the length of an extent in bytes.
fn length_of(extent: &DiskExtent) -> u64 {
    u64::try_from(extent.length).unwrap_or_default()
}

/// Grows the partition to `size` bytes, together with its file system, and returns its length. The
/// storage provider may refuse it.
async fn grow(
    run: Run<'_>,
    disk: &Disk,
    partition: &Partition,
    volume: VolumeId,
    size: u64,
    is_largest: bool,
) -> OperationResult<u64> {
    if !msft_storage::resize(run, disk, partition, size, is_largest).await? {
        return Ok(partition.length);
    }
    readings::disk::update(run, disk).await?;
    let mut pauses = run.pauses(run.timeouts().arrival);
    loop {
        let length = length_of(&readings::volume::extent(run, volume).await?);
        if length > partition.length {
            return Ok(length);
        }
        if !pauses.again().await {
            return failed_precondition(
                "Windows reported success, but the partition has not grown",
            );
        }
    }
}

/// Grows the file system to the `length` of its partition, if an earlier attempt was interrupted in
/// between.
async fn fill_partition(run: Run<'_>, volume: VolumeId, length: u64) -> OperationResult<()> {
    run.enter(PoolKind::Disks).await;
    let total = match readings::volume::stats(run, volume).await {
        Ok(stats) => stats.total,
        Err(error) if error.code == Some(OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
        Err(error) => return Err(error),
    };
    if length < total.saturating_add(MIB) {
        return Ok(());
    }
    let most_clusters = match readings::file_system::detect(run.windows(), volume)? {
        FileSystem::Named(name) if name == "NTFS" => u64::from(u32::MAX),
        FileSystem::Named(name) if name == "ReFS" => u64::MAX,
        _ => return Ok(()),
    };
    readings::volume::locked_disk_of(run, volume).await?;
    node_volumes::refuse_volume(run, volume).await?;
    run.begin_mutation()?;
    let handle = volume::open(run.os(), volume, &OPEN_FOR_CHANGE)?;
    let size = file_system::full_size(&*handle)?;
    let (sector, cluster) = (
        u64::from(size.bytes_per_sector.max(512)),
        u64::from(size.sectors_per_unit.max(1)),
    );
    let clusters = (length / sector / cluster).min(most_clusters);
    // One cluster may be missing: that of the backup boot sector. Windows refuses to grow a file
    // system by less than another.
    if clusters <= size.total_units.saturating_add(1) {
        return Ok(());
    }
    let sectors = clusters * cluster;
    buffer::send(
        &*handle,
        ControlCode::FSCTL_EXTEND_VOLUME,
        sectors.as_bytes(),
    )
    .map_err(|code| {
        OperationError::of(
            code,
            "the partition has grown, but the file system could not be extended",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::end_of_space;
    use crate::devices::{Partition, PartitionKind, PartitionTable, TableStyle};

    fn partition(number: u32, offset: u64, length: u64, kind: PartitionKind) -> Partition {
        Partition {
            number,
            offset,
            length,
            kind,
            is_active: false,
        }
    }

    #[test]
    fn a_partition_can_grow_up_to_the_next_one_and_within_its_extended_partition() {
        let partitions = vec![
            partition(1, 10, 20, PartitionKind::Data),
            partition(0, 40, 60, PartitionKind::Other),
            partition(2, 41, 19, PartitionKind::Data),
            partition(3, 71, 9, PartitionKind::Data),
            partition(4, 200, 10, PartitionKind::Data),
        ];
        let table = PartitionTable {
            style: TableStyle::Mbr,
            partitions,
        };
        let ends: Vec<_> = table
            .partitions
            .iter()
            .map(|partition| end_of_space(&table, partition))
            .collect();
        assert_eq!(ends, [Some(40), Some(41), Some(71), Some(100), None]);
    }
}
