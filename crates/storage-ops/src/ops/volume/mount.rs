//! Mounting a volume at a directory, and unmounting it.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Handle, OsError, OsResult, U16String};

use crate::devices::{Link, buffer};
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::error_class::ErrorClass;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::ops::volume::disk_lock_key;
use crate::ops::volume::format::grant_access;
use crate::paths::opening::{OPEN_NO_DELETE_SHARE, ensure_directory};
use crate::paths::refused_links;
use crate::paths::remove_tree::names;
use crate::paths::working_directories::EntryRef;
use crate::provider::report;
use crate::readings::{self, node_volumes};
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::{HostPath, VolumeId};
use crate::windows::Fallback;

/// Mounts a volume at an empty directory. Succeeds without a change if the volume is already
/// mounted there. A volume that the node itself uses is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MountVolume {
    /// The volume.
    pub volume: VolumeId,
    /// An empty directory in a working directory.
    pub target: HostPath,
}

impl Operation for MountVolume {
    type Output = ();
    const NAME: &'static str = "MountVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("mount volume {} at {}", self.volume, self.target)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        node.directories.check_entry(&self.target, None)?;
        Ok(vec![LockKey::Path(self.target.entry_key())])
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        Ok(vec![disk_lock_key(run, self.volume).await?])
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        // A container must not get access to a volume that the node itself uses, such as the system
        // volume.
        node_volumes::refuse_volume(run, self.volume).await?;
        grant_access(run, self.volume)?;
        let named = |error: OperationError| match error.code {
            Some(code) if ErrorClass::DirectoryMissing.contains(code) => OperationError {
                reason: format!("the directory {} does not exist ({})", self.target, code.0),
                ..error
            },
            _ => error,
        };
        let how = &OPEN_NO_DELETE_SHARE;
        let entry = run
            .node()
            .directories
            .entry(run.os(), &self.target, None, how)
            .map_err(named)?;
        // Held without sharing deletion until the end, so that the path keeps leading to this
        // directory.
        let mut target = entry
            .parent()
            .open_child(entry.leaf(), how)
            .map_err(|code| named(code.into()))?;
        let path = entry.win32_path()?;
        match Link::of(&*target)? {
            None if buffer::attributes(&*target)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 => {
                return Err(OsError::DIRECTORY.into());
            }
            None => {}
            Some(link) => match link.volume() {
                Some(mounted) if mounted == self.volume => return Ok(()),
                Some(mounted) if readings::volume::exists(run, mounted).await? => {
                    return failed_precondition(format!(
                        "volume {mounted} is mounted at that path"
                    ));
                }
                // The mount point is stale: its volume no longer exists.
                Some(mounted) => {
                    run.begin_mutation()?;
                    remove_mount_point(run, &entry, target, mounted).await?;
                    target = entry
                        .parent()
                        .open_child(entry.leaf(), &OPEN_NO_DELETE_SHARE)?;
                }
                None => return Err(refused_links::refusal_of(&link, entry.leaf().display())),
            },
        }
        run.begin_mutation()?;
        let (os, volume) = (run.os(), self.volume.to_windows());
        // If Windows mounts the volume at another directory, this list is needed to find and undo
        // that mount.
        let before = os.volume_paths(&volume)?;
        match os.set_volume_mount_point(&path, &volume) {
            Ok(()) => {
                let is_mounted = self.is_mounted_at(&*target);
                if is_mounted == Ok(true) {
                    return Ok(());
                }
                // Another process can turn the directory into a link although csi-proxy holds a
                // handle on it. No document says whether Windows follows such a link when it
                // mounts.
                self.undo_elsewhere(run.node(), &before)?;
                is_mounted.and(Err(not_mounted()))?
            }
            Err(code) if is_refusal(code) => Err(code.into()),
            Err(code) => {
                self.mount_otherwise(run, &entry, target, &before, code)
                    .await
            }
        }
    }
}

/// Returns whether the mount manager's code states that the volume cannot be mounted at the
/// directory.
fn is_refusal(code: OsError) -> bool {
    let refused = [
        OsError::DIR_NOT_EMPTY,
        OsError::DIRECTORY,
        OsError::WRITE_PROTECT,
        OsError::DISK_FULL,
    ];
    refused.contains(&code) || OperationError::from(code).inconclusive().is_none()
}

impl MountVolume {
    fn is_mounted_at(&self, directory: &dyn Handle) -> OperationResult<bool> {
        Ok(Link::of(directory)?.and_then(|link| link.volume()) == Some(self.volume))
    }

    /// Mounts the volume after the mount manager has failed with `code`. First asks the storage
    /// provider. If the provider fails too, and the cause may be the handle on the directory,
    /// closes the handle and asks the mount manager again. The parent directories stay open
    /// meanwhile.
    ///
    /// No document says how the mount manager opens the directory.
    async fn mount_otherwise(
        &self,
        run: Run<'_>,
        entry: &EntryRef,
        target: Box<dyn Handle>,
        before: &[U16String],
        code: OsError,
    ) -> OperationResult<()> {
        // The first attempt may have had an effect, in spite of its code.
        if self.is_mounted_at(&*target)? {
            return Ok(());
        }
        // The attempt may also have mounted the volume elsewhere. The operation ends if the provider
        // mounts it at the directory.
        self.undo_elsewhere(run.node(), before)?;
        run.enter(PoolKind::Wmi).await;
        run.windows().fallbacks.record(Fallback::Mount, code);
        let (os, volume, path) = (run.os(), self.volume.to_windows(), entry.win32_path()?);
        let added = report::change_access_path(run, self.volume, "AddAccessPath", &path);
        if self.is_mounted_at(&*target)? {
            return Ok(());
        }
        self.undo_elsewhere(run.node(), before)?;
        let failed = added.err().unwrap_or_else(not_mounted);
        if code != OsError::SHARING_VIOLATION || failed.kind == ErrorKind::StillRunning {
            return Err(after(code, failed));
        }
        drop(target);
        let mounted = os.set_volume_mount_point(&path, &volume);
        // Another process may have removed the directory meanwhile, and the volume may be mounted
        // at a new directory that has the same path.
        let is_mounted = entry
            .open()
            .map_err(OperationError::from)
            .and_then(|target| self.is_mounted_at(&*target));
        if is_mounted == Ok(true) {
            return Ok(());
        }
        self.undo_elsewhere(run.node(), before)?;
        mounted?;
        is_mounted.and(Err(not_mounted()))?
    }

