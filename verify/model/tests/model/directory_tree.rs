//! Files as the model has them: directories, files, links and mount points, and how a path is walked.

use std::collections::BTreeMap;

use crate::reference_model::{Disk, Model};

/// The name of a volume in the model: the disk it is on, whatever that disk's number.
pub(crate) type Key = u8;

pub(crate) type Names = Vec<String>;
pub(crate) type Directory = BTreeMap<String, Entry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory(Directory),
    File,
    Link(Target),
    /// A link that is of no use as a directory.
    FileLink(Target),
    Mount(Key),
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Names from `C:\` on.
    Path(Names),
    /// A share, and names from its root on.
    Share(String, Names),
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    System,
    Volume(Key),
    Share(String),
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An entry of a directory, or with no names a root.
    At(Root, Names),
    Missing,
    /// A volume or share on the way is not to be had just now, or the links go round in a circle.
    Gone,
    /// A share on the way does not let the node in.
    Refused,
}

/// A path in a working directory, walked without following anything.
pub(crate) enum Location<'a> {
    Entry(&'a Entry),
    /// Its parent is a directory, which does not have it.
    Absent,
    NoParent,
    /// A link or mount point is above it.
    BehindLink,
    /// A file is above it.
    BehindFile,
}

/// Far more steps than a path without a circle takes.
const MOST_HOPS: u32 = 200;

pub(crate) fn at<'a>(directory: &'a Directory, names: &[String]) -> Option<&'a Entry> {
    let (last, above) = names.split_last()?;
    inside(directory, above)?.get(last)
}

pub(crate) fn inside<'a>(mut directory: &'a Directory, names: &[String]) -> Option<&'a Directory> {
    for name in names {
        let Some(Entry::Directory(next)) = directory.get(name) else { return None };
        directory = next;
    }
    Some(directory)
}

pub(crate) fn inside_mut<'a>(mut directory: &'a mut Directory, names: &[String]) -> Option<&'a mut Directory> {
    for name in names {
        let Some(Entry::Directory(next)) = directory.get_mut(name) else { return None };
        directory = next;
    }
    Some(directory)
}

/// Every entry below, with its names.
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
            Root::Volume(key) => self.volume(*key)?.file_system.as_ref().map(|system| &system.files),
            Root::Share(share) => self.readable(share).then_some(&self.share_files),
        }
    }

    pub(crate) fn entry(&self, root: &Root, names: &[String]) -> Option<&Entry> {
        at(self.root(root)?, names)
    }

    /// Walks a path as Windows does, through links and mount points, the last one too if `follow`.
    pub(crate) fn walk(&self, path: &[String], follow: bool) -> Found {
        let (mut root, mut at, mut rest) = (Root::System, Names::new(), path.to_vec());
        rest.reverse();
        let mut hops = 0;
        while let Some(name) = rest.pop() {
            let Some(directory) = self.root(&root) else { return self.lost(&root) };
            let Some(entry) = inside(directory, &at).and_then(|directory| directory.get(&name)) else {
                return Found::Missing;
            };
            let last = rest.is_empty();
            match entry {
                Entry::Directory(_) => at.push(name),
                Entry::File if last => at.push(name),
                Entry::File => return Found::Missing,
                Entry::Link(_) | Entry::FileLink(_) | Entry::Mount(_) if last && !follow => at.push(name),
                Entry::Mount(key) => (root, at) = (Root::Volume(*key), Names::new()),
                Entry::FileLink(_) if !last => return Found::Gone,
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
            if hops > MOST_HOPS {
                return Found::Gone;
            }
        }
        if self.root(&root).is_none() { self.lost(&root) } else { Found::At(root, at) }
    }

    /// Why there is nothing to be had of a root.
    fn lost(&self, root: &Root) -> Found {
        if matches!(root, Root::Share(_)) && self.network { Found::Refused } else { Found::Gone }
    }

    /// Walks a path of `C:` that must meet no link above its last component.
    pub(crate) fn place(&self, path: &[String]) -> Location<'_> {
        let mut directory = &self.files;
        for (depth, name) in path.iter().enumerate() {
            let last = depth + 1 == path.len();
            match directory.get(name) {
                Some(entry) if last => return Location::Entry(entry),
                Some(Entry::Directory(next)) => directory = next,
                Some(Entry::File) => return Location::BehindFile,
                Some(_) => return Location::BehindLink,
                None if last => return Location::Absent,
                None => return Location::NoParent,
            }
        }
        Location::Absent
    }

    /// Whether there is a volume to be had.
    pub(crate) fn is_present(&self, key: Key) -> bool {
        self.volume(key).is_some()
    }

    /// The disk in Windows' sight that holds a volume, by its number.
    pub(crate) fn disk_of(&self, key: Key) -> Option<(u32, &Disk)> {
        let shows = |disk: &Disk| disk.key == key && disk.noticed && disk.online && disk.volume.is_some();
        self.disks.iter().find(|(_, disk)| shows(disk)).map(|(number, disk)| (*number, disk))
    }
}
