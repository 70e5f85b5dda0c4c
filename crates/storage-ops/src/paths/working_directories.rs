//! The working directories, and paths below them.
//!
//! A working directory is opened with links followed, because administrators use links to move it
//! to another drive. Below it no link is followed: each component is opened relative to the handle
//! of its parent, without following links, and refused if it is a link or a mount point. Renaming
//! or replacing a component of the path at any time therefore cannot redirect an operation out of
//! the working directory: the operation uses the handles that it has opened. Whether a path exists
//! is asked in one call, without a handle, where Windows can refuse links by itself
//! (`path_lookup`).
//!
//! A working directory inside another one is below it like any directory: drivers and their
//! containers may replace it. An inner working directory therefore decides only which paths are
//! allowed. A path in it is opened from the outermost working directory. Only one kind of link is
//! followed there: from an inner working directory to an outermost one. The outermost directory is
//! then opened by its own configured path, so a client that makes such a link gains nothing.

use std::sync::Arc;

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT};
use os::{Access, Disposition, Handle, Open, Options, Os, OsError, OsResult, U16Str, U16String};

use crate::config::Config;
use crate::devices::reparse_point::has_own_entries;
use crate::devices::{Link, buffer};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::paths::on_node;
use crate::paths::opening::{
    NOFOLLOW_NOWAIT, OPEN_NOFOLLOW, ensure_directory, open_directory, win32_path,
};
use crate::paths::path_lookup::PathLookup;
use crate::paths::refused_links;
use crate::paths::remove_tree;
use crate::types::{HostPath, PathContext, components, split_last};
use crate::windows::Windows;

/// The directories in which drivers may change files.
pub(crate) struct WorkingDirectories {
    general: Vec<HostPath>,
    plugins: Option<HostPath>,
    pods: Option<HostPath>,
    /// The working directories that are in no other one, as far as the texts tell. Each is opened
    /// by its path every time, because the directory may be removed and created again, or become a
    /// mount point, at any time.
    outermost: Vec<HostPath>,
    lookup: PathLookup,
}

/// A name in an open directory below a working directory. An object of that name may or may not
/// exist.
pub(crate) struct EntryRef {
    /// The open directories from the working directory down to the parent.
    chain: Vec<Arc<dyn Handle>>,
    leaf: U16String,
}

impl EntryRef {
    /// Returns the directory of the entry.
    pub(crate) fn parent(&self) -> &dyn Handle {
        &**self
            .chain
            .last()
            .expect("the chain begins with the working directory")
    }

    /// Opens the entry to query it, without following a link.
    pub(crate) fn open(&self) -> OsResult<Box<dyn Handle>> {
        self.parent().open_child(&self.leaf, &OPEN_NOFOLLOW)
    }

    /// Returns the name of the entry.
    pub(crate) fn leaf(&self) -> &U16Str {
        &self.leaf
    }

    /// Returns the Win32 path of the entry with a final backslash, for functions that require a
    /// path: [`win32_path`].
    pub(crate) fn win32_path(&self) -> OsResult<U16String> {
        win32_path(self.parent(), &self.leaf)
    }
}

impl WorkingDirectories {
    pub(crate) fn new(config: &Config) -> Self {
        let general: Vec<_> = std::iter::once(&config.kubelet_dir)
            .chain(&config.working_dirs)
            .cloned()
            .collect();
        let (plugins, pods) = (config.plugin_dir.clone(), config.pod_dir.clone());
        let outermost = general
            .iter()
            .chain(&plugins)
            .chain(&pods)
            .filter(|path| {
                !general
                    .iter()
                    .chain(&plugins)
                    .chain(&pods)
                    .any(|other| path.is_in(other) && !path.is_same(other))
            })
            .cloned()
            .collect();
        Self {
            lookup: PathLookup::new(config.system_drive),
            general,
            plugins,
            pods,
            outermost,
        }
    }

    /// Returns all working directories.
    pub(crate) fn all(&self) -> impl Iterator<Item = &HostPath> {
        self.general.iter().chain(&self.plugins).chain(&self.pods)
    }

