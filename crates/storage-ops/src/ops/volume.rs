//! The operations on volumes.

use std::time::Duration;

use os::abi::{ControlCode, FILE_ATTRIBUTE_DIRECTORY};
use os::{Access, Open, OsError, PathForm, U16String};
use zerocopy::IntoBytes;

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation, OperationContext, PoolKind};
use crate::node::Node;
use crate::ops::filesystem::{require_pool_for_ancestors, require_pool_for_link};
use crate::paths::working_directories::{OPEN_NO_DELETE_SHARE, OPEN_NOFOLLOW};
use crate::types::DiskNumber;
use crate::types::HostPath;
use crate::types::VolumeId;
use crate::windows::buffer;
use crate::windows::disk_device::{Disk, Layout, MIB, Partition};
use crate::windows::error_class::ErrorClass;
use crate::windows::msft_storage;
use crate::windows::reparse_point::Link;
use crate::windows::volume_device::{self, FileSystem, VolumeStats};

/// What every client that asks for a mounted volume looks for in the answer to know that none is mounted.
const NOT_MOUNTED: &str = "because it does not exist";

fn disk_lock_key(node: &Node, volume: VolumeId) -> OperationResult<LockKey> {
    Ok(LockKey::Disk(volume_device::disk_of(node, volume)?.0))
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
        let disk = Disk::open(node, self.disk, Access::empty())?;
        if disk.is_offline()? {
            return Err(OperationError::precondition("the disk is offline, and its volumes with it"));
        }
        let (mut last, mut first_is_there) = (Vec::new(), true);
        // A partition made just now has no volume yet; one that lacks it for good must not hide the others.
        node.poll(node.config().timeouts.arrival, || {
            let layout = disk.layout()?;
            let found = volume_device::on_disk(node, self.disk, layout.partitions())?;
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
        Ok(volume_device::file_system(node, self.volume)? != FileSystem::Raw)
    }
}

/// Formats a volume with NTFS. A volume that has NTFS is left as it is; any other file system is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FormatVolume {
    /// The volume.
    pub volume: VolumeId,
}

impl Operation for FormatVolume {
    type Output = ();
    const NAME: &'static str = "FormatVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const RESOLVES_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("format volume {}", self.volume)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![disk_lock_key(node, self.volume)?])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        volume_device::locked_disk_of(node, self.volume, ctx)?;
        match volume_device::file_system(node, self.volume)? {
            FileSystem::Ntfs => return Ok(()),
            FileSystem::Other(name) => return Err(occupied(&name)),
            FileSystem::Raw => {}
        }
        match msft_storage::format_ntfs(node, ctx, self.volume, || self.still_raw(node, ctx)) {
            // Nobody knows whether it goes on. The disk stays locked as long as it may.
            Err(fault) if fault.code.is_some_and(|code| ErrorClass::OutcomeUnknown.contains(code)) => {
                self.wait(node, node.config().timeouts.format)?.ok_or(fault)
            }
            outcome => {
                outcome?;
                let formatted = self.wait(node, node.config().timeouts.arrival)?;
                formatted.ok_or_else(|| {
                    OperationError::precondition("Windows says that it is formatted, but it has no NTFS")
                })
            }
        }
    }
}

impl FormatVolume {
    /// The last look before the data, if there were any, would be gone. Whoever else was faster has done the work.
    fn still_raw(&self, node: &Node, ctx: &OperationContext) -> OperationResult<bool> {
        volume_device::locked_disk_of(node, self.volume, ctx)?;
        match volume_device::file_system(node, self.volume)? {
            FileSystem::Raw => Ok(true),
            FileSystem::Ntfs => Ok(false),
            FileSystem::Other(name) => Err(occupied(&name)),
        }
    }

    /// Waits until it is formatted.
    fn wait(&self, node: &Node, timeout: Duration) -> OperationResult<Option<()>> {
        node.poll(timeout, || Ok((volume_device::file_system(node, self.volume)? == FileSystem::Ntfs).then_some(())))
    }
}

fn occupied(file_system: &str) -> OperationError {
    OperationError::precondition(format!("it has a {file_system} file system, which is not overwritten"))
}

/// Mounts a volume at an empty directory. Being mounted there already is success. A volume that the node itself lives
/// on is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MountVolume {
    /// The volume.
    pub volume: VolumeId,
    /// In a working directory; exists.
    pub target: HostPath,
}

