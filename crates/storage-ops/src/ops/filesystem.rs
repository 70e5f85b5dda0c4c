//! Operations on directories and links.

use os::{Access, Open, Options, OsError, OsResult, U16String};

use crate::devices::Link;
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::error_class::ErrorClass;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::paths::links::{LinkKind, check_kind, create_link, existing_link};
use crate::paths::opening::{
    NOFOLLOW_NOWAIT, OPEN_NO_DELETE_SHARE, OPEN_NOFOLLOW, ensure_directory,
};
use crate::paths::working_directories::EntryRef;
use crate::paths::{refused_links, remove_tree};
use crate::readings::links::{follow_to_end, follow_to_target, open_itself, open_target};
use crate::readings::node_volumes;
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::{HostPath, PathContext, VolumeId, upper_case};

/// Checks whether a path exists. A link in the last component is not followed. A path with a
/// missing parent does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathExists {
    /// A path in a working directory.
    pub path: HostPath,
    /// The purpose of the path, if the API version has one.
    pub context: Option<PathContext>,
}

impl Operation for PathExists {
    type Output = bool;
    const NAME: &'static str = "PathExists";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("check whether {} exists", self.path)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check(&self.path, self.context)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<bool> {
        run.node().directories.exists(run.windows(), &self.path)
    }
}

/// Creates a directory and its missing parents. Succeeds without a change if the directory, or a
/// link to one, already exists; a link that leads to no directory is an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mkdir {
    /// A path in a working directory.
    pub path: HostPath,
    /// The purpose of the path, if the API version has one.
    pub context: Option<PathContext>,
}

impl Operation for Mkdir {
    type Output = ();
    const NAME: &'static str = "Mkdir";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("create the directory {}", self.path)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check(&self.path, self.context)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Path(self.path.entry_key())]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        run.begin_mutation()?;
        let existing = run.node().directories.create(run.os(), &self.path)?;
        match existing {
            // MountVolume replaces a mount point whose volume no longer exists.
            Some(link) if link != Link::Other && link.volume().is_none() => {
                self.check_target(run, &link).await
            }
            _ => Ok(()),
        }
    }
}

impl Mkdir {
    /// Fails unless `link`, which is at the path, leads to a directory.
    async fn check_target(&self, run: Run<'_>, link: &Link) -> OperationResult<()> {
        follow_to_end(run, link).await?;
        let followed = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        match run.os().open(&self.path.to_nt(), &followed) {
            // The volume of the target has not been formatted yet.
            Ok(_) | Err(OsError::UNRECOGNIZED_VOLUME) => Ok(()),
            Err(code)
                if !ErrorClass::ServerUnreachable.contains(code)
                    && (code == OsError::DIRECTORY
                        || ErrorClass::TargetMissing.contains(code)
                        || ErrorClass::TargetInvalid.contains(code)) =>
            {
                let error = OperationError::of(code, "a link at that path leads to no directory");
                Err(error.with_kind(ErrorKind::AlreadyExists))
            }
            Err(code) => Err(OperationError::of(
                code,
                "the target of the link at that path cannot be opened",
            )),
        }
    }
}

/// Removes a directory, file, link or mount point. The target of a link is not removed. A mount
/// point is unmounted and removed; the data on the volume is not changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rmdir {
    /// A path in a working directory; not a working directory itself.
    pub path: HostPath,
    /// The purpose of the path, if the API version has one.
    pub context: Option<PathContext>,
    /// Whether to remove the contents of the directory too, and to succeed if the path does not
    /// exist.
    pub force: bool,
}

impl Operation for Rmdir {
    type Output = ();
    const NAME: &'static str = "Rmdir";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn describe(&self) -> String {
        format!("remove {}", self.path)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check_entry(&self.path, self.context)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Path(self.path.key())]
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        // A removal that fails anyway needs no lock: it neither waits for changes below the
        // directory nor delays them. With the lock, the removal itself finds that out.
        let (node, os) = (run.node(), run.os());
        if !self.force && !run.has_locks() && node.directories.has_entries(os, &self.path) {
            return Err(OsError::DIR_NOT_EMPTY.into());
        }
        Ok(Vec::new())
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        match self.remove(run) {
            // The missing object may be an entry below the path and not the path itself, so the
            // path is checked again.
            Err(error) if self.force && error.is_not_found() => {
                let still_exists = run.node().directories.exists(run.windows(), &self.path)?;
                if !still_exists {
                    return Ok(());
                }
                let error = error.in_context("another process is removing entries of it");
                Err(error.with_kind(ErrorKind::Busy))
            }
            outcome => Ok(outcome?),
        }
    }
}

