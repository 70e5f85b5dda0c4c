//! The working directories, and paths below them.
//!
//! A working directory is opened with links followed, because administrators use links to move it to another drive.
//! Below it no link is followed: each component is opened relative to the handle of its parent, without following
//! links, and refused if it is a link or a mount point. Renaming or replacing a component of the path at any time
//! therefore cannot redirect an operation out of the working directory: the operation uses the handles that it has
//! opened.

use std::sync::{Arc, Mutex, PoisonError};

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

/// The drive that Windows is assumed to be installed on.
const SYSTEM_DRIVE: char = 'C';

/// `MAX_PATH`: the length of the longest Win32 path, with the zero at its end.
const MAX_PATH: usize = 260;

/// Opens an existing object to query it, without following a link.
pub(crate) const OPEN_NOFOLLOW: Open = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);

/// Opens an existing object so that no process can rename or delete it while the handle is open. Windows checks the
/// share mode only for handles with a right to the data.
pub(crate) const OPEN_NO_DELETE_SHARE: Open = Open {
    share: Share::READ.union(Share::WRITE),
    ..Open::existing(Access::READ_DATA.union(Access::READ_ATTRIBUTES), Options::REPARSE_POINT)
};

/// The directories in which drivers may change files.
pub(crate) struct WorkingDirectories {
    all: Vec<WorkingDirectory>,
    plugins: Option<WorkingDirectory>,
    pods: Option<WorkingDirectory>,
}

struct WorkingDirectory {
    path: HostPath,
    handle: Mutex<Option<Arc<dyn Handle>>>,
}

/// A name in an open directory below a working directory. An object of that name may or may not exist.
pub(crate) struct EntryRef {
    /// The open directories from the working directory down to the parent.
    chain: Vec<Arc<dyn Handle>>,
    leaf: U16String,
}

impl EntryRef {
    /// Returns the directory of the entry.
    pub(crate) fn parent(&self) -> &dyn Handle {
        &**self.chain.last().expect("the chain begins with the working directory")
    }

    /// Opens the entry to query it, without following a link.
    pub(crate) fn open(&self) -> OsResult<Box<dyn Handle>> {
        self.parent().open_child(&self.leaf, &OPEN_NOFOLLOW)
    }

    /// Returns the name of the entry.
    pub(crate) fn leaf(&self) -> &U16Str {
        &self.leaf
    }

    /// Returns the Win32 path of the entry with a final backslash, for functions that require a path: [`win32_path`].
    pub(crate) fn win32_path(&self) -> OsResult<U16String> {
        win32_path(self.parent(), &self.leaf)
    }
}

/// Returns the Win32 path of `name` in `parent`, with a final backslash.
///
/// The path begins with a drive, as those in the documentation of the mount manager's functions do. It begins with
/// `\\?\` only if it would mean something else without: if it is long, or if a name in it ends with a dot.
pub(crate) fn win32_path(parent: &dyn Handle, name: &U16Str) -> OsResult<U16String> {
    let mut path = parent.final_path(PathForm::Dos)?;
    if path.as_slice().last() != Some(&u16::from(b'\\')) {
        path.push_char('\\');
    }
    path.push(name);
    path.push_char('\\');
    Ok(without_prefix(&path).unwrap_or(path))
}

/// Returns `path` without `\\?\`, or `None` if that would change its meaning.
fn without_prefix(path: &U16Str) -> Option<U16String> {
    let text = path.to_string().ok()?;
    let plain = text.strip_prefix(r"\\?\")?;
    // `HostPath` refuses the names that Win32 changes or interprets.
    let is_same = HostPath::parse(plain).is_ok() && plain.encode_utf16().count() < MAX_PATH;
    is_same.then(|| U16String::from_str(plain))
}

impl WorkingDirectory {
    fn new(path: &HostPath) -> Self {
        Self { path: path.clone(), handle: Mutex::default() }
    }

    /// Returns the cached handle of the directory; opens the directory if there is no handle, or if it is `stale`.
    fn open(&self, os: &dyn Os, stale: Option<&Arc<dyn Handle>>) -> OsResult<Arc<dyn Handle>> {
        if let Some(handle) = self.cached(stale, None) {
            return Ok(handle);
        }
        // Opened without the lock: if opening hangs, other operations must not hang with it.
        let handle = self.open_anew(os)?;
        Ok(self.cached(stale, Some(&handle)).unwrap_or(handle))
    }

    /// Removes the `stale` handle from the cache, adds `fresh` if the cache is empty, and returns the cached handle.
    fn cached(&self, stale: Option<&Arc<dyn Handle>>, fresh: Option<&Arc<dyn Handle>>) -> Option<Arc<dyn Handle>> {
        let mut cached = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.as_ref().zip(stale).is_some_and(|(handle, stale)| Arc::ptr_eq(handle, stale)) {
            *cached = None;
        }
        if cached.is_none() {
            *cached = fresh.cloned();
        }
        cached.clone()
    }

    /// Opens the directory.
    fn open_anew(&self, os: &dyn Os) -> OsResult<Arc<dyn Handle>> {
        os.open(&self.path.to_nt(), &Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY)).map(Arc::from)
    }

    /// Runs `operation` on the open directory. If that fails as it does on a directory that was deleted and created
    /// again since it was opened, that has become a mount point, or whose volume was dismounted, runs `operation` once
    /// more on what its path leads to now.
    fn with_handle<T>(
        &self,
        os: &dyn Os,
        operation: impl Fn(&Arc<dyn Handle>) -> OperationResult<T>,
    ) -> OperationResult<T> {
        let handle = self.open(os, None)?;
        let outcome = operation(&handle);
        // Relative to a mount point's own handle no name is found, with one of these two codes or as not found.
        let mount_point = [OsError::CANT_RESOLVE_FILENAME, OsError::INVALID_NAME];
        let is_stale = |code| mount_point.contains(&code) || ErrorClass::HandleStale.contains(code);
        let may_be_stale = |error: &OperationError| error.is_not_found() || error.code.is_some_and(is_stale);
        if !outcome.as_ref().is_err_and(may_be_stale) {
            return outcome;
        }
        let fresh = self.open(os, Some(&handle))?;
        let id = |handle: &Arc<dyn Handle>| buffer::query::<FileIdInfo>(&**handle, FileInfo::Id);
        if id(&handle).is_ok_and(|old| id(&fresh).is_ok_and(|new| old == new)) {
            return outcome;
        }
        operation(&fresh)
    }
}

