//! Read-only views for tests: disks, volumes and files as plain values, snapshots and invariants.

mod disk_of_object;
mod invariants;
mod snapshot;

use std::collections::BTreeMap;

use os::{OsError, OsResult, Uuid};

use crate::disks::mount_manager::MountPoint;
use crate::disks::{Disk, Partition, PartitionKind, Volume};
use crate::files::file_system::{Body, FileId, FileRecord};
use crate::files::reparse_point::{self, Target};
use crate::sim::Sim;
use crate::smb::Mapping;
use crate::state::{FsId, State};
use crate::wmi::msft_storage::volume_path;

pub use snapshot::Snapshot;

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskView {
    /// Its number.
    pub number: u32,
    /// Its actual size in bytes.
    pub size: u64,
    /// The size in bytes that Windows last read.
    pub cached_size: u64,
    /// Whether it is offline.
    pub offline: bool,
    /// Whether it is read-only.
    pub read_only: bool,
    /// `raw`, `mbr`, `gpt` or `superfloppy`.
    pub layout: &'static str,
    /// The bus it is on (`STORAGE_BUS_TYPE`).
    pub bus: u32,
    /// Its serial number.
    pub serial: Option<String>,
    /// Its location.
    pub location: String,
    /// Its partitions in the order of their offsets.
    pub partitions: Vec<PartitionView>,
}

/// A partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// Its number.
    pub number: u32,
    /// Its offset on the disk in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Its type on a GPT disk.
    pub gpt_type: Option<Uuid>,
    /// Its volume.
    pub volume: Option<VolumeView>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeView {
    /// Its GUID.
    pub id: Uuid,
    /// The number of the disk it is on.
    pub disk: u32,
    /// Whether Windows shows it.
    pub arrived: bool,
    /// Whether the mount manager has left it offline.
    pub offline: bool,
    /// The name of its file system, even if the file system cannot be read.
    pub file_system: Option<String>,
    /// The total size of its file system in bytes.
    pub total: u64,
    /// The bytes in an allocation unit of its file system.
    pub cluster: u64,
    /// How many times it was formatted since the node was created.
    pub formats: u32,
    /// The paths where it is mounted, such as `C:\` or `C:\var\lib\...\`.
    pub paths: Vec<String>,
}

impl VolumeView {
    /// Returns its name, `\\?\Volume{...}\`.
    pub fn name(&self) -> String {
        volume_path(self.id)
    }
}

/// A file, directory or link in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileView {
    /// Its path relative to the listed directory.
    pub path: String,
    /// Its kind.
    pub kind: FileKind,
    /// Its attributes, `FILE_ATTRIBUTE_*`.
    pub attributes: u32,
}

/// The kind of a directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A file with this content.
    File(Vec<u8>),
    /// A symbolic link with this substitute name.
    Symlink(String),
    /// A junction or mount point with this substitute name.
    MountPoint(String),
    /// Another reparse point with this tag.
    Reparse(u32),
}

impl Sim {
    /// Returns the disk with `number`, if Windows shows it.
    pub fn disk(&self, number: u32) -> Option<DiskView> {
        self.with(|state| Some(state.disk_view(state.disks.get(&state.device(number)?)?)))
    }

    /// Returns all disks that Windows shows, ordered by number.
    pub fn disks(&self) -> Vec<DiskView> {
        self.disks_that(|disk| disk.visible)
    }

    /// Returns the disks that are attached and that Windows has not detected, ordered by number.
    pub fn undetected_disks(&self) -> Vec<DiskView> {
        self.disks_that(|disk| !disk.visible)
    }

    fn disks_that(&self, are_wanted: impl Fn(&Disk) -> bool) -> Vec<DiskView> {
        self.with(|state| {
            let wanted = state.disks.values().filter(|disk| are_wanted(disk));
            let mut disks: Vec<_> = wanted.map(|disk| state.disk_view(disk)).collect();
            disks.sort_by_key(|disk| disk.number);
            disks
        })
    }

    /// Returns the disks that were unplugged, by their handles.
    pub fn unplugged_disks(&self) -> BTreeMap<u64, DiskView> {
        self.with(|state| {
            state
                .unplugged
                .iter()
                .map(|(handle, disk)| (*handle, state.disk_view(disk)))
                .collect()
        })
    }

    /// Returns the volume `id`, if it is on a disk that Windows shows.
    pub fn volume(&self, id: Uuid) -> Option<VolumeView> {
        self.all_volumes()
            .into_iter()
            .find(|volume| volume.id == id)
    }

    /// Returns all volumes on disks that Windows shows, ordered by disk and offset. Includes
    /// volumes that have not arrived.
    pub fn all_volumes(&self) -> Vec<VolumeView> {
        let disks = self.disks().into_iter();
        disks
            .flat_map(|disk| disk.partitions)
            .filter_map(|part| part.volume)
            .collect()
    }

    /// Returns the first volume on a disk.
    pub fn volume_on(&self, disk: u32) -> Option<VolumeView> {
        self.disk(disk)?
            .partitions
            .into_iter()
            .find_map(|part| part.volume)
    }

    /// Returns the SMB global mappings.
    pub fn smb_mappings(&self) -> Vec<Mapping> {
        self.with(|state| state.smb.mappings().to_vec())
    }

