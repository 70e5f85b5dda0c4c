//! The mount manager: where each volume is mounted, and the paths of volumes.

use os::abi::REPARSE_TAG_MOUNT_POINT;
use os::{Access, OsError, OsResult, Share, U16Str, U16String, Uuid};

use crate::files::file_name::{Name, SEPARATOR, same};
use crate::files::file_system::FileId;
use crate::files::path_resolution::Resolved;
use crate::files::reparse_point;
use crate::state::{FsId, State};

/// `MAX_PATH`: the length of the longest Win32 path, with the zero at its end.
const MAX_PATH: usize = 260;

/// An entry of the mount manager's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub volume: Uuid,
    pub point: MountPoint,
}

/// Where a volume is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountPoint {
    Letter(char),
    /// The directory at `path` on the volume `host`.
    Directory {
        host: Uuid,
        path: Vec<Name>,
    },
}

impl State {
    /// Returns the volume with the drive letter.
    pub(crate) fn letter(&self, letter: char) -> Option<Uuid> {
        let wanted = MountPoint::Letter(letter.to_ascii_uppercase());
        self.mounts
            .iter()
            .find(|mount| mount.point == wanted)
            .map(|mount| mount.volume)
    }

    /// Simulates `SetVolumeMountPointW`.
    pub(crate) fn mount(&mut self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        let id = volume_name(volume.as_slice()).ok_or(OsError::INVALID_PARAMETER)?;
        self.mount_at(&nt_directory(directory)?, id)
    }

