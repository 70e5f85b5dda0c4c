//! Links: creating them, and the pools of threads on which they can be followed.

use os::{Access, Disposition, Handle, NtPath, Open, Options, Os, OsError, OsResult, Share, U16Str};

use crate::devices::reparse_point::{self, Link};
use crate::error::{Kind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::host::Host;
use crate::host::fallback::Fallback;
use crate::node::Node;
use crate::paths::remove_tree;
use crate::paths::working_directories::{EntryRef, OPEN_NOFOLLOW};
use crate::scheduling::context::OperationContext;
use crate::scheduling::pool_kind::PoolKind;
use crate::scheduling::stop::RunResult;
use crate::types::{HostPath, upper_case};

/// The maximum number of links that Windows follows in one path.
pub(crate) const MAX_LINKS: usize = 63;

/// Makes `entry` a symbolic link to the NT path `substitute` with the print name `print`. Succeeds without a change if
/// an identical link exists; any other object of that name is an error.
///
/// `link_kind` returns [`Options::DIRECTORY`] or [`Options::NON_DIRECTORY`]; it is called only if the link does not
/// exist yet.
pub(crate) fn create_link(
    host: &Host,
    entry: &EntryRef,
    substitute: &U16Str,
    print: &U16Str,
    link_kind: impl FnOnce() -> RunResult<Options>,
    ctx: &OperationContext,
) -> RunResult<()> {
    if link_exists(entry, substitute)? {
        return Ok(());
    }
    let link_kind = link_kind()?;
    ctx.begin_mutation()?;
    let create = |options| match create_empty(entry, options) {
        Err(OsError::ALREADY_EXISTS) => check_same_link(&*entry.open()?, substitute).map(|()| None),
        created => Ok(Some(created?)),
    };
    // The object is deleted on close until it is a link, so that a process that is killed in between leaves no empty
    // file or directory.
    let Some(link) = create(link_kind | Options::DELETE_ON_CLOSE)? else { return Ok(()) };
    let set_target = |link: &dyn Handle| reparse_point::set_symlink(link, substitute, print);
    match set_target(&*link).and_then(|()| remove_tree::keep(&*link)) {
        Err(code) if !is_refusal(code) => host.fallbacks().record(Fallback::CreateLink, code),
        outcome => return Ok(outcome.map_err(explained)?),
    }
    // No known program makes a link in this way. Go's standard library makes all of its links in the following one.
    drop(link);
    let Some(link) = create(link_kind)? else { return Ok(()) };
    Ok(set_target(&*link).map_err(|code| {
        let _ = remove_tree::delete_on_close(&*link);
        explained(code)
    })?)
}

/// Returns whether the code says why there can be no link, whichever way it is created.
fn is_refusal(code: OsError) -> bool {
    let refused =
        [OsError::PRIVILEGE_NOT_HELD, OsError::DISK_FULL, OsError::WRITE_PROTECT, OsError::FILENAME_EXCED_RANGE];
    refused.contains(&code)
}

/// Creates the empty file or directory that becomes a link. Links are not followed: if a dangling link appeared at this
/// moment, its target would be created.
fn create_empty(entry: &EntryRef, options: Options) -> OsResult<Box<dyn Handle>> {
    let access = Access::WRITE_ATTRIBUTES | Access::DELETE | Access::READ_ATTRIBUTES;
    let options = options | Options::REPARSE_POINT;
    let how = Open { access, share: Share::all(), disposition: Disposition::Create, options };
    entry.parent().open_child(entry.leaf(), &how)
}

/// Returns the error of a link that could not be created.
fn explained(code: OsError) -> OperationError {
    match code {
        OsError::PRIVILEGE_NOT_HELD => {
            let advice = "grant the account of csi-proxy the right to create symbolic links \
                          (SeCreateSymbolicLinkPrivilege)";
            OperationError::of(code, advice)
        }
        code if ErrorClass::Unsupported.contains(code) => OperationError {
            kind: Kind::FailedPrecondition,
            ..OperationError::of(code, "the file system does not support symbolic links")
        },
        code => code.into(),
    }
}

/// Returns whether `entry` is a link to `substitute`. Any other object of that name is an error.
pub(crate) fn link_exists(entry: &EntryRef, substitute: &U16Str) -> OperationResult<bool> {
    match entry.open() {
        Err(OsError::FILE_NOT_FOUND) => Ok(false),
        Err(code) => Err(code.into()),
        Ok(existing) => check_same_link(&*existing, substitute).map(|()| true),
    }
}

fn check_same_link(existing: &dyn Handle, substitute: &U16Str) -> OperationResult<()> {
    let text = |name: &U16Str| upper_case(name).to_string_lossy().trim_end_matches('\\').to_owned();
    match Link::of(existing)? {
        Some(Link::Symlink(target)) if text(&target) == text(substitute) => Ok(()),
        Some(Link::Symlink(target)) => {
            let target = reparse_point::win32_name(&target);
            let reason = format!("a link to {target} already exists at that path");
            Err(OperationError::new(Kind::AlreadyExists, reason))
        }
        _ => Err(OperationError::new(Kind::AlreadyExists, "a file or directory already exists at that path")),
    }
}

/// Requires the pools in which the chain of links that begins with `link` can be followed.
pub(crate) fn require_pool_for_link(os: &dyn Os, link: &Link, ctx: &OperationContext) -> RunResult<()> {
    let mut links_left = MAX_LINKS;
    follow(os, link, ctx, &mut links_left).map(drop)
}

/// Requires the pools in which the target of `link` can be opened without following it, if it is a link too.
pub(crate) fn require_pool_for_target(os: &dyn Os, link: &Link, ctx: &OperationContext) -> RunResult<()> {
    let mut links_left = MAX_LINKS;
    enter(os, link, ctx, &mut links_left).map(drop)
}

/// Opens the object at `path` to query it, in the pools that the links among its parent directories require. These links
/// are followed; one in the last component is not.
pub(crate) fn open_itself(
    node: &Node,
    path: &HostPath,
    ctx: &OperationContext,
) -> RunResult<OsResult<Box<dyn Handle>>> {
    if let Some(outcome) = node.directories.lookup().open(&node.host, path) {
        return Ok(outcome);
    }
    let mut links_left = MAX_LINKS;
    follow_ancestors(node.host.os(), path, ctx, &mut links_left)?;
    Ok(node.host.os().open(&path.to_nt(), &OPEN_NOFOLLOW))
}

/// Where a path leads, as far as it has been followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Local,
    /// On a server, or to an object that cannot be opened. There is no pool beyond that of remote paths.
    Final,
}

