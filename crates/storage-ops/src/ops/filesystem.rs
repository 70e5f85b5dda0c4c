//! Files and directories: existence, making and removing directories, links.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Access, Open, Options, OsError, U16String};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::paths::links::{make_link, open_target, require_pool_for_ancestors};
use crate::paths::remove_tree;
use crate::paths::working_directories::{EntryRef, OPEN_NO_DELETE_SHARE, OPEN_NOFOLLOW};
use crate::types::{HostPath, PathContext, VolumeId};
use crate::windows::buffer;
use crate::windows::error_class::ErrorClass;
use crate::windows::reparse_point::Link;

/// Whether a path exists. A final link counts by itself, wherever it leads; a missing parent is a plain no.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathExists {
    /// In a working directory.
    pub path: HostPath,
    /// What the path is for, where the API version says so.
    pub context: Option<PathContext>,
}

impl Operation for PathExists {
    type Output = bool;
    const NAME: &'static str = "PathExists";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("look for {}", self.path)
    }

    fn run(&self, node: &Node, _ctx: &OperationContext) -> OperationResult<bool> {
        node.directories.exists(node.host.os(), &self.path, self.context)
    }
}

/// Makes a directory and its missing parents. An existing directory, or link to one, is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mkdir {
    /// In a working directory.
    pub path: HostPath,
    /// What the path is for, where the API version says so.
    pub context: Option<PathContext>,
}

impl Operation for Mkdir {
    type Output = ();
    const NAME: &'static str = "Mkdir";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("make the directory {}", self.path)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Path(self.path.key())])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        node.directories.check(&self.path, self.context)?;
        ctx.begin_mutation()?;
        node.directories.make(node.host.os(), &self.path, self.context)
    }
}

/// Removes a directory, file, link or mount point. A link is removed, never what it leads to; a mounted folder is
/// unmounted and removed, the volume's data untouched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rmdir {
    /// In a working directory, and not one itself.
    pub path: HostPath,
    /// What the path is for, where the API version says so.
    pub context: Option<PathContext>,
    /// Whether to remove what is in the directory too, and to accept that it does not exist.
    pub force: bool,
}

impl Operation for Rmdir {
    type Output = ();
    const NAME: &'static str = "Rmdir";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("remove {}", self.path)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Path(self.path.key())])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        match self.remove(node, ctx) {
            // What was missing may have been something on the way, so this is looked at again.
            Err(fault) if self.force && fault.is_missing() => {
                let still_there = node.directories.exists(node.host.os(), &self.path, self.context)?;
                if !still_there {
                    return Ok(());
                }
                let reason = format!("others are removing something there: {}", fault.reason);
                Err(OperationError { kind: Kind::Busy, reason, ..fault })
            }
            outcome => outcome,
        }
    }
}

impl Rmdir {
    fn remove(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let place = node.directories.entry(node.host.os(), &self.path, self.context, &OPEN_NO_DELETE_SHARE)?;
        ctx.begin_mutation()?;
        let parent = remove_tree::Parent { handle: place.parent(), pinned: true };
        let doomed = remove_tree::open(node.host.os(), parent, place.leaf())?;
        if self.force {
            remove_tree::delete_all(node.host.os(), doomed)?;
        } else {
            remove_tree::delete(&doomed)?;
        }
        Ok(())
    }
}

/// Removes all that is in a directory, or on the volume mounted at it, but not the directory itself. Links in
/// there are removed, not followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RmdirContents {
    /// In a working directory, and not one itself.
    pub path: HostPath,
}

impl Operation for RmdirContents {
    type Output = ();
    const NAME: &'static str = "RmdirContents";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("empty {}", self.path)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Path(self.path.key())])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let place = node.directories.entry(node.host.os(), &self.path, None, &OPEN_NO_DELETE_SHARE)?;
        let found = place.parent().open_child(place.leaf(), &OPEN_NO_DELETE_SHARE)?;
        let (directory, pinned, spared) = match Link::of(&*found)? {
            None if buffer::attributes(&*found)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 => {
                return Err(OsError::DIRECTORY.into());
            }
            None => (found, true, None),
            Some(link) => {
                let volume =
                    link.volume().ok_or_else(|| OperationError::precondition("it is a link, not a directory"))?;
                ctx.require_pool(PoolKind::Disks)?;
                check_mounted(node, volume, &place)?;
                let list = Access::READ_DATA | Access::READ_ATTRIBUTES;
                let root = node.host.os().open(&volume.root(), &Open::existing(list, Options::DIRECTORY))?;
                // By its path it may be somewhere else, where nobody holds what leads to it. And on every volume there
                // is something that is Windows' own, and in use.
                (root, false, Some("System Volume Information"))
            }
        };
        ctx.begin_mutation()?;
        Ok(remove_tree::delete_contents(node.host.os(), remove_tree::Parent { handle: &*directory, pinned }, spared)?)
    }
}

