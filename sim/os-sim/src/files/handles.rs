//! Open handles: opening, access and sharing checks, creation, deletion and closing.

use std::time::Duration;

use os::abi::{FILE_ATTRIBUTE_READONLY, FILE_DISPOSITION_IGNORE_READONLY, FILE_DISPOSITION_POSIX};
use os::{Access, Disposition, Open, Options, OsError, OsResult, Share, U16Str, Uuid};

use crate::disks::volume_lock::VolumeLock;
use crate::files::file_name::{Name, SEPARATOR, split};
use crate::files::file_system::{FileId, FileRecord, Oplock, PendingDeletion};
use crate::files::path_resolution::{AtLink, DOS_DEVICES, ParsedPath, Resolved};
use crate::files::reparse_point;
use crate::state::{DeviceId, FsId, State};

/// `FILE_APPEND_DATA`: append to a file, or add a subdirectory.
pub(crate) const APPEND_DATA: Access = Access::from_bits_retain(0x0004);
/// `FILE_EXECUTE`: execute a file, or traverse a directory.
const EXECUTE: Access = Access::from_bits_retain(0x0020);

/// How long an open waits for the owner of an oplock.
const OWNER_OF_OPLOCK: Duration = Duration::from_hours(1);
/// How long a deletion waits for the owner of an oplock before it fails.
const OPLOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Identifies the process that owns a handle.
pub(crate) type ProcessId = u64;

