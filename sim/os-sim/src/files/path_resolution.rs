//! Path resolution: from an NT path to the object that it names, through symbolic links, junctions
//! and mount points.

use std::collections::VecDeque;

use os::abi::REPARSE_TAG_MOUNT_POINT;
use os::{OsError, OsResult, Uuid};

use crate::disks::mount_manager::volume_guid;
use crate::files::file_name::{Name, SEPARATOR, same, split};
use crate::files::file_system::FileId;
use crate::files::reparse_point::{self, Target};
use crate::state::{DeviceId, FsId, State};

/// The maximum number of reparses while Windows resolves a path.
const MAX_REPARSES: u32 = 63;
/// The number of reparses for a link with a relative target.
///
/// A link with an absolute target takes one more, because Windows resolves the drive letter again.
const RELATIVE_REPARSES: u32 = 1;
const ABSOLUTE_REPARSES: u32 = 2;

/// The directory of the object manager with the DOS names of devices: `\??\`.
pub(crate) const DOS_DEVICES: [u16; 4] = [SEPARATOR, b'?' as u16, b'?' as u16, SEPARATOR];
/// The beginning of the name of a volume as a device. Windows numbers volumes in the order in which
/// they arrive.
const VOLUME_DEVICE: &str = r"\Device\HarddiskVolume";

/// `ERROR_SYMLINK_CLASS_DISABLED`: the SMB client does not follow absolute links on a remote share.
const SYMLINK_CLASS_DISABLED: OsError = OsError(1463);

/// The object that an NT path names before any link is followed.
pub(crate) enum ParsedPath {
    Disk(DeviceId),
    /// The volume as a device.
    Volume(Uuid),
    File(FsId, Vec<Name>),
}

/// The result of a path resolution.
pub(crate) enum Resolved {
    File(FsId, FileId),
    /// The directory exists, the last component does not.
    Missing {
        fs: FsId,
        parent: FileId,
        name: Name,
    },
}

/// How a path resolution treats a link that is not the object itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtLink {
    Follow,
    /// Fail, as with `OBJ_DONT_REPARSE`.
    Refuse,
}

/// The target of a link.
struct Followed {
    fs: FsId,
    /// The names on the path from the root directory.
    names: Vec<Name>,
    /// Whether the path ends with a separator, so that the target must be a directory.
    is_directory: bool,
    reparses: u32,
}

/// Requirements of the links in the last component on their target.
#[derive(Default)]
struct Required {
    /// For each link, whether it has the directory attribute. Its target must then be a directory,
    /// and otherwise a file.
    kinds: Vec<bool>,
    /// Whether the target path of a link ends with a separator.
    is_directory: bool,
}

impl Required {
    fn check(&self, is_directory: bool) -> OsResult<()> {
        if self.is_directory && !is_directory {
            return Err(OsError::INVALID_NAME);
        }
        match self.kinds.iter().find(|kind| **kind != is_directory) {
            Some(true) => Err(OsError::DIRECTORY),
            Some(false) => Err(OsError::ACCESS_DENIED),
            None => Ok(()),
        }
    }
}

impl State {
    /// Parses an absolute NT path.
    pub(crate) fn parse_path(&mut self, path: &[u16]) -> OsResult<ParsedPath> {
        let is_device = path
            .get(..VOLUME_DEVICE.len())
            .is_some_and(|head| same(head, VOLUME_DEVICE));
        let start = if is_device {
            VOLUME_DEVICE.len()
        } else {
            DOS_DEVICES.len()
        };
        if !is_device && !path.starts_with(&DOS_DEVICES) {
            return Err(OsError::PATH_NOT_FOUND);
        }
        let path = &path[start..];
        let (head, rest) = match path.iter().position(|unit| *unit == SEPARATOR) {
            Some(at) => (&path[..at], Some(&path[at + 1..])),
            None => (path, None),
        };
        if !is_device && same(head, "UNC") {
            return self.share(rest.unwrap_or_default());
        }
        // NT's object manager reports an unknown device as "path not found" if more of the path
        // follows, and otherwise as "file not found".
        let missing = if rest.is_some() {
            OsError::PATH_NOT_FOUND
        } else {
            OsError::FILE_NOT_FOUND
        };
        let volume = if is_device {
            self.volume_by_device(head)
        } else {
            self.volume_by_name(head)
        };
        if let Some(volume) = volume {
            return match rest {
                _ if self.volume(volume).is_err() => Err(missing),
                None => Ok(ParsedPath::Volume(volume)),
                Some(rest) => Ok(ParsedPath::File(FsId::Volume(volume), split(rest)?)),
            };
        }
        match self.disk_by_name(head) {
            Some(device) if !is_device && rest.is_none_or(<[u16]>::is_empty) => {
                Ok(ParsedPath::Disk(device))
            }
            _ => Err(missing),
        }
    }

