//! Links on a path: following them, each on a thread of the pool for its target, because opening
//! the target may hang.

use os::{Handle, NtPath, Open, Options, Os, OsResult};

use crate::devices::Link;
use crate::error::{OperationResult, failed_precondition};
use crate::node::run::Run;
use crate::paths::opening::{MAX_LINKS, OPEN_NOFOLLOW};
use crate::scheduling::{PoolKind, Resource};
use crate::types::HostPath;

/// Follows the chain of links that starts at `link`, and moves the operation to each pool that a
/// link needs before touching its target.
pub(crate) async fn follow_to_end(run: Run<'_>, link: &Link) -> OperationResult<()> {
    let mut links_left = MAX_LINKS;
    follow(run, link, &mut links_left).await.map(drop)
}

/// Moves the operation to the pools that it needs to open the target of `link`. If the target is a
/// link too, it is not followed.
pub(crate) async fn follow_to_target(run: Run<'_>, link: &Link) -> OperationResult<()> {
    let mut links_left = MAX_LINKS;
    enter(run, link, &mut links_left).await.map(drop)
}

/// Opens the object at `path` to query it, in the pools that the links among its parent directories
/// require. These links are followed; one in the last component is not.
pub(crate) async fn open_itself(
    run: Run<'_>,
    path: &HostPath,
) -> OperationResult<OsResult<Box<dyn Handle>>> {
    if let Some(outcome) = run.node().directories.lookup().open(run.windows(), path) {
        return Ok(outcome);
    }
    let mut links_left = MAX_LINKS;
    follow_ancestors(run, path, &mut links_left).await?;
    Ok(run.os().open(&path.to_nt(), &OPEN_NOFOLLOW))
}

/// Where a path leads, as far as it has been followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Location {
    Local,
    /// On a server, or to an object that cannot be opened. No link can require a further pool after
    /// the pool for remote paths.
    Final,
}

/// Requires the pool of `link`, and those of the parent directories of its target.
async fn enter(run: Run<'_>, link: &Link, links_left: &mut usize) -> OperationResult<Location> {
    *links_left = links_left.saturating_sub(1);
    if link.leads_to_pipe() {
        return failed_precondition(
            "a link leads to a pipe or mailslot of a server, which is not opened",
        );
    }
    if link.is_remote() {
        run.enter_for(PoolKind::Remote, link.server().map(Resource::Server))
            .await;
        return Ok(Location::Final);
    }
    if let Some(volume) = link.volume() {
        run.enter_for(PoolKind::Disks, Some(Resource::Volume(volume)))
            .await;
        return Ok(Location::Local);
    }
    match link.host_path() {
        _ if *links_left == 0 => Ok(Location::Final),
        // Boxed, because the functions call each other.
        Some(target) => Box::pin(follow_ancestors(run, &target, links_left)).await,
        // Windows may resolve the target, which is not examined here.
        None => {
            run.enter(PoolKind::Remote).await;
            Ok(Location::Final)
        }
    }
}

/// Requires the pools of `link` and of the links that its target is.
async fn follow(run: Run<'_>, link: &Link, links_left: &mut usize) -> OperationResult<Location> {
    let mut link = link.clone();
    while enter(run, &link, links_left).await? == Location::Local {
        // The root directory of a volume is opened in the same pool as the volume.
        let target = link.nt_target().filter(|_| link.volume().is_none());
        let Some(target) = target else {
            return Ok(Location::Local);
        };
        // If the target cannot be opened, the call that needs it reports the error.
        let Ok(next) = run.os().open(&target, &OPEN_NOFOLLOW) else {
            return Ok(Location::Final);
        };
        match Link::of(&*next) {
            Ok(Some(further)) => link = further,
            Ok(None) => return Ok(Location::Local),
            Err(_) => return Ok(Location::Final),
        }
    }
    Ok(Location::Final)
}

/// Requires the pools of the links among the parent directories of `path`.
async fn follow_ancestors(
    run: Run<'_>,
    path: &HostPath,
    links_left: &mut usize,
) -> OperationResult<Location> {
    let mut above = path.parent();
    let mut prefixes = Vec::new();
    while !above.is_drive_root() {
        prefixes.push(above.to_nt());
        above = above.parent();
    }
    for prefix in prefixes.iter().rev() {
        // If a component cannot be opened, the call that needs the path reports the error.
        let Ok(found) = run.os().open(prefix, &OPEN_NOFOLLOW) else {
            return Ok(Location::Final);
        };
        match Link::of(&*found) {
            Ok(None) => {}
            Ok(Some(link)) if follow(run, &link, links_left).await? == Location::Local => {}
            Ok(Some(_)) | Err(_) => return Ok(Location::Final),
        }
    }
    Ok(Location::Local)
}

/// Opens the target of the link at `path`. If the target is a link, it is opened without being
/// followed.
pub(crate) fn open_target(os: &dyn Os, path: &NtPath, link: &Link) -> OsResult<Box<dyn Handle>> {
    match link.nt_target() {
        Some(target) => os.open(&target, &OPEN_NOFOLLOW),
        // Windows resolves such a link, for example because its target depends on its location.
        None => os.open(
            path,
            &Open {
                options: Options::empty(),
                ..OPEN_NOFOLLOW
            },
        ),
    }
}
