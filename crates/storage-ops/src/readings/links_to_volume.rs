//! The links in the working directories that lead to a volume. Kubelet makes such a link for each
//! pod that uses a local volume.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Access, Handle, Open, Options, OsError, U16Str};

use crate::devices::{Link, buffer};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::node::Node;
use crate::paths::on_node;
use crate::paths::opening::{NOFOLLOW_NOWAIT, OPEN_NOFOLLOW};
use crate::paths::remove_tree;
use crate::readings::drives::Drives;
use crate::types::{HostPath, VolumeId, components};

/// How many levels below a working directory are examined. Below its own directory, kubelet and the
/// drivers make links down to this level: `pods\UID\volumes\PLUGIN\NAME\mount`,
/// `pods\UID\volume-subpaths\NAME\CONTAINER\INDEX`, `plugins\kubernetes.io\csi\DRIVER\ID\globalmount`.
const LEVELS: usize = 6;

/// The most entries that are examined. A node with 250 pods has about 10,000.
const MOST_ENTRIES: usize = 50_000;

/// The most bytes of the names of one directory, which are held at once for each level: about 700
/// long names.
const NAMES_SIZE: usize = 128 * 1024;

/// The directory of the CSI volumes of a pod, in lower case.
const CSI: &str = "kubernetes.io~csi";

const OPEN_TO_LIST: Open = Open::existing(
    Access::READ_DATA.union(Access::READ_ATTRIBUTES),
    NOFOLLOW_NOWAIT.union(Options::DIRECTORY),
);

/// Finds a link in the working directories that leads to `volume`, by itself or through other
/// links. No other link is followed than one to which an administrator has moved `pods` or
/// `plugins`, and none to a server. An object that cannot be examined is an error, because
/// callers destroy the content of a volume to which no link leads.
pub(crate) fn find(node: &Node, volume: VolumeId) -> OperationResult<Option<HostPath>> {
    find_among(node, volume, MOST_ENTRIES)
}

