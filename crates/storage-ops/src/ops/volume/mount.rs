//! Mounting a volume at a directory, and unmounting it.

use os::{Handle, OsError, OsResult, U16String};

use crate::devices::Link;
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

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check_entry(&self.target, None)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Path(self.target.entry_key())]
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
            .entry(run.os(), &self.target, how)
            .map_err(named)?;
        // Held without sharing deletion until the volume is mounted, or until the last attempt to
        // mount it, so that the path keeps leading to this directory.
        let mut target = entry
            .parent()
            .open_child(entry.leaf(), how)
            .map_err(|code| named(code.into()))?;
        match Link::of_directory(&*target)? {
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
        // If Windows mounts the volume at another directory, this list is needed to find and undo
        // that mount. Nothing else needs it.
        let before = run.os().volume_paths(&self.volume.to_windows());
        let path = entry.win32_path()?;
        match run
            .os()
            .set_volume_mount_point(&path, &self.volume.to_windows())
        {
            Err(code) if is_refusal(code) => Err(code.into()),
            mounted => self
                .check_or_mount_otherwise(run, &entry, target, &before, mounted.err())
                .await
                .map_err(|error| match before {
                    Ok(_) => error,
                    Err(code) => without_undo(error, code),
                }),
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

    /// Checks that the mount manager has mounted the volume at `target`. If the mount manager has
    /// failed with `code`, does the following until the volume is mounted:
    ///
    /// 1. Looks whether the volume is mounted in spite of the code.
    /// 2. Makes the storage provider mount the volume, unless the cause is known to be the handle on
    ///    the directory ([`HeldDirectory`](crate::paths::held_directory::HeldDirectory)).
    /// 3. If the cause may be the handle on the directory: closes the handle, and makes the mount
    ///    manager mount the volume. The parent directories stay open meanwhile. Another process may
    ///    then replace the directory, so the directory that now has the path is looked at.
    ///
    /// After each attempt without the wanted effect, a mount at another directory is undone: another
    /// process can turn the directory into a link although csi-proxy holds a handle on it, and no
    /// document says whether Windows follows such a link, or how it opens the directory.
    async fn check_or_mount_otherwise(
        &self,
        run: Run<'_>,
        entry: &EntryRef,
        target: Box<dyn Handle>,
        before: &OsResult<Vec<U16String>>,
        code: Option<OsError>,
    ) -> OperationResult<()> {
        let is_mounted = self.is_mounted_at(&*target);
        if is_mounted == Ok(true) {
            return Ok(());
        }
        // The attempt may also have mounted the volume elsewhere. The operation ends if the provider
        // mounts it at the directory.
        self.undo_elsewhere(run.node(), before)?;
        is_mounted?;
        let Some(code) = code else {
            return Err(not_mounted());
        };
        run.windows().fallbacks.record(Fallback::Mount, code);
        let path = entry.win32_path()?;
        let (windows, held) = (run.windows(), &run.node().held_directory);
        if code != OsError::SHARING_VIOLATION || !held.prevents_mount(windows) {
            run.enter(PoolKind::Wmi).await;
            let added = report::change_access_path(run, self.volume, "AddAccessPath", &path);
            if self.is_mounted_at(&*target)? {
                return Ok(());
            }
            self.undo_elsewhere(run.node(), before)?;
            let failed = added.err().unwrap_or_else(not_mounted);
            if code != OsError::SHARING_VIOLATION || failed.kind == ErrorKind::StillRunning {
                return Err(after(code, failed));
            }
        }
        drop(target);
        let mounted = run
            .os()
            .set_volume_mount_point(&path, &self.volume.to_windows());
        let is_mounted = entry
            .open()
            .map_err(OperationError::from)
            .and_then(|target| self.is_mounted_at(&*target));
        if is_mounted == Ok(true) {
            return Ok(());
        }
        self.undo_elsewhere(run.node(), before)?;
        mounted?;
        is_mounted.and(Err(not_mounted()))
    }

    /// Unmounts the volume from directories that are not in the list `before`, where it has been
    /// mounted because another process replaced the target. Without the list, unmounts it from none.
    fn undo_elsewhere(
        &self,
        node: &Node,
        before: &OsResult<Vec<U16String>>,
    ) -> OperationResult<()> {
        let Ok(before) = before else {
            return Ok(());
        };
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

/// Returns the error of a mount that has failed, after the mount points of the volume could not be
/// listed because of `code`.
fn without_undo(error: OperationError, code: OsError) -> OperationError {
    error.followed_by(format_args!(
        "if Windows has mounted the volume at another directory instead, that mount was not \
         undone, because the mount points of the volume could not be listed before: {code}"
    ))
}

fn not_mounted() -> OperationError {
    let reason = "Windows reported success, but the directory is not a mount point of the volume";
    OperationError::new(ErrorKind::Internal, reason)
}

/// For a directory at which no volume is mounted: succeeds if the directory is empty, as after an
/// UnmountVolume whose answer was lost. Drivers remove the directory with its contents next.
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

fn is_no_link(directory: &dyn Handle) -> OsResult<bool> {
    Ok(Link::of(directory)?.is_none())
}

/// Removes the mount point of `volume` at `entry`, which is open as `target`, with the
/// same steps as [`MountVolume::check_or_mount_otherwise`]. While the directory is not held, a
/// container can make its path lead to another mount point of the same name (docs/security.md).
async fn remove_mount_point(
    run: Run<'_>,
    entry: &EntryRef,
    target: Box<dyn Handle>,
    volume: VolumeId,
) -> OperationResult<()> {
    let (os, path) = (run.os(), entry.win32_path()?);
    // Another program may have replaced the mount point while the operation waited for a thread.
    if Link::of(&*target)?.and_then(|link| link.volume()) != Some(volume) {
        return failed_precondition("another program has just replaced the mount point");
    }
    let Err(code) = os.delete_volume_mount_point(&path) else {
        return Ok(());
    };
    if is_no_link(&*target)? {
        return Ok(());
    }
    run.windows().fallbacks.record(Fallback::Unmount, code);
    let (windows, held) = (run.windows(), &run.node().held_directory);
    if code != OsError::SHARING_VIOLATION || !held.prevents_unmount(windows) {
        run.enter(PoolKind::Wmi).await;
        let removed = report::change_access_path(run, volume, "RemoveAccessPath", &path);
        if is_no_link(&*target)? {
            return Ok(());
        }
        let failed = removed.err().unwrap_or_else(|| {
            OperationError::precondition("the directory is still a mount point")
        });
        if code != OsError::SHARING_VIOLATION || failed.kind == ErrorKind::StillRunning {
            return Err(after(code, failed));
        }
    }
    drop(target);
    let removed = os.delete_volume_mount_point(&path);
    if is_no_link(&*entry.open()?)? {
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

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check_entry(&self.target, None)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Path(self.target.entry_key())]
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        // A mount point can be removed after its volume.
        Ok(disk_lock_key(run, self.volume).await.into_iter().collect())
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let entry = run
            .node()
            .directories
            .entry(run.os(), &self.target, &OPEN_NO_DELETE_SHARE)?;
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
