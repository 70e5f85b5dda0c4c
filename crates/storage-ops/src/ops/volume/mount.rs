//! Mounting a volume at a directory, and unmounting it.

use os::OsError;
use os::abi::FILE_ATTRIBUTE_DIRECTORY;

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::ops::volume::disk_lock_key;
use crate::paths::working_directories::OPEN_NO_DELETE_SHARE;
use crate::types::{HostPath, VolumeId};
use crate::windows::reparse_point::Link;
use crate::windows::{buffer, volume_device};

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
        volume_device::locked_disk_of(&node.host, self.volume, ctx)?;
        // Mounted in a container's directory, the system's volume would be all there in the container.
        if node.directories.volumes(node.host.os())?.contains(&self.volume) {
            return Err(OperationError::new(Kind::PermissionDenied, "it is a volume of the node itself"));
        }
        let place = node.directories.entry(node.host.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
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
                    node.host.os().delete_volume_mount_point(&path)?;
                }
                None => return Err(OperationError::precondition("it is a link, not a directory")),
            },
        }
        ctx.begin_mutation()?;
        node.host.os().set_volume_mount_point(&path, &self.volume.to_windows())?;
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
    Ok(node.host.os().volumes()?.iter().any(|name| VolumeId::from_windows(name) == Some(volume)))
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
        let place = node.directories.entry(node.host.os(), &self.target, None, &OPEN_NO_DELETE_SHARE)?;
        let target = place.parent().open_child(place.leaf(), &OPEN_NO_DELETE_SHARE)?;
        match Link::of(&*target)?.and_then(|link| link.volume()) {
            Some(mounted) if mounted == self.volume => {}
            Some(mounted) => return Err(OperationError::precondition(format!("volume {mounted} is mounted there"))),
            None => return Err(OperationError::precondition("nothing is mounted there")),
        }
        if is_present(node, self.volume)? {
            volume_device::locked_disk_of(&node.host, self.volume, ctx)?;
            ctx.begin_mutation()?;
            volume_device::flush(&node.host, self.volume)?;
        }
        ctx.begin_mutation()?;
        Ok(node.host.os().delete_volume_mount_point(&place.directory_path()?)?)
    }
}
