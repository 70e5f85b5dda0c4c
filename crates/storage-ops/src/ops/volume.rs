//! The operations on volumes.

use std::time::Duration;

use os::abi::{ControlCode, FILE_ATTRIBUTE_DIRECTORY};
use os::{Access, Open, OsError, PathForm, U16String};
use zerocopy::IntoBytes;

use crate::error::{Fault, Kind, Outcome};
use crate::executor::locks::Object;
use crate::executor::operation::{Joins, Lane, Operation, Run};
use crate::node::Node;
use crate::ops::filesystem::{enter_lane_above, enter_lane_of, leads_nowhere};
use crate::paths::working_directories::{LOOK, PIN};
use crate::types::DiskNumber;
use crate::types::HostPath;
use crate::types::VolumeId;
use crate::windows::buffer;
use crate::windows::disk_device::{Disk, Layout, MIB, Partition};
use crate::windows::msft_storage;
use crate::windows::reparse_point::Link;
use crate::windows::volume_device::{self, FileSystem, VolumeStats};
use crate::windows::wmi::may_run_on;

/// What every client that asks for a mounted volume looks for in the answer to know that none is mounted.
const NOT_MOUNTED: &str = "because it does not exist";

fn disk_object(node: &Node, volume: VolumeId) -> Outcome<Object> {
    Ok(Object::Disk(volume_device::disk_of(node, volume)?.0))
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
    const LANE: Lane = Lane::Disks;

    fn attempt(&self) -> String {
        match self.partition {
            0 => format!("list the volumes on {}", self.disk),
            number => format!("list the volumes on partition {number} of {}", self.disk),
        }
    }

    fn run(&self, node: &Node, _run: &Run) -> Outcome<Self::Output> {
        let disk = Disk::open(node, self.disk, Access::empty())?;
        if disk.is_offline()? {
            return Err(Fault::precondition("the disk is offline, and its volumes with it"));
        }
        let (mut last, mut first_is_there) = (Vec::new(), true);
        // A partition made just now has no volume yet; one that lacks it for good must not hide the others.
        node.poll(node.config().patience.arrival, || {
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
            return Err(Fault::precondition("the volume of its first data partition has not come, or cannot be read"));
        }
        if last.is_empty() { Err(Fault::not_found("there is none")) } else { Ok(last) }
    }
}

impl ListVolumesOnDisk {
    fn wants(&self, partition: &Partition) -> bool {
        self.partition == 0 || partition.number == self.partition
    }
}

/// The first volume of a disk, and what is asked of it: how azuredisk since 1.30 names the volume to grow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResizeFirstVolume {
    /// The disk.
    pub disk: DiskNumber,
    /// As in [`ResizeVolume`].
    pub size: u64,
}

impl Operation for ResizeFirstVolume {
    type Output = ();
    const NAME: &'static str = "ResizeVolume";
    const LANE: Lane = Lane::Disks;
    const JOINS: Joins = Joins::Running;

    fn attempt(&self) -> String {
        format!("resize the first volume of {}", self.disk)
    }