/// The object that a handle is open on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Disk(DeviceId),
    Volume {
        id: Uuid,
        /// Opened without access to its data. Windows does not mount a file system for such an
        /// open.
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
    /// The position in the listing of the directory.
    pub cursor: Cursor,
    /// Whether this handle requested a POSIX deletion.
    deletes: bool,
    /// Whether closing the handle deletes the file.
    pub deletes_on_close: bool,
    /// The lock that the handle holds on its volume.
    pub lock: Option<VolumeLock>,
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

/// The rights that count for sharing, each with the share mode that permits it.
const SHARED: [(Access, Share); 3] = [
    (Access::READ_DATA.union(EXECUTE), Share::READ),
    (Access::WRITE_DATA.union(APPEND_DATA), Share::WRITE),
    (Access::DELETE, Share::DELETE),
];

/// The path of an open call, relative to a directory.
struct Target {
    fs: FsId,
    start: FileId,
    names: Vec<Name>,
    /// Whether the path ends with a backslash. Only the path of a directory may.
    is_directory: bool,
    /// Whether the call fails instead of following a link (`OBJ_DONT_REPARSE`).
    refuses_links: bool,
}

impl Opened {
    pub(crate) fn is_on(&self, on: FsId, id: FileId) -> bool {
        matches!(self.object, Object::File { fs, file, .. } if fs == on && file == id)
    }
}

/// Adds the specific rights that generic rights include for a file.
pub(crate) fn specific(access: Access) -> Access {
    let mut rights = access;
    if access.contains(Access::GENERIC_READ) {
        rights |= Access::READ_DATA | Access::READ_ATTRIBUTES;
    }
    if access.contains(Access::GENERIC_WRITE) {
        rights |= Access::WRITE_DATA | APPEND_DATA | Access::WRITE_ATTRIBUTES;
    }
    rights
}

/// Fails if the options contradict the rights.
fn check_options(how: &Open) -> OsResult<()> {
    if how.options.contains(Options::DELETE_ON_CLOSE) && !how.access.contains(Access::DELETE) {
        return Err(OsError::INVALID_PARAMETER);
    }
    Ok(())
}

impl State {
    /// Returns the attributes of the object at an absolute NT path, as an open without following
    /// links finds it.
    pub(crate) fn attributes(&mut self, process: ProcessId, path: &[u16]) -> OsResult<u32> {
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
        let handle = self.open(process, path, &how, true)?;
        let attributes = self.file_of(handle).map(FileRecord::file_attributes);
        self.close(handle);
        attributes
    }

    /// Opens an object by its absolute NT path and returns the handle.
    pub(crate) fn open(
        &mut self,
        process: ProcessId,
        path: &[u16],
        how: &Open,
        refuses_links: bool,
    ) -> OsResult<u64> {
        check_options(how)?;
        // A drive letter or a volume name is a link of the object manager.
        if refuses_links && path.starts_with(&DOS_DEVICES) {
            return Err(OsError::REPARSE_POINT_ENCOUNTERED);
        }
        match self.parse_path(path)? {
            ParsedPath::Disk(device) => Ok(self.handle(process, Object::Disk(device), how)),
            ParsedPath::Volume(id) => {
                let direct =
                    !specific(how.access).intersects(Access::READ_DATA | Access::WRITE_DATA);
                if !direct {
                    self.check_unlocked(id)?;
                    // The volume itself is not a directory; its root directory is.
                    if how.options.contains(Options::DIRECTORY) {
                        return Err(OsError::DIRECTORY);
                    }
                }
                Ok(self.handle(process, Object::Volume { id, direct }, how))
            }
            ParsedPath::File(fs, names) => {
                let root = self.root(fs)?;
                let is_directory = path.last() == Some(&SEPARATOR);
                let target = Target {
                    fs,
                    start: root,
                    names,
                    is_directory,
                    refuses_links,
                };
                self.open_target(process, target, how)
            }
        }
    }

    /// Opens an object by its name relative to an open directory. An empty name opens the object of
    /// the handle again.
    pub(crate) fn open_relative(
        &mut self,
        parent: u64,
        name: &U16Str,
        how: &Open,
        refuses_links: bool,
    ) -> OsResult<u64> {
        check_options(how)?;
        let name = name.as_slice();
        let opened = self.opened(parent)?;
        let process = opened.process;
        match opened.object {
            Object::File { .. } => {}
            Object::Volume { direct: false, .. } => return Err(OsError::PATH_NOT_FOUND),
            Object::Volume { .. } | Object::Disk(_) => return Err(OsError::INVALID_PARAMETER),
        }
        let (fs, start) = self.file(parent)?;
        let root = self.file_of(parent)?;
        if !name.is_empty() && !root.is_directory() {
            return Err(OsError::PATH_NOT_FOUND);
        }
        if let Some(link) = root.link() {
            // The link is in the middle of the path, where FILE_OPEN_REPARSE_POINT has no effect.
            if !name.is_empty() && refuses_links {
                return Err(OsError::REPARSE_POINT_ENCOUNTERED);
            }
            if !name.is_empty() {
                return Err(reparse_point::target(link)
                    .err()
                    .unwrap_or(OsError::CANT_RESOLVE_FILENAME));
            }
            if !how.options.contains(Options::REPARSE_POINT) {
                return Err(OsError::INVALID_REPARSE_DATA);
            }
        }
        let is_directory = name.last() == Some(&SEPARATOR);
        let target = Target {
            fs,
            start,
            names: split(name)?,
            is_directory,
            refuses_links,
        };
        self.open_target(process, target, how)
    }

    fn open_target(&mut self, process: ProcessId, target: Target, how: &Open) -> OsResult<u64> {
        let link = how.options.contains(Options::REPARSE_POINT);
        let directory = how.options.contains(Options::DIRECTORY);
        let at_link = if target.refuses_links {
            AtLink::Refuse
        } else {
            AtLink::Follow
        };
        let resolved = self.resolve_from(target.fs, target.start, target.names, at_link, !link)?;
        match (resolved, how.disposition) {
            (Resolved::File(fs, file), Disposition::Open) => {
                if target.is_directory
                    && !directory
                    && !self.file_system(fs)?.record(file)?.is_directory()
                {
                    return Err(OsError::INVALID_NAME);
                }
                self.open_file(process, fs, file, how)
            }
            (Resolved::File(..), Disposition::Create) => Err(OsError::ALREADY_EXISTS),
            (Resolved::Missing { .. }, Disposition::Open) => Err(OsError::FILE_NOT_FOUND),
            (Resolved::Missing { fs, parent, name }, Disposition::Create) => {
                if target.is_directory && !directory {
                    return Err(OsError::INVALID_NAME);
                }
                let file = self.create(fs, parent, &name, directory)?;
                self.open_file(process, fs, file, how)
            }
        }
    }

    /// Creates an empty file or directory.
    pub(crate) fn create(
        &mut self,
        fs: FsId,
        parent: FileId,
        name: &Name,
        directory: bool,
    ) -> OsResult<FileId> {
        self.check_writable(fs)?;
        let file_system = self.file_system(fs)?;
        let directory_record = file_system.record(parent)?;
        if directory_record.pending.is_some() || file_system.path(parent).is_none() {
            return Err(OsError::DELETE_PENDING);
        }
        if directory_record.grants_nothing {
            return Err(OsError::ACCESS_DENIED);
        }
        let id = self.fresh();
        self.file_system_mut(fs)?.add(parent, name, directory, id)
    }

    fn open_file(
        &mut self,
        process: ProcessId,
        fs: FsId,
        file: FileId,
        how: &Open,
    ) -> OsResult<u64> {
        let file_system = self.file_system(fs)?;
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
        if how.disposition == Disposition::Open {
            let read_only = record.attributes & FILE_ATTRIBUTE_READONLY != 0;
            let writes =
                access.intersects(Access::WRITE_DATA | APPEND_DATA) && !record.is_directory();
            if read_only && writes || !file_system.granted(file)?.contains(access) {
                return Err(OsError::ACCESS_DENIED);
            }
        }
        if access.intersects(Access::WRITE_DATA | Access::DELETE | Access::WRITE_ATTRIBUTES) {
            self.check_writable(fs)?;
        }
        self.break_oplock(fs, file, access, how)?;
        self.check_sharing(fs, file, access, how.share)?;
        Ok(self.handle(process, Object::File { fs, mounting, file }, how))
    }

    /// Breaks the oplock of the file if this open requires it. The open then waits for the owner of
    /// the oplock, who keeps it for an hour.
    fn break_oplock(&mut self, fs: FsId, file: FileId, access: Access, how: &Open) -> OsResult<()> {
        let harmless = Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES | Access::READ_CONTROL;
        let breaks = match self.file_system(fs)?.record(file)?.oplock {
            Some(Oplock::Exclusive) => !harmless.contains(access),
            Some(Oplock::Handle) => self.check_sharing(fs, file, access, how.share).is_err(),
            None => false,
        };
        if breaks && how.options.contains(Options::COMPLETE_IF_OPLOCKED) {
            return Err(OsError::OPLOCK_BREAK_IN_PROGRESS);
        }
        if breaks {
            self.network_time += OWNER_OF_OPLOCK;
        }
        Ok(())
    }

    /// Fails with `SHARING_VIOLATION` if another handle on the file does not share a requested
    /// right, or has a right that this open does not share. Only the rights to read, write and
    /// delete count.
    pub(crate) fn check_sharing(
        &self,
        fs: FsId,
        file: FileId,
        access: Access,
        share: Share,
    ) -> OsResult<()> {
        let conflicts = |access: Access, share: Share| {
            SHARED
                .iter()
                .any(|(rights, shared)| access.intersects(*rights) && !share.contains(*shared))
        };
        let counts = |access: Access| SHARED.iter().any(|(rights, _)| access.intersects(*rights));
        let mut others = self
            .handles
            .values()
            .filter(|other| other.is_on(fs, file) && counts(other.access));
        if counts(access)
            && others.any(|other| conflicts(access, other.share) || conflicts(other.access, share))
        {
            return Err(OsError::SHARING_VIOLATION);
        }
        Ok(())
    }

    fn handle(&mut self, process: ProcessId, object: Object, how: &Open) -> u64 {
        let id = self.fresh();
        let opened = Opened {
            process,
            object,
            access: specific(how.access),
            share: how.share,
            cursor: Cursor::Begin,
            deletes: false,
            deletes_on_close: how.options.contains(Options::DELETE_ON_CLOSE),
            lock: None,
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

    /// Fails with `ACCESS_DENIED` unless the handle has one of `rights`.
    pub(crate) fn check_access(&self, handle: u64, rights: Access) -> OsResult<()> {
        if self.opened(handle)?.access.intersects(rights) {
            Ok(())
        } else {
            Err(OsError::ACCESS_DENIED)
        }
    }

    /// Returns the file that a handle is open on.
    pub(crate) fn file(&self, handle: u64) -> OsResult<(FsId, FileId)> {
        let Object::File { fs, mounting, file } = self.opened(handle)?.object else {
            return Err(OsError::INVALID_PARAMETER);
        };
        // The volume was formatted or taken offline after the handle was opened.
        if self.file_system(fs)?.mounting != mounting {
            return Err(OsError::NOT_READY);
        }
        Ok((fs, file))
    }

    pub(crate) fn file_of(&self, handle: u64) -> OsResult<&FileRecord> {
        let (fs, file) = self.file(handle)?;
        self.file_system(fs)?.record(file)
    }

    /// Requests the deletion of the file (`FileDispositionInfo`), or cancels it.
    pub(crate) fn set_disposition(
        &mut self,
        handle: u64,
        delete: bool,
        flags: u32,
    ) -> OsResult<()> {
        self.check_access(handle, Access::DELETE)?;
        let (fs, id) = self.file(handle)?;
        let file_system = self.file_system(fs)?;
        let root = file_system.root == id;
        let file = file_system.record(id)?;
        let protected = file.attributes & FILE_ATTRIBUTE_READONLY != 0
            && flags & FILE_DISPOSITION_IGNORE_READONLY == 0;
        if delete && (root || protected) {
            return Err(OsError::ACCESS_DENIED);
        }
        if delete && file.is_directory() && !file.is_empty_directory() {
            return Err(OsError::DIR_NOT_EMPTY);
        }
        self.check_writable(fs)?;
        if delete && self.file_system(fs)?.record(id)?.oplock.is_some() {
            self.network_time += OPLOCK_PATIENCE;
            return Err(OsError::OPLOCK_BREAK_IN_PROGRESS);
        }
        let posix = flags & FILE_DISPOSITION_POSIX != 0;
        let pending = delete.then_some(if posix {
            PendingDeletion::Posix
        } else {
            PendingDeletion::LastClose
        });
        self.file_system_mut(fs)?.record_mut(id)?.pending = pending;
        self.opened_mut(handle)?.deletes = delete && posix;
        Ok(())
    }

    /// Closes a handle, and deletes its file if the deletion is due.
    pub(crate) fn close(&mut self, handle: u64) {
        let Some(opened) = self.handles.remove(&handle) else {
            return;
        };
        let Object::File { fs, mounting, file } = opened.object else {
            return;
        };
        let last = !self.is_open(fs, file);
        // Dismounting the removed volume cancelled its deletions.
        let Ok(file_system) = self.file_system_mut(fs) else {
            return;
        };
        if file_system.mounting != mounting {
            return;
        }
        let Ok(record) = file_system.record_mut(file) else {
            return;
        };
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
        let is_named = record.parent.is_some();
        if due && is_named {
            file_system.unlink(file);
        }
        if last && (due || !is_named) && file_system.root != file {
            file_system.forget(file);
        }
    }

    /// Ends a process and closes its handles.
    pub(crate) fn end_process(&mut self, process: ProcessId) {
        let handles: Vec<u64> = self
            .handles
            .iter()
            .filter(|(_, opened)| opened.process == process)
            .map(|(handle, _)| *handle)
            .collect();
        for handle in handles {
            self.close(handle);
        }
    }
}