impl WorkingDirectories {
    pub(crate) fn new(config: &Config) -> Self {
        let all = std::iter::once(&config.kubelet_dir).chain(&config.working_dirs).map(WorkingDirectory::new).collect();
        let optional = |path: &Option<HostPath>| path.as_ref().map(WorkingDirectory::new);
        Self { all, plugins: optional(&config.plugin_dir), pods: optional(&config.pod_dir) }
    }

    /// Checks, by the text only, that `path` is in a working directory.
    pub(crate) fn check(&self, path: &HostPath, context: Option<PathContext>) -> OperationResult<()> {
        self.locate(path, context).map(drop)
    }

    /// Opens the parent directories of `path`, which must not be a working directory itself. They are opened as `how`
    /// states ([`OPEN_NOFOLLOW`] or [`OPEN_NO_DELETE_SHARE`]) and stay open until the result is dropped.
    pub(crate) fn entry(
        &self,
        os: &dyn Os,
        path: &HostPath,
        context: Option<PathContext>,
        how: &Open,
    ) -> OperationResult<EntryRef> {
        let (directory, below) = self.locate(path, context)?;
        let Some((leaf, above)) = below.split_last() else {
            let reason = format!("{path} is a working directory itself, not a path in one");
            return Err(OperationError::new(Kind::PermissionDenied, reason));
        };
        directory.with_handle(os, |root| {
            let mut chain = vec![Arc::clone(root)];
            for name in above {
                let child = open_subdirectory(&**chain.last().expect("never empty"), name, how)?;
                chain.push(child.into());
            }
            Ok(EntryRef { chain, leaf: leaf.clone() })
        })
    }

    /// Returns the volumes that the node itself uses and that drivers must not use: those of Windows, of the working
    /// directories, and of their drives.
    pub(crate) fn volumes(&self, os: &dyn Os) -> OperationResult<Vec<VolumeId>> {
        let mut volumes = Vec::new();
        let mut add = |opened: OsResult<Arc<dyn Handle>>| -> OperationResult<()> {
            let handle = match opened {
                // A directory that does not exist yet is on no volume; a drive without a medium or a file system has none.
                Err(code) if ErrorClass::DirectoryMissing.contains(code) => return Ok(()),
                Err(OsError::NOT_READY | OsError::UNRECOGNIZED_VOLUME) => return Ok(()),
                handle => handle?,
            };
            let path = match handle.final_path(PathForm::VolumeGuid) {
                Err(_) if is_on_share(&*handle)? => return Ok(()),
                path => path?,
            };
            let Some((volume, _)) = VolumeId::of_final_path(&path) else {
                return Err(OperationError::precondition(format!("{} is not a path on a volume", path.display())));
            };
            volumes.push(volume);
            Ok(())
        };
        add(os.open(&NtPath::drive_root(SYSTEM_DRIVE), &OPEN_NOFOLLOW).map(Arc::from))?;
        for directory in self.all.iter().chain(&self.plugins).chain(&self.pods) {
            add(os.open(&directory.path.drive_root(), &OPEN_NOFOLLOW).map(Arc::from))?;
            // The cached handle may be that of a directory that was deleted, and created again on another volume.
            add(directory.open_anew(os))?;
        }
        volumes.sort_unstable();
        volumes.dedup();
        Ok(volumes)
    }

