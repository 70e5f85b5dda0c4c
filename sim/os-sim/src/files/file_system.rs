//! File systems: trees of files, directories and links.

use std::collections::BTreeMap;

use os::abi::{
    AccessEntry, EntryKind, FILE_APPEND_DATA, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_WRITE_DATA, GENERIC_ALL, SecurityDescriptor, Sid,
};
use os::{Access, OsError, OsResult};

use crate::files::file_name::Name;
use crate::files::reparse_point;

/// Identifies a file; never used twice on a node.
pub(crate) type FileId = u64;

/// The bytes in an allocation unit, unless Windows is asked for another size.
const CLUSTER: u64 = 4096;
/// The most clusters that NTFS has.
pub(crate) const NTFS_CLUSTERS: u64 = u32::MAX as u64;

/// `FILE_ATTRIBUTE_ARCHIVE`, which every new file has.
const ARCHIVE: u32 = 0x20;

/// A file system and its content.
#[derive(Clone, Debug)]
pub(crate) struct FileSystem {
    /// The name, such as `NTFS`, `ReFS` or `FAT32`.
    pub kind: String,
    /// The volume serial number. Each format writes a new number.
    pub serial: u64,
    /// Identifies the current mount of the file system. Handles that were opened during an earlier
    /// mount fail.
    pub mounting: u64,
    /// The size of the file system in bytes.
    pub length: u64,
    /// The bytes in an allocation unit.
    pub cluster: u64,
    pub root: FileId,
    /// Whether the access control list of the root directory grants the right to list it.
    pub is_root_listable: bool,
    records: BTreeMap<FileId, FileRecord>,
}

/// A file or directory. A link is a file or directory with a reparse point.
#[derive(Clone, Debug)]
pub(crate) struct FileRecord {
    /// `None` for the root directory, and for a file that was unlinked while open.
    pub parent: Option<FileId>,
    pub name: Name,
    /// The attributes that can be set, which the directory and the reparse-point attribute cannot.
    pub attributes: u32,
    /// The reparse point with its header, as it is read and written.
    pub reparse: Option<Vec<u8>>,
    pub body: Body,
    /// The names and sizes of its data streams, besides the content of a file.
    pub streams: Vec<(String, usize)>,
    /// Whether the access control list grants nobody a right.
    pub grants_nothing: bool,
    /// The owner and the access control list that Windows shows. Default: [`administrators_only`].
    pub access: Option<SecurityDescriptor>,
    /// The opportunistic lock that a process has on the file, which it never gives up.
    pub oplock: Option<Oplock>,
    /// How the file is to be deleted, if a deletion was requested.
    pub pending: Option<PendingDeletion>,
}

/// An opportunistic lock (oplock). Windows breaks it for certain calls of other processes, which
/// wait for its owner.
///
/// The simulated owner has no right to the data, so that its handle does not cause sharing
/// violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oplock {
    /// Level 1, batch, filter, read-write or read-write-handle: only on a file. An open that
    /// requests more than attributes breaks it. On Windows an open for reading does not break a
    /// filter oplock; that is not simulated.
    Exclusive,
    /// Read-handle. A deletion breaks it, and an open that would cause a sharing violation.
    Handle,
}

/// When a file disappears whose deletion was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PendingDeletion {
    /// When its last handle is closed.
    LastClose,
    /// When the handle that requested the deletion is closed (POSIX semantics).
    Posix,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Directory(BTreeMap<Name, FileId>),
    File(Vec<u8>),
}

/// `FILE_ALL_ACCESS`.
const FULL: u32 = 0x1f_01ff;

/// Returns the access to a file or directory that only LocalSystem and administrators may change.
pub(crate) fn administrators_only() -> SecurityDescriptor {
    access(&[("S-1-5-18", 0, FULL), ("S-1-5-32-544", 0, FULL)])
}

/// Returns the access to the root of a volume that Windows Server has formatted. Users may create
/// directories in it, and files only in these.
pub(crate) fn new_root() -> SecurityDescriptor {
    /// Read and execute, which everyone may, too.
    const READ: u32 = 0x12_00a9;
    access(&[
        ("S-1-5-32-544", 3, FULL),
        ("S-1-5-18", 3, FULL),
        ("S-1-3-0", 0xb, GENERIC_ALL),
        ("S-1-5-32-545", 3, READ),
        ("S-1-5-32-545", 2, FILE_APPEND_DATA),
        ("S-1-5-32-545", 0xa, FILE_WRITE_DATA),
        ("S-1-1-0", 0, READ),
    ])
}

