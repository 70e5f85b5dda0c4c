//! Growing a volume.

use os::abi::ControlCode;
use os::{Access, OsError};
use zerocopy::IntoBytes;

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::ops::volume::{ListVolumesOnDisk, disk_lock_key};
use crate::types::{DiskNumber, VolumeId};
use crate::windows::disk_device::Disk;
use crate::windows::partition_table::{MIB, Partition, PartitionTable};
use crate::windows::volume_device::{self, FileSystem};
use crate::windows::{buffer, msft_storage};

/// Names the volume to resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResizeTarget {
    /// A volume by its id.
    Volume(VolumeId),
    /// The first volume of a disk: the azuredisk driver since version 1.30 sends a disk number instead of a volume id.
    FirstVolumeOfDisk(DiskNumber),
}

/// Grows a volume and its partition. Never shrinks one; a volume that is large enough already is success.
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

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![match self.target {
            ResizeTarget::Volume(volume) => disk_lock_key(node, volume)?,
            ResizeTarget::FirstVolumeOfDisk(disk) => LockKey::Disk(disk.0),
        }])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let volume = match self.target {
            ResizeTarget::Volume(volume) => volume,
            ResizeTarget::FirstVolumeOfDisk(disk) => ListVolumesOnDisk { disk, partition: 0 }.run(node, ctx)?[0],
        };
        let number = volume_device::locked_disk_of(&node.host, volume, ctx)?;
        let disk = Disk::open(&node.host, number, Access::GENERIC_READ)?;
        disk.update()?;
        let extent = volume_device::extent(&node.host, volume)?;
        let layout = disk.partition_table()?;
        let under = layout.partitions().iter().find(|partition| Ok(partition.offset) == u64::try_from(extent.offset));
        let partition =
            *under.ok_or_else(|| OperationError::precondition("the volume is not on a partition of its own"))?;
        if self.wants_growth(&disk, &layout, &partition)? {
            ctx.require_pool(PoolKind::Wmi)?;
            self.grow(node, ctx, &disk, &layout, &partition, volume)?;
        }
        fill_partition(node, ctx, volume)
    }
}

impl ResizeVolume {
    /// Whether there may be something to do, told without the storage provider.
    fn wants_growth(&self, disk: &Disk, layout: &PartitionTable, partition: &Partition) -> OperationResult<bool> {
        if self.size != 0 {
            return Ok(self.size > partition.length);
        }
        let end = partition.offset + partition.length;
        let next = layout.partitions().iter().map(|other| other.offset).filter(|offset| *offset >= end).min();
        match next {
            Some(next) => Ok(next - end >= MIB),
            // The last mebibyte holds the table's copy and what alignment leaves over.
            None => Ok(disk.size()?.saturating_sub(end) >= 2 * MIB),
        }
    }

    fn grow(
        &self,
        node: &Node,
        ctx: &OperationContext,
        disk: &Disk,
        layout: &PartitionTable,
        partition: &Partition,
        volume: VolumeId,
    ) -> OperationResult<()> {
        let instance = msft_storage::partition(&node.host, ctx, disk.number, partition.number, partition.offset)?;
        let (largest, untold) = match msft_storage::largest(&node.host, ctx, &instance) {
            Ok(largest) => (largest, None),
            // Asking needs the service that defragments, growing does not, and the provider refuses what is too much.
            Err(fault) if fault.kind == Kind::Internal => (room_of(disk, layout, partition)?, Some(fault)),
            Err(fault) => return Err(fault),
        };
        if self.size.saturating_sub(largest) >= MIB {
            let reason = format!("{} bytes are asked for, and there is room for {largest}", self.size);
            return Err(match untold {
                None => OperationError::precondition(reason),
                Some(fault) => {
                    let reason = format!("{reason} by the partition table; Windows did not say: {}", fault.reason);
                    OperationError { kind: Kind::FailedPrecondition, reason, ..fault }
                }
            });
        }
        let size = if self.size == 0 { largest } else { self.size.min(largest) };
        if size < partition.length + MIB {
            return Ok(());
        }
        msft_storage::resize(&node.host, ctx, &instance, size)?;
        disk.update()?;
        let grown = node.host.poll(node.host.timeouts().arrival, || {
            let extent = volume_device::extent(&node.host, volume)?;
            Ok((u64::try_from(extent.length).unwrap_or_default() > partition.length).then_some(()))
        })?;
        grown.ok_or_else(|| {
            OperationError::precondition("Windows says that it is resized, but the partition has not grown")
        })
    }
}

/// Makes the file system as large as its partition, where an earlier attempt got only half-way.
fn fill_partition(node: &Node, ctx: &OperationContext, volume: VolumeId) -> OperationResult<()> {
    let total = match volume_device::stats(&node.host, volume) {
        Ok(stats) => stats.total,
        Err(fault) if fault.code == Some(OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
        Err(fault) => return Err(fault),
    };
    let extent = volume_device::extent(&node.host, volume)?;
    let length = u64::try_from(extent.length).unwrap_or_default();
    if length < total.saturating_add(MIB) || volume_device::file_system(&node.host, volume)? != FileSystem::Ntfs {
        return Ok(());
    }
    let number = volume_device::locked_disk_of(&node.host, volume, ctx)?;
    let geometry = Disk::open(&node.host, number, Access::empty())?.geometry()?;
    let sectors = extent.length / i64::from(geometry.bytes_per_sector.max(512));
    ctx.begin_mutation()?;
    let handle = volume_device::open(&node.host, volume, &volume_device::READ)?;
    buffer::send(&*handle, ControlCode::FSCTL_EXTEND_VOLUME, sectors.as_bytes())
        .map_err(|code| OperationError::of(code, "the partition has grown, but its file system has not"))
}

/// The largest size in bytes that the partition can have, from the partition table.
fn room_of(disk: &Disk, layout: &PartitionTable, partition: &Partition) -> OperationResult<u64> {
    let next = layout.partitions().iter().map(|other| other.offset).filter(|offset| *offset > partition.offset).min();
    let end = match next {
        Some(next) => next,
        None => disk.size()?.saturating_sub(MIB),
    };
    Ok(end.saturating_sub(partition.offset) / MIB * MIB)
}
