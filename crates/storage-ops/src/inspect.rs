//! Readings of a node's state, for programs that diagnose a node or compare the ways to read it.
//!
//! An operation chooses among the ways to read something and waits for what has not arrived yet. A
//! reading makes one native attempt, never asks the storage provider, and changes nothing: not even
//! Windows' own cache of a disk's size is refreshed. Each reading fails by itself, so that one
//! failure hides no other reading.
//!
//! No reading leaves the node, except [`Inspector::read_share`]: a link to a server is not
//! followed, since that would log on to the server and could wait for it.

use std::sync::Arc;

use os::abi::{
    DiskAttributes, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, SecurityDescriptor,
};
use os::{Access, Handle, NtPath, Open, Options, Os, OsError, U16Str};

use crate::config::Config;
pub use crate::devices::Partition;
use crate::devices::disk::{OPEN_FOR_QUERY, device_number};
use crate::devices::reparse_point::win32_name;
use crate::devices::{
    Disk, FileSystem, Link, TableStyle, buffer, disk_identifiers, file_system, smbios, volume,
};
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::ops::volume::resize::end_of_mbr;
use crate::paths::on_node;
use crate::paths::opening::{NOFOLLOW_NOWAIT, OPEN_NOFOLLOW};
use crate::paths::remove_tree::names;
use crate::paths::working_directories::WorkingDirectories;
use crate::readings::all_disks::read_listed;
use crate::readings::drives::Drives;
use crate::readings::file_system::detect;
use crate::readings::share;
use crate::types::{DiskNumber, HostPath, UncPath, VolumeId, components};
use crate::windows::{Device, Windows};

/// The directories of the pods' own files, which can be very large and have no links of csi-proxy.
const SKIPPED: [&str; 1] = ["kubernetes.io~empty-dir"];

/// A disk as its device describes it.
#[derive(Debug)]
#[non_exhaustive]
pub struct DiskReadings {
    /// The number.
    pub number: DiskNumber,
    /// Whether the disk is offline, and whether it is read-only.
    pub attributes: OperationResult<(bool, bool)>,
    /// The size in bytes, as Windows knows it.
    pub size: OperationResult<u64>,
    /// The serial number, untrimmed.
    pub serial: OperationResult<String>,
    /// The page 83 identifier.
    pub page83: OperationResult<String>,
    /// How much of the disk its MBR can describe, in bytes; `None` if it has another partition table
    /// or none.
    pub mbr_size: Option<u64>,
    /// The partitions, in the order of their offsets.
    pub partitions: OperationResult<Vec<Partition>>,
}

/// A volume as its device and file system describe it.
#[derive(Debug)]
#[non_exhaustive]
pub struct VolumeReadings {
    /// The volume.
    pub id: VolumeId,
    /// The disks that it has an extent on.
    pub disks: OperationResult<Vec<DiskNumber>>,
    /// The size of the file system and what of it is free, in bytes.
    pub space: OperationResult<(u64, u64)>,
    /// The largest size of the file system in bytes, if it is NTFS, whose number of clusters is
    /// limited.
    pub ntfs_limit: OperationResult<Option<u64>>,
    /// The name of the file system; `None` if Windows has mounted none.
    pub file_system: OperationResult<Option<String>>,
    /// Whether the volume counts as formatted.
    pub formatted: OperationResult<bool>,
    /// The drive letters and directories at which the mount manager has the volume, each with a
    /// final backslash.
    pub paths: OperationResult<Vec<String>>,
}

/// A link or mount point.
#[derive(Debug)]
#[non_exhaustive]
pub struct LinkReadings {
    /// The path.
    pub path: String,
    /// The target, as Windows stores it.
    pub target: String,
    /// The kind of the target.
    pub kind: LinkKind,
    /// Whether the target exists. A target on a server, or behind a link to one, is not opened and
    /// counts as existing.
    pub target_exists: OperationResult<bool>,
}