/// Checks that `volume` is really mounted at `place`. Whoever may write to an empty directory can make it look like a
/// mount point of any volume, the system's too; only an administrator can make the mount manager believe it.
fn check_mounted(node: &Node, volume: VolumeId, place: &EntryRef) -> OperationResult<()> {
    if node.directories.volumes(node.host.os())?.contains(&volume) {
        return Err(OperationError::new(Kind::PermissionDenied, "it leads to a volume of the node itself"));
    }
    let path = place.directory_path()?.to_string_lossy();
    let path = path.strip_prefix(r"\\?\").unwrap_or(&path).to_uppercase();
    let known = node.host.os().volume_paths(&volume.to_windows())?;
    if known.iter().any(|known| known.to_string_lossy().to_uppercase() == path) {
        return Ok(());
    }
    Err(OperationError::new(
        Kind::PermissionDenied,
        "it looks like a mount point, but Windows has mounted nothing there",
    ))
}

/// Makes a link: a directory link but where the source is a file. The identical link being there already is success.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateSymlink {
    /// Where the link leads: in a working directory; may be a link itself, or missing.
    pub source: HostPath,
    /// Where the link is made: in a working directory; its parent exists.
    pub target: HostPath,
}

impl Operation for CreateSymlink {
    type Output = ();
    const NAME: &'static str = "CreateSymlink";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("make a link to {} at {}", self.source, self.target)
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Path(self.target.key())])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        node.directories.check(&self.source, None)?;
        let place = node.directories.entry(node.host.os(), &self.target, None, &OPEN_NOFOLLOW)?;
        let shown = U16String::from_str(&self.source.to_string());
        make_link(&place, self.source.to_nt().as_u16str(), &shown, || self.kind(node, ctx), ctx)
    }
}

impl CreateSymlink {
    /// What the link has to be: through one of the wrong kind, Windows opens nothing. A link is of its target's kind.
    fn kind(&self, node: &Node, ctx: &OperationContext) -> OperationResult<Options> {
        require_pool_for_ancestors(node.host.os(), &self.source, ctx)?;
        match node.host.os().open(&self.source.to_nt(), &OPEN_NOFOLLOW) {
            Ok(source) if buffer::attributes(&*source)?.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 => {
                Ok(Options::NON_DIRECTORY)
            }
            // Behind a volume that nobody has formatted yet, there is nothing yet.
            Ok(_) | Err(OsError::UNRECOGNIZED_VOLUME) => Ok(Options::DIRECTORY),
            Err(code) if ErrorClass::TargetMissing.contains(code) => Ok(Options::DIRECTORY),
            Err(code) => Err(OperationError::of(code, "the source cannot be looked at")),
        }
    }
}

/// Whether a path is a symbolic link or a mounted folder whose target exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IsSymlink {
    /// Anywhere on the node.
    pub path: HostPath,
}

impl Operation for IsSymlink {
    type Output = bool;
    const NAME: &'static str = "IsSymlink";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("tell whether {} is a link or mount point", self.path)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<bool> {
        let path = self.path.to_nt();
        require_pool_for_ancestors(node.host.os(), &self.path, ctx)?;
        let found = node.host.os().open(&path, &OPEN_NOFOLLOW)?;
        let link = match Link::of(&*found)? {
            None | Some(Link::Other) => return Ok(false),
            Some(link) => link,
        };
        if let Some(lane) = link.pool() {
            ctx.require_pool(lane)?;
        }
        match open_target(node.host.os(), &path, &link) {
            // A volume that nobody has formatted yet has no root, but it is there.
            Ok(_) | Err(OsError::UNRECOGNIZED_VOLUME) => Ok(true),
            Err(code) if ErrorClass::TargetMissing.contains(code) => Ok(false),
            Err(code) => Err(OperationError::of(code, "its target cannot be looked at")),
        }
    }
}