    /// Returns whether `path` exists, without following a link in its last component.
    pub(crate) fn exists(&self, os: &dyn Os, path: &HostPath, context: Option<PathContext>) -> OperationResult<bool> {
        let (directory, below) = self.locate(path, context)?;
        let found = directory.with_handle(os, |root| {
            let Some((leaf, above)) = below.split_last() else { return Ok(()) };
            let mut parent = Arc::clone(root);
            for name in above {
                parent = open_subdirectory(&*parent, name, &OPEN_NOFOLLOW)?.into();
            }
            parent.open_child(leaf, &OPEN_NOFOLLOW).map(drop).map_err(OperationError::from)
        });
        match found {
            Ok(()) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates the directory `path` and its missing parents. If the last component is a directory, or a link to one, it
    /// is left unchanged.
    pub(crate) fn create(&self, os: &dyn Os, path: &HostPath, context: Option<PathContext>) -> OperationResult<()> {
        let (directory, below) = self.locate(path, context)?;
        let Some((leaf, above)) = below.split_last() else { return directory.with_handle(os, |_| Ok(())) };
        directory.with_handle(os, |root| {
            let mut parent = Arc::clone(root);
            for name in above {
                let child = match open_subdirectory(&*parent, name, &OPEN_NOFOLLOW) {
                    Err(error) if error.is_not_found() => create_subdirectory(&*parent, name)?,
                    outcome => outcome?,
                };
                parent = child.into();
            }
            match parent.open_child(leaf, &OPEN_NOFOLLOW) {
                Ok(existing) if buffer::attributes(&*existing)?.attributes & FILE_ATTRIBUTE_DIRECTORY != 0 => Ok(()),
                Ok(_) => Err(OperationError::new(Kind::AlreadyExists, "a file of that name already exists")),
                Err(OsError::FILE_NOT_FOUND) => create_subdirectory(&*parent, leaf).map(drop),
                Err(code) => Err(code.into()),
            }
        })
    }

    /// Returns the working directory that `path` is in, and the components below it.
    fn locate<'a>(
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
        // If no directory is configured for the context, the directories of both contexts are working directories too.
        let of_contexts = self.plugins.iter().chain(&self.pods).filter(|_| only.is_none());
        let mut candidates = allowed.iter().chain(of_contexts);
        candidates.find_map(|directory| Some((directory, path.below(&directory.path)?))).ok_or_else(|| {
            let list: Vec<_> = allowed.iter().map(|directory| directory.path.to_string()).collect();
            let reason = format!("{path} is not in a working directory ({})", list.join(", "));
            OperationError::new(Kind::PermissionDenied, reason)
        })
    }
}

/// Returns whether the object is on a share of a server, and so on no volume of this node.
fn is_on_share(handle: &dyn Handle) -> OsResult<bool> {
    Ok(handle.final_path(PathForm::Dos)?.to_string_lossy().starts_with(r"\\?\UNC\"))
}

/// Opens the directory `name` in `parent`; refuses a link and a mount point.
fn open_subdirectory(parent: &dyn Handle, name: &U16Str, how: &Open) -> OperationResult<Box<dyn Handle>> {
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

/// Creates the directory `name` in `parent`, or opens it if another process has just created it.
fn create_subdirectory(parent: &dyn Handle, name: &U16Str) -> OperationResult<Box<dyn Handle>> {
    // Links are not followed: if a dangling link appeared at this moment, its target would be created.
    let how =
        Open { disposition: Disposition::Create, options: OPEN_NOFOLLOW.options | Options::DIRECTORY, ..OPEN_NOFOLLOW };
    match parent.open_child(name, &how) {
        Ok(created) => Ok(created),
        Err(OsError::ALREADY_EXISTS) => open_subdirectory(parent, name, &OPEN_NOFOLLOW),
        Err(code) => Err(code.into()),
    }
}

#[cfg(test)]
mod tests {
    use os::U16String;

    use super::without_prefix;

    #[test]
    fn a_path_keeps_its_prefix_if_win32_would_change_it() {
        let plain = |text: &str| without_prefix(&U16String::from_str(text)).map(|path| path.to_string_lossy());
        assert_eq!(plain(r"\\?\C:\a\b c\").as_deref(), Some(r"C:\a\b c\"));
        let of_length = |length: usize| format!(r"\\?\C:\{}\", "x".repeat(length - 4));
        assert_eq!(plain(&of_length(259)).map(|path| path.len()), Some(259));
        for bad in [
            &of_length(260),
            r"C:\a\",
            r"\\?\C:\a.\b\",
            r"\\?\C:\a \",
            r"\\?\C:\nul\",
            r"\\?\UNC\host\share\",
            r"\\?\Volume{7d2b3c4e-0000-0000-0000-100000000000}\a\",
        ] {
            assert_eq!(plain(bad), None, "{bad}");
        }
    }
}