/// The kinds of targets of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// A volume.
    Volume(VolumeId),
    /// A path on a drive.
    Local,
    /// A path on a server, or one that only Windows can resolve.
    Remote,
}

/// The links below a directory.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LinkSurvey {
    /// The links that were found.
    pub links: Vec<LinkReadings>,
    /// The number of files and directories that were looked at.
    pub entries: usize,
    /// Whether the limits ended the search.
    pub is_cut: bool,
    /// The first directory or link that could not be read, and why.
    pub unreadable: Option<(String, OperationError)>,
}

/// The limits of a search for links.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// How many directories deep.
    pub depth: usize,
    /// How many files and directories in all.
    pub entries: usize,
}

impl DiskReadings {
    fn of(disk: &Disk) -> Self {
        let attributes = disk.attributes().map(|bits| {
            (
                bits & DiskAttributes::OFFLINE != 0,
                bits & DiskAttributes::READ_ONLY != 0,
            )
        });
        let table = disk.partition_table();
        Self {
            number: disk.number,
            attributes: attributes.map_err(Into::into),
            size: disk.known_size().map_err(Into::into),
            serial: disk_identifiers::serial(&*disk.handle).map_err(Into::into),
            page83: disk_identifiers::page83(&*disk.handle).map_err(Into::into),
            mbr_size: table
                .as_ref()
                .is_ok_and(|table| table.style == TableStyle::Mbr)
                .then(|| end_of_mbr(disk)),
            partitions: table.map(|table| table.partitions),
        }
    }
}

impl VolumeReadings {
    fn of(windows: &Windows, id: VolumeId) -> Self {
        let os = windows.os();
        let space = file_system::stats(os, id).map(|stats| (stats.total, stats.total - stats.used));
        let extents = volume::extents_of(os, id);
        let disks = extents.map(|extents| {
            extents
                .iter()
                .map(|extent| DiskNumber(extent.disk_number))
                .collect()
        });
        let opened = volume::open(os, id, &volume::OPEN_FOR_READ);
        let file_system = opened.and_then(|handle| Ok(file_system::name_of(&*handle)?));
        let formatted = detect(windows, id).map(|found| found != FileSystem::Raw);
        let paths = os.volume_paths(&id.to_windows()).map_err(Into::into);
        Self {
            id,
            disks,
            space,
            ntfs_limit: file_system::ntfs_limit(os, id),
            file_system,
            formatted,
            paths: paths.map(|paths| paths.iter().map(|path| path.to_string_lossy()).collect()),
        }
    }

    /// Returns the readings of a volume if all of them have failed.
    fn failed(id: VolumeId, error: &OperationError) -> Self {
        let [disks, space, ntfs_limit, file_system, formatted, paths] =
            [(); 6].map(|()| error.clone());
        Self {
            id,
            disks: Err(disks),
            space: Err(space),
            ntfs_limit: Err(ntfs_limit),
            file_system: Err(file_system),
            formatted: Err(formatted),
            paths: Err(paths),
        }
    }
}

/// Returns whether the code tells that a server cannot be reached. With every other code, such as
/// `ERROR_BAD_NET_NAME`, another share of the server may be readable.
pub fn is_server_unreachable(code: OsError) -> bool {
    ErrorClass::ServerUnreachable.contains(code)
}

/// Returns whether the code tells that a server refuses the user name, the password or the account.
pub fn is_refused_by_server(code: OsError) -> bool {
    ErrorClass::CredentialsRefused.contains(code) || code == OsError::ACCESS_DENIED
}

/// The readings of a node.
pub struct Inspector {
    windows: Arc<Windows>,
    drives: Drives,
}

impl Inspector {
    /// Creates the readings of the node behind `os`.
    pub fn new(os: Arc<dyn Os>, config: &Config) -> Self {
        Self {
            windows: Arc::new(Windows::new(os, config.timeouts)),
            drives: Drives::default(),
        }
    }