    /// Returns the name of a volume as a device.
    pub(crate) fn device_of(volume: Uuid) -> String {
        format!("{VOLUME_DEVICE}{}", device_number(volume))
    }

    fn volume_by_device(&self, number: &[u16]) -> Option<Uuid> {
        let number: u128 = String::from_utf16(number).ok()?.parse().ok()?;
        self.arrived_volumes()
            .map(|(_, volume)| volume.id)
            .find(|id| device_number(*id) == number)
    }

    fn volume_by_name(&self, head: &[u16]) -> Option<Uuid> {
        match head {
            [letter, colon] if *colon == u16::from(b':') => {
                self.letter(char::from(u8::try_from(*letter).ok()?))
            }
            _ => volume_guid(head),
        }
    }

    fn disk_by_name(&self, head: &[u16]) -> Option<DeviceId> {
        const PHYSICAL: &str = "PhysicalDrive";
        if head
            .get(..PHYSICAL.len())
            .is_some_and(|start| same(start, PHYSICAL))
        {
            let number = String::from_utf16(&head[PHYSICAL.len()..]).ok()?;
            return self.device(number.parse().ok()?);
        }
        self.visible_disks()
            .find(|(_, disk)| same(head, &disk.interface()[4..]))
            .map(|(device, _)| device)
    }

    fn share(&mut self, rest: &[u16]) -> OsResult<ParsedPath> {
        let mut parts = rest.splitn(3, |unit| *unit == SEPARATOR);
        let mut part = || {
            parts
                .next()
                .filter(|part| !part.is_empty())
                .map(String::from_utf16_lossy)
        };
        let host = part().ok_or(OsError::BAD_NETPATH)?;
        let share = part().ok_or(OsError::BAD_NET_NAME)?;
        let names = parts.next().map_or_else(|| Ok(Vec::new()), split)?;
        let remote = format!(r"\\{host}\{share}");
        if self.is_stopped("LanmanWorkstation") {
            return Err(OsError::BAD_NETPATH);
        }
        self.network_time += self.smb.answer_time(&remote, self.timing.smb_timeout);
        Ok(ParsedPath::File(
            FsId::Share(self.smb.open(&remote)?),
            names,
        ))
    }

    /// Returns the root directory of a file system. Fails if the volume is locked.
    pub(crate) fn root(&self, fs: FsId) -> OsResult<FileId> {
        let file_system = self.file_system(fs);
        if let FsId::Volume(volume) = fs {
            self.check_unlocked(volume)?;
        }
        Ok(file_system?.root)
    }

    /// Resolves an absolute NT path to a file.
    pub(crate) fn resolve(&mut self, path: &[u16], follow_last: bool) -> OsResult<Resolved> {
        let ParsedPath::File(fs, names) = self.parse_path(path)? else {
            return Err(OsError::INVALID_PARAMETER);
        };
        let root = self.root(fs)?;
        self.resolve_from(fs, root, names, AtLink::Follow, follow_last)
    }