    /// Finds a working directory that lies in another one, or to which the way leads over a link in
    /// another one, although the texts of their paths do not show it. Returns the inner directory,
    /// then the outer one.
    pub(crate) fn nested_by_links(&self, os: &dyn Os) -> Option<(&HostPath, &HostPath)> {
        // The last place is the place of the directory itself.
        let places: Vec<_> = self
            .outermost()
            .map(|path| (path, on_node::places(os, path)))
            .collect();
        let is_below = |place: &U16Str, directory: &U16Str| {
            place
                .as_slice()
                .strip_prefix(directory.as_slice())
                .is_some_and(|rest| rest.first() == Some(&u16::from(b'\\')))
        };
        places.iter().find_map(|(path, way)| {
            places
                .iter()
                .find(|(_, other)| {
                    other
                        .last()
                        .is_some_and(|directory| way.iter().any(|place| is_below(place, directory)))
                })
                .map(|(other, _)| (*path, *other))
        })
    }

    /// Returns what looks up whole paths in one call.
    pub(crate) fn lookup(&self) -> &PathLookup {
        &self.lookup
    }

    /// Checks, by the text only, that `path` is in a working directory.
    pub(crate) fn check(
        &self,
        path: &HostPath,
        context: Option<PathContext>,
    ) -> OperationResult<()> {
        let only = match context {
            Some(PathContext::Plugin) => self.plugins.as_ref(),
            Some(PathContext::Pod) => self.pods.as_ref(),
            None => None,
        };
        let allowed = only.map_or(&self.general[..], std::slice::from_ref);
        // If no directory is configured for the context, the directories of both contexts are
        // working directories too.
        let of_contexts = self
            .plugins
            .iter()
            .chain(&self.pods)
            .filter(|_| only.is_none());
        if allowed
            .iter()
            .chain(of_contexts)
            .any(|directory| path.is_in(directory))
        {
            return Ok(());
        }
        let list: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        let list = list.join(", ");
        let reason = match context.filter(|_| only.is_some()) {
            None => {
                format!(
                    "{path} is not in a working directory ({list}); csi-proxy's flag -working-dir \
                     adds others"
                )
            }
            Some(PathContext::Plugin) => {
                format!(
                    "{path} is not in {list}, which csi-proxy's flag -kubelet-csi-plugins-path sets"
                )
            }
            Some(PathContext::Pod) => {
                format!("{path} is not in {list}, which csi-proxy's flag -kubelet-pod-path sets")
            }
        };
        Err(OperationError::new(ErrorKind::PermissionDenied, reason))
    }

    /// Checks, by the text only, that `path` is in a working directory, and neither is nor contains
    /// one.
    pub(crate) fn check_entry(
        &self,
        path: &HostPath,
        context: Option<PathContext>,
    ) -> OperationResult<()> {
        self.check(path, context)?;
        self.refuse_boundary(path)
    }

    /// Refuses a path that is or contains a working directory, which nobody may replace.
    fn refuse_boundary(&self, path: &HostPath) -> OperationResult<()> {
        let Some(directory) = self.all().find(|directory| directory.is_in(path)) else {
            return Ok(());
        };
        let reason = if path.is_in(directory) {
            format!("{path} is a working directory itself, not a path in one")
        } else {
            format!("{path} contains the working directory {directory}")
        };
        Err(OperationError::new(ErrorKind::PermissionDenied, reason))
    }

