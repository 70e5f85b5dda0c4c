//! Growing a volume.

use std::cmp::Ordering;

use os::abi::{ControlCode, FsFullSizeInformation};
use os::{Access, FsInfo, Open, Options, OsError};
use zerocopy::{FromZeros, IntoBytes};

use crate::devices::buffer;
use crate::devices::disk::{Disk, MIB, Partition, PartitionTable, TableStyle};
use crate::devices::file_system::{self, FileSystem};
use crate::devices::volume as volume_device;
use crate::error::OperationError;
use crate::executor::operation::{Coalesce, Operation};
use crate::host::fallback::{Fallback, SecondWay};
use crate::node::Node;
use crate::ops::volume::{ListVolumesOnDisk, disk_lock_key};
use crate::provider::msft_storage;
use crate::readings::node_volumes;
use crate::scheduling::context::OperationContext;
use crate::scheduling::locks::LockKey;
use crate::scheduling::pool_kind::{PoolKind, Resource};
use crate::scheduling::stop::{RunResult, caught};
use crate::types::{DiskNumber, VolumeId};

/// The volume to resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResizeTarget {
    /// A volume by its id.
    Volume(VolumeId),
    /// The first volume of a disk: the azuredisk driver since version 1.30 sends a disk number instead of a volume id.
    FirstVolumeOfDisk(DiskNumber),
}

