//! Finding the volume that a path leads to.

use os::{Handle, Open, Options, OsError, PathForm, U16String};

use crate::devices::Link;
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::executor::operation::Operation;
use crate::node::Node;
use crate::node::run::Run;
use crate::paths::opening::MAX_LINKS;
use crate::paths::opening::OPEN_NOFOLLOW;
use crate::readings::links::{follow_to_end, open_itself};
use crate::scheduling::PoolKind;
use crate::types::{HostPath, VolumeId};
use crate::windows::Fallback;

/// The text by which drivers recognize that no volume is mounted at a path. Part of the contract.
const NOT_MOUNTED: &str = "because it does not exist";

fn not_mounted(why: &str) -> OperationError {
    OperationError::not_found(format!(
        "the mount point cannot be found {NOT_MOUNTED} ({why})"
    ))
}

/// Finds the volume that is mounted at a path, or at the target of the link at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetVolumeIdFromTargetPath {
    /// Any path on the node.
    pub target: HostPath,
}

impl Operation for GetVolumeIdFromTargetPath {
    type Output = VolumeId;
    const NAME: &'static str = "GetVolumeIDFromTargetPath";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("find the volume mounted at {}", self.target)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<VolumeId> {
        let path = self.target.to_nt();
        let found = match open_itself(run, &self.target).await? {
            Err(code) if ErrorClass::TargetMissing.contains(code) => {
                return Err(not_mounted("there is no file or directory at the path"));
            }
            outcome => outcome?,
        };
        let link = match Link::of(&*found)? {
            None | Some(Link::Other) => {
                return Err(not_mounted("the path is not a mount point"));
            }
            Some(link) => link,
        };
        follow_to_end(run, &link).await?;
        let target = match run.os().open(
            &path,
            &Open {
                options: Options::empty(),
                ..OPEN_NOFOLLOW
            },
        ) {
            Err(code) if ErrorClass::TargetMissing.contains(code) => {
                return Err(not_mounted(&why_missing(run, &link, code)));
            }
            Err(code) if ErrorClass::TargetInvalid.contains(code) => {
                return Err(not_mounted("the target of the link is not a valid path"));
            }
            // A volume without a file system is mounted, but has no root directory to open.
            Err(OsError::UNRECOGNIZED_VOLUME) => {
                return link
                    .volume()
                    .ok_or_else(|| OperationError::from(OsError::UNRECOGNIZED_VOLUME));
            }
            outcome => outcome?,
        };
        let first = match target.final_path(PathForm::VolumeGuid) {
            Err(OsError::PATH_NOT_FOUND) if is_on_share(&*target) => return Err(leads_to_share()),
            path => path
                .map_err(OperationError::from)
                .and_then(|path| volume_under(&path)),
        };
        let (volume, is_root) = run.or_fallback_here(Fallback::TargetVolume, first, || {
            mounted_by(run.node(), link).map(|volume| (volume, true))
        })?;
        // A link to an ordinary directory of the same volume does not lead to a mount point.
        if !is_root && closest(run.node(), &self.target.parent())? == volume {
            return Err(not_mounted("the path is a link to an ordinary directory"));
        }
        Ok(volume)
    }
}

/// Finds the volume that a path is on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetClosestVolumeIdFromTargetPath {
    /// Any path on the node; it must exist.
    pub target: HostPath,
}

impl Operation for GetClosestVolumeIdFromTargetPath {
    type Output = VolumeId;
    const NAME: &'static str = "GetClosestVolumeIDFromTargetPath";
    const POOL: PoolKind = PoolKind::Files;

    fn describe(&self) -> String {
        format!("find the volume that {} is on", self.target)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<VolumeId> {
        if let Ok(found) = open_itself(run, &self.target).await?
            && let Some(link) = Link::of(&*found)?
        {
            follow_to_end(run, &link).await?;
        }
        closest(run.node(), &self.target)
    }
}

/// Returns why the target of `link` cannot be opened with `code`, with which something is missing.
fn why_missing(run: Run<'_>, link: &Link, code: OsError) -> String {
    let is_of_server =
        code == OsError::BAD_NET_NAME || ErrorClass::ServerUnreachable.contains(code);
    let target = link.nt_target().filter(|_| link.volume().is_none());
    match target {
        Some(_) if is_of_server => format!("the path leads to a share: {code}"),
        Some(target) if run.os().open(&target, &OPEN_NOFOLLOW).is_err() => {
            "the target of the link does not exist".into()
        }
        _ => "the mount point is stale: its volume no longer exists".into(),
    }
}

fn leads_to_share() -> OperationError {
    OperationError::not_found("the path leads to a share, which is no volume of the node")
}

/// Returns whether an open file or directory is on a server.
fn is_on_share(object: &dyn Handle) -> bool {
    object
        .final_path(PathForm::Dos)
        .is_ok_and(|path| path.to_string_lossy().starts_with(r"\\?\UNC\"))
}

/// Returns the volume of the mount point that `link` is or leads to.
fn mounted_by(node: &Node, mut link: Link) -> OperationResult<VolumeId> {
    for _ in 0..MAX_LINKS {
        if let Some(volume) = link.volume() {
            return Ok(volume);
        }
        let Some(target) = link.nt_target() else {
            break;
        };
        match Link::of(&*node.windows.os().open(&target, &OPEN_NOFOLLOW)?)? {
            Some(next) => link = next,
            None => break,
        }
    }
    Err(OperationError::precondition(
        "the path is not a link to a mount point",
    ))
}

fn closest(node: &Node, path: &HostPath) -> OperationResult<VolumeId> {
    let found = node.windows.os().open(
        &path.to_nt(),
        &Open {
            options: Options::empty(),
            ..OPEN_NOFOLLOW
        },
    )?;
    let final_path = match found.final_path(PathForm::VolumeGuid) {
        Err(OsError::PATH_NOT_FOUND) if is_on_share(&*found) => return Err(leads_to_share()),
        path => path.map_err(|code| OperationError::of(code, "the path is not on a volume"))?,
    };
    volume_under(&final_path).map(|(volume, _)| volume)
}

fn volume_under(path: &U16String) -> OperationResult<(VolumeId, bool)> {
    VolumeId::of_final_path(path).ok_or_else(|| {
        OperationError::new(
            ErrorKind::Internal,
            format!(
                "Windows returned the path {}, which has no volume",
                path.display()
            ),
        )
    })
}
