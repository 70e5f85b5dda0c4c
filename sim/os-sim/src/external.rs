//! File operations that do not go through csi-proxy: the operations of a driver's container, or of
//! an attacker in it.
//!
//! Paths are Win32 paths as a program writes them: slashes become backslashes, `.` and `..` are
//! resolved in the text, and a path without a drive is on `C:`. Results are the results of Go's
//! `os` package on Windows.

use std::time::Duration;

use os::abi::{REPARSE_TAG_MOUNT_POINT, REPARSE_TAG_SYMLINK, SecurityDescriptor};
use os::{Access, NtPath, OsError, OsResult, Share, U16String, Uuid};

use crate::clock::SharedState;
use crate::disks::mount_manager::{Mount, MountPoint};
use crate::files::file_system::{Body, FileId, FileRecord, Oplock};
use crate::files::path_resolution::{AtLink, ParsedPath, Resolved};
use crate::files::reparse_point::{self, Target};
use crate::state::{FsId, State};

/// File operations on a node that do not go through csi-proxy.
#[derive(Clone, Copy, Debug)]
pub struct External<'a>(pub(crate) &'a SharedState);

impl External<'_> {
    /// Runs `act` without letting time pass for the network.
    pub(crate) fn with<R>(self, act: impl FnOnce(&mut State) -> R) -> R {
        self.0.with(|state| {
            let result = act(state);
            state.network_time = Duration::ZERO;
            result
        })
    }

    fn change(
        self,
        path: &str,
        follow_last: bool,
        change: impl FnOnce(&mut FileRecord),
    ) -> OsResult<()> {
        self.with(|state| state.record_at_mut(path, follow_last).map(change))
    }

    /// Creates a directory and its missing parents (`os.MkdirAll`).
    pub fn mkdir_all(&self, path: &str) -> OsResult<()> {
        self.with(|state| state.make_directories(path))
    }

    /// Creates a directory (`os.Mkdir`).
    pub fn mkdir(&self, path: &str) -> OsResult<()> {
        self.with(|state| state.make(path, true).map(drop))
    }

    /// Writes a file and creates it if it is missing (`os.WriteFile`).
    pub fn write(&self, path: &str, data: impl AsRef<[u8]>) -> OsResult<()> {
        self.with(|state| state.write_file(path, data.as_ref()))
    }

    /// Reads a file (`os.ReadFile`).
    pub fn read(&self, path: &str) -> OsResult<Vec<u8>> {
        self.with(|state| {
            let file = state.record_at(path, true)?;
            if file.is_directory() {
                Err(OsError::INVALID_FUNCTION)
            } else {
                Ok(file.data().to_vec())
            }
        })
    }

    /// Returns the names in a directory in order (`os.ReadDir`).
    pub fn read_dir(&self, path: &str) -> OsResult<Vec<String>> {
        self.with(|state| {
            let children = state
                .record_at(path, true)?
                .children()
                .ok_or(OsError::DIRECTORY)?;
            Ok(children.keys().map(ToString::to_string).collect())
        })
    }

    /// Returns the target of a link or mount point (`os.Readlink`).
    pub fn read_link(&self, path: &str) -> OsResult<String> {
        self.with(|state| {
            let file = state.record_at(path, false)?;
            readlink_text(
                file.reparse
                    .as_deref()
                    .ok_or(OsError::NOT_A_REPARSE_POINT)?,
            )
        })
    }

    /// Returns whether the path itself is a symbolic link, junction or mount point.
    pub fn is_link(&self, path: &str) -> bool {
        self.with(|state| {
            let tag = state
                .record_at(path, false)
                .map_or(0, FileRecord::reparse_tag);
            [REPARSE_TAG_SYMLINK, REPARSE_TAG_MOUNT_POINT].contains(&tag)
        })
    }

    /// Returns whether the path exists. A link in the last component is not followed (`os.Lstat`).
    pub fn exists(&self, path: &str) -> bool {
        self.with(|state| state.existing(path, false).is_ok())
    }

    /// Removes the path and everything below it (`os.RemoveAll`). Succeeds if the path is missing.
    ///
    /// Removes links without following them. Removes an open file if its handles share deletion.
    pub fn remove_all(&self, path: &str) -> OsResult<()> {
        self.with(|state| match state.existing(path, false) {
            Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND) => Ok(()),
            Err(error) => Err(error),
            Ok((fs, file)) => state.remove_tree(fs, file),
        })
    }

    /// Removes a file, a link or an empty directory (`os.Remove`).
    pub fn remove(&self, path: &str) -> OsResult<()> {
        self.with(|state| {
            let (fs, file) = state.existing(path, false)?;
            let record = state.file_system(fs)?.record(file)?;
            if record.reparse.is_none() && record.is_directory() && !record.is_empty_directory() {
                return Err(OsError::DIR_NOT_EMPTY);
            }
            state.remove_tree(fs, file)
        })
    }

    /// Creates a symbolic link at `link` (`os.Symlink` with its parameters in the opposite order).
    pub fn symlink(&self, link: &str, target: &str) -> OsResult<()> {
        self.with(|state| state.make_symlink(link, target))
    }

    /// Creates a junction at `link`.
    pub fn junction(&self, link: &str, target: &str) -> OsResult<()> {
        self.with(|state| state.make_junction(link, target))
    }

    /// Renames a file or directory on the same volume. Fails if the target exists.
    ///
    /// As with a POSIX rename, open handles below a directory do not prevent renaming it: an
    /// attacker would use that.
    pub fn rename(&self, from: &str, to: &str) -> OsResult<()> {
        self.with(|state| state.rename(from, to))
    }

    /// Mounts a volume at an empty directory.
    pub fn set_mount_point(&self, directory: &str, volume: Uuid) -> OsResult<()> {
        self.with(|state| state.mount_at(&nt_path(directory), volume))
    }

    /// Gives a volume a drive letter, which no other volume then has.
    pub fn set_drive_letter(&self, letter: char, volume: Uuid) {
        let point = MountPoint::Letter(letter.to_ascii_uppercase());
        self.with(|state| {
            state.mounts.retain(|mount| mount.point != point);
            state.mounts.push(Mount { volume, point });
        });
    }

    /// Sets or clears the read-only attribute.
    pub fn set_read_only(&self, path: &str, read_only: bool) -> OsResult<()> {
        let bit = os::abi::FILE_ATTRIBUTE_READONLY;
        self.change(path, true, |file| {
            file.attributes = file.attributes & !bit | if read_only { bit } else { 0 }
        })
    }

    /// Sets an access control list that grants no rights. It limits the open calls of processes,
    /// but not the operations of this type.
    pub fn revoke_all_rights(&self, path: &str) -> OsResult<()> {
        self.change(path, false, |file| file.grants_nothing = true)
    }

    /// Adds an alternate data stream to a file or directory. Its content is not simulated.
    pub fn add_stream(&self, path: &str, name: &str, size: usize) -> OsResult<()> {
        self.change(path, true, |file| {
            file.streams.push((name.to_owned(), size));
        })
    }

    /// Takes an opportunistic lock on a file or directory and never gives it up. It affects the
    /// calls of processes, but not the operations of this type.
    ///
    /// Fails with `INVALID_PARAMETER` for an exclusive lock on a directory.
    pub fn hold_oplock(&self, path: &str, oplock: Oplock) -> OsResult<()> {
        self.with(|state| {
            let file = state.record_at_mut(path, false)?;
            if file.is_directory() && oplock == Oplock::Exclusive {
                return Err(OsError::INVALID_PARAMETER);
            }
            file.oplock = Some(oplock);
            Ok(())
        })
    }

    /// Sets the owner and the access control list that Windows shows for a file or directory. They
    /// do not limit any call.
    pub fn set_access(&self, path: &str, access: SecurityDescriptor) -> OsResult<()> {
        self.change(path, true, |file| file.access = Some(access))
    }

    /// Returns the total and the free bytes of the file system of a path.
    pub fn df(&self, path: &str) -> OsResult<(u64, u64)> {
        self.with(|state| {
            let (fs, _) = state.existing(path, true)?;
            let file_system = state.file_system(fs)?;
            Ok((file_system.total(), file_system.free()))
        })
    }
}