    /// Unmounts the volume from the directories that are not in the list `before`: another process
    /// has replaced the target.
    fn undo_elsewhere(&self, node: &Node, before: &[U16String]) -> OperationResult<()> {
        let paths = node.windows.os().volume_paths(&self.volume.to_windows())?;
        let elsewhere = paths.iter().filter(|path| !before.contains(path));
        // A path that cannot be unmounted must not prevent the unmounting of the others.
        let undone: Vec<_> = elsewhere
            .map(|path| node.windows.os().delete_volume_mount_point(path))
            .collect();
        Ok(undone.into_iter().collect::<OsResult<()>>()?)
    }
}

/// Returns the error to report if the mount manager has failed with `code` and then the fallback
/// has failed too.
fn after(code: OsError, failed: OperationError) -> OperationError {
    if failed.kind == ErrorKind::StillRunning {
        failed
    } else {
        OperationError::from(code).with_failed_fallback(&failed)
    }
}

fn not_mounted() -> OperationError {
    let reason = "Windows reported success, but the directory is not a mount point of the volume";
    OperationError::new(ErrorKind::Internal, reason)
}

/// Succeeds if a directory at which no volume is mounted is empty, as an earlier UnmountVolume whose
/// answer was lost has left it. Drivers remove the directory with its contents next.
fn not_mounted_at(directory: &dyn Handle) -> OperationResult<()> {
    ensure_directory(directory)?;
    match names(directory, 1)?.names.first() {
        None => Ok(()),
        Some(name) => failed_precondition(format!(
            "no volume is mounted at that path, and the directory is not empty; {} may be a pod's \
             data",
            name.display()
        )),
    }
}

/// Removes the mount point of `volume` at `entry`, which is open as `target`, like
/// [`MountVolume::mount_otherwise`]. While the directory is not held, a container can make its path
/// lead to another mount point of the same name (docs/security.md).
async fn remove_mount_point(
    run: Run<'_>,
    entry: &EntryRef,
    target: Box<dyn Handle>,
    volume: VolumeId,
) -> OperationResult<()> {
    let (os, path) = (run.os(), entry.win32_path()?);
    let Err(code) = os.delete_volume_mount_point(&path) else {
        return Ok(());
    };
    let is_removed = |directory: &dyn Handle| Ok::<_, OsError>(Link::of(directory)?.is_none());
    if is_removed(&*target)? {
        return Ok(());
    }
    run.enter(PoolKind::Wmi).await;
    run.windows().fallbacks.record(Fallback::Unmount, code);
    let removed = report::change_access_path(run, volume, "RemoveAccessPath", &path);
    if is_removed(&*target)? {
        return Ok(());
    }
    let failed = removed
        .err()
        .unwrap_or_else(|| OperationError::precondition("the directory is still a mount point"));
    if code != OsError::SHARING_VIOLATION || failed.kind == ErrorKind::StillRunning {
        return Err(after(code, failed));
    }
    drop(target);
    let removed = os.delete_volume_mount_point(&path);
    if is_removed(&*entry.open()?)? {
        Ok(())
    } else {
        Ok(removed?)
    }
}

/// Writes the cache of a volume to its disk (`FlushFileBuffers`), and then removes its mount point
/// (`DeleteVolumeMountPoint`), but not the directory. Succeeds without a change if the path is an
/// empty directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnmountVolume {
    /// The volume.
    pub volume: VolumeId,
    /// A path in a working directory.
    pub target: HostPath,
}

impl Operation for UnmountVolume {
    type Output = ();
    const NAME: &'static str = "UnmountVolume";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Volume(self.volume))
    }

    fn describe(&self) -> String {
        format!("unmount volume {} from {}", self.volume, self.target)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        node.directories.check_entry(&self.target, None)?;
        Ok(vec![LockKey::Path(self.target.entry_key())])
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        // A mount point can be removed after its volume.
        Ok(disk_lock_key(run, self.volume).await.into_iter().collect())
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let entry =
            run.node()
                .directories
                .entry(run.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
        let target = entry
            .parent()
            .open_child(entry.leaf(), &OPEN_NO_DELETE_SHARE)?;
        match Link::of(&*target)?.map(|link| link.volume()) {
            Some(Some(mounted)) if mounted == self.volume => {}
            Some(Some(mounted)) => {
                return failed_precondition(format!("volume {mounted} is mounted at that path"));
            }
            Some(None) => {
                return failed_precondition("the path is a link, and no volume is mounted at it");
            }
            None => return not_mounted_at(&*target),
        }
        if readings::volume::exists(run, self.volume).await? {
            // The look-up of the disk may have failed although the volume exists.
            if run.locked_disk().is_none() {
                readings::volume::locked_disk_of(run, self.volume).await?;
            }
            run.begin_mutation()?;
            readings::volume::flush(run, self.volume).await?;
        }
        run.begin_mutation()?;
        remove_mount_point(run, &entry, target, self.volume).await
    }
}