    /// Reads all disks. Returns those that could be opened and have answered in time, and the error
    /// of the first other one: `SEM_TIMEOUT` if it has not answered.
    pub fn disks(&self) -> OperationResult<(Vec<DiskReadings>, Option<OsError>)> {
        let (disks, unread) = read_listed(&self.windows, |os, disk| {
            DiskReadings::of(&Disk::open(os, disk.number, Access::GENERIC_READ).unwrap_or(disk))
        })?;
        let first_error = unread.first().map(|disk| disk.code);
        Ok((
            disks.into_iter().map(|(_, readings)| readings).collect(),
            first_error,
        ))
    }

    /// Returns the number of the disk whose device has this path (`\\?\scsi#disk&...`); `None` for
    /// another device.
    pub fn disk_at(&self, path: &U16Str) -> OperationResult<Option<DiskNumber>> {
        let device = self
            .windows
            .os()
            .open(&NtPath::from_win32(path), &OPEN_FOR_QUERY)?;
        Ok(device_number(&*device)?)
    }

    /// Reads all volumes, in the order of their names. Each reading of a volume that has not
    /// answered in time fails with `SEM_TIMEOUT`.
    pub fn volumes(&self) -> OperationResult<Vec<VolumeReadings>> {
        let mut ids: Vec<_> = self
            .windows
            .os()
            .volumes()?
            .iter()
            .filter_map(|name| VolumeId::from_windows(name))
            .collect();
        ids.sort_unstable();
        let targets = ids
            .iter()
            .map(|id| (Device::Volume(*id), (Arc::clone(&self.windows), *id)));
        let answers = self.windows.query_each(targets, |_, (windows, id), _| {
            Ok(VolumeReadings::of(&windows, id))
        });
        Ok(ids
            .iter()
            .copied()
            .zip(answers.into_iter().map(|(_, answer)| answer))
            .map(|(id, answer)| {
                answer
                    .and_then(Result::ok)
                    .unwrap_or_else(|| VolumeReadings::failed(id, &OsError::SEM_TIMEOUT.into()))
            })
            .collect())
    }

    /// Reads the serial number of the machine in its firmware table; `None` if the table has none.
    pub fn firmware_serial(&self) -> OperationResult<Option<String>> {
        Ok(smbios::read_serial(self.windows.os())?)
    }

    /// Opens a directory, links in its path followed, and returns the name of its file system.
    ///
    /// Errors: `REPARSE_POINT_ENCOUNTERED` if it is not on the node.
    pub fn file_system_of_directory(
        &self,
        directory: &HostPath,
    ) -> OperationResult<Option<String>> {
        let opened = self.open_directory(directory)?;
        Ok(file_system::name_of(&*opened)?)
    }

    /// Finds the first link on the way from `outer`, links in its path followed, to `inner`, which
    /// is in it. Returns the path of the link and its target as Win32 programs show it.
    ///
    /// Errors: `REPARSE_POINT_ENCOUNTERED` if `outer` is not on the node.
    pub fn link_between(
        &self,
        outer: &HostPath,
        inner: &HostPath,
    ) -> OperationResult<Option<(HostPath, String)>> {
        let mut found = self.open_directory(outer)?;
        let mut path = outer.clone();
        for name in inner.below(outer).into_iter().flat_map(components) {
            found = found.open_child(name, &OPEN_NOFOLLOW)?;
            path = path.join(name);
            match Link::of(&*found)? {
                Some(Link::Symlink(target) | Link::Relative(target) | Link::MountPoint(target)) => {
                    return Ok(Some((path, win32_name(&target))));
                }
                Some(Link::Other) | None => {}
            }
        }
        Ok(None)
    }

