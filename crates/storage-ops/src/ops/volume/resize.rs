//! Growing a volume.

use os::abi::{ControlCode, FsFullSizeInformation};
use os::{Access, FsInfo, Open, Options, OsError};
use zerocopy::{FromZeros, IntoBytes};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::executor::pool_kind::{PoolKind, Resource};
use crate::node::Node;
use crate::ops::volume::{ListVolumesOnDisk, disk_lock_key};
use crate::types::{DiskNumber, VolumeId};
use crate::windows::disk_device::{Disk, MIB, Partition, PartitionTable};
use crate::windows::fallback::{Fallback, SecondWay};
use crate::windows::file_system::{self, FileSystem};
use crate::windows::volume_device;
use crate::windows::{buffer, msft_storage};

/// The volume to resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResizeTarget {
    /// A volume by its id.
    Volume(VolumeId),
    /// The first volume of a disk: the azuredisk driver since version 1.30 sends a disk number instead of a volume id.
    FirstVolumeOfDisk(DiskNumber),
}

/// Grows a volume and its partition. Succeeds without a change if the volume is already large enough; never shrinks it.
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

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![match self.target {
            ResizeTarget::Volume(volume) => disk_lock_key(node, volume)?,
            ResizeTarget::FirstVolumeOfDisk(disk) => LockKey::Disk(disk.0),
        }])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
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
            return Err(OperationError::precondition(format!("the disk of the volume is no longer {number}")));
        }
        let table = disk.reported_table(&node.host, ctx)?;
        let partition = table.partitions.iter().find(|partition| Ok(partition.offset) == u64::try_from(extent.offset));
        let partition =
            *partition.ok_or_else(|| OperationError::precondition("no partition begins where the volume begins"))?;
        let reported = Reported { disk, table, partition };
        if self.may_need_growth(node, ctx, &reported)? {
            ctx.require_pool(PoolKind::Wmi)?;
            self.grow(node, ctx, &reported, volume)?;
        }
        fill_partition(node, ctx, volume)
    }
}

/// The partition of the volume, as its disk reports it.
struct Reported {
    disk: Disk,
    table: PartitionTable,
    partition: Partition,
}

impl ResizeVolume {
    /// Returns whether the partition may have to grow, determined without the storage provider.
    fn may_need_growth(&self, node: &Node, ctx: &OperationContext, reported: &Reported) -> OperationResult<bool> {
        let Reported { disk, table, partition } = reported;
        if self.size != 0 {
            return Ok(self.size > partition.length);
        }
        let end = partition.offset + partition.length;
        let next = table.partitions.iter().map(|other| other.offset).filter(|offset| *offset >= end).min();
        match next {
            Some(next) => Ok(next - end >= MIB),
            // The last mebibyte cannot be used: it has the backup partition table, and partitions are aligned to
            // mebibytes.
            None => Ok(disk.reported_size(&node.host, ctx)?.saturating_sub(end) >= 2 * MIB),
        }
    }

    fn grow(&self, node: &Node, ctx: &OperationContext, reported: &Reported, volume: VolumeId) -> OperationResult<()> {
        let Reported { disk, partition, .. } = reported;
        let instance = msft_storage::refreshed_partition(&node.host, ctx, disk, partition)?;
        let (max, provider_error) = match msft_storage::max_partition_size(&node.host, ctx, &instance) {
            Ok(max) => (max, None),
            // The query needs the service "Optimize drives"; resizing does not. The provider refuses a size that is too
            // large.
            Err(error) if error.kind == Kind::Internal => {
                if let Some(code) = error.code {
                    node.host.fallbacks().record(Fallback::SupportedSize, code);
                }
                (max_size_by_table(node, ctx, reported)?, Some(error))
            }
            Err(error) => return Err(error),
        };
        if self.size.saturating_sub(max) >= MIB {
            let reason = format!("{} bytes were requested, but the partition can have at most {max}", self.size);
            return Err(match provider_error {
                None => OperationError::precondition(reason),
                Some(error) => {
                    let reason = format!("{reason} according to the partition table; {}", error.reason);
                    OperationError { kind: Kind::FailedPrecondition, reason, ..error }
                }
            });
        }
        let size = if self.size == 0 { max } else { self.size.min(max) };
        if size < partition.length + MIB {
            return Ok(());
        }
        msft_storage::resize(&node.host, ctx, disk, &instance, size)?;
        update(node, ctx, disk)?;
        let grown = node.host.poll(node.host.timeouts().arrival, || {
            let extent = volume_device::extent(&node.host, SecondWay::Provider(ctx), volume)?;
            Ok((u64::try_from(extent.length).unwrap_or_default() > partition.length).then_some(()))
        })?;
        grown.ok_or_else(|| OperationError::precondition("Windows reported success, but the partition has not grown"))
    }
}

/// Makes Windows read the size and the partition table of the disk again.
fn update(node: &Node, ctx: &OperationContext, disk: &Disk) -> OperationResult<()> {
    let first = disk.update().map_err(OperationError::from);
    let second = || msft_storage::refresh(&node.host, ctx, disk.number);
    node.host.or_second(SecondWay::Provider(ctx), Fallback::DiskUpdate, first, second)
}

/// Grows the file system to the size of its partition, if an earlier attempt was interrupted in between.
fn fill_partition(node: &Node, ctx: &OperationContext, volume: VolumeId) -> OperationResult<()> {
    let total = match volume_device::reported_stats(&node.host, ctx, volume) {
        Ok(stats) => stats.total,
        Err(error) if error.code == Some(OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
        Err(error) => return Err(error),
    };
    let extent = volume_device::extent(&node.host, SecondWay::Provider(ctx), volume)?;
    let length = u64::try_from(extent.length).unwrap_or_default();
    if length < total.saturating_add(MIB) || file_system::detect(&node.host, volume)? != FileSystem::Ntfs {
        return Ok(());
    }
    volume_device::locked_disk_of(&node.host, volume, ctx)?;
    ctx.begin_mutation()?;
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let handle = volume_device::open(&node.host, volume, &Open::existing(access, Options::empty()))?;
    let mut size = FsFullSizeInformation::new_zeroed();
    handle.query_fs(FsInfo::FullSize, size.as_mut_bytes())?;
    let (sector, cluster) = (i64::from(size.bytes_per_sector.max(512)), i64::from(size.sectors_per_unit.max(1)));
    let sectors = extent.length / sector / cluster * cluster;
    buffer::send(&*handle, ControlCode::FSCTL_EXTEND_VOLUME, sectors.as_bytes())
        .map_err(|code| OperationError::of(code, "the partition has grown, but the file system could not be extended"))
}

/// Returns the maximum size of the partition in bytes, according to the partition table.
fn max_size_by_table(node: &Node, ctx: &OperationContext, reported: &Reported) -> OperationResult<u64> {
    let Reported { disk, table, partition } = reported;
    let next = table.partitions.iter().map(|other| other.offset).filter(|offset| *offset > partition.offset).min();
    let end = match next {
        Some(next) => next,
        None => disk.reported_size(&node.host, ctx)?.saturating_sub(MIB),
    };
    Ok(end.saturating_sub(partition.offset) / MIB * MIB)
}
