//! Open handles: opening, access and sharing checks, creation, deletion and closing.

use os::abi::{FILE_ATTRIBUTE_READONLY, FILE_DISPOSITION_IGNORE_READONLY, FILE_DISPOSITION_POSIX};
use os::{Access, Disposition, Open, Options, OsError, OsResult, Share, U16Str, Uuid};

use crate::files::file_name::Name;
use crate::files::file_system::{FileId, PendingDeletion};
use crate::files::path_resolution::{ParsedPath, Resolved};
use crate::state::{DeviceId, FsId, State};

/// Identifies the process that owns a handle.
pub(crate) type ProcessId = u64;

/// What a handle is open on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Disk(DeviceId),
    Volume {
        id: Uuid,
        /// Opened without access to its data. Windows mounts no file system for such an open.
        direct: bool,
    },
    /// A file or directory, and the mount of its file system in which it was opened.
    File {
        fs: FsId,
        mounting: u64,
        file: FileId,
    },
}

/// An open handle.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub process: ProcessId,
    pub object: Object,
    pub access: Access,
    share: Share,
    /// Whether the link itself was opened and not its target (`FILE_OPEN_REPARSE_POINT`).
    pub link: bool,
    /// The position in the listing of the directory.
    pub cursor: Cursor,
    /// Whether this handle requested a POSIX deletion.
    deletes: bool,
    /// Whether closing the handle deletes the file (`FILE_DELETE_ON_CLOSE`).
    pub deletes_on_close: bool,
}

/// A position in the listing of a directory.
#[derive(Clone, Debug, Default)]
pub(crate) enum Cursor {
    #[default]
    Begin,
    /// After `.`.
    Itself,
    /// After `..`.
    Parent,
    After(Name),
}

impl Opened {
    pub(crate) fn is_on(&self, on: &FsId, id: FileId) -> bool {
        matches!(&self.object, Object::File { fs, file, .. } if fs == on && *file == id)
    }
}

/// Adds the specific rights that generic rights include for a file.
pub(crate) fn specific(access: Access) -> Access {
    let mut rights = access;
    if access.contains(Access::GENERIC_READ) {
        rights |= Access::READ_DATA | Access::READ_ATTRIBUTES;
    }
    if access.contains(Access::GENERIC_WRITE) {
        rights |= Access::WRITE_DATA | Access::WRITE_ATTRIBUTES;
    }
    rights
}

impl State {
    /// Opens an object by its absolute NT path and returns the handle.
    pub(crate) fn open(&mut self, process: ProcessId, path: &[u16], how: &Open) -> OsResult<u64> {
        match self.parse_path(path)? {
            ParsedPath::Disk(device) => Ok(self.handle(process, Object::Disk(device), how, false)),
            ParsedPath::Volume(id) => {
                let direct = !specific(how.access).intersects(Access::READ_DATA | Access::WRITE_DATA);
                Ok(self.handle(process, Object::Volume { id, direct }, how, false))
            }
            ParsedPath::File(fs, names) => {
                let root = self.file_system(&fs)?.root;
                self.open_from(process, fs, root, names, how)
            }
        }
    }

    /// Opens a child of an open directory.
    pub(crate) fn open_child(&mut self, parent: u64, name: &U16Str, how: &Open) -> OsResult<u64> {
        let name = Name::new(name.as_slice())?;
        let opened = self.opened(parent)?;
        let (process, link) = (opened.process, opened.link);
        let Object::File { fs, file, .. } = opened.object.clone() else { return Err(OsError::INVALID_PARAMETER) };
        let directory = self.file_of(parent)?;
        if !directory.is_directory() {
            return Err(OsError::DIRECTORY);
        }
        if link && directory.reparse.is_some() && how.disposition == Disposition::Create {
            return Err(OsError::REPARSE_POINT_ENCOUNTERED);
        }
        self.open_from(process, fs, file, vec![name], how)
    }