impl Operation for MountVolume {
    type Output = ();
    const NAME: &'static str = "MountVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const RESOLVES_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("mount volume {} at {}", self.volume, self.target)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        node.directories.check(&self.target, None)?;
        Ok(vec![LockKey::Path(self.target.key()), disk_lock_key(node, self.volume)?])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        volume_device::locked_disk_of(node, self.volume, ctx)?;
        // Mounted in a container's directory, the system's volume would be all there in the container.
        if node.directories.volumes(node.os())?.contains(&self.volume) {
            return Err(OperationError::new(Kind::PermissionDenied, "it is a volume of the node itself"));
        }
        let place = node.directories.entry(node.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
        // Held without sharing deletion until the end, so that the path below leads here and nowhere else.
        let target = place.parent().open_child(place.leaf(), &OPEN_NO_DELETE_SHARE)?;
        let path = place.directory_path()?;
        match Link::of(&*target)? {
            None if buffer::attributes(&*target)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 => {
                return Err(OsError::DIRECTORY.into());
            }
            None => {}
            Some(link) => match link.volume() {
                Some(mounted) if mounted == self.volume => return Ok(()),
                Some(mounted) if is_present(node, mounted)? => {
                    return Err(OperationError::precondition(format!("volume {mounted} is mounted there")));
                }
                // Left over from before the node's restart.
                Some(_) => {
                    ctx.begin_mutation()?;
                    node.os().delete_volume_mount_point(&path)?;
                }
                None => return Err(OperationError::precondition("it is a link, not a directory")),
            },
        }
        ctx.begin_mutation()?;
        node.os().set_volume_mount_point(&path, &self.volume.to_windows())?;
        match Link::of(&*target)?.and_then(|link| link.volume()) {
            Some(mounted) if mounted == self.volume => Ok(()),
            _ => Err(OperationError::new(
                Kind::Internal,
                "Windows says that it is mounted, but the directory says otherwise",
            )),
        }
    }
}

/// Whether a volume exists. Only a clear no is a no.
fn is_present(node: &Node, volume: VolumeId) -> OperationResult<bool> {
    Ok(node.os().volumes()?.iter().any(|name| VolumeId::from_windows(name) == Some(volume)))
}

/// Writes a volume's cache to its disk and removes its mount point, but not the directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnmountVolume {
    /// The volume.
    pub volume: VolumeId,
    /// In a working directory.
    pub target: HostPath,
}

impl Operation for UnmountVolume {
    type Output = ();
    const NAME: &'static str = "UnmountVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const RESOLVES_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("unmount volume {} from {}", self.volume, self.target)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        node.directories.check(&self.target, None)?;
        let mut objects = vec![LockKey::Path(self.target.key())];
        // A mount point may outlive its volume, and is removed all the same. If the volume is there after all, the run
        // finds its disk not locked.
        objects.extend(disk_lock_key(node, self.volume).ok());
        Ok(objects)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let place = node.directories.entry(node.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
        let target = place.parent().open_child(place.leaf(), &OPEN_NO_DELETE_SHARE)?;
        match Link::of(&*target)?.and_then(|link| link.volume()) {
            Some(mounted) if mounted == self.volume => {}
            Some(mounted) => return Err(OperationError::precondition(format!("volume {mounted} is mounted there"))),
            None => return Err(OperationError::precondition("nothing is mounted there")),
        }
        if is_present(node, self.volume)? {
            volume_device::locked_disk_of(node, self.volume, ctx)?;
            ctx.begin_mutation()?;
            volume_device::flush(node, self.volume)?;
        }
        ctx.begin_mutation()?;
        Ok(node.os().delete_volume_mount_point(&place.directory_path()?)?)
    }
}

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
        let number = volume_device::locked_disk_of(node, volume, ctx)?;
        let disk = Disk::open(node, number, Access::GENERIC_READ)?;
        disk.update()?;
        let extent = volume_device::extent(node, volume)?;
        let layout = disk.layout()?;
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
    fn wants_growth(&self, disk: &Disk, layout: &Layout, partition: &Partition) -> OperationResult<bool> {
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
        layout: &Layout,
        partition: &Partition,
        volume: VolumeId,
    ) -> OperationResult<()> {
        let instance = msft_storage::partition(node, ctx, disk.number, partition.number, partition.offset)?;
        let (largest, untold) = match msft_storage::largest(node, ctx, &instance) {
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
        msft_storage::resize(node, ctx, &instance, size)?;
        disk.update()?;
        let grown = node.poll(node.config().timeouts.arrival, || {
            let extent = volume_device::extent(node, volume)?;
            Ok((u64::try_from(extent.length).unwrap_or_default() > partition.length).then_some(()))
        })?;
        grown.ok_or_else(|| {
            OperationError::precondition("Windows says that it is resized, but the partition has not grown")
        })
    }
}