/// Grows a volume and its partition. Succeeds without a change if the volume is already large enough; never shrinks it. A
/// volume that the node itself uses is not grown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    const RESOLVES_LOCKS: bool = true;

    fn resource(&self) -> Option<Resource> {
        Some(match self.target {
            ResizeTarget::Volume(volume) => Resource::Volume(volume.to_string()),
            ResizeTarget::FirstVolumeOfDisk(disk) => Resource::Disk(disk.0),
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

    fn lock_keys(&self, node: &Node) -> RunResult<Vec<LockKey>> {
        Ok(vec![match self.target {
            ResizeTarget::Volume(volume) => disk_lock_key(node, volume)?,
            ResizeTarget::FirstVolumeOfDisk(disk) => LockKey::Disk(disk.0),
        }])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> RunResult<()> {
        let volume = match self.target {
            ResizeTarget::Volume(volume) => volume,
            // The list is never empty.
            ResizeTarget::FirstVolumeOfDisk(disk) => ListVolumesOnDisk { disk, partition: 0 }.run(node, ctx)?[0],
        };
        let number = volume_device::locked_disk_of(&node.host, volume, ctx)?;
        let disk = Disk::open_for_read(&node.host, number)?;
        update(node, ctx, &disk)?;
        let extent = volume_device::extent(&node.host, SecondWay::Provider(ctx), volume)?;
        if extent.disk_number != number.0 {
            return Err(OperationError::precondition(format!("the disk of the volume is no longer {number}")).into());
        }
        let table = disk.reported_table(&node.host, ctx)?;
        let partition = table.partitions.iter().find(|partition| Ok(partition.offset) == u64::try_from(extent.offset));
        let partition =
            *partition.ok_or_else(|| OperationError::precondition("no partition begins where the volume begins"))?;
        if let Some(size) = self.new_size(node, ctx, &disk, &table, &partition)? {
            ctx.require_pool(PoolKind::Wmi)?;
            refuse_volume_of_node(node, ctx, volume)?;
            grow(node, ctx, &disk, &partition, volume, size)?;
        }
        fill_partition(node, ctx, volume)
    }
}

impl ResizeVolume {
    /// Returns the size to which the partition is to grow in bytes, or `None` if it is large enough.
    ///
    /// The partition table decides. `GetSupportedSize` of the storage provider also determines the smallest size, for which
    /// it analyses the fragmentation of the volume; that may take longer than a driver waits.
    fn new_size(
        &self,
        node: &Node,
        ctx: &OperationContext,
        disk: &Disk,
        table: &PartitionTable,
        partition: &Partition,
    ) -> RunResult<Option<u64>> {
        if self.size != 0 && self.size < partition.length + MIB {
            return Ok(None);
        }
        let end = match end_of_space(table, partition) {
            Some(end) => end,
            // The last mebibyte has the backup partition table.
            None => disk.reported_size(&node.host, ctx)?.saturating_sub(MIB),
        };
        let end = if table.style == TableStyle::Mbr { end.min(end_of_mbr(disk)) } else { end };
        let max = (end / MIB * MIB).saturating_sub(partition.offset);
        if self.size.saturating_sub(max) >= MIB {
            let reason = format!("{} bytes were requested, but the partition can have at most {max}", self.size);
            return Err(OperationError::precondition(reason).into());
        }
        let size = if self.size == 0 { max } else { self.size.min(max) };
        Ok((size >= partition.length + MIB).then_some(size))
    }
}

/// Returns the offset up to which a partition can grow: that of the next one, or the end of the extended partition that it
/// is in. `None` means the end of the disk.
fn end_of_space(table: &PartitionTable, partition: &Partition) -> Option<u64> {
    let end = |other: &Partition| other.offset.saturating_add(other.length);
    let limit = |other: &Partition| match other.offset.cmp(&partition.offset) {
        Ordering::Greater => Some(other.offset),
        Ordering::Less => Some(end(other)).filter(|limit| *limit >= end(partition)),
        Ordering::Equal => None,
    };
    table.partitions.iter().filter_map(limit).min()
}

/// Returns the end of the space that an MBR can describe: its numbers of sectors have 32 bits.
fn end_of_mbr(disk: &Disk) -> u64 {
    let sector = disk.geometry().map_or(0, |geometry| u64::from(geometry.bytes_per_sector));
    sector.max(512) << 32
}

/// Refuses to grow a volume that the node itself uses: that cannot be undone.
fn refuse_volume_of_node(node: &Node, ctx: &OperationContext, volume: VolumeId) -> RunResult<()> {
    node_volumes::refuse_volume(node, SecondWay::Provider(ctx), volume)
}

/// Grows the partition to `size` bytes, together with its file system. The storage provider may refuse it.
fn grow(
    node: &Node,
    ctx: &OperationContext,
    disk: &Disk,
    partition: &Partition,
    volume: VolumeId,
    size: u64,
) -> RunResult<()> {
    msft_storage::resize(&node.host, ctx, disk, partition, size)?;
    update(node, ctx, disk)?;
    let grown = node.host.poll(node.host.timeouts().arrival, || -> RunResult<_> {
        let extent = volume_device::extent(&node.host, SecondWay::Provider(ctx), volume)?;
        Ok((u64::try_from(extent.length).unwrap_or_default() > partition.length).then_some(()))
    })?;
    Ok(grown
        .ok_or_else(|| OperationError::precondition("Windows reported success, but the partition has not grown"))?)
}

/// Makes Windows read the size and the partition table of the disk again.
fn update(node: &Node, ctx: &OperationContext, disk: &Disk) -> RunResult<()> {
    let first = disk.update().map_err(OperationError::from);
    let second = || msft_storage::refresh(&node.host, ctx, disk.number);
    node.host.or_second(SecondWay::Provider(ctx), Fallback::DiskUpdate, first, second)
}

/// Grows the file system to the size of its partition, if an earlier attempt was interrupted in between.
fn fill_partition(node: &Node, ctx: &OperationContext, volume: VolumeId) -> RunResult<()> {
    let total = match caught(volume_device::reported_stats(&node.host, ctx, volume))? {
        Ok(stats) => stats.total,
        Err(error) if error.code == Some(OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let extent = volume_device::extent(&node.host, SecondWay::Provider(ctx), volume)?;
    let length = u64::try_from(extent.length).unwrap_or_default();
    if length < total.saturating_add(MIB) || file_system::detect(&node.host, volume)? != FileSystem::Ntfs {
        return Ok(());
    }
    volume_device::locked_disk_of(&node.host, volume, ctx)?;
    refuse_volume_of_node(node, ctx, volume)?;
    ctx.begin_mutation()?;
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let handle = volume_device::open(&node.host, volume, &Open::existing(access, Options::empty()))?;
    let mut size = FsFullSizeInformation::new_zeroed();
    handle.query_fs(FsInfo::FullSize, size.as_mut_bytes())?;
    let (sector, cluster) = (i64::from(size.bytes_per_sector.max(512)), i64::from(size.sectors_per_unit.max(1)));
    let sectors = extent.length / sector / cluster * cluster;
    Ok(buffer::send(&*handle, ControlCode::FSCTL_EXTEND_VOLUME, sectors.as_bytes()).map_err(|code| {
        OperationError::of(code, "the partition has grown, but the file system could not be extended")
    })?)
}

#[cfg(test)]
mod tests {
    use super::end_of_space;
    use crate::devices::disk::{Partition, PartitionKind, PartitionTable, TableStyle};

    #[test]
    fn a_partition_can_grow_up_to_the_next_one_and_within_its_extended_partition() {
        let partition = |number, offset, length, kind| Partition { number, offset, length, kind, is_active: false };
        let partitions = vec![
            partition(1, 10, 20, PartitionKind::Data),
            partition(0, 40, 60, PartitionKind::Other),
            partition(2, 41, 19, PartitionKind::Data),
            partition(3, 71, 9, PartitionKind::Data),
            partition(4, 200, 10, PartitionKind::Data),
        ];
        let table = PartitionTable { style: TableStyle::Mbr, partitions };
        let ends: Vec<_> = table.partitions.iter().map(|partition| end_of_space(&table, partition)).collect();
        assert_eq!(ends, [Some(40), Some(41), Some(71), Some(100), None]);
    }
}
