//! Whether a volume may be formatted again with its content: only below the directories of
//! [`Config::format_again`](crate::Config::format_again), and only if nothing uses it.

use os::{Os, PathForm};

use crate::devices::Link;
use crate::error::{ErrorKind, OperationError, OperationResult, failed_precondition};
use crate::error_class::ErrorClass;
use crate::node::Node;
use crate::node::run::Run;
use crate::paths::on_node;
use crate::paths::opening::OPEN_NOFOLLOW;
use crate::readings::{links_to_volume, node_volumes};
use crate::types::{HostPath, VolumeId};

/// Where a volume is mounted, compared with the directories of the configuration.
pub(super) enum Place {
    /// There is at least one mount point, and each is below one of these directories, which have no
    /// link in their paths.
    Below(Vec<HostPath>),
    /// Not so, for this reason, which is empty if there are no such directories.
    Elsewhere(String),
}

/// Determines where a volume is mounted. A volume without a mount point is elsewhere: the volume of
/// a CSI driver has none between two calls.
pub(super) fn place(node: &Node, volume: VolumeId) -> OperationResult<Place> {
    let configured = &node.config().format_again;
    if configured.is_empty() {
        return Ok(Place::Elsewhere(String::new()));
    }
    let os = node.windows.os();
    let paths = os.volume_paths(&volume.to_windows()).map_err(|code| {
        OperationError::of(code, "the mount points of the volume cannot be determined")
    })?;
    let mut unknown = None;
    let mut directories = Vec::new();
    for directory in configured {
        match place_of(os, directory) {
            Ok(place) => directories.extend(place),
            Err(error) => unknown = Some(error),
        }
    }
    let (mut is_mounted, mut above) = (false, Vec::new());
    for path in paths {
        let text = path.to_string_lossy();
        let path = HostPath::parse(&text).ok();
        let directory = path.as_ref().and_then(|path| {
            let mut all = directories.iter();
            all.find(|directory| path.is_in(directory) && !path.is_same(directory))
        });
        match (path, directory, &unknown) {
            (Some(path), Some(directory), _) => {
                is_mounted |= is_mount_point_of(os, &path, volume)?;
                above.push(directory.clone());
            }
            (path, _, Some(error))
                if path
                    .as_ref()
                    .is_none_or(|path| node.directories.check(path, None).is_err()) =>
            {
                return Err(error.clone());
            }
            _ => return Ok(Place::Elsewhere(format!("{text} is not"))),
        }
    }
    Ok(if is_mounted {
        Place::Below(above)
    } else {
        Place::Elsewhere("it has none".to_owned())
    })
}

/// Returns the path of a directory of the configuration with the links resolved that lead to it;
/// `None` if it does not exist. No link is followed to a server.
fn place_of(os: &dyn Os, directory: &HostPath) -> OperationResult<Option<HostPath>> {
    let path = on_node::open(os, directory, &OPEN_NOFOLLOW, &|_| Ok(true))
        .and_then(|opened| Ok(opened.final_path(PathForm::Dos)?));
    match path {
        Err(error) if error.is_of(ErrorClass::DirectoryMissing) => Ok(None),
        Err(error) => {
            let context = format_args!(
                "the directory {directory} of csi-proxy's flag -format-again cannot be opened"
            );
            Err(error
                .in_context(context)
                .with_kind(ErrorKind::FailedPrecondition))
        }
        Ok(path) => Ok(node_volumes::of_dos_path(&path)),
    }
}

/// Returns whether the volume is mounted at `path`. The mount manager also lists mount points that
/// were removed without it.
fn is_mount_point_of(os: &dyn Os, path: &HostPath, volume: VolumeId) -> OperationResult<bool> {
    let link = os
        .open(&path.to_nt(), &OPEN_NOFOLLOW)
        .and_then(|found| Link::of(&*found));
    match link {
        Err(code) if ErrorClass::DirectoryMissing.contains(code) => Ok(false),
        Err(code) => {
            let reason = format!("the mount point {path} cannot be examined");
            Err(OperationError::of(code, reason).with_kind(ErrorKind::FailedPrecondition))
        }
        Ok(link) => Ok(link.and_then(|link| link.volume()) == Some(volume)),
    }
}

/// Refuses a volume that may not be formatted with its content, although it is mounted below one of
/// `directories`.
pub(super) async fn check(
    run: Run<'_>,
    volume: VolumeId,
    directories: &[HostPath],
) -> OperationResult<()> {
    // Links may have changed since the start.
    for directory in directories {
        if let Some(other) = node_volumes::working_directory_around(run.node(), directory)? {
            return failed_precondition(format!(
                "csi-proxy's flag -format-again names {directory}, which contains the working \
                 directory {other} or lies in it; name a directory that has nothing to do with \
                 kubelet"
            ));
        }
    }
    node_volumes::refuse_volume(run.without_provider(), volume).await?;
    if let Some(link) = links_to_volume::find(run.node(), volume)? {
        return failed_precondition(format!(
            "a pod may be using the volume: the link {link} leads to it"
        ));
    }
    Ok(())
}