    fn open_from(
        &mut self,
        process: ProcessId,
        fs: FsId,
        start: FileId,
        names: Vec<Name>,
        how: &Open,
    ) -> OsResult<u64> {
        let link = how.options.contains(Options::REPARSE_POINT);
        if how.options.contains(Options::DELETE_ON_CLOSE) && !how.access.contains(Access::DELETE) {
            return Err(OsError::INVALID_PARAMETER);
        }
        match (self.resolve_from(fs, start, names, !link)?, how.disposition) {
            (Resolved::File(fs, file), Disposition::Open) => self.open_file(process, fs, file, how),
            (Resolved::File(..), Disposition::Create) => Err(OsError::ALREADY_EXISTS),
            (Resolved::Missing { .. }, Disposition::Open) => Err(OsError::FILE_NOT_FOUND),
            (Resolved::Missing { fs, parent, name }, Disposition::Create) => {
                let directory = how.options.contains(Options::DIRECTORY);
                let file = self.create(&fs, parent, &name, directory)?;
                self.open_file(process, fs, file, how)
            }
        }
    }

    /// Creates an empty file or directory.
    pub(crate) fn create(&mut self, fs: &FsId, parent: FileId, name: &Name, directory: bool) -> OsResult<FileId> {
        self.check_writable(fs)?;
        let file_system = self.file_system(fs)?;
        if file_system.record(parent)?.pending.is_some() || file_system.path(parent).is_none() {
            return Err(OsError::DELETE_PENDING);
        }
        let (id, time) = (self.fresh(), self.time_of_day());
        self.file_system_mut(fs)?.add(parent, name, directory, id, time)
    }

    fn open_file(&mut self, process: ProcessId, fs: FsId, file: FileId, how: &Open) -> OsResult<u64> {
        let file_system = self.file_system(&fs)?;
        let mounting = file_system.mounting;
        let record = file_system.record(file)?;
        if record.pending.is_some() {
            return Err(OsError::DELETE_PENDING);
        }
        if how.options.contains(Options::DIRECTORY) && !record.is_directory() {
            return Err(OsError::DIRECTORY);
        }
        if how.options.contains(Options::NON_DIRECTORY) && record.is_directory() {
            return Err(OsError::ACCESS_DENIED);
        }
        let access = specific(how.access);
        let protected = record.attributes & FILE_ATTRIBUTE_READONLY != 0 && !record.is_directory();
        if protected && access.contains(Access::WRITE_DATA) && how.disposition == Disposition::Open {
            return Err(OsError::ACCESS_DENIED);
        }
        if access.intersects(Access::WRITE_DATA | Access::DELETE | Access::WRITE_ATTRIBUTES) {
            self.check_writable(&fs)?;
        }
        self.check_sharing(&fs, file, access, how.share)?;
        let link = how.options.contains(Options::REPARSE_POINT);
        Ok(self.handle(process, Object::File { fs, mounting, file }, how, link))
    }

    /// Fails with `SHARING_VIOLATION` if another handle on the file does not share a right that is requested, or has a
    /// right that is not shared. Only reading, writing and deletion count.
    pub(crate) fn check_sharing(&self, fs: &FsId, file: FileId, access: Access, share: Share) -> OsResult<()> {
        let conflicts = |access: Access, share: Share| {
            [(Access::READ_DATA, Share::READ), (Access::WRITE_DATA, Share::WRITE), (Access::DELETE, Share::DELETE)]
                .iter()
                .any(|(right, shared)| access.contains(*right) && !share.contains(*shared))
        };
        let counts = |access: Access| access.intersects(Access::READ_DATA | Access::WRITE_DATA | Access::DELETE);
        let mut others = self.handles.values().filter(|other| other.is_on(fs, file) && counts(other.access));
        if counts(access) && others.any(|other| conflicts(access, other.share) || conflicts(other.access, share)) {
            return Err(OsError::SHARING_VIOLATION);
        }
        Ok(())
    }

    fn handle(&mut self, process: ProcessId, object: Object, how: &Open, link: bool) -> u64 {
        let id = self.fresh();
        let opened = Opened {
            process,
            object,
            access: specific(how.access),
            share: how.share,
            link,
            cursor: Cursor::Begin,
            deletes: false,
            deletes_on_close: how.options.contains(Options::DELETE_ON_CLOSE),
        };
        self.handles.insert(id, opened);
        id
    }

