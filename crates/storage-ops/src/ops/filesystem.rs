//! Files and directories: existence, making and removing directories, links.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Access, Disposition, Handle, NtPath, Open, Options, OsError, OsResult, Share, U16Str, U16String};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation, OperationContext, PoolKind};
use crate::node::Node;
use crate::paths::remove_tree;
use crate::paths::working_directories::{EntryRef, OPEN_NO_DELETE_SHARE, OPEN_NOFOLLOW, PathContext};
use crate::types::HostPath;
use crate::types::VolumeId;
use crate::windows::buffer;
use crate::windows::error_class::ErrorClass;
use crate::windows::reparse_point::{self, Link};

/// How many links Windows follows in one path.
const MOST_LINKS: usize = 63;

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
        node.directories.exists(node.os(), &self.path, self.context)
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
        node.directories.make(node.os(), &self.path, self.context)
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
                let still_there = node.directories.exists(node.os(), &self.path, self.context)?;
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
        let place = node.directories.entry(node.os(), &self.path, self.context, &OPEN_NO_DELETE_SHARE)?;
        ctx.begin_mutation()?;
        let parent = remove_tree::Parent { handle: place.parent(), pinned: true };
        let doomed = remove_tree::open(node.os(), parent, place.leaf())?;
        if self.force {
            remove_tree::delete_all(node.os(), doomed)?;
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
        let place = node.directories.entry(node.os(), &self.path, None, &OPEN_NO_DELETE_SHARE)?;
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
                let root = node.os().open(&volume.root(), &Open::existing(list, Options::DIRECTORY))?;
                // By its path it may be somewhere else, where nobody holds what leads to it. And on every volume there
                // is something that is Windows' own, and in use.
                (root, false, Some("System Volume Information"))
            }
        };
        ctx.begin_mutation()?;
        Ok(remove_tree::delete_contents(node.os(), remove_tree::Parent { handle: &*directory, pinned }, spared)?)
    }
}

/// Checks that `volume` is really mounted at `place`. Whoever may write to an empty directory can make it look like a
/// mount point of any volume, the system's too; only an administrator can make the mount manager believe it.
fn check_mounted(node: &Node, volume: VolumeId, place: &EntryRef) -> OperationResult<()> {
    if node.directories.volumes(node.os())?.contains(&volume) {
        return Err(OperationError::new(Kind::PermissionDenied, "it leads to a volume of the node itself"));
    }
    let path = place.directory_path()?.to_string_lossy();
    let path = path.strip_prefix(r"\\?\").unwrap_or(&path).to_uppercase();
    let known = node.os().volume_paths(&volume.to_windows())?;
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
        let place = node.directories.entry(node.os(), &self.target, None, &OPEN_NOFOLLOW)?;
        let shown = U16String::from_str(&self.source.to_string());
        make_link(&place, self.source.to_nt().as_u16str(), &shown, || self.kind(node, ctx), ctx)
    }
}

