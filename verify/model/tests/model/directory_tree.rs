//! The directory trees of the model: directories, files, links and mount points, and the resolution
//! of paths.

use std::collections::BTreeMap;

use crate::reference_model::{Disk, Model};

/// The identity of a disk and of its volume in the model, independent of the number of the disk.
pub(crate) type DiskKey = u8;

pub(crate) type Names = Vec<String>;
pub(crate) type Directory = BTreeMap<String, Entry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory(Directory),
    File,
    Link(Target),
    /// A link to a file.
    FileLink(Target),
    Mount(DiskKey),
}

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The path on `C:`.
    Path(Names),
    /// A share, and the path on it.
    Share(String, Names),
}

/// The root of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    System,
    Volume(DiskKey),
    Share(String),
}

/// The result of resolving a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// An entry of a directory, or a root if there are no names.
    At(Root, Names),
    Missing,
    /// A volume or share on the path is not available, or the links form a loop.
    Unreachable,
    /// A share on the path denies access.
    AccessDenied,
}

/// The result of looking up a path without following links.
pub(crate) enum Lookup<'a> {
    Entry(&'a Entry),
    /// The parent directory exists, the entry does not.
    Absent,
    NoParent,
    /// A parent is a link or mount point.
    BehindLink,
    /// A parent is a file.
    BehindFile,
}

/// More components than any path without a loop has.
const MAX_HOPS: u32 = 200;

pub(crate) fn at<'a>(directory: &'a Directory, names: &[String]) -> Option<&'a Entry> {
    let (last, above) = names.split_last()?;
    inside(directory, above)?.get(last)
}

pub(crate) fn inside<'a>(mut directory: &'a Directory, names: &[String]) -> Option<&'a Directory> {
    for name in names {
        let Some(Entry::Directory(next)) = directory.get(name) else {
            return None;
        };
        directory = next;
    }
    Some(directory)
}

pub(crate) fn inside_mut<'a>(
    mut directory: &'a mut Directory,
    names: &[String],
) -> Option<&'a mut Directory> {
    for name in names {
        let Some(Entry::Directory(next)) = directory.get_mut(name) else {
            return None;
        };
        directory = next;
    }
    Some(directory)
}

/// Returns every entry below a directory, with its path.
pub(crate) fn all(directory: &Directory) -> Vec<(Names, &Entry)> {
    let mut found = Vec::new();
    for (name, entry) in directory {
        found.push((vec![name.clone()], entry));
        if let Entry::Directory(inner) = entry {
            let below = all(inner).into_iter();
            found.extend(below.map(|(names, entry)| ([vec![name.clone()], names].concat(), entry)));
        }
    }
    found
}

impl Model {
    pub(crate) fn root(&self, root: &Root) -> Option<&Directory> {
        match root {
            Root::System => Some(&self.files),
            Root::Volume(key) => self
                .volume(*key)?
                .file_system
                .as_ref()
                .map(|system| &system.files),
            Root::Share(share) => self.readable(share).then_some(&self.share_files),
        }
    }

    pub(crate) fn entry(&self, root: &Root, names: &[String]) -> Option<&Entry> {
        at(self.root(root)?, names)
    }

    /// Resolves a path as Windows does, through links and mount points, including the last
    /// component if `follow`.
    pub(crate) fn resolve(&self, path: &[String], follow: bool) -> Resolved {
        let (mut root, mut at, mut rest) = (Root::System, Names::new(), path.to_vec());
        rest.reverse();
        let mut hops = 0;
        while let Some(name) = rest.pop() {
            let Some(directory) = self.root(&root) else {
                return self.why_unreachable(&root);
            };
            let Some(entry) = inside(directory, &at).and_then(|directory| directory.get(&name))
            else {
                return Resolved::Missing;
            };
            let last = rest.is_empty();
            match entry {
                Entry::Directory(_) => at.push(name),
                Entry::File if last => at.push(name),
                Entry::File => return Resolved::Missing,
                Entry::Link(_) | Entry::FileLink(_) | Entry::Mount(_) if last && !follow => {
                    at.push(name);
                }
                Entry::Mount(key) => (root, at) = (Root::Volume(*key), Names::new()),
                Entry::FileLink(_) if !last => return Resolved::Unreachable,
                Entry::Link(target) | Entry::FileLink(target) => {
                    let names = match target {
                        Target::Path(names) => {
                            root = Root::System;
                            names
                        }
                        Target::Share(share, names) => {
                            root = Root::Share(share.clone());
                            names
                        }
                    };
                    at = Names::new();
                    rest.extend(names.iter().rev().cloned());
                }
            }
            hops += 1;
            if hops > MAX_HOPS {
                return Resolved::Unreachable;
            }
        }
        if self.root(&root).is_none() {
            self.why_unreachable(&root)
        } else {
            Resolved::At(root, at)
        }
    }

    /// Why a root has no directory.
    fn why_unreachable(&self, root: &Root) -> Resolved {
        if matches!(root, Root::Share(_)) && self.smb_reachable {
            Resolved::AccessDenied
        } else {
            Resolved::Unreachable
        }
    }

    /// Looks up a path on `C:` whose parents must not be links.
    pub(crate) fn look_up(&self, path: &[String]) -> Lookup<'_> {
        let mut directory = &self.files;
        for (depth, name) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            match directory.get(name) {
                Some(entry) if last => return Lookup::Entry(entry),
                Some(Entry::Directory(next)) => directory = next,
                Some(Entry::File) => return Lookup::BehindFile,
                Some(_) => return Lookup::BehindLink,
                None if last => return Lookup::Absent,
                None => return Lookup::NoParent,
            }
        }
        Lookup::Absent
    }

    /// Whether Windows shows the volume.
    pub(crate) fn is_present(&self, key: DiskKey) -> bool {
        self.volume(key).is_some()
    }

    /// The disk that holds a volume, if Windows shows it, with its number.
    pub(crate) fn disk_of(&self, key: DiskKey) -> Option<(u32, &Disk)> {
        let shows = |disk: &Disk| {
            disk.key == key && disk.enumerated && disk.online && disk.volume.is_some()
        };
        self.disks
            .iter()
            .find(|(_, disk)| shows(disk))
            .map(|(number, disk)| (*number, disk))
    }
}
