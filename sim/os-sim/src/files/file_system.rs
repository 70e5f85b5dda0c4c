//! File systems: trees of files, directories and links.

use std::collections::BTreeMap;

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_REPARSE_POINT};
use os::{OsError, OsResult};

use crate::files::file_name::Name;

/// The identity of a file; never used twice on a node.
pub(crate) type FileId = u64;

/// Bytes in an allocation unit.
pub(crate) const CLUSTER: u64 = 4096;

/// A file system and all that is on it.
#[derive(Clone, Debug)]
pub(crate) struct FileSystem {
    /// `NTFS`, `ReFS`, `FAT32`.
    pub kind: String,
    pub label: String,
    /// The volume serial number; another after each format.
    pub serial: u64,
    /// Which mounting of it this is: a handle opened in an earlier one is dead.
    pub mounting: u64,
    /// The space it manages, in bytes.
    pub length: u64,
    pub root: FileId,
    records: BTreeMap<FileId, FileRecord>,
}

/// A file or directory; a link is one of them with a reparse point.
#[derive(Clone, Debug)]
pub(crate) struct FileRecord {
    /// None for the root, and for what was unlinked while open.
    pub parent: Option<FileId>,
    pub name: Name,
    /// What can be set: neither the directory nor the reparse bit.
    pub attributes: u32,
    /// The reparse point with its head, as it is read and written.
    pub reparse: Option<Vec<u8>>,
    pub body: Body,
    /// When it was made and last written, in 100 ns since 1601.
    pub created: i64,
    pub written: i64,
    pub pending: Option<Pending>,
}

/// A deletion that has been asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    /// The name goes with the last handle.
    LastClose,
    /// The name goes with the handle that asked.
    Posix,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Directory(BTreeMap<Name, FileId>),
    File(Vec<u8>),
}

impl FileRecord {
    fn new(parent: Option<FileId>, name: Name, body: Body, time: i64) -> Self {
        Self { parent, name, attributes: 0, reparse: None, body, created: time, written: time, pending: None }
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

    /// The attributes as they are read.
    pub(crate) fn file_attributes(&self) -> u32 {
        let directory = if self.is_directory() { FILE_ATTRIBUTE_DIRECTORY } else { 0 };
        let reparse = if self.reparse.is_some() { FILE_ATTRIBUTE_REPARSE_POINT } else { 0 };
        match self.attributes | directory | reparse {
            0 => FILE_ATTRIBUTE_NORMAL,
            some => some,
        }
    }

    /// The reparse tag, 0 for none.
    pub(crate) fn reparse_tag(&self) -> u32 {
        self.reparse.as_ref().and_then(|data| data.first_chunk()).map_or(0, |tag| u32::from_le_bytes(*tag))
    }
}

impl FileSystem {
    pub(crate) fn new(kind: &str, serial: u64, length: u64, root: FileId, time: i64) -> Self {
        let file = FileRecord::new(None, Name::root(), Body::Directory(BTreeMap::new()), time);
        Self {
            kind: kind.into(),
            label: String::new(),
            serial,
            mounting: root,
            length,
            root,
            records: BTreeMap::from([(root, file)]),
        }
    }

    pub(crate) fn record(&self, id: FileId) -> OsResult<&FileRecord> {
        self.records.get(&id).ok_or(OsError::FILE_NOT_FOUND)
    }

    pub(crate) fn record_mut(&mut self, id: FileId) -> OsResult<&mut FileRecord> {
        self.records.get_mut(&id).ok_or(OsError::FILE_NOT_FOUND)
    }

    pub(crate) fn child(&self, directory: FileId, name: &Name) -> Option<FileId> {
        self.records.get(&directory)?.children()?.get(name).copied()
    }

    /// Makes an empty file or directory with the fresh identity `id`.
    pub(crate) fn add(
        &mut self,
        parent: FileId,
        name: &Name,
        directory: bool,
        id: FileId,
        time: i64,
    ) -> OsResult<FileId> {
        let body = if directory { Body::Directory(BTreeMap::new()) } else { Body::File(Vec::new()) };
        let Body::Directory(children) = &mut self.record_mut(parent)?.body else { return Err(OsError::DIRECTORY) };
        if children.contains_key(name) {
            return Err(OsError::ALREADY_EXISTS);
        }
        children.insert(name.clone(), id);
        self.records.insert(id, FileRecord::new(Some(parent), name.clone(), body, time));
        Ok(id)
    }

    /// Takes the name of `id` away; the node itself stays until [`Self::forget`].
    pub(crate) fn unlink(&mut self, id: FileId) {
        let Some(file) = self.records.get_mut(&id) else { return };
        let (parent, name) = (file.parent.take(), file.name.clone());
        if let Some(Body::Directory(children)) =
            parent.and_then(|parent| self.records.get_mut(&parent)).map(|file| &mut file.body)
        {
            children.remove(&name);
        }
    }

    /// Gives `id` another place. The caller has made sure that the place is free and not below `id`.
    pub(crate) fn relink(&mut self, id: FileId, parent: FileId, name: &Name) -> OsResult<()> {
        self.unlink(id);
        let Body::Directory(children) = &mut self.record_mut(parent)?.body else { return Err(OsError::DIRECTORY) };
        children.insert(name.clone(), id);
        let file = self.record_mut(id)?;
        file.parent = Some(parent);
        file.name = name.clone();
        Ok(())
    }

    /// Forgets a node that has no name any more.
    pub(crate) fn forget(&mut self, id: FileId) {
        self.records.remove(&id);
    }

    /// The names that lead from the root to `id`; none if it was unlinked.
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

    /// All nodes with their identities.
    pub(crate) fn records(&self) -> impl Iterator<Item = (FileId, &FileRecord)> {
        self.records.iter().map(|(id, file)| (*id, file))
    }

    /// Bytes that are taken, the file system's own included.
    pub(crate) fn used(&self) -> u64 {
        let own = (self.length / 64).min(16 << 20);
        let files: u64 = self.records.values().map(|file| allocated(file.data().len())).sum();
        (own.next_multiple_of(CLUSTER) + files).min(self.total())
    }

    /// Bytes it manages, whole allocation units without the last, which holds the spare boot sector.
    pub(crate) fn total(&self) -> u64 {
        (self.length / CLUSTER).saturating_sub(1) * CLUSTER
    }

    pub(crate) fn free(&self) -> u64 {
        self.total() - self.used()
    }

    /// Dismounts it under its handles: what was unlinked is gone, what was to be deleted later is not deleted.
    pub(crate) fn dismount(&mut self, mounting: u64) {
        self.mounting = mounting;
        self.drop_unlinked();
        self.records.values_mut().for_each(|file| file.pending = None);
    }

    fn drop_unlinked(&mut self) {
        let root = self.root;
        self.records.retain(|id, file| file.parent.is_some() || *id == root);
    }

    /// Closes all handles: what was unlinked goes, and what was to be deleted.
    pub(crate) fn close_all(&mut self) {
        self.drop_unlinked();
        let pending: Vec<_> =
            self.records.iter().filter(|(_, file)| file.pending.is_some()).map(|(id, _)| *id).collect();
        for id in pending {
            self.unlink(id);
            self.forget(id);
        }
    }
}

/// The space that `length` bytes take.
pub(crate) fn allocated(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX).next_multiple_of(CLUSTER)
}