/// Returns the access of an object of the administrators that grants accounts rights, each with
/// flags of inheritance.
fn access(granted: &[(&str, u8, u32)]) -> SecurityDescriptor {
    let sid = |text: &str| text.parse::<Sid>().expect("a SID");
    let entry = |&(account, flags, rights): &(&str, u8, u32)| AccessEntry {
        kind: EntryKind::Allow,
        flags,
        rights,
        sid: sid(account),
    };
    SecurityDescriptor {
        owner: Some(sid("S-1-5-32-544")),
        entries: Some(granted.iter().map(entry).collect()),
    }
}

impl FileRecord {
    fn new(parent: Option<FileId>, name: Name, body: Body) -> Self {
        let attributes = if matches!(body, Body::File(_)) {
            ARCHIVE
        } else {
            0
        };
        Self {
            parent,
            name,
            attributes,
            reparse: None,
            body,
            streams: Vec::new(),
            grants_nothing: false,
            access: None,
            oplock: None,
            pending: None,
        }
    }

    pub(crate) fn children(&self) -> Option<&BTreeMap<Name, FileId>> {
        match &self.body {
            Body::Directory(children) => Some(children),
            Body::File(_) => None,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.children().is_some()
    }

    pub(crate) fn is_empty_directory(&self) -> bool {
        self.children().is_some_and(BTreeMap::is_empty)
    }

    pub(crate) fn data(&self) -> &[u8] {
        match &self.body {
            Body::Directory(_) => &[],
            Body::File(data) => data,
        }
    }

    /// Returns the attributes as they are read.
    pub(crate) fn file_attributes(&self) -> u32 {
        let directory = if self.is_directory() {
            FILE_ATTRIBUTE_DIRECTORY
        } else {
            0
        };
        let reparse = if self.reparse.is_some() {
            FILE_ATTRIBUTE_REPARSE_POINT
        } else {
            0
        };
        match self.attributes | directory | reparse {
            0 => FILE_ATTRIBUTE_NORMAL,
            some => some,
        }
    }

    /// Returns the reparse point that an open follows. A directory whose tag has the directory bit
    /// opens like any directory, so this returns `None` for it.
    pub(crate) fn link(&self) -> Option<&[u8]> {
        let is_link = |data: &&[u8]| {
            !(self.is_directory() && reparse_point::is_directory_tag(reparse_point::tag(data)))
        };
        self.reparse.as_deref().filter(is_link)
    }

    /// Returns the reparse tag, or 0 if the file has no reparse point.
    pub(crate) fn reparse_tag(&self) -> u32 {
        self.reparse.as_deref().map_or(0, reparse_point::tag)
    }
}

impl FileSystem {
    pub(crate) fn new(kind: &str, serial: u64, length: u64, root: FileId) -> Self {
        let file = FileRecord::new(None, Name::root(), Body::Directory(BTreeMap::new()));
        let mut cluster = CLUSTER;
        while kind == "NTFS" && length / cluster > NTFS_CLUSTERS {
            cluster *= 2;
        }
        Self {
            kind: kind.into(),
            serial,
            mounting: root,
            length,
            cluster,
            root,
            is_root_listable: true,
            records: BTreeMap::from([(root, file)]),
        }
    }

    /// Returns whether it is FAT, FAT32 or exFAT, which lack many features of NTFS.
    pub(crate) fn is_fat(&self) -> bool {
        is_fat(&self.kind)
    }

    pub(crate) fn record(&self, id: FileId) -> OsResult<&FileRecord> {
        self.records.get(&id).ok_or(OsError::FILE_NOT_FOUND)
    }

    pub(crate) fn record_mut(&mut self, id: FileId) -> OsResult<&mut FileRecord> {
        self.records.get_mut(&id).ok_or(OsError::FILE_NOT_FOUND)
    }

    /// Returns the rights that Windows grants on `id`, by the access control lists of the file and
    /// of its directory. The right to list a directory includes reading the attributes of its
    /// entries, and the right to delete entries includes deleting each entry.
    pub(crate) fn granted(&self, id: FileId) -> OsResult<Access> {
        let file = self.record(id)?;
        if !file.grants_nothing {
            let all = Access::from_bits_retain(u32::MAX);
            return Ok(if id == self.root && !self.is_root_listable {
                all.difference(Access::READ_DATA)
            } else {
                all
            });
        }
        let directory = file.parent.map(|parent| self.record(parent)).transpose()?;
        let by_directory = directory.is_some_and(|directory| !directory.grants_nothing);
        Ok(if by_directory {
            Access::READ_ATTRIBUTES | Access::DELETE
        } else {
            Access::empty()
        })
    }

    /// Returns whether a directory above `id` grants nobody a right.
    pub(crate) fn any_above_grants_nothing(&self, id: FileId) -> bool {
        let above = |id: FileId| self.records.get(&id)?.parent;
        let directories = std::iter::successors(above(id), |id| above(*id));
        directories
            .filter_map(|id| self.records.get(&id))
            .any(|directory| directory.grants_nothing)
    }