impl CreateSymlink {
    /// What the link has to be: through one of the wrong kind, Windows opens nothing. A link is of its target's kind.
    fn kind(&self, node: &Node, ctx: &OperationContext) -> OperationResult<Options> {
        require_pool_for_ancestors(node, &self.source, ctx)?;
        match node.os().open(&self.source.to_nt(), &OPEN_NOFOLLOW) {
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

/// Makes `place` a link to the NT path `substitute`, shown as `print`: of the kind that it has to be, which is looked
/// for if there is no link yet.
pub(crate) fn make_link(
    place: &EntryRef,
    substitute: &U16Str,
    print: &U16Str,
    kind: impl FnOnce() -> OperationResult<Options>,
    ctx: &OperationContext,
) -> OperationResult<()> {
    if link_exists(place, substitute)? {
        return Ok(());
    }
    let kind = kind()?;
    ctx.begin_mutation()?;
    let access = Access::WRITE_ATTRIBUTES | Access::DELETE | Access::READ_ATTRIBUTES;
    // Until it is a link, it goes with its handle: whoever dies half-way leaves nothing behind. As itself, or a
    // dangling link that has just appeared would be followed, and what it leads to made.
    let options = kind | Options::DELETE_ON_CLOSE | Options::REPARSE_POINT;
    let how = Open { access, share: Share::all(), disposition: Disposition::Create, options };
    let link = match place.parent().open_child(place.leaf(), &how) {
        Err(OsError::ALREADY_EXISTS) => return same_link(&*place.look()?, substitute),
        outcome => outcome?,
    };
    reparse_point::set_symlink(&*link, substitute, print)?;
    Ok(remove_tree::keep(&*link)?)
}

/// Whether `place` is such a link already. Anything else there is an error.
pub(crate) fn link_exists(place: &EntryRef, substitute: &U16Str) -> OperationResult<bool> {
    match place.look() {
        Err(OsError::FILE_NOT_FOUND) => Ok(false),
        Err(code) => Err(code.into()),
        Ok(existing) => same_link(&*existing, substitute).map(|()| true),
    }
}

fn same_link(existing: &dyn Handle, substitute: &U16Str) -> OperationResult<()> {
    let text = |name: &U16Str| name.to_string_lossy().trim_end_matches('\\').to_uppercase();
    match Link::of(existing)? {
        Some(Link::Symlink(target)) if text(&target) == text(substitute) => Ok(()),
        Some(Link::Symlink(target)) => {
            let reason = format!("a link to {} is there", target.display());
            Err(OperationError::new(Kind::AlreadyExists, reason))
        }
        _ => Err(OperationError::new(Kind::AlreadyExists, "something else of that name is there")),
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
        require_pool_for_ancestors(node, &self.path, ctx)?;
        let found = node.os().open(&path, &OPEN_NOFOLLOW)?;
        let link = match Link::of(&*found)? {
            None | Some(Link::Other) => return Ok(false),
            Some(link) => link,
        };
        if let Some(lane) = link.pool() {
            ctx.require_pool(lane)?;
        }
        match open_target(node, &path, &link) {
            // A volume that nobody has formatted yet has no root, but it is there.
            Ok(_) | Err(OsError::UNRECOGNIZED_VOLUME) => Ok(true),
            Err(code) if ErrorClass::TargetMissing.contains(code) => Ok(false),
            Err(code) => Err(OperationError::of(code, "its target cannot be looked at")),
        }
    }
}

/// Moves on to the threads that may hang with what a link leads to, over however many links.
pub(crate) fn require_pool_for_link(node: &Node, link: &Link, ctx: &OperationContext) -> OperationResult<()> {
    let mut link = link.clone();
    for _ in 0..MOST_LINKS {
        if let Some(lane) = link.pool() {
            return ctx.require_pool(lane);
        }
        let (Link::Symlink(target) | Link::MountPoint(target)) = &link else { return Ok(()) };
        // What cannot be opened is found missing where it is needed.
        let Ok(next) = node.os().open(&NtPath::from_win32(target), &OPEN_NOFOLLOW) else { return Ok(()) };
        match Link::of(&*next) {
            Ok(Some(further)) => link = further,
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Moves on to the threads that may hang with what lies above the last component of `path`, if that is a link.
pub(crate) fn require_pool_for_ancestors(node: &Node, path: &HostPath, ctx: &OperationContext) -> OperationResult<()> {
    let mut above = path.parent();
    let mut prefixes = Vec::new();
    while !above.is_drive() {
        prefixes.push(above.to_nt());
        above = above.parent();
    }
    for prefix in prefixes.iter().rev() {
        // What is missing is found missing where it is needed.
        let Ok(found) = node.os().open(prefix, &OPEN_NOFOLLOW) else { return Ok(()) };
        match Link::of(&*found) {
            Ok(None) => {}
            Ok(Some(link)) => return require_pool_for_link(node, &link, ctx),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Opens what a link leads to; if that is a link again, then as itself.
fn open_target(node: &Node, path: &NtPath, link: &Link) -> OsResult<Box<dyn Handle>> {
    match link {
        Link::Symlink(target) | Link::MountPoint(target) => node.os().open(&NtPath::from_win32(target), &OPEN_NOFOLLOW),
        // Only the system knows what such a link means where it stands.
        Link::Relative(_) | Link::Other => node.os().open(path, &Open { options: Options::empty(), ..OPEN_NOFOLLOW }),
    }
}