    /// Returns the stale entries of the mount manager: directories that are no longer mount points,
    /// because they were deleted without a call to the mount manager.
    pub fn stale_mounts(&self) -> Vec<String> {
        self.with(|state| state.stale_mounts())
    }

    /// Returns the entries of the directory at a Win32 path, without the entries of its
    /// subdirectories.
    pub fn entries(&self, path: &str) -> OsResult<Vec<FileView>> {
        self.external().with(|state| {
            let (fs, directory) = state.existing(path, true)?;
            let file_system = state.file_system(fs)?;
            let children = file_system
                .record(directory)?
                .children()
                .ok_or(OsError::DIRECTORY)?;
            children
                .iter()
                .map(|(name, id)| Ok(view_of(name.to_string(), file_system.record(*id)?)))
                .collect()
        })
    }

    /// Returns the file, directory or link at a Win32 path. A link in the last component is not
    /// followed.
    pub fn entry(&self, path: &str, follow: bool) -> OsResult<FileView> {
        self.external().with(|state| {
            let record = state.record_at(path, follow)?;
            Ok(view_of(record.name.to_string(), record))
        })
    }

    /// Returns everything below the directory at a Win32 path. Links are not followed.
    pub fn tree(&self, path: &str) -> OsResult<Vec<FileView>> {
        self.external().with(|state| {
            let (fs, file) = state.existing(path, true)?;
            state.tree_of(fs, file)
        })
    }
}

impl State {
    fn disk_view(&self, disk: &Disk) -> DiskView {
        DiskView {
            number: disk.number,
            size: disk.size,
            cached_size: disk.cached_size,
            offline: disk.is_offline(),
            read_only: disk.is_read_only(),
            layout: disk.layout.name(),
            bus: disk.bus,
            serial: disk.serial.clone(),
            location: disk.location.clone(),
            partitions: disk
                .partitions
                .iter()
                .map(|part| self.partition_view(disk, part))
                .collect(),
        }
    }

    fn partition_view(&self, disk: &Disk, part: &Partition) -> PartitionView {
        PartitionView {
            number: part.number,
            offset: part.offset,
            length: part.length,
            gpt_type: match part.kind {
                PartitionKind::Gpt(kind) => Some(kind),
                PartitionKind::Mbr(_) => None,
            },
            volume: part
                .volume
                .as_ref()
                .map(|volume| self.volume_view(disk, volume)),
        }
    }

    fn volume_view(&self, disk: &Disk, volume: &Volume) -> VolumeView {
        let prefixes = self.dos_prefixes(volume.id);
        VolumeView {
            id: volume.id,
            disk: disk.number,
            arrived: volume.arrived,
            offline: volume.arrived && volume.offline,
            file_system: volume
                .file_system
                .as_ref()
                .map(|file_system| file_system.kind.clone()),
            total: volume
                .file_system
                .as_ref()
                .map_or(0, crate::files::file_system::FileSystem::total),
            cluster: volume
                .file_system
                .as_ref()
                .map_or(0, |file_system| file_system.cluster),
            formats: volume.formats,
            paths: prefixes
                .into_iter()
                .map(|prefix| format!(r"{prefix}\"))
                .collect(),
        }
    }

    fn stale_mounts(&self) -> Vec<String> {
        let stale = self.mounts.iter().filter_map(|mount| match &mount.point {
            MountPoint::Directory { host, path } if !self.leads_to(*host, path, mount.volume) => {
                let prefix = self.dos_prefix(*host).unwrap_or_else(|| volume_path(*host));
                Some(
                    path.iter()
                        .fold(prefix, |prefix, name| format!(r"{prefix}\{name}")),
                )
            }
            _ => None,
        });
        stale.collect()
    }

    pub(crate) fn tree_of(&self, fs: FsId, top: FileId) -> OsResult<Vec<FileView>> {
        let file_system = self.file_system(fs)?;
        let mut found = Vec::new();
        let mut waiting = vec![(String::new(), top)];
        while let Some((path, id)) = waiting.pop() {
            let file = file_system.record(id)?;
            if id != top {
                found.push(view_of(path.clone(), file));
            }
            for (name, child) in file.children().into_iter().flatten().rev() {
                let path = if path.is_empty() {
                    name.to_string()
                } else {
                    format!(r"{path}\{name}")
                };
                waiting.push((path, *child));
            }
        }
        Ok(found)
    }
}

fn view_of(path: String, file: &FileRecord) -> FileView {
    FileView {
        path,
        kind: kind_of(file),
        attributes: file.file_attributes(),
    }
}

fn kind_of(file: &FileRecord) -> FileKind {
    let Some(data) = file.reparse.as_deref() else {
        return match &file.body {
            Body::Directory(_) => FileKind::Directory,
            Body::File(data) => FileKind::File(data.clone()),
        };
    };
    let target = match reparse_point::target(data) {
        Ok(Target::Absolute(target) | Target::Relative(target)) => {
            String::from_utf16_lossy(&target)
        }
        Err(_) => return FileKind::Reparse(file.reparse_tag()),
    };
    if file.reparse_tag() == os::abi::REPARSE_TAG_SYMLINK {
        FileKind::Symlink(target)
    } else {
        FileKind::MountPoint(target)
    }
}