/// See [`find`]. Examines `most` entries.
fn find_among(node: &Node, volume: VolumeId, most: usize) -> OperationResult<Option<HostPath>> {
    let mut search = Search {
        node,
        volume,
        drives: Drives::default(),
        entries_left: most,
    };
    for directory in node.directories.all() {
        let opened = on_node::open(node.windows.os(), directory, &OPEN_TO_LIST, &|_| Ok(true));
        let opened = match opened {
            // Kubelet may not have created it yet.
            Err(error) if error.is_of(ErrorClass::DirectoryMissing) => continue,
            opened => opened.map_err(|error| undetermined(directory, error))?,
        };
        if let Some(link) = search.look_in(&*opened, directory, 1)? {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

struct Search<'a> {
    node: &'a Node,
    volume: VolumeId,
    drives: Drives,
    /// How many more entries may be examined.
    entries_left: usize,
}

impl Search<'_> {
    fn is_of_volume(&self, letter: char) -> OperationResult<bool> {
        let os = self.node.windows.os();
        Ok(letter == self.node.config().system_drive || self.drives.is_of_volume(os, letter)?)
    }

    /// Looks for a link in an open directory, whose entries are on `level`, and below it.
    fn look_in(
        &mut self,
        directory: &dyn Handle,
        path: &HostPath,
        level: usize,
    ) -> OperationResult<Option<HostPath>> {
        let listing = remove_tree::names(directory, NAMES_SIZE)
            .map_err(|code| undetermined(path, code.into()))?;
        let left = self.entries_left.checked_sub(listing.names.len());
        let Some(left) = left.filter(|_| listing.is_complete) else {
            let reason = "there are more entries than csi-proxy examines";
            return Err(undetermined(path, OperationError::precondition(reason)));
        };
        self.entries_left = left;
        for name in &listing.names {
            let entry = path.join(name);
            let fault = |code: OsError| undetermined(&entry, code.into());
            let found = match directory.open_child(name, &OPEN_NOFOLLOW) {
                // Another process has deleted it meanwhile.
                Err(code) if ErrorClass::EntryDeleted.contains(code) => continue,
                found => found.map_err(fault)?,
            };
            let attributes = buffer::attributes(&*found).map_err(fault)?.attributes;
            match Link::of(&*found).map_err(fault)? {
                Some(Link::Other) => {}
                Some(_) if self.leads_to_volume(&entry)? => return Ok(Some(entry)),
                Some(_) if level == 1 && is_of_kubelet(name) => {
                    if let Some(link) = self.look_behind(&entry)? {
                        return Ok(Some(link));
                    }
                }
                None if attributes & FILE_ATTRIBUTE_DIRECTORY != 0
                    && level < LEVELS
                    && !is_content_of_pod(&entry) =>
                {
                    let below = match directory.open_child(name, &OPEN_TO_LIST) {
                        Err(code) if ErrorClass::EntryDeleted.contains(code) => continue,
                        below => below.map_err(fault)?,
                    };
                    if let Some(link) = self.look_in(&*below, &entry, level + 1)? {
                        return Ok(Some(link));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Looks for a link below a directory of kubelet that an administrator has moved.
    fn look_behind(&mut self, link: &HostPath) -> OperationResult<Option<HostPath>> {
        let os = self.node.windows.os();
        let moved =
            match on_node::open(os, link, &OPEN_TO_LIST, &|letter| self.is_of_volume(letter)) {
                Err(error) if error.is_of(ErrorClass::TargetMissing) => return Ok(None),
                moved => moved.map_err(|error| undetermined(link, error))?,
            };
        self.look_in(&*moved, link, 2)
    }

    fn leads_to_volume(&self, link: &HostPath) -> OperationResult<bool> {
        on_node::volumes(self.node.windows.os(), link, &|letter| {
            self.is_of_volume(letter)
        })
        .map(|volumes| volumes.contains(&self.volume))
        .map_err(|error| undetermined(link, error))
    }
}

/// Returns whether a directory of this name, directly below kubelet's, is one of those in which
/// kubelet makes links.
fn is_of_kubelet(name: &U16Str) -> bool {
    let name = name.to_string_lossy();
    ["pods", "plugins"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns whether a directory has the files of a pod, and no links of kubelet: it is a volume of a
/// pod. A volume of CSI has its files in `mount`.
fn is_content_of_pod(directory: &HostPath) -> bool {
    let names: Vec<_> = components(directory.names())
        .map(|name| name.to_string_lossy().to_lowercase())
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    match names[..] {
        [.., "pods", _, "volumes", plugin, _] => plugin != CSI,
        [.., "pods", _, "volumes", CSI, _, "mount"] => true,
        _ => false,
    }
}

fn undetermined(path: &HostPath, error: OperationError) -> OperationError {
    let context = format_args!(
        "it cannot be determined whether a link leads to the volume, because {path} cannot be \
         examined"
    );
    error
        .in_context(context)
        .with_kind(ErrorKind::FailedPrecondition)
}

#[cfg(test)]
mod tests {
    use super::{find_among, is_content_of_pod};
    use crate::types::{HostPath, VolumeId};
    use crate::{Config, Node};

    #[test]
    fn a_tree_with_too_many_entries_is_an_error_and_not_one_without_links() {
        // `pods` and `plugins`, and four entries below.
        let sim = os_sim::node()
            .dir(r"C:\var\lib\kubelet\plugins\a\b")
            .dir(r"C:\var\lib\kubelet\plugins\c\d")
            .build();
        let node = Node::new(sim.process(), Config::default());
        let volume = VolumeId::parse(r"\\?\Volume{00000000-0000-0000-0000-000000000001}\").unwrap();
        let examined = sim.tree(r"C:\var\lib\kubelet").unwrap().len();
        assert_eq!(find_among(&node, volume, examined), Ok(None));
        find_among(&node, volume, examined - 1).unwrap_err();
    }

    #[test]
    fn the_files_of_a_pod_are_in_its_volumes() {
        for (path, is_content) in [
            (r"C:\k\pods\u\volumes\kubernetes.io~empty-dir", false),
            (r"C:\k\pods\u\volumes\kubernetes.io~empty-dir\v", true),
            (r"C:\k\Pods\u\Volumes\kubernetes.io~local-volume\pv", true),
            (r"C:\k\pods\u\volumes\kubernetes.io~csi\pv", false),
            (r"C:\k\pods\u\volumes\Kubernetes.io~CSI\pv\mount", true),
            (r"C:\k\pods\u\volume-subpaths\v\c", false),
            (r"C:\k\plugins\u\volumes\p\v", false),
        ] {
            assert_eq!(
                is_content_of_pod(&HostPath::parse(path).unwrap()),
                is_content,
                "{path}"
            );
        }
    }
}