    /// Finds two working directories of which the first one, or a link on the way to it, lies in
    /// the second one, although the texts of their paths do not show that.
    pub fn working_directories_nested_by_links(
        &self,
        config: &Config,
    ) -> Option<(HostPath, HostPath)> {
        let directories = WorkingDirectories::new(config);
        let (inner, outer) = directories.nested_by_links(self.windows.os())?;
        Some((inner.clone(), outer.clone()))
    }

    /// Returns whether a directory, links in its path followed, has no entries.
    ///
    /// Errors: `REPARSE_POINT_ENCOUNTERED` if it is not on the node.
    pub fn is_empty(&self, directory: &HostPath) -> OperationResult<bool> {
        Ok(names(&*self.open_directory(directory)?, 1)?
            .names
            .is_empty())
    }

    /// Reads who may access the object at `path`, links in its path followed.
    ///
    /// Errors: `REPARSE_POINT_ENCOUNTERED` if it is not on the node.
    pub fn access(&self, path: &HostPath) -> OperationResult<SecurityDescriptor> {
        let object = self.open_on_node(
            path,
            &Open::existing(Access::READ_CONTROL, Options::REPARSE_POINT),
        )?;
        Ok(object.security_descriptor()?)
    }

    fn open_directory(&self, directory: &HostPath) -> OperationResult<Box<dyn Handle>> {
        let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
        self.open_on_node(directory, &Open::existing(access, Options::DIRECTORY))
    }

    fn open_on_node(&self, path: &HostPath, how: &Open) -> OperationResult<Box<dyn Handle>> {
        on_node::open(self.windows.os(), path, how, &|letter| {
            self.drives.is_of_volume(self.windows.os(), letter)
        })
    }

    /// Reads the root directory of a share as a request for its mapping does. Takes as long as
    /// Windows waits for the server.
    pub fn read_share(&self, remote: &UncPath) -> OperationResult<()> {
        Ok(share::list(self.windows.os(), remote, true)?)
    }

    /// Returns whether the directory at `path` (as in [`VolumeReadings::paths`]) is on `volume`.
    ///
    /// Errors: `REPARSE_POINT_ENCOUNTERED` if it is not on the node.
    pub fn leads_to(&self, path: &str, volume: VolumeId) -> OperationResult<bool> {
        let found = match self.open_on_node(&HostPath::parse(path)?, &OPEN_NOFOLLOW) {
            Err(error) if error.is_of(ErrorClass::TargetMissing) => return Ok(false),
            // Its file system cannot be opened, but it is mounted.
            Err(error)
                if matches!(
                    error.code,
                    Some(OsError::UNRECOGNIZED_VOLUME | OsError::NOT_READY)
                ) =>
            {
                return Ok(true);
            }
            found => found?,
        };
        let final_path = found.final_path(os::PathForm::VolumeGuid)?;
        Ok(VolumeId::of_final_path(&final_path)
            .is_some_and(|(found, is_root)| is_root && found == volume))
    }

    /// Finds the links and mount points below a directory, without following any.
    pub fn links_below(
        &self,
        directory: &HostPath,
        limits: SearchLimits,
    ) -> OperationResult<LinkSurvey> {
        let opened = self.open_directory(directory)?;
        let mut survey = LinkSurvey::default();
        self.search(&*opened, &directory.to_string(), limits, &mut survey);
        Ok(survey)
    }