    fn objects(&self, _node: &Node) -> Outcome<Vec<Object>> {
        Ok(vec![Object::Disk(self.disk.0)])
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<()> {
        let volumes = ListVolumesOnDisk { disk: self.disk, partition: 0 }.run(node, run)?;
        let first = volumes.first().ok_or_else(|| Fault::not_found("there is none"))?;
        ResizeVolume { volume: *first, size: self.size }.run(node, run)
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
    const LANE: Lane = Lane::Disks;

    fn attempt(&self) -> String {
        format!("tell whether volume {} is formatted", self.volume)
    }

    fn run(&self, node: &Node, _run: &Run) -> Outcome<bool> {
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
    const LANE: Lane = Lane::Disks;
    const JOINS: Joins = Joins::Running;
    const LOOKS_UP: bool = true;

    fn attempt(&self) -> String {
        format!("format volume {}", self.volume)
    }

    fn objects(&self, node: &Node) -> Outcome<Vec<Object>> {
        Ok(vec![disk_object(node, self.volume)?])
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<()> {
        volume_device::locked_disk_of(node, self.volume, run)?;
        match volume_device::file_system(node, self.volume)? {
            FileSystem::Ntfs => return Ok(()),
            FileSystem::Other(name) => return Err(occupied(&name)),
            FileSystem::Raw => {}
        }
        match msft_storage::format_ntfs(node, run, self.volume, || self.still_raw(node, run)) {
            // Nobody knows whether it goes on. The disk stays locked as long as it may.
            Err(fault) if fault.code.is_some_and(may_run_on) => {
                self.wait(node, node.config().patience.format)?.ok_or(fault)
            }
            outcome => {
                outcome?;
                let formatted = self.wait(node, node.config().patience.arrival)?;
                formatted.ok_or_else(|| Fault::precondition("Windows says that it is formatted, but it has no NTFS"))
            }
        }
    }
}

impl FormatVolume {
    /// The last look before the data, if there were any, would be gone. Whoever else was faster has done the work.
    fn still_raw(&self, node: &Node, run: &Run) -> Outcome<bool> {
        volume_device::locked_disk_of(node, self.volume, run)?;
        match volume_device::file_system(node, self.volume)? {
            FileSystem::Raw => Ok(true),
            FileSystem::Ntfs => Ok(false),
            FileSystem::Other(name) => Err(occupied(&name)),
        }
    }

    /// Waits until it is formatted.
    fn wait(&self, node: &Node, patience: Duration) -> Outcome<Option<()>> {
        node.poll(patience, || Ok((volume_device::file_system(node, self.volume)? == FileSystem::Ntfs).then_some(())))
    }
}

fn occupied(file_system: &str) -> Fault {
    Fault::precondition(format!("it has a {file_system} file system, which is not overwritten"))
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
    const LANE: Lane = Lane::Disks;
    const JOINS: Joins = Joins::Running;
    const LOOKS_UP: bool = true;

    fn attempt(&self) -> String {
        format!("mount volume {} at {}", self.volume, self.target)
    }

    fn objects(&self, node: &Node) -> Outcome<Vec<Object>> {
        node.directories.check(&self.target, None)?;
        Ok(vec![Object::Path(self.target.key()), disk_object(node, self.volume)?])
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<()> {
        volume_device::locked_disk_of(node, self.volume, run)?;
        // Mounted in a container's directory, the system's volume would be all there in the container.
        if node.directories.volumes(node.os())?.contains(&self.volume) {
            return Err(Fault::new(Kind::PermissionDenied, "it is a volume of the node itself"));
        }
        let place = node.directories.place(node.os(), &self.target, None, &PIN)?;
        // Held without sharing deletion until the end, so that the path below leads here and nowhere else.
        let target = place.parent().open_child(place.leaf(), &PIN)?;
        let path = place.directory_path()?;
        match Link::of(&*target)? {
            None if buffer::attributes(&*target)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 => {
                return Err(OsError::DIRECTORY.into());
            }
            None => {}
            Some(link) => match link.volume() {
                Some(mounted) if mounted == self.volume => return Ok(()),
                Some(mounted) if is_present(node, mounted)? => {
                    return Err(Fault::precondition(format!("volume {mounted} is mounted there")));
                }
                // Left over from before the node's restart.
                Some(_) => {
                    run.commit()?;
                    node.os().delete_volume_mount_point(&path)?;
                }
                None => return Err(Fault::precondition("it is a link, not a directory")),
            },
        }
        run.commit()?;
        node.os().set_volume_mount_point(&path, &self.volume.to_windows())?;
        match Link::of(&*target)?.and_then(|link| link.volume()) {
            Some(mounted) if mounted == self.volume => Ok(()),
            _ => Err(Fault::new(Kind::Internal, "Windows says that it is mounted, but the directory says otherwise")),
        }
    }
}

/// Whether a volume exists. Only a clear no is a no.
fn is_present(node: &Node, volume: VolumeId) -> Outcome<bool> {
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
    const LANE: Lane = Lane::Disks;
    const JOINS: Joins = Joins::Running;
    const LOOKS_UP: bool = true;

    fn attempt(&self) -> String {
        format!("unmount volume {} from {}", self.volume, self.target)
    }

    fn objects(&self, node: &Node) -> Outcome<Vec<Object>> {
        node.directories.check(&self.target, None)?;
        let mut objects = vec![Object::Path(self.target.key())];
        // A mount point may outlive its volume, and is removed all the same. If the volume is there after all, the run
        // finds its disk not locked.
        objects.extend(disk_object(node, self.volume).ok());
        Ok(objects)
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<()> {
        let place = node.directories.place(node.os(), &self.target, None, &PIN)?;
        let target = place.parent().open_child(place.leaf(), &PIN)?;
        match Link::of(&*target)?.and_then(|link| link.volume()) {
            Some(mounted) if mounted == self.volume => {}
            Some(mounted) => return Err(Fault::precondition(format!("volume {mounted} is mounted there"))),
            None => return Err(Fault::precondition("nothing is mounted there")),
        }
        if is_present(node, self.volume)? {
            volume_device::locked_disk_of(node, self.volume, run)?;
            run.commit()?;
            volume_device::flush(node, self.volume)?;
        }
        run.commit()?;
        Ok(node.os().delete_volume_mount_point(&place.directory_path()?)?)
    }
}

/// Grows a volume, with its partition. Being that large already is success; it is never made smaller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResizeVolume {
    /// The volume.
    pub volume: VolumeId,
    /// The partition's size to reach in bytes; 0 is as much as there is room for.
    pub size: u64,
}

impl Operation for ResizeVolume {
    type Output = ();
    const NAME: &'static str = "ResizeVolume";
    const LANE: Lane = Lane::Disks;
    const JOINS: Joins = Joins::Running;
    const LOOKS_UP: bool = true;

    fn attempt(&self) -> String {
        match self.size {
            0 => format!("resize volume {} to its maximum", self.volume),
            size => format!("resize volume {} to {size} bytes", self.volume),
        }
    }

    fn objects(&self, node: &Node) -> Outcome<Vec<Object>> {
        Ok(vec![disk_object(node, self.volume)?])
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<()> {
        let number = volume_device::locked_disk_of(node, self.volume, run)?;
        let disk = Disk::open(node, number, Access::GENERIC_READ)?;
        disk.update()?;
        let extent = volume_device::extent(node, self.volume)?;
        let layout = disk.layout()?;
        let under = layout.partitions().iter().find(|partition| Ok(partition.offset) == u64::try_from(extent.offset));
        let partition = *under.ok_or_else(|| Fault::precondition("the volume is not on a partition of its own"))?;
        if self.wants_growth(&disk, &layout, &partition)? {
            run.enter(Lane::Wmi)?;
            self.grow(node, run, &disk, &layout, &partition)?;
        }
        self.fill_partition(node, run)
    }
}

impl ResizeVolume {
    /// Whether there may be something to do, told without the storage provider.
    fn wants_growth(&self, disk: &Disk, layout: &Layout, partition: &Partition) -> Outcome<bool> {
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

    fn grow(&self, node: &Node, run: &Run, disk: &Disk, layout: &Layout, partition: &Partition) -> Outcome<()> {
        let instance = msft_storage::partition(node, run, disk.number, partition.number, partition.offset)?;
        let (largest, untold) = match msft_storage::largest(node, run, &instance) {
            Ok(largest) => (largest, None),
            // Asking needs the service that defragments, growing does not, and the provider refuses what is too much.
            Err(fault) if fault.kind == Kind::Internal => (room_of(disk, layout, partition)?, Some(fault)),
            Err(fault) => return Err(fault),
        };
        if self.size.saturating_sub(largest) >= MIB {
            let reason = format!("{} bytes are asked for, and there is room for {largest}", self.size);
            return Err(match untold {
                None => Fault::precondition(reason),
                Some(fault) => {
                    let reason = format!("{reason} by the partition table; Windows did not say: {}", fault.reason);
                    Fault { kind: Kind::FailedPrecondition, reason, ..fault }
                }
            });
        }
        let size = if self.size == 0 { largest } else { self.size.min(largest) };
        if size < partition.length + MIB {
            return Ok(());
        }
        msft_storage::resize(node, run, &instance, size)?;
        disk.update()?;
        let grown = node.poll(node.config().patience.arrival, || {
            let extent = volume_device::extent(node, self.volume)?;
            Ok((u64::try_from(extent.length).unwrap_or_default() > partition.length).then_some(()))
        })?;
        grown.ok_or_else(|| Fault::precondition("Windows says that it is resized, but the partition has not grown"))
    }

    /// Makes the file system as large as its partition, where an earlier attempt got only half-way.
    fn fill_partition(&self, node: &Node, run: &Run) -> Outcome<()> {
        let total = match volume_device::stats(node, self.volume) {
            Ok(stats) => stats.total,
            Err(fault) if fault.code == Some(OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
            Err(fault) => return Err(fault),
        };
        let extent = volume_device::extent(node, self.volume)?;
        let length = u64::try_from(extent.length).unwrap_or_default();
        if length < total.saturating_add(MIB) || volume_device::file_system(node, self.volume)? != FileSystem::Ntfs {
            return Ok(());
        }
        let number = volume_device::locked_disk_of(node, self.volume, run)?;
        let geometry = Disk::open(node, number, Access::empty())?.geometry()?;
        let sectors = extent.length / i64::from(geometry.bytes_per_sector.max(512));
        run.commit()?;
        let handle = volume_device::open(node, self.volume, &volume_device::READ)?;
        buffer::send(&*handle, ControlCode::FSCTL_EXTEND_VOLUME, sectors.as_bytes())
            .map_err(|code| Fault::of(code, "the partition has grown, but its file system has not"))
    }
}

/// The largest size in bytes that the partition can have, from the partition table.
fn room_of(disk: &Disk, layout: &Layout, partition: &Partition) -> Outcome<u64> {
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
    const LANE: Lane = Lane::Disks;

    fn attempt(&self) -> String {
        format!("read the size of volume {}", self.volume)
    }

    fn run(&self, node: &Node, _run: &Run) -> Outcome<VolumeStats> {
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
    const LANE: Lane = Lane::Disks;

    fn attempt(&self) -> String {
        format!("find the disk of volume {}", self.volume)
    }

    fn run(&self, node: &Node, _run: &Run) -> Outcome<DiskNumber> {
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
    const LANE: Lane = Lane::Files;

    fn attempt(&self) -> String {
        format!("find the volume mounted at {}", self.target)
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<VolumeId> {
        let nothing = |what: &str| Fault::not_found(format!("{what}: no mount can be found {NOT_MOUNTED}"));
        let path = self.target.to_nt();
        enter_lane_above(node, &self.target, run)?;
        let found = match node.os().open(&path, &LOOK) {
            Err(code) if leads_nowhere(code) => return Err(nothing("there is no such path")),
            outcome => outcome?,
        };
        let link = match Link::of(&*found)? {
            None | Some(Link::Other) => return Err(nothing("it is not a mount point")),
            Some(link) => link,
        };
        enter_lane_of(node, &link, run)?;
        let target = match node.os().open(&path, &Open { options: os::Options::empty(), ..LOOK }) {
            Err(code) if leads_nowhere(code) => return Err(nothing("it is stale, what was mounted has gone")),
            // A volume without a file system has no root to open, but it is mounted.
            Err(OsError::UNRECOGNIZED_VOLUME) => {
                return link.volume().ok_or_else(|| Fault::from(OsError::UNRECOGNIZED_VOLUME));
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
    const LANE: Lane = Lane::Files;

    fn attempt(&self) -> String {
        format!("find the volume that {} is on", self.target)
    }

    fn run(&self, node: &Node, run: &Run) -> Outcome<VolumeId> {
        enter_lane_above(node, &self.target, run)?;
        if let Ok(found) = node.os().open(&self.target.to_nt(), &LOOK)
            && let Some(link) = Link::of(&*found)?
        {
            enter_lane_of(node, &link, run)?;
        }
        closest(node, &self.target)
    }
}

fn closest(node: &Node, path: &HostPath) -> Outcome<VolumeId> {
    let found = node.os().open(&path.to_nt(), &Open { options: os::Options::empty(), ..LOOK })?;
    let final_path = found.final_path(PathForm::VolumeGuid).map_err(|code| Fault::of(code, "it is on no volume"))?;
    volume_under(&final_path).map(|(volume, _)| volume)
}

fn volume_under(path: &U16String) -> Outcome<(VolumeId, bool)> {
    VolumeId::of_final_path(path)
        .ok_or_else(|| Fault::new(Kind::Internal, format!("Windows gave {} for a path on a volume", path.display())))
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
    const LANE: Lane = Lane::Disks;

    fn attempt(&self) -> String {
        format!("write the cache of volume {}", self.volume)
    }

    fn run(&self, node: &Node, _run: &Run) -> Outcome<()> {
        volume_device::flush(node, self.volume)
    }
}