    /// Mounts a volume at the directory with this NT path.
    pub(crate) fn mount_at(&mut self, path: &[u16], id: Uuid) -> OsResult<()> {
        let (fs, file) = self.directory(path)?;
        let FsId::Volume(host) = fs else {
            return Err(OsError::INVALID_PARAMETER);
        };
        let file_system = self.file_system(fs)?;
        if file_system.kind != "NTFS" {
            return Err(OsError::INVALID_PARAMETER);
        }
        let directory = file_system.record(file)?;
        if directory.reparse.is_some() || !directory.is_empty_directory() {
            return Err(OsError::DIR_NOT_EMPTY);
        }
        self.check_writable(fs)?;
        self.check_sharing(fs, file, Access::WRITE_DATA, Share::READ | Share::WRITE)?;
        self.volume(id).map_err(|_| OsError::FILE_NOT_FOUND)?;
        let path = file_system.path(file).ok_or(OsError::PATH_NOT_FOUND)?;
        let target: Vec<u16> = format!(r"\??\Volume{{{id}}}\").encode_utf16().collect();
        let data = reparse_point::mount_point(&target, &[])?;
        self.file_system_mut(fs)?.record_mut(file)?.reparse = Some(data);
        let point = MountPoint::Directory { host, path };
        self.mounts.retain(|mount| mount.point != point);
        self.mounts.push(Mount { volume: id, point });
        self.volume_mut(id)?.offline = false;
        Ok(())
    }

    /// Simulates `DeleteVolumeMountPointW`.
    pub(crate) fn unmount(&mut self, directory: &U16Str) -> OsResult<()> {
        let (fs, file) = self.directory(&nt_directory(directory)?)?;
        let FsId::Volume(host) = fs else {
            return Err(OsError::INVALID_PARAMETER);
        };
        let file_system = self.file_system(fs)?;
        let data = file_system.record(file)?.reparse.as_deref();
        if data.and_then(mounted_volume).is_none() {
            return Err(OsError::NOT_A_REPARSE_POINT);
        }
        self.check_writable(fs)?;
        // Windows opens the directory for writing and does not share deletion.
        self.check_sharing(fs, file, Access::WRITE_DATA, Share::READ | Share::WRITE)?;
        let path = file_system.path(file).ok_or(OsError::PATH_NOT_FOUND)?;
        self.file_system_mut(fs)?.record_mut(file)?.reparse = None;
        let point = MountPoint::Directory { host, path };
        self.mounts.retain(|mount| mount.point != point);
        Ok(())
    }

    /// Returns whether the directory at a path is a mount point of a volume.
    pub(crate) fn is_mounted_at(&mut self, directory: &U16Str, volume: Uuid) -> bool {
        let found = nt_directory(directory).and_then(|path| self.directory(&path));
        let Ok((fs, file)) = found else { return false };
        let Ok(file_system) = self.file_system(fs) else {
            return false;
        };
        let data = file_system
            .record(file)
            .ok()
            .and_then(|record| record.reparse.as_deref());
        data.and_then(mounted_volume) == Some(volume)
    }

    /// Returns the paths that the mount manager has for a volume, each with a final separator.
    pub(crate) fn paths_of(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
        let name = volume.as_slice();
        if name.last() != Some(&SEPARATOR) {
            return Err(OsError::INVALID_NAME);
        }
        let id = volume_name(name).ok_or(OsError::INVALID_PARAMETER)?;
        self.volume(id).map_err(|_| OsError::FILE_NOT_FOUND)?;
        Ok(self
            .dos_prefixes(id)
            .into_iter()
            .map(|path| U16String::from_str(&format!("{path}\\")))
            .collect())
    }

    /// Returns the directory at a path. Does not follow a link in the last component.
    fn directory(&mut self, path: &[u16]) -> OsResult<(FsId, FileId)> {
        match self.resolve(path, false)? {
            Resolved::File(fs, file) if self.file_system(fs)?.record(file)?.is_directory() => {
                Ok((fs, file))
            }
            Resolved::File(..) => Err(OsError::DIRECTORY),
            Resolved::Missing { .. } => Err(OsError::FILE_NOT_FOUND),
        }
    }

    /// Returns the first DOS path of a volume without a final separator: `C:`, or the directory
    /// where it is mounted.
    pub(crate) fn dos_prefix(&self, volume: Uuid) -> Option<String> {
        self.first_prefix(volume, &[])
    }

    /// Returns all DOS paths of a volume, without final separators.
    pub(crate) fn dos_prefixes(&self, volume: Uuid) -> Vec<String> {
        self.prefixes(volume, &[]).collect()
    }

    /// Returns the first DOS path of a volume that does not lead through a volume in `below`. A
    /// volume may be mounted on itself, so a path could lead through the same volume forever.
    fn first_prefix(&self, volume: Uuid, below: &[Uuid]) -> Option<String> {
        if below.contains(&volume) {
            return None;
        }
        self.prefixes(volume, &[below, &[volume]].concat()).next()
    }

    fn prefixes(&self, volume: Uuid, below: &[Uuid]) -> impl Iterator<Item = String> {
        let mounts = self
            .mounts
            .iter()
            .filter(move |mount| mount.volume == volume);
        let below = below.to_vec();
        mounts.filter_map(move |mount| match &mount.point {
            MountPoint::Letter(letter) => Some(format!("{letter}:")),
            MountPoint::Directory { host, path } if self.leads_to(*host, path, volume) => {
                let prefix = self.first_prefix(*host, &below)?;
                Some(
                    path.iter()
                        .fold(prefix, |prefix, name| format!(r"{prefix}\{name}")),
                )
            }
            MountPoint::Directory { .. } => None,
        })
    }

    /// Returns whether the directory at `path` on `host` is a mount point of `volume`.
    pub(crate) fn leads_to(&self, host: Uuid, path: &[Name], volume: Uuid) -> bool {
        let Ok(file_system) = self.file_system(FsId::Volume(host)) else {
            return false;
        };
        let file = path
            .iter()
            .try_fold(file_system.root, |at, name| file_system.child(at, name));
        let data = file.and_then(|file| file_system.record(file).ok()?.reparse.as_deref());
        data.and_then(mounted_volume) == Some(volume)
    }
}

/// Returns the volume that a reparse point mounts, if it is a mount point of a volume.
pub(crate) fn mounted_volume(data: &[u8]) -> Option<Uuid> {
    if reparse_point::tag(data) != REPARSE_TAG_MOUNT_POINT {
        return None;
    }
    let Ok(reparse_point::Target::Absolute(path)) = reparse_point::target(data) else {
        return None;
    };
    if !path.get(..4).is_some_and(|head| same(head, r"\??\")) {
        return None;
    }
    volume_guid(path[4..].strip_suffix(&[SEPARATOR])?)
}

/// Parses `\\?\Volume{...}\`.
fn volume_name(text: &[u16]) -> Option<Uuid> {
    let rest = text.strip_suffix(&[SEPARATOR])?;
    rest.get(..4).filter(|head| same(head, r"\\?\"))?;
    volume_guid(&rest[4..])
}

/// Parses `Volume{...}`.
pub(crate) fn volume_guid(text: &[u16]) -> Option<Uuid> {
    text.get(..7).filter(|head| same(head, "Volume{"))?;
    let inner = text[7..].strip_suffix(&[u16::from(b'}')])?;
    let inner = String::from_utf16(inner)
        .ok()
        .filter(|inner| inner.len() == 36)?;
    inner.parse().ok()
}

/// Returns the NT form of a directory's Win32 path, which must end with a separator.
///
/// No document says whether the functions of the mount manager accept a path that begins with
/// `\\?\`. So the simulated node refuses the prefix wherever csi-proxy can do without it.
fn nt_directory(path: &U16Str) -> OsResult<Vec<u16>> {
    let units = path.as_slice();
    let path_units = units.strip_prefix(&[SEPARATOR, SEPARATOR, u16::from(b'?'), SEPARATOR]);
    // Win32 removes dots and spaces at the end of a name unless the path begins with the prefix.
    let is_stripped = |name: &[u16]| {
        name.last()
            .is_some_and(|last| [u16::from(b'.'), u16::from(b' ')].contains(last))
    };
    let fits = |path: &[u16]| {
        path.len() < MAX_PATH && !path.split(|unit| *unit == SEPARATOR).any(is_stripped)
    };
    if units.last() != Some(&SEPARATOR) || path_units.is_some_and(fits) {
        return Err(OsError::INVALID_NAME);
    }
    if path_units.is_none() && units.len() >= MAX_PATH {
        return Err(OsError::FILENAME_EXCED_RANGE);
    }
    Ok(os::NtPath::from_win32(path).as_u16str().as_slice().to_vec())
}