    fn search(
        &self,
        directory: &dyn Handle,
        path: &str,
        limits: SearchLimits,
        survey: &mut LinkSurvey,
    ) {
        let left = if limits.depth == 0 {
            1
        } else {
            limits.entries.saturating_sub(survey.entries)
        };
        let listing = match names(directory, left) {
            Ok(listing) => listing,
            Err(code) => return survey.not_read(path, code.into()),
        };
        survey.is_cut |= !listing.is_complete;
        if limits.depth == 0 {
            survey.is_cut |= !listing.names.is_empty();
            return;
        }
        for name in listing.names {
            if survey.entries >= limits.entries {
                survey.is_cut = true;
                return;
            }
            survey.entries += 1;
            let below = format!(r"{}\{}", path.trim_end_matches('\\'), name.display());
            match self.entry(directory, &name, &below) {
                Ok(Entry::Link(link)) => survey.links.push(link),
                Ok(Entry::Directory(child)) => {
                    self.search(
                        &*child,
                        &below,
                        SearchLimits {
                            depth: limits.depth - 1,
                            ..limits
                        },
                        survey,
                    );
                }
                Ok(Entry::Other) => {}
                // Another process has deleted it meanwhile.
                Err(error) if error.is_of(ErrorClass::EntryDeleted) => {}
                Err(error) => survey.not_read(&below, error),
            }
        }
    }

    fn entry(&self, parent: &dyn Handle, name: &U16Str, path: &str) -> OperationResult<Entry> {
        let found = parent.open_child(name, &OPEN_NOFOLLOW)?;
        let attributes = buffer::attributes(&*found)?.attributes;
        if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
            return Ok(Link::of(&*found)?
                .and_then(|link| self.link(&link, path))
                .map_or(Entry::Other, Entry::Link));
        }
        if attributes & FILE_ATTRIBUTE_DIRECTORY == 0
            || SKIPPED.contains(&name.to_string_lossy().as_str())
        {
            return Ok(Entry::Other);
        }
        let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
        let how = Open::existing(access, NOFOLLOW_NOWAIT | Options::DIRECTORY);
        Ok(Entry::Directory(parent.open_child(name, &how)?))
    }

    fn link(&self, link: &Link, path: &str) -> Option<LinkReadings> {
        let (Link::Symlink(target) | Link::Relative(target) | Link::MountPoint(target)) = link
        else {
            return None;
        };
        let relative = matches!(link, Link::Relative(_)).then(|| HostPath::parse(path));
        let kind = match (link.volume(), link.host_path()) {
            (Some(volume), _) => LinkKind::Volume(volume),
            (None, None) if relative.is_none() => LinkKind::Remote,
            (None, _) => LinkKind::Local,
        };
        let reading = |target_exists| LinkReadings {
            path: path.to_owned(),
            target: target.to_string_lossy(),
            kind,
            target_exists,
        };
        let opened = match (kind, relative.or(link.host_path().map(Ok))) {
            (LinkKind::Volume(volume), _) => self
                .windows
                .os()
                .open(&volume.root(), &OPEN_NOFOLLOW)
                .map_err(Into::into),
            // A relative link is followed from its own path.
            (_, Some(path)) => path.and_then(|path| self.open_on_node(&path, &OPEN_NOFOLLOW)),
            (_, None) => return Some(reading(Ok(true))),
        };
        let target_exists = match opened.map(drop) {
            Err(error)
                if error.is_of(ErrorClass::TargetMissing)
                    || error.is_of(ErrorClass::TargetInvalid) =>
            {
                Ok(false)
            }
            Err(OperationError {
                code: Some(code), ..
            }) if EXISTING.contains(&code) => Ok(true),
            outcome => outcome.map(|()| true),
        };
        Some(reading(target_exists))
    }
}

/// Codes with which a target that exists is not opened: of a volume without a file system that can
/// be opened, of a path that leads off the node, and of a reparse point that is not a link.
const EXISTING: [OsError; 4] = [
    OsError::UNRECOGNIZED_VOLUME,
    OsError::NOT_READY,
    OsError::REPARSE_POINT_ENCOUNTERED,
    OsError::CANT_ACCESS_FILE,
];

/// The kind of an entry of a directory.
enum Entry {
    Link(LinkReadings),
    Directory(Box<dyn Handle>),
    Other,
}

impl LinkSurvey {
    fn not_read(&mut self, path: &str, error: OperationError) {
        self.unreadable
            .get_or_insert_with(|| (path.to_owned(), error));
    }
}
