//! From a working directory to a path in it, one component at a time, on handles.
//!
//! A working directory is opened with links followed, as operators move it to another drive. From its handle on,
//! no link is: each component is opened relative to the one before, as itself, and refused if it is a link or a
//! mount point. So no renaming or swapping of what lies on the way can lead out of the working directory, however
//! it is timed; what was opened is what is worked on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FileIdInfo};
use os::{
    Access, Disposition, FileInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, PathForm, Share, U16Str,
    U16String,
};

use crate::config::Config;
use crate::error::{Kind, OperationError, OperationResult};
use crate::types::{HostPath, PathContext, VolumeId};
use crate::windows::buffer;
use crate::windows::error_class::ErrorClass;

/// The drive that Windows is on, whatever drive the working directories are on.
const WINDOWS: char = 'C';

/// Opening what is there, for looking at it.
pub(crate) const OPEN_NOFOLLOW: Open = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);

/// Opening what must not be renamed or deleted by others as long as it is held. A handle without a right to the data
/// would not count.
pub(crate) const OPEN_NO_DELETE_SHARE: Open = Open {
    share: Share::READ.union(Share::WRITE),
    ..Open::existing(Access::READ_DATA.union(Access::READ_ATTRIBUTES), Options::REPARSE_POINT)
};

/// The directories in which drivers may change something.
pub(crate) struct WorkingDirectories {
    all: Vec<WorkingDirectory>,
    plugins: Option<WorkingDirectory>,
    pods: Option<WorkingDirectory>,
}

struct WorkingDirectory {
    path: HostPath,
    handle: Mutex<Option<Arc<dyn Handle>>>,
}

/// A place in a working directory: an open directory and a name in it, which may or may not exist.
pub(crate) struct EntryRef {
    /// From the working directory down to the parent, all kept open.
    chain: Vec<Arc<dyn Handle>>,
    leaf: U16String,
}

impl EntryRef {
    /// The directory that the name is in.
    pub(crate) fn parent(&self) -> &dyn Handle {
        &**self.chain.last().expect("it begins with the working directory")
    }

    /// Opens what is there, as itself if it is a link, for looking at it.
    pub(crate) fn look(&self) -> OsResult<Box<dyn Handle>> {
        self.parent().open_child(&self.leaf, &OPEN_NOFOLLOW)
    }

    /// The name in the parent.
    pub(crate) fn leaf(&self) -> &U16Str {
        &self.leaf
    }

    /// The path by which functions that take no handle reach this place, with a final backslash.
    pub(crate) fn directory_path(&self) -> OsResult<U16String> {
        directory_path(self.parent(), &self.leaf)
    }
}

/// The Win32 path of `name` in `parent`, with a final backslash.
pub(crate) fn directory_path(parent: &dyn Handle, name: &U16Str) -> OsResult<U16String> {
    let mut path = parent.final_path(PathForm::Dos)?;
    if path.as_slice().last() != Some(&u16::from(b'\\')) {
        path.push_char('\\');
    }
    path.push(name);
    path.push_char('\\');
    Ok(path)
}

impl WorkingDirectory {
    fn new(path: &HostPath) -> Self {
        Self { path: path.clone(), handle: Mutex::default() }
    }

    /// The open directory: opened when first needed, and again when `stale` is the one that has gone.
    fn open(&self, os: &dyn Os, stale: Option<&Arc<dyn Handle>>) -> OsResult<Arc<dyn Handle>> {
        if let Some(handle) = self.held_but(stale) {
            return Ok(handle);
        }
        // Not under the lock: opening may hang, and others may be luckier.
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let handle: Arc<dyn Handle> = os.open(&self.path.to_nt(), &how)?.into();
        if let Some(earlier) = self.held_but(stale) {
            return Ok(earlier);
        }
        *self.held() = Some(Arc::clone(&handle));
        Ok(handle)
    }

