//! Volumes: listing, formatting, mounting and growing them.
//!
//! A volume is known by its GUID path, `\\?\Volume{...}\`. To mount one means to make a volume mount point of an empty
//! NTFS directory; drive letters are never assigned.

pub(crate) mod format;
pub(crate) mod mount;
pub(crate) mod resize;
pub(crate) mod target_path;

use os::Access;

use crate::error::{OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::Operation;
use crate::node::Node;
use crate::types::{DiskNumber, VolumeId, VolumeStats};
use crate::windows::disk_device::Disk;
use crate::windows::partition_table::Partition;
use crate::windows::volume_device::{self, FileSystem};

fn disk_lock_key(node: &Node, volume: VolumeId) -> OperationResult<LockKey> {
    Ok(LockKey::Disk(volume_device::disk_of(&node.host, volume)?.0))
}

/// The volumes on a disk: data volumes first, in partition order. None at all is an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListVolumesOnDisk {
    /// The disk.
    pub disk: DiskNumber,
    /// The partition's number from 1, or 0 for all.
    pub partition: u32,
}

impl Operation for ListVolumesOnDisk {
    type Output = Vec<VolumeId>;
    const NAME: &'static str = "ListVolumesOnDisk";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        match self.partition {
            0 => format!("list the volumes on {}", self.disk),
            number => format!("list the volumes on partition {number} of {}", self.disk),
        }
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<Self::Output> {
        let disk = Disk::open(&node.host, self.disk, Access::empty())?;
        if disk.is_offline()? {
            return Err(OperationError::precondition("the disk is offline, and its volumes with it"));
        }
        let (mut last, mut first_is_there) = (Vec::new(), true);
        // A partition made just now has no volume yet; one that lacks it for good must not hide the others.
        node.host.poll(node.host.timeouts().arrival, || {
            let layout = disk.partition_table()?;
            let found = volume_device::on_disk(&node.host, self.disk, layout.partitions())?;
            let wanted = found.iter().filter(|(offset, _)| layout.holds(self.partition, *offset));
            last = wanted.map(|(_, volume)| *volume).collect();
            let data: Vec<_> = layout.data().filter(|partition| self.wants(partition)).collect();
            let has_volume = |partition: &&Partition| found.iter().any(|(offset, _)| *offset == partition.offset);
            first_is_there = data.first().is_none_or(has_volume);
            let arrived = data.iter().all(has_volume);
            Ok(arrived.then_some(()))
        })?;
        // Callers take the first they are given, so that must be the first there is.
        if !first_is_there {
            return Err(OperationError::precondition(
                "the volume of its first data partition has not come, or cannot be read",
            ));
        }
        if last.is_empty() { Err(OperationError::not_found("there is none")) } else { Ok(last) }
    }
}

impl ListVolumesOnDisk {
    fn wants(&self, partition: &Partition) -> bool {
        self.partition == 0 || partition.number == self.partition
    }
}

/// Whether a volume has a file system, of whatever kind. Whatever cannot be told is an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IsVolumeFormatted {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for IsVolumeFormatted {
    type Output = bool;
    const NAME: &'static str = "IsVolumeFormatted";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("tell whether volume {} is formatted", self.volume)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<bool> {
        Ok(volume_device::file_system(&node.host, self.volume)? != FileSystem::Raw)
    }
}

/// The size and use of a volume's file system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetVolumeStats {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for GetVolumeStats {
    type Output = VolumeStats;
    const NAME: &'static str = "GetVolumeStats";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("read the size of volume {}", self.volume)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<VolumeStats> {
        volume_device::stats(&node.host, self.volume)
    }
}

/// The disk a volume is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetDiskNumberFromVolumeId {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for GetDiskNumberFromVolumeId {
    type Output = DiskNumber;
    const NAME: &'static str = "GetDiskNumberFromVolumeID";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("find the disk of volume {}", self.volume)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<DiskNumber> {
        volume_device::disk_of(&node.host, self.volume)
    }
}

/// Writes all that is cached for a volume to its disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriteVolumeCache {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for WriteVolumeCache {
    type Output = ();
    const NAME: &'static str = "WriteVolumeCache";
    const POOL: PoolKind = PoolKind::Disks;

    fn describe(&self) -> String {
        format!("write the cache of volume {}", self.volume)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<()> {
        volume_device::flush(&node.host, self.volume)
    }
}