/// Requires the pool of `link`, and those of the parent directories of its target.
fn enter(os: &dyn Os, link: &Link, ctx: &OperationContext, links_left: &mut usize) -> RunResult<Location> {
    *links_left = links_left.saturating_sub(1);
    if link.leads_to_pipe() {
        return Err(OperationError::precondition(
            "a link leads to a pipe or mailslot of a server, which is not opened",
        )
        .into());
    }
    if let Some(pool) = link.pool() {
        ctx.require_pool_for(pool, link.resource())?;
        return Ok(if pool == PoolKind::Remote { Location::Final } else { Location::Local });
    }
    match link.host_path() {
        _ if *links_left == 0 => Ok(Location::Final),
        Some(target) => follow_ancestors(os, &target, ctx, links_left),
        // Windows may resolve the target, which is not examined here.
        None => ctx.require_pool(PoolKind::Remote).map(|()| Location::Final),
    }
}

/// Requires the pools of `link` and of the links that its target is.
fn follow(os: &dyn Os, link: &Link, ctx: &OperationContext, links_left: &mut usize) -> RunResult<Location> {
    let mut link = link.clone();
    while enter(os, &link, ctx, links_left)? == Location::Local {
        // The root directory of a volume is opened in the same pool as the volume.
        let target = link.nt_target().filter(|_| link.volume().is_none());
        let Some(target) = target else { return Ok(Location::Local) };
        // If the target cannot be opened, the call that needs it reports the error.
        let Ok(next) = os.open(&target, &OPEN_NOFOLLOW) else { return Ok(Location::Final) };
        match Link::of(&*next) {
            Ok(Some(further)) => link = further,
            Ok(None) => return Ok(Location::Local),
            Err(_) => return Ok(Location::Final),
        }
    }
    Ok(Location::Final)
}

/// Requires the pools of the links among the parent directories of `path`.
fn follow_ancestors(
    os: &dyn Os,
    path: &HostPath,
    ctx: &OperationContext,
    links_left: &mut usize,
) -> RunResult<Location> {
    let mut above = path.parent();
    let mut prefixes = Vec::new();
    while !above.is_drive_root() {
        prefixes.push(above.to_nt());
        above = above.parent();
    }
    for prefix in prefixes.iter().rev() {
        // If a component cannot be opened, the call that needs the path reports the error.
        let Ok(found) = os.open(prefix, &OPEN_NOFOLLOW) else { return Ok(Location::Final) };
        match Link::of(&*found) {
            Ok(None) => {}
            Ok(Some(link)) if follow(os, &link, ctx, links_left)? == Location::Local => {}
            Ok(Some(_)) | Err(_) => return Ok(Location::Final),
        }
    }
    Ok(Location::Local)
}

/// Opens the target of the link at `path`. If the target is a link, it is opened without being followed.
pub(crate) fn open_target(os: &dyn Os, path: &NtPath, link: &Link) -> OsResult<Box<dyn Handle>> {
    match link.nt_target() {
        Some(target) => os.open(&target, &OPEN_NOFOLLOW),
        // Windows resolves such a link, for example because its target depends on its location.
        None => os.open(path, &Open { options: Options::empty(), ..OPEN_NOFOLLOW }),
    }
}
