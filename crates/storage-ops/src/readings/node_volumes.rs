//! The volumes and disks that the node itself uses. No operation mounts, empties or formats such a
//! volume, or takes such a disk offline. If the use of a volume or disk cannot be determined, the
//! operation fails.

use os::{Handle, OsError, PathForm, U16Str};

use crate::devices::{Disk, Link, Partition, PartitionKind, volume};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::node::Node;
use crate::node::run::Run;
use crate::paths::on_node;
use crate::paths::opening::OPEN_NOFOLLOW;
use crate::provider::report;
use crate::readings::volume::extents;
use crate::types::{DiskNumber, HostPath, VolumeId};
use crate::windows::Fallback;

/// Refuses `volume` if the node itself uses it. The node uses: the volume of Windows; the volumes
/// of the working directories and of other paths of the node, and each volume on the way to them;
/// the EFI system, recovery and reserved partitions of every disk; and the active partition of a
/// disk with a volume of the first two kinds. A node with a BIOS starts from such a partition,
/// which Windows names "System Reserved" although it has the type of a data partition. If the
/// content of the volume is at stake, `run` must not use the provider.
pub(crate) async fn refuse_volume(run: Run<'_>, volume: VolumeId) -> OperationResult<()> {
    let node = run.node();
    if of_node(node)?.contains(&volume) {
        return Err(OperationError::new(
            ErrorKind::PermissionDenied,
            "the volume is used by the node itself",
        ));
    }
    for extent in extents(run, volume).await.map_err(undetermined)? {
        let number = DiskNumber(extent.disk_number);
        let table = Disk::open_for_read(run.os(), number).and_then(|disk| disk.partition_table());
        let table = run
            .or_fallback(Fallback::PartitionTable, table, || {
                report::partition_table(run, number)
            })
            .await
            .map_err(undetermined)?;
        let begins_here =
            |partition: &&Partition| u64::try_from(extent.offset) == Ok(partition.offset);
        for partition in table.partitions.iter().filter(begins_here) {
            let reason = match partition.kind {
                PartitionKind::System | PartitionKind::Reserved => {
                    "the volume is on an EFI system, recovery or reserved partition"
                }
                _ if partition.is_active && has_volume_of_node(run.node(), number)? => {
                    "the volume is on the active partition of a disk from which the node starts"
                }
                _ => continue,
            };
            return Err(OperationError::new(ErrorKind::PermissionDenied, reason));
        }
    }
    Ok(())
}

/// Refuses a disk with an extent of a volume that the node itself uses. Disk 0 is usually such a
/// disk, and it is the disk of a request without a number.
pub(crate) fn refuse_disk(node: &Node, disk: DiskNumber) -> OperationResult<()> {
    if has_volume_of_node(node, disk)? {
        return Err(OperationError::new(
            ErrorKind::PermissionDenied,
            "the disk has a volume that the node itself uses",
        ));
    }
    Ok(())
}

