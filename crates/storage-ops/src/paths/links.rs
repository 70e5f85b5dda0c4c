//! Links: making them, and following them.

use os::{Access, Disposition, Handle, NtPath, Open, Options, Os, OsError, OsResult, Share, U16Str};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::paths::remove_tree;
use crate::paths::working_directories::{EntryRef, OPEN_NOFOLLOW};
use crate::types::HostPath;
use crate::windows::reparse_point::{self, Link};

/// How many links Windows follows in one path.
const MOST_LINKS: usize = 63;

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

/// Moves on to the threads that may hang with what a link leads to, over however many links.
pub(crate) fn require_pool_for_link(os: &dyn Os, link: &Link, ctx: &OperationContext) -> OperationResult<()> {
    let mut link = link.clone();
    for _ in 0..MOST_LINKS {
        if let Some(lane) = link.pool() {
            return ctx.require_pool(lane);
        }
        let (Link::Symlink(target) | Link::MountPoint(target)) = &link else { return Ok(()) };
        // What cannot be opened is found missing where it is needed.
        let Ok(next) = os.open(&NtPath::from_win32(target), &OPEN_NOFOLLOW) else { return Ok(()) };
        match Link::of(&*next) {
            Ok(Some(further)) => link = further,
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Moves on to the threads that may hang with what lies above the last component of `path`, if that is a link.
pub(crate) fn require_pool_for_ancestors(os: &dyn Os, path: &HostPath, ctx: &OperationContext) -> OperationResult<()> {
    let mut above = path.parent();
    let mut prefixes = Vec::new();
    while !above.is_drive() {
        prefixes.push(above.to_nt());
        above = above.parent();
    }
    for prefix in prefixes.iter().rev() {
        // What is missing is found missing where it is needed.
        let Ok(found) = os.open(prefix, &OPEN_NOFOLLOW) else { return Ok(()) };
        match Link::of(&*found) {
            Ok(None) => {}
            Ok(Some(link)) => return require_pool_for_link(os, &link, ctx),
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Opens what a link leads to; if that is a link again, then as itself.
pub(crate) fn open_target(os: &dyn Os, path: &NtPath, link: &Link) -> OsResult<Box<dyn Handle>> {
    match link {
        Link::Symlink(target) | Link::MountPoint(target) => os.open(&NtPath::from_win32(target), &OPEN_NOFOLLOW),
        // Only the system knows what such a link means where it stands.
        Link::Relative(_) | Link::Other => os.open(path, &Open { options: Options::empty(), ..OPEN_NOFOLLOW }),
    }
}