    /// The directory if it is open, unless it is `stale`, which is let go.
    fn held_but(&self, stale: Option<&Arc<dyn Handle>>) -> Option<Arc<dyn Handle>> {
        let mut held = self.held();
        if held.as_ref().zip(stale).is_some_and(|(handle, stale)| Arc::ptr_eq(handle, stale)) {
            *held = None;
        }
        held.clone()
    }

    fn held(&self) -> MutexGuard<'_, Option<Arc<dyn Handle>>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `walk` from the directory; where that finds nothing, makes sure that it was not a deleted directory's
    /// handle it started from.
    fn walk<T>(&self, os: &dyn Os, walk: impl Fn(&Arc<dyn Handle>) -> OperationResult<T>) -> OperationResult<T> {
        let handle = self.open(os, None)?;
        let outcome = walk(&handle);
        if !outcome.as_ref().is_err_and(OperationError::is_missing) {
            return outcome;
        }
        let fresh = self.open(os, Some(&handle))?;
        let id = |handle: &Arc<dyn Handle>| buffer::query::<FileIdInfo>(&**handle, FileInfo::Id);
        if id(&handle).is_ok_and(|old| id(&fresh).is_ok_and(|new| old == new)) {
            return outcome;
        }
        walk(&fresh)
    }
}

impl WorkingDirectories {
    pub(crate) fn new(config: &Config) -> Self {
        let all = std::iter::once(&config.kubelet).chain(&config.working).map(WorkingDirectory::new).collect();
        let given = |path: &Option<HostPath>| path.as_ref().map(WorkingDirectory::new);
        Self { all, plugins: given(&config.plugins), pods: given(&config.pods) }
    }

    /// Checks that `path` lies in a working directory by its text, which a request can be refused for at once.
    pub(crate) fn check(&self, path: &HostPath, context: Option<PathContext>) -> OperationResult<()> {
        self.holding(path, context).map(drop)
    }

    /// Finds `path`, which must not be a working directory itself. The directories on the way are opened as `how`
    /// says, [`OPEN_NOFOLLOW`] or [`OPEN_NO_DELETE_SHARE`], and kept open.
    pub(crate) fn entry(
        &self,
        os: &dyn Os,
        path: &HostPath,
        context: Option<PathContext>,
        how: &Open,
    ) -> OperationResult<EntryRef> {
        let (directory, below) = self.holding(path, context)?;
        let Some((leaf, above)) = below.split_last() else {
            return Err(OperationError::new(Kind::PermissionDenied, format!("{path} is a working directory itself")));
        };
        directory.walk(os, |root| {
            let mut chain = vec![Arc::clone(root)];
            for name in above {
                let child = descend(&**chain.last().expect("never empty"), name, how)?;
                chain.push(child.into());
            }
            Ok(EntryRef { chain, leaf: leaf.clone() })
        })
    }

    /// The volumes that the working directories lie on, those of their drives, and that of Windows: the node's own, no
    /// driver's.
    pub(crate) fn volumes(&self, os: &dyn Os) -> OperationResult<Vec<VolumeId>> {
        let mut volumes = Vec::new();
        let mut add = |opened: OsResult<Arc<dyn Handle>>| -> OperationResult<()> {
            let path = match opened.and_then(|handle| handle.final_path(PathForm::VolumeGuid)) {
                // What is not there yet lies on no volume.
                Err(code) if ErrorClass::DirectoryMissing.contains(code) => return Ok(()),
                path => path?,
            };
            volumes.extend(VolumeId::of_final_path(&path).map(|(volume, _)| volume));
            Ok(())
        };
        add(os.open(&NtPath::drive_root(WINDOWS), &OPEN_NOFOLLOW).map(Arc::from))?;
        for directory in self.all.iter().chain(&self.plugins).chain(&self.pods) {
            add(os.open(&directory.path.drive_root(), &OPEN_NOFOLLOW).map(Arc::from))?;
            add(directory.open(os, None))?;
        }
        volumes.sort_unstable();
        volumes.dedup();
        Ok(volumes)
    }