    /// Returns whether `path` is a directory with entries; false if that cannot be determined.
    pub(crate) fn has_entries(&self, os: &dyn Os, path: &HostPath) -> bool {
        let to_list = Open::existing(Access::READ_DATA | Access::READ_ATTRIBUTES, NOFOLLOW_NOWAIT);
        let look = || -> OperationResult<bool> {
            let entry = self.entry(os, path, &OPEN_NOFOLLOW)?;
            let found = entry.parent().open_child(entry.leaf(), &to_list)?;
            let kind = buffer::attributes(&*found)?.attributes
                & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT);
            Ok(kind == FILE_ATTRIBUTE_DIRECTORY
                && !remove_tree::names(&*found, 1)?.names.is_empty())
        };
        look().unwrap_or(false)
    }

    /// Opens the parent directories of `path`, which must neither be nor contain a working
    /// directory. They are opened as `how` states ([`OPEN_NOFOLLOW`] or [`OPEN_NO_DELETE_SHARE`])
    /// and stay open until the result is dropped.
    pub(crate) fn entry(
        &self,
        os: &dyn Os,
        path: &HostPath,
        how: &Open,
    ) -> OperationResult<EntryRef> {
        self.follow_moves(os, path, &|path| {
            self.refuse_boundary(path)?;
            self.parents(os, path, how)
        })
    }

    /// Opens the directories from the outermost working directory to the parent of `path`.
    fn parents(&self, os: &dyn Os, path: &HostPath, how: &Open) -> OperationResult<EntryRef> {
        let (directory, below) = self.locate(path)?;
        let (above, leaf) = split_last(below)
            .ok_or_else(|| OperationError::precondition("the path has no parent"))?;
        let mut chain: Vec<Arc<dyn Handle>> = vec![open_directory(os, &directory.to_nt())?.into()];
        for name in components(above) {
            let child = open_subdirectory(&**chain.last().expect("never empty"), name, how)?;
            chain.push(child.into());
        }
        Ok(EntryRef {
            chain,
            leaf: leaf.to_owned(),
        })
    }

    /// Calls `open` with `path`. As long as `open` is refused because of a link, and an administrator
    /// may have made this link to move a working directory, calls `open` again with the path in the
    /// directory to which the link leads.
    fn follow_moves<T>(
        &self,
        os: &dyn Os,
        path: &HostPath,
        open: &dyn Fn(&HostPath) -> OperationResult<T>,
    ) -> OperationResult<T> {
        let mut path = path.clone();
        // The loop ends: each path has fewer components below its outermost working directory than
        // the path before.
        loop {
            match open(&path) {
                Err(error) if refused_links::is_refusal(&error) => {
                    path = self.moved(os, &path)?.ok_or(error)?;
                }
                outcome => return outcome,
            }
        }
    }

    /// If `path` is in an inner working directory that is a link, returns the path in the outermost
    /// working directory to which `path` leads. Refuses a link that leads elsewhere.
    fn moved(&self, os: &dyn Os, path: &HostPath) -> OperationResult<Option<HostPath>> {
        let (outermost, _) = self.locate(path)?;
        let mut inner: Vec<_> = self
            .all()
            .filter(|inner| path.is_in(inner) && !path.is_same(inner) && !outermost.is_in(inner))
            .collect();
        inner.sort_unstable_by_key(|inner| inner.names().len());
        for inner in inner {
            let found = self.parents(os, inner, &OPEN_NOFOLLOW)?.open()?;
            let Some(link) = Link::of(&*found)? else {
                continue;
            };
            let target = link.host_path();
            if let Some(target) = self
                .outermost()
                .find(|path| target.as_ref().is_some_and(|it| it.is_same(path)))
            {
                return Ok(path.below(inner).map(|below| target.join(below)));
            }
            let object = format!(
                "the working directory {inner}, which does not lead to another one (-working-dir),"
            );
            return Err(refused_links::refusal_of(&link, object));
        }
        Ok(None)
    }

    /// Returns the working directories that are in no other one.
    pub(crate) fn outermost(&self) -> impl Iterator<Item = &HostPath> {
        self.outermost.iter()
    }

    /// Opens the outermost working directories, links followed. One may be missing for a moment.
    pub(crate) fn open_outermost(
        &self,
        os: &dyn Os,
    ) -> impl Iterator<Item = OsResult<Box<dyn Handle>>> {
        self.outermost
            .iter()
            .map(HostPath::to_nt)
            .map(|path| match open_directory(os, &path) {
                Err(code) if is_missing(code) => open_directory(os, &path),
                opened => opened,
            })
    }

    /// Returns whether `path` exists, without following a link in its last component.
    pub(crate) fn exists(&self, windows: &Windows, path: &HostPath) -> OperationResult<bool> {
        // If there is a link on the path to the working directory, or below it, the query decides
        // nothing.
        if let Some(outcome) = self.lookup.query(windows, path) {
            return Ok(outcome.is_ok());
        }
        let is_directory_wanted = path.asks_for_directory();
        let find = |path: &HostPath| -> OperationResult<bool> {
            let (directory, below) = self.locate(path)?;
            let found = self.find(
                windows,
                open_directory(windows.os(), &directory.to_nt())?,
                below,
            )?;
            if is_directory_wanted {
                ensure_directory(&*found)?;
            }
            Ok(true)
        };
        match self.follow_moves(windows.os(), path, &find) {
            // On a disk or server that has gone away nothing is known to be missing.
            Err(error) if error.code.is_some_and(is_missing) => Ok(false),
            Err(error) if path.asks_for_directory() && error.code == Some(OsError::DIRECTORY) => {
                Ok(false)
            }
            outcome => outcome,
        }
    }

    /// Opens the object `below` the open directory `root`; refuses a link or mount point above the
    /// last component.
    fn find(
        &self,
        windows: &Windows,
        root: Box<dyn Handle>,
        below: &U16Str,
    ) -> OperationResult<Box<dyn Handle>> {
        let Some((above, leaf)) = split_last(below) else {
            return Ok(root);
        };
        if let Some(opened) = self.lookup.open_below(windows, &*root, below) {
            return Ok(opened?);
        }
        let mut parent = root;
        for name in components(above) {
            parent = open_subdirectory(&*parent, name, &OPEN_NOFOLLOW)?;
        }
        Ok(parent.open_child(leaf, &OPEN_NOFOLLOW)?)
    }

    /// Creates the directory `path` and its missing parents. If the last component is a directory or
    /// a link to one, it is left unchanged. Returns the link, which may lead nowhere.
    pub(crate) fn create(&self, os: &dyn Os, path: &HostPath) -> OperationResult<Option<Link>> {
        self.follow_moves(os, path, &|path| self.create_in(os, path))
    }

    fn create_in(&self, os: &dyn Os, path: &HostPath) -> OperationResult<Option<Link>> {
        let (directory, below) = self.locate(path)?;
        let mut parent = open_directory(os, &directory.to_nt())?;
        let Some((above, leaf)) = split_last(below) else {
            return Ok(None);
        };
        for name in components(above) {
            parent = match open_subdirectory(&*parent, name, &OPEN_NOFOLLOW) {
                Err(error) if error.is_not_found() => create_subdirectory(&*parent, name)?,
                outcome => outcome?,
            };
        }
        match parent.open_child(leaf, &OPEN_NOFOLLOW) {
            Ok(existing) => match buffer::attributes(&*existing)?.attributes {
                found if found & FILE_ATTRIBUTE_DIRECTORY == 0 => Err(OperationError::new(
                    ErrorKind::AlreadyExists,
                    "a file of that name already exists",
                )),
                found if found & FILE_ATTRIBUTE_REPARSE_POINT == 0 => Ok(None),
                _ => Ok(Link::of(&*existing)?),
            },
            Err(OsError::FILE_NOT_FOUND) => create_subdirectory(&*parent, leaf).map(|_| None),
            Err(code) => Err(code.into()),
        }
    }

    /// Returns the outermost working directory that `path` is in, and the path below it.
    fn locate<'a>(&'a self, path: &'a HostPath) -> OperationResult<(&'a HostPath, &'a U16Str)> {
        self.outermost()
            .find_map(|directory| Some((directory, path.below(directory)?)))
            .ok_or_else(|| {
                OperationError::precondition(format!("{path} is not in a working directory"))
            })
    }
}