/// Makes the file system as large as its partition, where an earlier attempt got only half-way.
fn fill_partition(node: &Node, ctx: &OperationContext, volume: VolumeId) -> OperationResult<()> {
    let total = match volume_device::stats(node, volume) {
        Ok(stats) => stats.total,
        Err(fault) if fault.code == Some(OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
        Err(fault) => return Err(fault),
    };
    let extent = volume_device::extent(node, volume)?;
    let length = u64::try_from(extent.length).unwrap_or_default();
    if length < total.saturating_add(MIB) || volume_device::file_system(node, volume)? != FileSystem::Ntfs {
        return Ok(());
    }
    let number = volume_device::locked_disk_of(node, volume, ctx)?;
    let geometry = Disk::open(node, number, Access::empty())?.geometry()?;
    let sectors = extent.length / i64::from(geometry.bytes_per_sector.max(512));
    ctx.begin_mutation()?;
    let handle = volume_device::open(node, volume, &volume_device::READ)?;
    buffer::send(&*handle, ControlCode::FSCTL_EXTEND_VOLUME, sectors.as_bytes())
        .map_err(|code| OperationError::of(code, "the partition has grown, but its file system has not"))
}

/// The largest size in bytes that the partition can have, from the partition table.
fn room_of(disk: &Disk, layout: &Layout, partition: &Partition) -> OperationResult<u64> {
    let next = layout.partitions().iter().map(|other| other.offset).filter(|offset| *offset > partition.offset).min();
    let end = match next {
        Some(next) => next,
        None => disk.size()?.saturating_sub(MIB),
    };
    Ok(end.saturating_sub(partition.offset) / MIB * MIB)
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
        volume_device::stats(node, self.volume)
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
        volume_device::disk_of(node, self.volume)
    }
}

/// The volume mounted at a path, or at what the path links to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetVolumeIdFromTargetPath {
    /// Anywhere on the node.
    pub target: HostPath,
}

impl Operation for GetVolumeIdFromTargetPath {
    type Output = VolumeId;
    const NAME: &'static str = "GetVolumeIDFromTargetPath";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("find the volume mounted at {}", self.target)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<VolumeId> {
        let nothing = |what: &str| OperationError::not_found(format!("{what}: no mount can be found {NOT_MOUNTED}"));
        let path = self.target.to_nt();
        require_pool_for_ancestors(node, &self.target, ctx)?;
        let found = match node.os().open(&path, &OPEN_NOFOLLOW) {
            Err(code) if ErrorClass::TargetMissing.contains(code) => return Err(nothing("there is no such path")),
            outcome => outcome?,
        };
        let link = match Link::of(&*found)? {
            None | Some(Link::Other) => return Err(nothing("it is not a mount point")),
            Some(link) => link,
        };
        require_pool_for_link(node, &link, ctx)?;
        let target = match node.os().open(&path, &Open { options: os::Options::empty(), ..OPEN_NOFOLLOW }) {
            Err(code) if ErrorClass::TargetMissing.contains(code) => {
                return Err(nothing("it is stale, what was mounted has gone"));
            }
            // A volume without a file system has no root to open, but it is mounted.
            Err(OsError::UNRECOGNIZED_VOLUME) => {
                return link.volume().ok_or_else(|| OperationError::from(OsError::UNRECOGNIZED_VOLUME));
            }
            outcome => outcome?,
        };
        let (volume, is_root) = volume_under(&target.final_path(PathForm::VolumeGuid)?)?;
        // A link to a plain directory leads to the node's own volume, on which nothing was mounted for anybody.
        if !is_root && closest(node, &self.target.parent())? == volume {
            return Err(nothing("it leads to a plain directory"));
        }
        Ok(volume)
    }
}

/// The volume that a path lies on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetClosestVolumeIdFromTargetPath {
    /// Anywhere on the node; exists.
    pub target: HostPath,
}

impl Operation for GetClosestVolumeIdFromTargetPath {
    type Output = VolumeId;
    const NAME: &'static str = "GetClosestVolumeIDFromTargetPath";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("find the volume that {} is on", self.target)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<VolumeId> {
        require_pool_for_ancestors(node, &self.target, ctx)?;
        if let Ok(found) = node.os().open(&self.target.to_nt(), &OPEN_NOFOLLOW)
            && let Some(link) = Link::of(&*found)?
        {
            require_pool_for_link(node, &link, ctx)?;
        }
        closest(node, &self.target)
    }
}

fn closest(node: &Node, path: &HostPath) -> OperationResult<VolumeId> {
    let found = node.os().open(&path.to_nt(), &Open { options: os::Options::empty(), ..OPEN_NOFOLLOW })?;
    let final_path =
        found.final_path(PathForm::VolumeGuid).map_err(|code| OperationError::of(code, "it is on no volume"))?;
    volume_under(&final_path).map(|(volume, _)| volume)
}

fn volume_under(path: &U16String) -> OperationResult<(VolumeId, bool)> {
    VolumeId::of_final_path(path).ok_or_else(|| {
        OperationError::new(Kind::Internal, format!("Windows gave {} for a path on a volume", path.display()))
    })
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
        volume_device::flush(node, self.volume)
    }
}