    /// Whether `path` exists; a final link is not followed.
    pub(crate) fn exists(&self, os: &dyn Os, path: &HostPath, context: Option<PathContext>) -> OperationResult<bool> {
        let (directory, below) = self.holding(path, context)?;
        let found = directory.walk(os, |root| {
            let Some((leaf, above)) = below.split_last() else { return Ok(()) };
            let mut parent = Arc::clone(root);
            for name in above {
                parent = descend(&*parent, name, &OPEN_NOFOLLOW)?.into();
            }
            parent.open_child(leaf, &OPEN_NOFOLLOW).map(drop).map_err(OperationError::from)
        });
        match found {
            Ok(()) => Ok(true),
            Err(fault) if fault.is_missing() => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Makes the directory `path` and those above it that are missing. A last component that is a directory or a
    /// link to one is left as it is.
    pub(crate) fn make(&self, os: &dyn Os, path: &HostPath, context: Option<PathContext>) -> OperationResult<()> {
        let (directory, below) = self.holding(path, context)?;
        let Some((leaf, above)) = below.split_last() else { return directory.walk(os, |_| Ok(())) };
        directory.walk(os, |root| {
            let mut parent = Arc::clone(root);
            for name in above {
                let child = match descend(&*parent, name, &OPEN_NOFOLLOW) {
                    Err(fault) if fault.is_missing() => create(&*parent, name)?,
                    outcome => outcome?,
                };
                parent = child.into();
            }
            match parent.open_child(leaf, &OPEN_NOFOLLOW) {
                Ok(existing) if buffer::attributes(&*existing)?.attributes & FILE_ATTRIBUTE_DIRECTORY != 0 => Ok(()),
                Ok(_) => Err(OperationError::new(Kind::AlreadyExists, "a file of that name exists")),
                Err(OsError::FILE_NOT_FOUND) => create(&*parent, leaf).map(drop),
                Err(code) => Err(code.into()),
            }
        })
    }

    fn holding<'a>(
        &'a self,
        path: &'a HostPath,
        context: Option<PathContext>,
    ) -> OperationResult<(&'a WorkingDirectory, &'a [U16String])> {
        let only = match context {
            Some(PathContext::Plugin) => self.plugins.as_ref(),
            Some(PathContext::Pod) => self.pods.as_ref(),
            None => None,
        };
        let allowed = only.map_or(&self.all[..], std::slice::from_ref);
        // Where a context has no directory of its own, those of both contexts are working directories.
        let named = self.plugins.iter().chain(&self.pods).filter(|_| only.is_none());
        let mut candidates = allowed.iter().chain(named);
        candidates.find_map(|directory| Some((directory, path.below(&directory.path)?))).ok_or_else(|| {
            let list: Vec<_> = allowed.iter().map(|directory| directory.path.to_string()).collect();
            OperationError::new(
                Kind::PermissionDenied,
                format!("{path} is not in a working directory ({})", list.join(", ")),
            )
        })
    }
}

/// Opens the directory `name` in `parent`, which must not be a link.
fn descend(parent: &dyn Handle, name: &U16Str, how: &Open) -> OperationResult<Box<dyn Handle>> {
    let child = parent.open_child(name, how)?;
    let attributes = buffer::attributes(&*child)?.attributes;
    if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return Err(OperationError::of(OsError::REPARSE_POINT_ENCOUNTERED, name.display()));
    }
    if attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
        return Err(OperationError::of(OsError::PATH_NOT_FOUND, format!("{} is not a directory", name.display())));
    }
    Ok(child)
}

/// Makes the directory `name` in `parent`, or opens the one that somebody else made just now.
fn create(parent: &dyn Handle, name: &U16Str) -> OperationResult<Box<dyn Handle>> {
    // As itself, too: otherwise a dangling link that has just appeared would be followed, and what it leads to made.
    let how =
        Open { disposition: Disposition::Create, options: OPEN_NOFOLLOW.options | Options::DIRECTORY, ..OPEN_NOFOLLOW };
    match parent.open_child(name, &how) {
        Ok(made) => Ok(made),
        Err(OsError::ALREADY_EXISTS) => descend(parent, name, &OPEN_NOFOLLOW),
        Err(code) => Err(code.into()),
    }
}