impl Rmdir {
    fn remove(&self, run: Run<'_>) -> OperationResult<()> {
        let entry = run
            .node()
            .directories
            .entry(run.os(), &self.path, &OPEN_NO_DELETE_SHARE)?;
        run.begin_mutation()?;
        let parent = remove_tree::Parent {
            handle: entry.parent(),
            path_is_stable: true,
        };
        let target = remove_tree::open(run.windows(), parent, entry.leaf())?;
        if self.path.asks_for_directory() {
            ensure_directory(&*target.handle)?;
        }
        if self.force {
            remove_tree::delete_all(run.windows(), target)?;
        } else {
            remove_tree::delete(&target)?;
        }
        Ok(())
    }
}

/// Removes the contents of a directory, or of the volume mounted at it, but not the directory
/// itself. Links are removed, not followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RmdirContents {
    /// A path in a working directory; not a working directory itself.
    pub path: HostPath,
}

impl Operation for RmdirContents {
    type Output = ();
    const NAME: &'static str = "RmdirContents";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("remove the contents of {}", self.path)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check_entry(&self.path, None)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Path(self.path.key())]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let entry = run
            .node()
            .directories
            .entry(run.os(), &self.path, &OPEN_NO_DELETE_SHARE)?;
        let found = entry
            .parent()
            .open_child(entry.leaf(), &OPEN_NO_DELETE_SHARE)?;
        let (directory, path_is_stable, excluded) = match Link::of_directory(&*found)? {
            None => (found, true, None),
            Some(link) => {
                let volume = link
                    .volume()
                    .ok_or_else(|| refused_links::refusal_of(&link, entry.leaf().display()))?;
                run.enter_for(PoolKind::Disks, Some(Resource::Volume(volume)))
                    .await;
                check_mounted(run, volume, &entry).await?;
                let list = Access::READ_DATA | Access::READ_ATTRIBUTES;
                // A root directory can be a link too.
                let itself = Open::existing(list, Options::DIRECTORY | NOFOLLOW_NOWAIT);
                let root = run.os().open(&volume.root(), &itself)?;
                if let Some(link) = Link::of(&*root)? {
                    return Err(refused_links::refusal_of(
                        &link,
                        "the root directory of the volume",
                    ));
                }
                // The path of the root may lead through directories that others can rename. Windows
                // keeps its own files, which are in use, in one directory of each volume.
                (root, false, Some("System Volume Information"))
            }
        };
        run.begin_mutation()?;
        remove_tree::delete_contents(
            run.windows(),
            remove_tree::Parent {
                handle: &*directory,
                path_is_stable,
            },
            excluded,
        )
    }
}

/// Checks that the mount manager has `volume` mounted at `entry`. A process that can write to an
/// empty directory can forge a mount point of any volume, including the system volume; only an
/// administrator can register it with the mount manager.
async fn check_mounted(run: Run<'_>, volume: VolumeId, entry: &EntryRef) -> OperationResult<()> {
    node_volumes::refuse_volume(run.without_provider(), volume).await?;
    let path = upper_case(&entry.win32_path()?).to_string_lossy();
    let path = path.strip_prefix(r"\\?\").unwrap_or(&path);
    let registered = run.os().volume_paths(&volume.to_windows())?;
    let (here, elsewhere): (Vec<_>, Vec<_>) = registered
        .iter()
        .partition(|other| upper_case(other).to_string_lossy() == path);
    if here.is_empty() {
        return Err(OperationError::new(
            ErrorKind::PermissionDenied,
            "the directory has the reparse point of a mount point, but the mount manager has no \
             volume mounted there",
        ));
    }
    // Windows may register a forged mount point when the host of the directory arrives.
    for other in elsewhere
        .iter()
        .filter_map(|other| HostPath::parse(&other.to_string().ok()?).ok())
    {
        if node_volumes::is_in_working_directory(run.node(), &other)? {
            return failed_precondition(format!(
                "the volume is also mounted at {other}, where its contents may be in use; unmount \
                 it there first"
            ));
        }
    }
    Ok(())
}

/// Creates a symbolic link: a directory link unless the source is a file. Succeeds without a change
/// if an identical link already exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CreateSymlink {
    /// The target of the link: a path in a working directory, which may be a link or missing.
    pub source: HostPath,
    /// The path of the link, in a working directory; its parent must exist.
    pub target: HostPath,
}

