//! Directory trees on drive C: of a Wine prefix, which are made, read and compared from Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::{fmt, fs};

use super::kubelet;

/// What a path leads to.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    /// A file, and whether it may be written.
    File {
        writable: bool,
        content: Vec<u8>,
    },
    /// A symbolic link, which neither program can create under Wine.
    Link,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str("directory"),
            Self::File { writable: true, content } => write!(f, "file of {} bytes", content.len()),
            Self::File { writable: false, content } => write!(f, "read-only file of {} bytes", content.len()),
            Self::Link => f.write_str("link"),
        }
    }
}

/// All entries in which the calls take place, by their paths from the drive's root, with backslashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<String, Entry>);

/// The directories that hold all entries. The first holds the working directory, the other is outside.
const ROOTS: [&str; 2] = ["var", "outside"];

impl Tree {
    /// Reads the tree.
    pub(super) fn read(drive_c: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        for entry in fs::read_dir(drive_c)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // What a call creates on the drive itself is seen too.
            tree.0.insert(name.clone(), Entry::Directory);
            if ROOTS.contains(&name.as_str()) {
                tree.read_directory(&drive_c.join(&name), &name)?;
            }
        }
        Ok(tree)
    }

    fn read_directory(&mut self, directory: &Path, path: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = format!(r"{path}\{}", entry.file_name().to_string_lossy());
            let metadata = fs::symlink_metadata(entry.path())?;
            let found = if metadata.is_dir() {
                self.read_directory(&entry.path(), &path)?;
                Entry::Directory
            } else if metadata.is_file() {
                let writable = !metadata.permissions().readonly();
                Entry::File { writable, content: fs::read(entry.path())? }
            } else {
                Entry::Link
            };
            self.0.insert(path, found);
        }
        Ok(())
    }

    /// Makes the drive have these entries. The working directory stays the same object, as on a node.
    pub(super) fn create(&self, drive_c: &Path) -> io::Result<()> {
        remove(&drive_c.join("outside"))?;
        fs::create_dir_all(kubelet(drive_c))?;
        for parent in [drive_c.join("var"), drive_c.join("var/lib"), kubelet(drive_c)] {
            for entry in fs::read_dir(parent)? {
                let path = entry?.path();
                if !kubelet(drive_c).starts_with(&path) {
                    remove(&path)?;
                }
            }
        }
        for (path, entry) in &self.0 {
            let path = drive_c.join(path.replace('\\', "/"));
            match entry {
                Entry::Directory => fs::create_dir_all(path)?,
                Entry::Link => return Err(ErrorKind::Unsupported.into()),
                Entry::File { writable, content } => {
                    fs::write(&path, content)?;
                    if !writable {
                        let mut permissions = fs::metadata(&path)?.permissions();
                        permissions.set_readonly(true);
                        fs::set_permissions(path, permissions)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the entry at a path from the drive's root. Like Windows, it ignores the case of ASCII letters.
    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.0.iter().find(|(own, _)| own.eq_ignore_ascii_case(path)).map(|(_, entry)| entry)
    }

    /// Returns the entries that only one of two trees has, or that differ.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let paths: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let differing = paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path));
        let show = |entry: Option<&Entry>| entry.map_or_else(|| "nothing".to_owned(), |entry| format!("{entry:?}"));
        differing.map(|path| format!("{path:?}: {}, {}", show(self.0.get(path)), show(other.0.get(path)))).collect()
    }
}

/// Removes the working directory and makes an empty one, as a reset of the node's kubelet does.
pub(super) fn replace_working_directory(drive_c: &Path) -> io::Result<()> {
    remove(&kubelet(drive_c))?;
    fs::create_dir_all(kubelet(drive_c))
}

/// Removes a file or a directory tree. It may be missing.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
