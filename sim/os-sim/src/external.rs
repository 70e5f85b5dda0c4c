//! The side door: what a driver's own container, or an attacker in it, does to files without csi-proxy.
//!
//! Paths are Win32 paths as a program gives them: slashes turn, `.` and `..` are resolved in the text, and one
//! without a drive is on `C:`. The answers are those that Go's `os` package gives on Windows.

use std::time::Duration;

use os::abi::{REPARSE_TAG_MOUNT_POINT, REPARSE_TAG_SYMLINK};
use os::{Access, NtPath, OsError, OsResult, Share, U16String, Uuid};

use crate::clock::SharedState;
use crate::files::file_name::SEPARATOR;
use crate::files::file_system::{Body, FileId};
use crate::files::path_resolution::{ParsedPath, Resolved};
use crate::files::reparse_point::{self, Target};
use crate::state::{FsId, State};
use crate::wmi::msft_storage::volume_path;

/// The side door of a node.
#[derive(Clone, Copy, Debug)]
pub struct External<'a>(pub(crate) &'a SharedState);

impl External<'_> {
    /// Does something in no time: what the network would take is another's to wait for.
    fn with<R>(self, act: impl FnOnce(&mut State) -> R) -> R {
        self.0.with(|state| {
            let result = act(state);
            state.network_time = Duration::ZERO;
            result
        })
    }

    /// Makes a directory and those above it that are missing (`os.MkdirAll`).
    pub fn mkdir_all(&self, path: &str) -> OsResult<()> {
        self.with(|state| state.make_directories(path))
    }

    /// Makes one directory (`os.Mkdir`).
    pub fn mkdir(&self, path: &str) -> OsResult<()> {
        self.with(|state| state.make(path, true).map(drop))
    }

    /// Writes a file, which is made if it is missing (`os.WriteFile`).
    pub fn write(&self, path: &str, data: impl AsRef<[u8]>) -> OsResult<()> {
        self.with(|state| state.write_file(path, data.as_ref()))
    }

    /// Reads a file (`os.ReadFile`).
    pub fn read(&self, path: &str) -> OsResult<Vec<u8>> {
        self.with(|state| {
            let (fs, file) = state.existing(path, true)?;
            match &state.file_system(&fs)?.record(file)?.body {
                Body::File(data) => Ok(data.clone()),
                Body::Directory(_) => Err(OsError::INVALID_FUNCTION),
            }
        })
    }

    /// The names in a directory, in order (`os.ReadDir`).
    pub fn read_dir(&self, path: &str) -> OsResult<Vec<String>> {
        self.with(|state| {
            let (fs, file) = state.existing(path, true)?;
            let children = state.file_system(&fs)?.record(file)?.children().ok_or(OsError::DIRECTORY)?;
            Ok(children.keys().map(ToString::to_string).collect())
        })
    }

    /// Where a link or mount point leads, as Go's `os.Readlink` says it.
    pub fn read_link(&self, path: &str) -> OsResult<String> {
        self.with(|state| {
            let (fs, file) = state.existing(path, false)?;
            let file = state.file_system(&fs)?.record(file)?;
            let data = file.reparse.as_deref().ok_or(OsError::NOT_A_REPARSE_POINT)?;
            match reparse_point::target(data)? {
                Target::Relative(target) => Ok(String::from_utf16_lossy(&target)),
                Target::Absolute(target) => Ok(shown(&String::from_utf16_lossy(&target))),
            }
        })
    }

    /// Whether the path is a symbolic link or mount point itself.
    pub fn is_link(&self, path: &str) -> bool {
        self.with(|state| {
            let Ok((fs, file)) = state.existing(path, false) else { return false };
            let tag = state
                .file_system(&fs)
                .and_then(|fs| fs.record(file))
                .map_or(0, crate::files::file_system::FileRecord::reparse_tag);
            [REPARSE_TAG_SYMLINK, REPARSE_TAG_MOUNT_POINT].contains(&tag)
        })
    }

    /// Whether there is something at the path, a last link not followed (`os.Lstat`).
    pub fn exists(&self, path: &str) -> bool {
        self.with(|state| state.existing(path, false).is_ok())
    }

    /// Whether the path leads to something, links followed (`os.Stat`).
    pub fn target_exists(&self, path: &str) -> bool {
        self.with(|state| state.existing(path, true).is_ok())
    }

    /// Removes what is at the path and below it, even while it is open with deletion shared; links are removed, not
    /// followed. A missing path is success (`os.RemoveAll`).
    pub fn remove_all(&self, path: &str) -> OsResult<()> {
        self.with(|state| match state.existing(path, false) {
            Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND) => Ok(()),
            Err(error) => Err(error),
            Ok((fs, file)) => state.remove_tree(&fs, file),
        })
    }

    /// Makes a symbolic link at `link` (`os.Symlink`, with the link first).
    pub fn symlink(&self, link: &str, target: &str) -> OsResult<()> {
        self.with(|state| state.make_symlink(link, target))
    }

    /// Makes a junction at `link`.
    pub fn junction(&self, link: &str, target: &str) -> OsResult<()> {
        self.with(|state| state.make_junction(link, target))
    }

    /// Renames, on one volume; an existing target is refused. What is open below a directory does not keep it where
    /// it is, as it may not with POSIX semantics: an attacker has all the means there are.
    pub fn rename(&self, from: &str, to: &str) -> OsResult<()> {
        self.with(|state| state.rename(from, to))
    }

    /// Mounts a volume at an empty directory, as an operator would.
    pub fn set_mount_point(&self, directory: &str, volume: Uuid) -> OsResult<()> {
        self.with(|state| state.mount_at(directory, volume))
    }

    /// Sets or clears the read-only attribute.
    pub fn set_read_only(&self, path: &str, read_only: bool) -> OsResult<()> {
        self.with(|state| {
            let (fs, file) = state.existing(path, true)?;
            let file = state.file_system_mut(&fs)?.record_mut(file)?;
            let bit = os::abi::FILE_ATTRIBUTE_READONLY;
            file.attributes = file.attributes & !bit | if read_only { bit } else { 0 };
            Ok(())
        })
    }

    /// Total and free bytes of the file system the path leads to.
    pub fn df(&self, path: &str) -> OsResult<(u64, u64)> {
        self.with(|state| {
            let (fs, _) = state.existing(path, true)?;
            let file_system = state.file_system(&fs)?;
            Ok((file_system.total(), file_system.free()))
        })
    }
}