    /// Resolves `names` relative to a directory. Treats each link as `at_link` says. A link in the
    /// last component is the object itself, unless `follow_last`.
    pub(crate) fn resolve_from(
        &mut self,
        fs: FsId,
        start: FileId,
        names: Vec<Name>,
        at_link: AtLink,
        follow_last: bool,
    ) -> OsResult<Resolved> {
        let mut fs = fs;
        let mut at = start;
        let mut rest = VecDeque::from(names);
        let mut reparses = 0;
        let mut required = Required::default();
        while let Some(name) = rest.pop_front() {
            let file_system = self.file_system(fs)?;
            let directory = file_system.record(at)?;
            if !directory.is_directory() {
                return Err(OsError::PATH_NOT_FOUND);
            }
            if directory.pending.is_some() {
                return Err(OsError::DELETE_PENDING);
            }
            let Some(child) = file_system.child(at, &name) else {
                return if rest.is_empty() {
                    Ok(Resolved::Missing {
                        fs,
                        parent: at,
                        name,
                    })
                } else {
                    Err(OsError::PATH_NOT_FOUND)
                };
            };
            let file = file_system.record(child)?;
            if file.pending.is_some() {
                return Err(OsError::DELETE_PENDING);
            }
            let is_last = rest.is_empty();
            let Some(link) = file
                .link()
                .filter(|_| follow_last || !is_last)
                .map(<[u8]>::to_vec)
            else {
                at = child;
                continue;
            };
            if at_link == AtLink::Refuse {
                return Err(OsError::REPARSE_POINT_ENCOUNTERED);
            }
            let kind = file.is_directory();
            let to = self.follow(fs, at, &link)?;
            reparses += to.reparses;
            if reparses > MAX_REPARSES {
                return Err(OsError::CANT_RESOLVE_FILENAME);
            }
            if is_last {
                required.kinds.push(kind);
                required.is_directory |= to.is_directory;
            }
            to.names
                .into_iter()
                .rev()
                .for_each(|name| rest.push_front(name));
            fs = to.fs;
            at = self.root(fs)?;
        }
        // Fails if the file system cannot be read.
        required.check(self.file_system(fs)?.record(at)?.is_directory())?;
        Ok(Resolved::File(fs, at))
    }

    /// Returns the target of the link `data` in `directory`.
    fn follow(&mut self, fs: FsId, directory: FileId, data: &[u8]) -> OsResult<Followed> {
        match reparse_point::target(data)? {
            Target::Absolute(_) if matches!(fs, FsId::Share(..)) => Err(SYMLINK_CLASS_DISABLED),
            Target::Absolute(path) => {
                let is_mount_point = reparse_point::tag(data) == REPARSE_TAG_MOUNT_POINT;
                if is_mount_point && path.get(..8).is_some_and(|head| same(head, r"\??\UNC\")) {
                    return Err(OsError::INVALID_REPARSE_DATA);
                }
                self.follow_absolute(&path)
            }
            Target::Relative(path) => self.follow_relative(fs, directory, &path),
        }
    }

    fn follow_absolute(&mut self, path: &[u16]) -> OsResult<Followed> {
        if path.first() != Some(&SEPARATOR) || path.get(1) == Some(&SEPARATOR) {
            return Err(OsError::INVALID_NAME);
        }
        if path
            .split(|unit| *unit == SEPARATOR)
            .any(|part| part == [DOT])
        {
            return Err(OsError::PATH_NOT_FOUND);
        }
        let (fs, names) = match self.parse_path(path)? {
            ParsedPath::File(fs, names) => (fs, names),
            ParsedPath::Volume(volume) => (FsId::Volume(volume), Vec::new()),
            ParsedPath::Disk(_) => return Err(OsError::PATH_NOT_FOUND),
        };
        let is_directory = path.last() == Some(&SEPARATOR);
        Ok(Followed {
            fs,
            names,
            is_directory,
            reparses: ABSOLUTE_REPARSES,
        })
    }

    /// Follows a path relative to `directory` or, if it begins with a separator, to the root
    /// directory.
    fn follow_relative(&mut self, fs: FsId, directory: FileId, path: &[u16]) -> OsResult<Followed> {
        let mut names = self
            .file_system(fs)?
            .path(directory)
            .ok_or(OsError::PATH_NOT_FOUND)?;
        let mut parts = path;
        if let Some(below_root) = parts.strip_prefix(&[SEPARATOR]) {
            names.clear();
            parts = below_root;
        }
        let is_directory = parts.last() == Some(&SEPARATOR);
        parts = parts.strip_suffix(&[SEPARATOR]).unwrap_or(parts);
        for part in parts.split(|unit| *unit == SEPARATOR) {
            match part {
                [] if path == [SEPARATOR] => {}
                [DOT] => {}
                [DOT, DOT] => {
                    names.pop().ok_or(OsError::INVALID_REPARSE_DATA)?;
                }
                name => names.push(Name::new(name)?),
            }
        }
        Ok(Followed {
            fs,
            names,
            is_directory,
            reparses: RELATIVE_REPARSES,
        })
    }
}

/// Returns the number in the name of a volume as a device. Nothing depends on the order in which
/// volumes have arrived.
fn device_number(volume: Uuid) -> u128 {
    volume.as_u128() % 0xffff_fffb
}

const DOT: u16 = 0x2e;