    pub(crate) fn child(&self, directory: FileId, name: &Name) -> Option<FileId> {
        self.records.get(&directory)?.children()?.get(name).copied()
    }

    /// Creates an empty file or directory with the unused identity `id`.
    pub(crate) fn add(
        &mut self,
        parent: FileId,
        name: &Name,
        directory: bool,
        id: FileId,
    ) -> OsResult<FileId> {
        let body = if directory {
            Body::Directory(BTreeMap::new())
        } else {
            Body::File(Vec::new())
        };
        let Body::Directory(children) = &mut self.record_mut(parent)?.body else {
            return Err(OsError::DIRECTORY);
        };
        if children.contains_key(name) {
            return Err(OsError::ALREADY_EXISTS);
        }
        children.insert(name.clone(), id);
        self.records
            .insert(id, FileRecord::new(Some(parent), name.clone(), body));
        Ok(id)
    }

    /// Removes the name of `id`. The record stays until [`Self::forget`].
    pub(crate) fn unlink(&mut self, id: FileId) {
        let Some(file) = self.records.get_mut(&id) else {
            return;
        };
        let parent = file.parent.take();
        let name = file.name.clone();
        if let Some(Body::Directory(children)) = parent
            .and_then(|parent| self.records.get_mut(&parent))
            .map(|file| &mut file.body)
        {
            children.remove(&name);
        }
    }

    /// Moves `id` to `name` in `parent`. The caller has checked that the name is free and `parent`
    /// is not below `id`.
    pub(crate) fn relink(&mut self, id: FileId, parent: FileId, name: &Name) -> OsResult<()> {
        self.unlink(id);
        let Body::Directory(children) = &mut self.record_mut(parent)?.body else {
            return Err(OsError::DIRECTORY);
        };
        children.insert(name.clone(), id);
        let file = self.record_mut(id)?;
        file.parent = Some(parent);
        file.name = name.clone();
        Ok(())
    }

    /// Removes the record of a file that was unlinked.
    pub(crate) fn forget(&mut self, id: FileId) {
        self.records.remove(&id);
    }

    /// Returns the names on the path from the root to `id`, or `None` if it was unlinked.
    pub(crate) fn path(&self, id: FileId) -> Option<Vec<Name>> {
        let mut names = Vec::new();
        let mut at = id;
        while at != self.root {
            let file = self.records.get(&at)?;
            names.push(file.name.clone());
            at = file.parent?;
        }
        names.reverse();
        Some(names)
    }

    /// Returns all files with their identities.
    pub(crate) fn records(&self) -> impl Iterator<Item = (FileId, &FileRecord)> {
        self.records.iter().map(|(id, file)| (*id, file))
    }

    /// Returns the bytes in use, including the file system's own metadata.
    pub(crate) fn used(&self) -> u64 {
        let metadata = (self.length / 64).min(16 << 20);
        let files: u64 = self
            .records
            .values()
            .map(|file| self.allocated(file.data().len()))
            .sum();
        (metadata.next_multiple_of(self.cluster) + files).min(self.total())
    }

    /// Returns the capacity in bytes: all whole allocation units except the last unit, which holds
    /// the backup boot sector.
    pub(crate) fn total(&self) -> u64 {
        (self.length / self.cluster).saturating_sub(1) * self.cluster
    }

    pub(crate) fn free(&self) -> u64 {
        self.total() - self.used()
    }

    /// Returns the disk space that a file of `length` bytes occupies.
    pub(crate) fn allocated(&self, length: usize) -> u64 {
        u64::try_from(length)
            .unwrap_or(u64::MAX)
            .next_multiple_of(self.cluster)
    }

    /// Dismounts the file system while handles are open: unlinked files are removed and requested
    /// deletions cancelled.
    pub(crate) fn dismount(&mut self, mounting: u64) {
        self.mounting = mounting;
        self.drop_unlinked();
        self.records
            .values_mut()
            .for_each(|file| file.pending = None);
    }

    fn drop_unlinked(&mut self) {
        let root = self.root;
        self.records
            .retain(|id, file| file.parent.is_some() || *id == root);
    }

    /// Removes the files whose deletion is due because all handles are closed.
    pub(crate) fn close_all(&mut self) {
        self.drop_unlinked();
        let pending: Vec<_> = self
            .records
            .iter()
            .filter(|(_, file)| file.pending.is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in pending {
            self.unlink(id);
            self.forget(id);
        }
    }
}

/// Returns whether this is the name of FAT, FAT32 or exFAT.
pub(crate) fn is_fat(kind: &str) -> bool {
    kind.contains("FAT")
}