/// Cuts the NT prefix as Go does.
fn shown(target: &str) -> String {
    let Some(rest) = target.strip_prefix(r"\??\") else { return target.to_owned() };
    if rest.as_bytes().get(1) == Some(&b':') {
        return rest.to_owned();
    }
    match rest.strip_prefix(r"UNC\") {
        Some(remote) => format!(r"\\{remote}"),
        None => format!(r"\\?\{rest}"),
    }
}

/// What Win32 makes of a path.
pub(crate) fn nt_path(path: &str) -> Vec<u16> {
    let path = path.replace('/', r"\");
    let literal = [r"\\?\", r"\\.\", r"\??\"].iter().any(|prefix| path.starts_with(prefix));
    if literal {
        return NtPath::from_win32(&U16String::from_str(&path)).as_u16str().as_slice().to_vec();
    }
    let (root, rest) = match path.strip_prefix(r"\\") {
        Some(remote) => {
            let end = remote.match_indices('\\').nth(1).map_or(remote.len(), |(at, _)| at);
            (format!(r"\??\UNC\{}", &remote[..end]), remote[end..].to_owned())
        }
        None if path.as_bytes().get(1) == Some(&b':') => (format!(r"\??\{}", &path[..2]), path[2..].to_owned()),
        None => (r"\??\C:".to_owned(), path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split('\\') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!(r"{root}\{}", parts.join(r"\")).encode_utf16().collect()
}

impl State {
    /// What is at a path.
    pub(crate) fn existing(&mut self, path: &str, follow_last: bool) -> OsResult<(FsId, FileId)> {
        match self.resolve(&nt_path(path), follow_last)? {
            Resolved::File(fs, file) => Ok((fs, file)),
            Resolved::Missing { .. } => Err(OsError::FILE_NOT_FOUND),
        }
    }

    /// Makes an empty file or directory that must be missing.
    fn make(&mut self, path: &str, directory: bool) -> OsResult<(FsId, FileId)> {
        match self.resolve(&nt_path(path), false)? {
            Resolved::File(..) => Err(OsError::ALREADY_EXISTS),
            Resolved::Missing { fs, parent, name } => {
                let file = self.create(&fs, parent, &name, directory)?;
                Ok((fs, file))
            }
        }
    }

    pub(crate) fn make_directories(&mut self, path: &str) -> OsResult<()> {
        let path = nt_path(path);
        let (fs, names) = match self.parse_path(&path)? {
            ParsedPath::File(fs, names) => (fs, names),
            ParsedPath::Disk(_) | ParsedPath::Volume(_) => return Err(OsError::INVALID_PARAMETER),
        };
        let root = self.file_system(&fs)?.root;
        for length in 1..=names.len() {
            match self.resolve_from(fs.clone(), root, names[..length].to_vec(), true)? {
                Resolved::File(fs, file) if !self.file_system(&fs)?.record(file)?.is_directory() => {
                    return Err(OsError::DIRECTORY);
                }
                Resolved::File(..) => {}
                Resolved::Missing { fs, parent, name } => drop(self.create(&fs, parent, &name, true)?),
            }
        }
        Ok(())
    }

    pub(crate) fn write_file(&mut self, path: &str, data: &[u8]) -> OsResult<()> {
        let (fs, file) = match self.resolve(&nt_path(path), true)? {
            Resolved::File(fs, file) => (fs, file),
            Resolved::Missing { fs, parent, name } => {
                let file = self.create(&fs, parent, &name, false)?;
                (fs, file)
            }
        };
        self.check_writable(&fs)?;
        let time = self.time_of_day();
        let file_system = self.file_system_mut(&fs)?;
        if crate::files::file_system::allocated(data.len()) > file_system.free() {
            return Err(OsError::DISK_FULL);
        }
        let file = file_system.record_mut(file)?;
        let Body::File(content) = &mut file.body else { return Err(OsError::ACCESS_DENIED) };
        data.clone_into(content);
        file.written = time;
        Ok(())
    }

    pub(crate) fn make_symlink(&mut self, link: &str, target: &str) -> OsResult<()> {
        let target = target.replace('/', r"\");
        let absolute = target.starts_with(r"\\") || target.as_bytes().get(1) == Some(&b':');
        let print: Vec<u16> = target.encode_utf16().collect();
        let leads_to_file = self.leads_to_file(link, &target, absolute);
        let substitute = if absolute { absolute_substitute(&target) } else { print.clone() };
        let data = reparse_point::symlink(&substitute, &print, !absolute)?;
        let (fs, file) = self.make(link, !leads_to_file)?;
        self.file_system_mut(&fs)?.record_mut(file)?.reparse = Some(data);
        Ok(())
    }

    /// Go makes a file link only of a target that is a file.
    fn leads_to_file(&mut self, link: &str, target: &str, absolute: bool) -> bool {
        let beside = if absolute { target.to_owned() } else { format!(r"{link}\..\{target}") };
        let Ok((fs, file)) = self.existing(&beside, true) else { return false };
        self.file_system(&fs).and_then(|fs| fs.record(file)).is_ok_and(|file| !file.is_directory())
    }

    pub(crate) fn make_junction(&mut self, link: &str, target: &str) -> OsResult<()> {
        let substitute = nt_path(target);
        let print: Vec<u16> = target.encode_utf16().collect();
        let data = reparse_point::mount_point(&substitute, &print)?;
        reparse_point::check(&data)?;
        let (fs, file) = match self.make(link, true) {
            Err(OsError::ALREADY_EXISTS) => self.existing(link, false)?,
            made => made?,
        };
        let file = self.file_system_mut(&fs)?.record_mut(file)?;
        if !file.is_empty_directory() || file.reparse.is_some() {
            return Err(OsError::DIR_NOT_EMPTY);
        }
        file.reparse = Some(data);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> OsResult<()> {
        let (fs, file) = self.existing(from, false)?;
        let Resolved::Missing { fs: other, parent, name } = self.resolve(&nt_path(to), false)? else {
            return Err(OsError::ALREADY_EXISTS);
        };
        if fs != other {
            return Err(OsError(17)); // ERROR_NOT_SAME_DEVICE
        }
        self.check_writable(&fs)?;
        self.check_sharing(&fs, file, Access::DELETE, Share::all())?;
        let file_system = self.file_system_mut(&fs)?;
        let mut above = Some(parent);
        while let Some(at) = above {
            if at == file {
                return Err(OsError::INVALID_PARAMETER);
            }
            above = file_system.record(at)?.parent;
        }
        file_system.relink(file, parent, &name)
    }

    pub(crate) fn mount_at(&mut self, directory: &str, volume: Uuid) -> OsResult<()> {
        let mut path = U16String::from_vec(nt_path(directory));
        if path.as_slice().last() != Some(&SEPARATOR) {
            path.push_char('\\');
        }
        self.mount(&path, &U16String::from_str(&volume_path(volume)))
    }

    fn remove_tree(&mut self, fs: &FsId, file: FileId) -> OsResult<()> {
        self.check_writable(fs)?;
        let children: Vec<FileId> = {
            let at = self.file_system(fs)?.record(file)?;
            match at.children() {
                Some(children) if at.reparse.is_none() => children.values().copied().collect(),
                _ => Vec::new(),
            }
        };
        for child in children {
            self.remove_tree(fs, child)?;
        }
        self.check_sharing(fs, file, Access::DELETE, Share::all())?;
        let open = self.is_open(fs, file);
        let file_system = self.file_system_mut(fs)?;
        if file != file_system.root {
            file_system.unlink(file);
            // What others have open goes with their last handle.
            if !open {
                file_system.forget(file);
            }
        }
        Ok(())
    }
}

/// The substitute name that `CreateSymbolicLinkW` makes of an absolute target.
fn absolute_substitute(target: &str) -> Vec<u16> {
    NtPath::from_win32(&U16String::from_str(target)).as_u16str().as_slice().to_vec()
}

#[cfg(test)]
mod tests {
    use super::{nt_path, shown};

    #[test]
    fn win32_paths_are_made_absolute() {
        for (path, nt) in [
            (r"C:\a\.\b\..\c", r"\??\C:\a\c"),
            ("/var/lib", r"\??\C:\var\lib"),
            (r"\\host\share\a\..\..\b", r"\??\UNC\host\share\b"),
            (r"\\?\Volume{1}\x", r"\??\Volume{1}\x"),
        ] {
            assert_eq!(String::from_utf16_lossy(&nt_path(path)), nt);
        }
    }

    #[test]
    fn links_are_shown_as_go_shows_them() {
        assert_eq!(shown(r"\??\C:\var"), r"C:\var");
        assert_eq!(shown(r"\??\UNC\host\share\"), r"\\host\share\");
        assert_eq!(shown(r"\??\Volume{1}\"), r"\\?\Volume{1}\");
    }
}