/// Returns whether the code tells that a path, or a directory above it, does not exist.
fn is_missing(code: OsError) -> bool {
    ErrorClass::EntryDeleted.contains(code) || ErrorClass::DirectoryMissing.contains(code)
}

/// Opens the directory `name` in `parent`; refuses a link and a mount point.
fn open_subdirectory(
    parent: &dyn Handle,
    name: &U16Str,
    how: &Open,
) -> OperationResult<Box<dyn Handle>> {
    let child = parent.open_child(name, how).map_err(|code| match code {
        code if is_missing(code) => {
            OperationError::of(code, format_args!("the directory {}", name.display()))
        }
        code => code.into(),
    })?;
    let info = buffer::attributes(&*child)?;
    if !has_own_entries(info) {
        return Err(refused_links::refusal_of(
            &Link::of(&*child)?.unwrap_or(Link::Other),
            name.display(),
        ));
    }
    if info.attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
        return Err(OperationError::of(
            OsError::PATH_NOT_FOUND,
            format!("{} is not a directory", name.display()),
        ));
    }
    Ok(child)
}

/// Creates the directory `name` in `parent`, or opens it if another process has just created it.
fn create_subdirectory(parent: &dyn Handle, name: &U16Str) -> OperationResult<Box<dyn Handle>> {
    // Links are not followed: if a dangling link appeared at this moment, its target would be
    // created.
    let how = Open {
        disposition: Disposition::Create,
        options: OPEN_NOFOLLOW.options | Options::DIRECTORY,
        ..OPEN_NOFOLLOW
    };
    match parent.open_child(name, &how) {
        Ok(created) => Ok(created),
        Err(OsError::ALREADY_EXISTS) => open_subdirectory(parent, name, &OPEN_NOFOLLOW),
        Err(code) => Err(code.into()),
    }
}