/// Returns whether the disk has an extent of a volume that the node itself uses.
pub(crate) fn has_volume_of_node(node: &Node, disk: DiskNumber) -> OperationResult<bool> {
    for volume in of_node(node)? {
        let extents = volume::extents_of(node.windows.os(), volume).map_err(undetermined)?;
        if extents.is_empty() {
            return Err(undetermined(OperationError::precondition(format!(
                "volume {volume} has no extents"
            ))));
        }
        if extents.iter().any(|extent| extent.disk_number == disk.0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the volumes that the node itself uses: the volume of Windows, the volumes of the working
/// directories and of other paths of the node, and each volume on the way to them. Inner working
/// directories need no look: they are on the volume of the outer one, or lead to another working
/// directory. Drivers may have made any other link there.
fn of_node(node: &Node) -> OperationResult<Vec<VolumeId>> {
    let mut volumes = Vec::new();
    let windows = HostPath::drive_root_of(node.config().system_drive);
    for path in node
        .directories
        .outermost()
        .chain(&node.config().node_paths)
        .chain([&windows])
    {
        volumes.extend(on_the_way(node, path).map_err(undetermined)?);
    }
    volumes.sort_unstable();
    volumes.dedup();
    Ok(volumes)
}

/// Returns the volumes on the way to `path`, and its own.
fn on_the_way(node: &Node, path: &HostPath) -> OperationResult<Vec<VolumeId>> {
    // If there is no link on the path, it is on one volume.
    if let Some(Ok(found)) = node.directories.lookup().open(&node.windows, path)
        && Link::of(&*found)?.is_none()
    {
        return Ok(volume_of(&*found)?.into_iter().collect());
    }
    let look = || {
        let mut roots = Vec::new();
        let outcome = on_node::roots(node.windows.os(), path, &mut roots);
        let is_absent = outcome.as_ref().is_err_and(|error| {
            let is_drive = roots.is_empty();
            error
                .code
                .is_some_and(|code| is_directory_missing(code) || is_drive && is_empty_drive(code))
        });
        if is_absent {
            Ok((roots, is_absent))
        } else {
            outcome.map(|()| (roots, is_absent))
        }
    };
    let (mut roots, is_absent) = look()?;
    if is_absent {
        // The directory may have been absent for a moment only.
        (roots, _) = look()?;
    }
    roots
        .iter()
        .filter_map(|root| volume_of(&**root).transpose())
        .collect()
}

/// Returns the volume of an object; `None` if it is on a share.
fn volume_of(object: &dyn Handle) -> OperationResult<Option<VolumeId>> {
    let path = match object.final_path(PathForm::VolumeGuid) {
        Err(_)
            if object
                .final_path(PathForm::Dos)?
                .to_string_lossy()
                .starts_with(r"\\?\UNC\") =>
        {
            return Ok(None);
        }
        path => path?,
    };
    let volume = VolumeId::of_final_path(&path).map(|(volume, _)| volume);
    volume
        .ok_or_else(|| {
            OperationError::precondition(format!("{} is not a path on a volume", path.display()))
        })
        .map(Some)
}

/// Returns whether the code tells that a path does not exist. Kubelet may not have created a
/// working directory yet.
fn is_directory_missing(code: OsError) -> bool {
    ErrorClass::DirectoryMissing.contains(code)
}

/// Returns whether the code tells that a drive has no medium or no file system.
fn is_empty_drive(code: OsError) -> bool {
    matches!(code, OsError::NOT_READY | OsError::UNRECOGNIZED_VOLUME)
}

/// Where a volume is mounted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountedAt {
    /// In a working directory.
    WorkingDirectory,
    /// At any path, such as a drive.
    AnyPath,
}

/// Returns the volumes that are mounted at such a path, each with the first such path.
pub(crate) fn mounted(node: &Node, at: MountedAt) -> OperationResult<Vec<(VolumeId, String)>> {
    let os = node.windows.os();
    let mut mounted = Vec::new();
    let volumes = os.volumes()?;
    for volume in volumes
        .iter()
        .filter_map(|name| VolumeId::from_windows(name))
    {
        // A single error may be transient.
        let paths = match os
            .volume_paths(&volume.to_windows())
            .or_else(|_| os.volume_paths(&volume.to_windows()))
        {
            // The volume was removed meanwhile.
            Err(code) if ErrorClass::DeviceRemoved.contains(code) => continue,
            paths => paths?,
        };
        for path in &paths {
            let parsed = path.to_string().ok();
            let is_mounted = match parsed.and_then(|text| HostPath::parse(&text).ok()) {
                Some(path) => {
                    (at == MountedAt::AnyPath || is_in_working_directory(node, &path)?)
                        && !is_stale(node, &path, volume)
                }
                // No such path is in a working directory.
                None => at == MountedAt::AnyPath,
            };
            if is_mounted {
                let text = path.to_string_lossy();
                mounted.push((volume, text.trim_end_matches('\\').to_owned()));
                break;
            }
        }
    }
    Ok(mounted)
}

/// Returns whether `path` is known not to be a mount point of `volume` any more. The mount manager
/// also lists mount points that were removed without it.
fn is_stale(node: &Node, path: &HostPath, volume: VolumeId) -> bool {
    let look = || {
        let os = node.windows.os();
        let entry = node.directories.entry(os, path, &OPEN_NOFOLLOW)?;
        Ok::<_, OperationError>(Link::of(&*entry.open()?)?)
    };
    // A single error may be transient.
    match look().or_else(|_| look()) {
        Ok(link) => link.and_then(|link| link.volume()) != Some(volume),
        Err(error) => error.is_not_found(),
    }
}

/// Returns whether `path`, as the mount manager names it, is in a working directory. The mount
/// manager knows nothing of the links that lead to one.
pub(crate) fn is_in_working_directory(node: &Node, path: &HostPath) -> OperationResult<bool> {
    if node.directories.check(path, None).is_ok() {
        return Ok(true);
    }
    for directory in places_of_working_directories(node) {
        if path.is_in(&directory?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the working directory that is in `path`, or that `path` is in. `path` has no link in it.
pub(crate) fn working_directory_around(
    node: &Node,
    path: &HostPath,
) -> OperationResult<Option<HostPath>> {
    let overlaps = |directory: &HostPath| directory.is_in(path) || path.is_in(directory);
    if let Some(directory) = node.directories.all().find(|directory| overlaps(directory)) {
        return Ok(Some(directory.clone()));
    }
    for directory in places_of_working_directories(node) {
        let directory = directory?;
        if overlaps(&directory) {
            return Ok(Some(directory));
        }
    }
    Ok(None)
}

/// Returns the paths of the working directories, with the links resolved that lead to them. One
/// that does not exist, or is on a share, has no such path.
fn places_of_working_directories(node: &Node) -> impl Iterator<Item = OperationResult<HostPath>> {
    let directories = node.directories.open_outermost(node.windows.os());
    directories.filter_map(|directory| {
        let directory = match directory {
            Err(code) if is_directory_missing(code) || is_empty_drive(code) => return None,
            directory => directory,
        };
        match directory.and_then(|directory| directory.final_path(PathForm::Dos)) {
            Err(code) => Some(Err(undetermined(code.into()))),
            Ok(path) => of_dos_path(&path).map(Ok),
        }
    })
}

/// Returns a path in [`PathForm::Dos`], if it is on a drive.
pub(crate) fn of_dos_path(path: &U16Str) -> Option<HostPath> {
    HostPath::parse(path.to_string_lossy().strip_prefix(r"\\?\")?).ok()
}

fn undetermined(error: OperationError) -> OperationError {
    // The object of the request exists: the missing object is one of the node.
    let kind = match error.kind {
        ErrorKind::NotFound => ErrorKind::FailedPrecondition,
        kind => kind,
    };
    error
        .in_context("it cannot be determined what the node itself uses")
        .with_kind(kind)
}