/// Returns the target of the link with the reparse point `data`. Replaces an NT prefix as Go does.
pub(crate) fn readlink_text(data: &[u8]) -> OsResult<String> {
    let target = match reparse_point::target(data)? {
        Target::Relative(target) => return Ok(String::from_utf16_lossy(&target)),
        Target::Absolute(target) => String::from_utf16_lossy(&target),
    };
    let Some(rest) = target.strip_prefix(r"\??\") else {
        return Ok(target);
    };
    let has_drive = rest.as_bytes().get(1) == Some(&b':');
    Ok(match rest.strip_prefix(r"UNC\") {
        _ if has_drive => rest.to_owned(),
        Some(remote) => format!(r"\\{remote}"),
        None => format!(r"\\?\{rest}"),
    })
}

/// Converts a Win32 path to the NT path that Windows opens for it.
pub(crate) fn nt_path(path: &str) -> Vec<u16> {
    let path = path.replace('/', r"\");
    let literal = [r"\\?\", r"\\.\", r"\??\"]
        .iter()
        .any(|prefix| path.starts_with(prefix));
    if literal {
        return NtPath::from_win32(&U16String::from_str(&path))
            .as_u16str()
            .as_slice()
            .to_vec();
    }
    let (root, rest) = match path.strip_prefix(r"\\") {
        Some(remote) => {
            let end = remote
                .match_indices('\\')
                .nth(1)
                .map_or(remote.len(), |(at, _)| at);
            (
                format!(r"\??\UNC\{}", &remote[..end]),
                remote[end..].to_owned(),
            )
        }
        None if path.as_bytes().get(1) == Some(&b':') => {
            (format!(r"\??\{}", &path[..2]), path[2..].to_owned())
        }
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
    format!(r"{root}\{}", parts.join(r"\"))
        .encode_utf16()
        .collect()
}

impl State {
    /// Returns the existing file at a path.
    pub(crate) fn existing(&mut self, path: &str, follow_last: bool) -> OsResult<(FsId, FileId)> {
        match self.resolve(&nt_path(path), follow_last)? {
            Resolved::File(fs, file) => Ok((fs, file)),
            Resolved::Missing { .. } => Err(OsError::FILE_NOT_FOUND),
        }
    }

    /// Returns the existing file at a path with its attributes and content.
    pub(crate) fn record_at(&mut self, path: &str, follow_last: bool) -> OsResult<&FileRecord> {
        let (fs, file) = self.existing(path, follow_last)?;
        self.file_system(fs)?.record(file)
    }

    fn record_at_mut(&mut self, path: &str, follow_last: bool) -> OsResult<&mut FileRecord> {
        let (fs, file) = self.existing(path, follow_last)?;
        self.file_system_mut(fs)?.record_mut(file)
    }

    /// Creates an empty file or directory. Fails if the path exists.
    fn make(&mut self, path: &str, directory: bool) -> OsResult<(FsId, FileId)> {
        match self.resolve(&nt_path(path), false)? {
            Resolved::File(..) => Err(OsError::ALREADY_EXISTS),
            Resolved::Missing { fs, parent, name } => {
                Ok((fs, self.create(fs, parent, &name, directory)?))
            }
        }
    }

    pub(crate) fn make_directories(&mut self, path: &str) -> OsResult<()> {
        let path = nt_path(path);
        let ParsedPath::File(fs, names) = self.parse_path(&path)? else {
            return Err(OsError::INVALID_PARAMETER);
        };
        let root = self.root(fs)?;
        for length in 1..=names.len() {
            let mut resolve = |follow_last| {
                let names = names[..length].to_vec();
                self.resolve_from(fs, root, names, AtLink::Follow, follow_last)
            };
            match resolve(true) {
                Ok(Resolved::File(fs, file)) => {
                    if !self.file_system(fs)?.record(file)?.is_directory() {
                        return Err(OsError::DIRECTORY);
                    }
                }
                Ok(Resolved::Missing { fs, parent, name }) => {
                    self.create(fs, parent, &name, true)?;
                }
                // The link cannot be followed, so Go makes a directory of its name.
                Err(_) if matches!(resolve(false), Ok(Resolved::File(..))) => {
                    return Err(OsError::ALREADY_EXISTS);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(crate) fn write_file(&mut self, path: &str, data: &[u8]) -> OsResult<()> {
        let (fs, file) = match self.resolve(&nt_path(path), true)? {
            Resolved::File(fs, file) => (fs, file),
            Resolved::Missing { fs, parent, name } => (fs, self.create(fs, parent, &name, false)?),
        };
        self.check_writable(fs)?;
        let file_system = self.file_system_mut(fs)?;
        // Finding the free space takes time, because it sums up all files. An empty file does not
        // need it.
        if !data.is_empty() && file_system.allocated(data.len()) > file_system.free() {
            return Err(OsError::DISK_FULL);
        }
        let file = file_system.record_mut(file)?;
        let Body::File(content) = &mut file.body else {
            return Err(OsError::ACCESS_DENIED);
        };
        data.clone_into(content);
        Ok(())
    }

    pub(crate) fn make_symlink(&mut self, link: &str, target: &str) -> OsResult<()> {
        let target = target.replace('/', r"\");
        let absolute = target.starts_with(r"\\") || target.as_bytes().get(1) == Some(&b':');
        let print: Vec<u16> = target.encode_utf16().collect();
        let target_is_file = self.target_is_file(link, &target, absolute);
        let substitute = if absolute {
            absolute_substitute(&target)
        } else {
            print.clone()
        };
        let data = reparse_point::symlink(&substitute, &print, !absolute)?;
        let (fs, file) = self.make(link, !target_is_file)?;
        self.file_system_mut(fs)?.record_mut(file)?.reparse = Some(data);
        Ok(())
    }

    /// Returns whether the target of a new link is a file. Go creates a file link then, and
    /// otherwise a directory link.
    fn target_is_file(&mut self, link: &str, target: &str, absolute: bool) -> bool {
        let path = if absolute {
            target.to_owned()
        } else {
            format!(r"{link}\..\{target}")
        };
        self.record_at(&path, true)
            .is_ok_and(|file| !file.is_directory())
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
        let file = self.file_system_mut(fs)?.record_mut(file)?;
        if !file.is_empty_directory() || file.reparse.is_some() {
            return Err(OsError::DIR_NOT_EMPTY);
        }
        file.reparse = Some(data);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> OsResult<()> {
        let (fs, file) = self.existing(from, false)?;
        let Resolved::Missing {
            fs: other,
            parent,
            name,
        } = self.resolve(&nt_path(to), false)?
        else {
            return Err(OsError::ALREADY_EXISTS);
        };
        if fs != other {
            return Err(OsError(17)); // ERROR_NOT_SAME_DEVICE
        }
        self.check_writable(fs)?;
        self.check_sharing(fs, file, Access::DELETE, Share::all())?;
        let file_system = self.file_system_mut(fs)?;
        let mut above = Some(parent);
        while let Some(at) = above {
            if at == file {
                return Err(OsError::INVALID_PARAMETER);
            }
            above = file_system.record(at)?.parent;
        }
        file_system.relink(file, parent, &name)
    }

    fn remove_tree(&mut self, fs: FsId, file: FileId) -> OsResult<()> {
        self.check_writable(fs)?;
        let at = self.file_system(fs)?.record(file)?;
        let below = at.children().filter(|_| at.reparse.is_none());
        let children: Vec<FileId> = below
            .into_iter()
            .flat_map(|children| children.values().copied())
            .collect();
        for child in children {
            self.remove_tree(fs, child)?;
        }
        self.check_sharing(fs, file, Access::DELETE, Share::all())?;
        let open = self.is_open(fs, file);
        let file_system = self.file_system_mut(fs)?;
        if file != file_system.root {
            file_system.unlink(file);
            // A file that is open disappears with its last handle.
            if !open {
                file_system.forget(file);
            }
        }
        Ok(())
    }
}

/// Returns the substitute name that `CreateSymbolicLinkW` writes for an absolute target.
fn absolute_substitute(target: &str) -> Vec<u16> {
    NtPath::from_win32(&U16String::from_str(target))
        .as_u16str()
        .as_slice()
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::{nt_path, readlink_text};
    use crate::files::reparse_point::mount_point;

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
    fn link_targets_are_written_as_go_writes_them() {
        for (target, text) in [
            (r"\??\C:\var", r"C:\var"),
            (r"\??\UNC\host\share\", r"\\host\share\"),
            (r"\??\Volume{1}\", r"\\?\Volume{1}\"),
        ] {
            let target: Vec<u16> = target.encode_utf16().collect();
            assert_eq!(
                readlink_text(&mount_point(&target, &[]).unwrap()).unwrap(),
                text
            );
        }
    }
}