impl Operation for CreateSymlink {
    type Output = ();
    const NAME: &'static str = "CreateSymlink";
    const POOL: PoolKind = PoolKind::Files;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("create a link to {} at {}", self.source, self.target)
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        node.directories.check(&self.source, None)?;
        node.directories.check_entry(&self.target, None)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Path(self.target.entry_key())]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let entry = run
            .node()
            .directories
            .entry(run.os(), &self.target, &OPEN_NOFOLLOW)?;
        let substitute = self.source.to_nt();
        if let Some(kind) = existing_link(&entry, substitute.as_u16str())? {
            // A source that is missing or cannot be opened may be of either kind.
            return match self.source_kind(run).await? {
                Ok(source) => Ok(check_kind(kind, source)?),
                Err(_) => Ok(()),
            };
        }
        let kind = match self.source_kind(run).await? {
            Ok(kind) => kind,
            Err(code) if ErrorClass::TargetMissing.contains(code) => LinkKind::Directory,
            Err(code) => {
                return Err(OperationError::of(
                    code,
                    "the source of the link cannot be opened",
                ));
            }
        };
        run.begin_mutation()?;
        let print = U16String::from_str(&self.source.to_string());
        create_link(run.windows(), &entry, substitute.as_u16str(), &print, kind)
    }
}

impl CreateSymlink {
    async fn source_kind(&self, run: Run<'_>) -> OperationResult<OsResult<LinkKind>> {
        Ok(match open_itself(run, &self.source).await? {
            Ok(source) => LinkKind::of(&*source),
            // The volume of the source has not been formatted yet.
            Err(OsError::UNRECOGNIZED_VOLUME) => Ok(LinkKind::Directory),
            Err(code) => Err(code),
        })
    }
}

/// Checks whether a path is a symbolic link or mount point whose target exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IsSymlink {
    /// Any path on the node.
    pub path: HostPath,
}

impl Operation for IsSymlink {
    type Output = bool;
    const NAME: &'static str = "IsSymlink";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("check whether {} is a link or mount point", self.path)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<bool> {
        let lookup = run.node().directories.lookup();
        if let Some(found) = lookup.query(run.windows(), &self.path) {
            return Ok(found.map(|()| false)?);
        }
        let path = self.path.to_nt();
        let found = open_itself(run, &self.path).await??;
        if self.path.asks_for_directory() {
            ensure_directory(&*found)?;
        }
        let link = match Link::of(&*found)? {
            None | Some(Link::Other) => return Ok(false),
            Some(link) => link,
        };
        let at_once = link
            .plain_host_path()
            .and_then(|target| lookup.open(run.windows(), &target));
        let target = if let Some(outcome) = at_once {
            outcome
        } else {
            follow_to_target(run, &link).await?;
            open_target(run.os(), &path, &link)
        };
        match target {
            // A volume that has not been formatted yet exists, but has no root directory.
            Ok(_) | Err(OsError::UNRECOGNIZED_VOLUME) => Ok(true),
            Err(code)
                if ErrorClass::TargetMissing.contains(code)
                    || ErrorClass::TargetInvalid.contains(code) =>
            {
                Ok(false)
            }
            Err(code) => Err(OperationError::of(
                code,
                "the target of the link cannot be opened",
            )),
        }
    }
}
