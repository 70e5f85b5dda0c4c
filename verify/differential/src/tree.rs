//! Directory trees on drive C: of a Wine prefix, which are made, read and compared from Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    File {
        is_writable: bool,
        content: String,
    },
    /// A symbolic link, which neither program can create under Wine.
    Link,
}

/// All entries in which the calls take place, by their paths from the drive's root, with
/// backslashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<String, Entry>);

impl Tree {
    /// Returns the entry at a path from the drive's root. Like Windows, it ignores the case of
    /// ASCII letters.
    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.0
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(path))
            .map(|(_, entry)| entry)
    }

    /// Returns the entries that only one of two trees has, or that differ.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let paths: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differing = paths
            .into_iter()
            .filter(|path| self.0.get(*path) != other.0.get(*path));
        let show = |entry: Option<&Entry>| {
            entry.map_or_else(|| "nothing".to_owned(), |entry| format!("{entry:?}"))
        };
        differing
            .map(|path| {
                format!(
                    "{path:?}: {}, {}",
                    show(self.0.get(path)),
                    show(other.0.get(path))
                )
            })
            .collect()
    }
}

/// The directories that hold all entries. The first holds the working directory, the other is
/// outside.
const ROOTS: [&str; 2] = ["var", "outside"];

/// Drive C: of a Wine prefix, without the files and directories that were there before the first
/// call.
///
/// Those belong to Wine, or earlier tests have left them in one of the prefixes.
pub(super) struct Drive {
    root: PathBuf,
    others: BTreeSet<PathBuf>,
}

impl Drive {
    /// Takes the drive as it is now. An entry on the drive itself that appears later is part of its
    /// tree.
    pub(super) fn new(root: PathBuf) -> io::Result<Self> {
        let mut others = paths_in(&root)?;
        others.retain(|path| ROOTS.iter().all(|name| *path != root.join(name)));
        Ok(Self { root, others })
    }

    /// Reads the tree.
    pub(super) fn read(&self) -> io::Result<Tree> {
        let mut tree = Tree::default();
        self.read_directory(&self.root, &mut tree)?;
        Ok(tree)
    }

    fn read_directory(&self, directory: &Path, tree: &mut Tree) -> io::Result<()> {
        for path in paths_in(directory)?.difference(&self.others) {
            let metadata = fs::symlink_metadata(path)?;
            let found = if metadata.is_dir() {
                self.read_directory(path, tree)?;
                Entry::Directory
            } else if metadata.is_file() {
                let is_writable = !metadata.permissions().readonly();
                Entry::File {
                    is_writable,
                    content: fs::read_to_string(path)?,
                }
            } else {
                Entry::Link
            };
            let from_root = path.strip_prefix(&self.root).unwrap_or(path);
            tree.0
                .insert(from_root.to_string_lossy().replace('/', r"\"), found);
        }
        Ok(())
    }

    /// Makes the drive have these entries. The working directory stays the same object, as on a
    /// node.
    pub(super) fn create(&self, tree: &Tree) -> io::Result<()> {
        let kubelet = self.kubelet();
        fs::create_dir_all(&kubelet)?;
        for parent in [
            &self.root,
            &self.root.join("var"),
            &self.root.join("var/lib"),
            &kubelet,
        ] {
            for path in paths_in(parent)?.difference(&self.others) {
                if !kubelet.starts_with(path) {
                    remove(path)?;
                }
            }
        }
        for (path, entry) in &tree.0 {
            let path = self.root.join(path.replace('\\', "/"));
            match entry {
                Entry::Directory => fs::create_dir_all(path)?,
                Entry::Link => return Err(ErrorKind::Unsupported.into()),
                Entry::File {
                    is_writable,
                    content,
                } => {
                    fs::write(&path, content)?;
                    if !is_writable {
                        let mut permissions = fs::metadata(&path)?.permissions();
                        permissions.set_readonly(true);
                        fs::set_permissions(path, permissions)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the working directory and makes an empty one, as a reset of the node's kubelet does.
    pub(super) fn replace_working_directory(&self) -> io::Result<()> {
        remove(&self.kubelet())?;
        fs::create_dir_all(self.kubelet())
    }

    /// Returns where the working directory is.
    fn kubelet(&self) -> PathBuf {
        self.root.join("var/lib/kubelet")
    }
}

fn paths_in(directory: &Path) -> io::Result<BTreeSet<PathBuf>> {
    fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect()
}

/// Removes a file or a directory tree. It may be missing.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| {
        if error.kind() == ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Drive, Entry, Tree};

    #[test]
    fn a_tree_has_no_entry_that_was_on_the_drive_before_and_each_that_a_call_makes_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let left = folder.path().join("left-by-a-test");
        fs::create_dir(&left).expect("a folder");
        let drive = Drive::new(folder.path().to_owned()).expect("the drive");
        fs::create_dir_all(drive.kubelet().join("of-an-earlier-tree")).expect("a folder");
        fs::write(folder.path().join("made-by-a-call"), "").expect("a file");
        assert!(
            drive
                .read()
                .expect("the tree")
                .get("made-by-a-call")
                .is_some()
        );
        let names = ["outside", "var", r"var\lib", r"var\lib\kubelet"];
        let tree = Tree(
            names
                .iter()
                .map(|name| ((*name).to_owned(), Entry::Directory))
                .collect(),
        );
        drive.create(&tree).expect("the entries");
        assert_eq!(drive.read().expect("the tree"), tree);
        assert!(left.is_dir());
    }
}
