//! Mounting a volume at a directory, and unmounting it.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Handle, OsError, U16Str};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::executor::pool_kind::PoolKind;
use crate::node::Node;
use crate::ops::node_volumes;
use crate::ops::volume::disk_lock_key;
use crate::paths::working_directories::{EntryRef, OPEN_NO_DELETE_SHARE};
use crate::types::{HostPath, VolumeId};
use crate::windows::reparse_point::Link;
use crate::windows::{buffer, volume_device};

/// Mounts a volume at an empty directory. Succeeds without a change if the volume is already mounted there. A volume
/// that the node itself uses is refused.
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
    const RESOLVES_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("mount volume {} at {}", self.volume, self.target)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        node.directories.check(&self.target, None)?;
        Ok(vec![LockKey::Path(self.target.key()), disk_lock_key(node, self.volume)?])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        volume_device::locked_disk_of(&node.host, self.volume, ctx)?;
        // A container must not get access to a volume of the node, such as the system volume.
        node_volumes::refuse_volume(node, self.volume)?;
        let entry = node.directories.entry(node.host.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
        // Held without sharing deletion until the end, so that the path keeps leading to this directory.
        let target = entry.parent().open_child(entry.leaf(), &OPEN_NO_DELETE_SHARE)?;
        let path = entry.win32_path()?;
        match Link::of(&*target)? {
            None if buffer::attributes(&*target)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 => {
                return Err(OsError::DIRECTORY.into());
            }
            None => {}
            Some(link) => match link.volume() {
                Some(mounted) if mounted == self.volume => return Ok(()),
                Some(mounted) if is_present(node, mounted)? => {
                    return Err(OperationError::precondition(format!("volume {mounted} is mounted at that path")));
                }
                // The mount point is stale: its volume no longer exists.
                Some(_) => {
                    ctx.begin_mutation()?;
                    node.host.os().delete_volume_mount_point(&path)?;
                }
                None => return Err(OperationError::precondition("the path is a link, not a directory")),
            },
        }
        ctx.begin_mutation()?;
        match node.host.os().set_volume_mount_point(&path, &self.volume.to_windows()) {
            Err(OsError::SHARING_VIOLATION) => drop(target),
            outcome => {
                outcome?;
                return if self.is_mounted_at(&*target)? { Ok(()) } else { Err(not_mounted()) };
            }
        }
        self.mount_unheld(node, &entry, &path)
    }
}

impl MountVolume {
    fn is_mounted_at(&self, directory: &dyn Handle) -> OperationResult<bool> {
        Ok(Link::of(directory)?.and_then(|link| link.volume()) == Some(self.volume))
    }

    /// Mounts the volume while nothing holds the directory, whose parents are held. No document says how the mount
    /// manager opens the directory, so a handle that does not share deletion may be in its way.
    fn mount_unheld(&self, node: &Node, entry: &EntryRef, path: &U16Str) -> OperationResult<()> {
        let (os, volume) = (node.host.os(), self.volume.to_windows());
        let before = os.volume_paths(&volume)?;
        let mounted = os.set_volume_mount_point(path, &volume);
        // The first attempt may have had an effect, in spite of its code.
        if self.is_mounted_at(&*entry.open()?)? {
            return Ok(());
        }
        mounted?;
        // Another process has replaced the directory, and the volume is mounted elsewhere.
        for path in os.volume_paths(&volume)?.iter().filter(|path| !before.contains(path)) {
            os.delete_volume_mount_point(path)?;
        }
        Err(not_mounted())
    }
}

fn not_mounted() -> OperationError {
    let reason = "Windows reported success, but the directory is not a mount point of the volume";
    OperationError::new(Kind::Internal, reason)
}

/// Returns whether Windows lists the volume.
fn is_present(node: &Node, volume: VolumeId) -> OperationResult<bool> {
    Ok(node.host.os().volumes()?.iter().any(|name| VolumeId::from_windows(name) == Some(volume)))
}

/// Writes the cache of a volume to its disk and removes its mount point, but not the directory.
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
    const RESOLVES_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("unmount volume {} from {}", self.volume, self.target)
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        node.directories.check(&self.target, None)?;
        let mut keys = vec![LockKey::Path(self.target.key())];
        // A mount point can be removed after its volume. If the volume exists after all, `run` requests a rerun,
        // because the disk is not locked.
        keys.extend(disk_lock_key(node, self.volume).ok());
        Ok(keys)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let entry = node.directories.entry(node.host.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
        let target = entry.parent().open_child(entry.leaf(), &OPEN_NO_DELETE_SHARE)?;
        match Link::of(&*target)?.and_then(|link| link.volume()) {
            Some(mounted) if mounted == self.volume => {}
            Some(mounted) => {
                return Err(OperationError::precondition(format!("volume {mounted} is mounted at that path")));
            }
            None => return Err(OperationError::precondition("no volume is mounted at that path")),
        }
        if is_present(node, self.volume)? {
            volume_device::locked_disk_of(&node.host, self.volume, ctx)?;
            ctx.begin_mutation()?;
            volume_device::flush(&node.host, self.volume)?;
        }
        ctx.begin_mutation()?;
        let path = entry.win32_path()?;
        match node.host.os().delete_volume_mount_point(&path) {
            // As for mounting. The path can only lead to another mount point if an administrator sets one.
            Err(OsError::SHARING_VIOLATION) => {
                drop(target);
                let removed = node.host.os().delete_volume_mount_point(&path);
                if Link::of(&*entry.open()?)?.is_none() { Ok(()) } else { Ok(removed?) }
            }
            outcome => Ok(outcome?),
        }
    }
}