    pub(crate) fn opened(&self, handle: u64) -> OsResult<&Opened> {
        self.handles.get(&handle).ok_or(OsError::INVALID_HANDLE)
    }

    pub(crate) fn opened_mut(&mut self, handle: u64) -> OsResult<&mut Opened> {
        self.handles.get_mut(&handle).ok_or(OsError::INVALID_HANDLE)
    }

    /// Fails with `ACCESS_DENIED` if the handle has none of `rights`.
    pub(crate) fn check_access(&self, handle: u64, rights: Access) -> OsResult<()> {
        if self.opened(handle)?.access.intersects(rights) { Ok(()) } else { Err(OsError::ACCESS_DENIED) }
    }

    /// Returns the file that a handle is open on.
    pub(crate) fn file(&self, handle: u64) -> OsResult<(&FsId, FileId)> {
        let Object::File { fs, mounting, file } = &self.opened(handle)?.object else {
            return Err(OsError::INVALID_PARAMETER);
        };
        // The volume was formatted or taken offline after the handle was opened.
        if self.file_system(fs)?.mounting != *mounting {
            return Err(OsError::NOT_READY);
        }
        Ok((fs, *file))
    }

    pub(crate) fn file_of(&self, handle: u64) -> OsResult<&crate::files::file_system::FileRecord> {
        let (fs, file) = self.file(handle)?;
        self.file_system(fs)?.record(file)
    }

    /// Requests the deletion of the file (`FileDispositionInfo`), or cancels it.
    pub(crate) fn set_disposition(&mut self, handle: u64, delete: bool, flags: u32) -> OsResult<()> {
        self.check_access(handle, Access::DELETE)?;
        let (fs, id) = self.file(handle)?;
        let fs = fs.clone();
        let file_system = self.file_system(&fs)?;
        let root = file_system.root == id;
        let file = file_system.record(id)?;
        let protected = file.attributes & FILE_ATTRIBUTE_READONLY != 0 && flags & FILE_DISPOSITION_IGNORE_READONLY == 0;
        if delete && (root || protected) {
            return Err(OsError::ACCESS_DENIED);
        }
        if delete && file.is_directory() && !file.is_empty_directory() {
            return Err(OsError::DIR_NOT_EMPTY);
        }
        self.check_writable(&fs)?;
        let posix = flags & FILE_DISPOSITION_POSIX != 0;
        let pending = delete.then_some(if posix { PendingDeletion::Posix } else { PendingDeletion::LastClose });
        self.file_system_mut(&fs)?.record_mut(id)?.pending = pending;
        self.opened_mut(handle)?.deletes = delete && posix;
        Ok(())
    }

    /// Closes a handle, and deletes its file if that is due.
    pub(crate) fn close(&mut self, handle: u64) {
        let Some(opened) = self.handles.remove(&handle) else { return };
        let Object::File { fs, mounting, file } = opened.object else { return };
        let last = !self.is_open(&fs, file);
        // A removed volume was dismounted, which cancelled its deletions.
        let Ok(file_system) = self.file_system_mut(&fs) else { return };
        if file_system.mounting != mounting {
            return;
        }
        let Ok(record) = file_system.record_mut(file) else { return };
        if opened.deletes_on_close
            && record.pending.is_none()
            && (!record.is_directory() || record.is_empty_directory())
        {
            record.pending = Some(PendingDeletion::LastClose);
        }
        let due = match record.pending {
            Some(PendingDeletion::Posix) => opened.deletes || last,
            Some(PendingDeletion::LastClose) => last,
            None => false,
        };
        let (named, root) = (record.parent.is_some(), file_system.root == file);
        if due && named {
            file_system.unlink(file);
        }
        if last && (due || !named) && !root {
            file_system.forget(file);
        }
    }

    /// Ends a process and closes its handles.
    pub(crate) fn end_process(&mut self, process: ProcessId) {
        let handles: Vec<u64> =
            self.handles.iter().filter(|(_, opened)| opened.process == process).map(|(handle, _)| *handle).collect();
        for handle in handles {
            self.close(handle);
        }
    }
}
