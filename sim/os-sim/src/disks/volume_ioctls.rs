//! The control codes of volumes and their file systems. The output buffers are laid out as Windows lays them out.

use os::abi::{
    ControlCode, DiskExtent, FsAttributeInformation, FsFullSizeInformation, LengthInformation, VolumeDiskExtents,
};
use os::{FsInfo, OsError, OsResult, Uuid};
use zerocopy::IntoBytes;

use crate::disks::disk_ioctls::{device_number, property, put, signed};
use crate::disks::{Disk, Health, Partition, SECTOR, Volume};
use crate::files::file_system::{CLUSTER, FileSystem};
use crate::files::fill_part;
use crate::files::handles::{APPEND_DATA, Object};
use crate::state::{FsId, State};

impl State {
    pub(crate) fn control(
        &mut self,
        handle: u64,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        self.check_code(handle, code)?;
        match self.opened(handle)?.object.clone() {
            Object::Disk(device) => self.control_disk(device, code, input, output),
            Object::Volume { id, direct: false } if let Some(done) = self.control_lock(handle, id, code) => done,
            Object::Volume { id, direct } => self.control_volume(id, direct, code, input, output),
            Object::File { .. } => match code {
                ControlCode::FSCTL_GET_REPARSE_POINT => self.get_reparse_point(handle, output),
                ControlCode::FSCTL_SET_REPARSE_POINT => self.set_reparse_point(handle, input),
                _ => Err(OsError::INVALID_FUNCTION),
            },
        }
    }

    fn control_volume(
        &mut self,
        id: Uuid,
        direct: bool,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let (disk, volume) = self.volume(id)?;
        let part = partition_of(disk, id)?;
        match code {
            ControlCode::STORAGE_GET_DEVICE_NUMBER if !volume.further_extents.is_empty() => {
                Err(OsError::INVALID_FUNCTION)
            }
            ControlCode::STORAGE_GET_DEVICE_NUMBER => device_number(disk, part.number, output),
            ControlCode::STORAGE_QUERY_PROPERTY => property(disk, input, output),
            ControlCode::DISK_GET_LENGTH_INFO => put(output, &LengthInformation { length: signed(part.length) }),
            ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS => extents(disk, part, volume, output),
            _ if direct => Err(OsError::INVALID_FUNCTION),
            ControlCode::FSCTL_EXTEND_VOLUME => self.extend(id, input),
            ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION => recognition(volume, output),
            _ => Err(OsError::INVALID_FUNCTION),
        }
    }

    fn extend(&mut self, id: Uuid, input: &[u8]) -> OsResult<usize> {
        let sectors: &[u8; 8] = input.first_chunk().ok_or(OsError::INVALID_PARAMETER)?;
        let sectors = u64::try_from(i64::from_le_bytes(*sectors)).map_err(|_| OsError::INVALID_PARAMETER)?;
        self.check_writable(&FsId::Volume(id))?;
        let (disk, volume) = self.volume(id)?;
        let available = partition_of(disk, id)?.length;
        let now = volume.mounted()?.length;
        let wanted = sectors.checked_mul(SECTOR).filter(|bytes| (now..=available).contains(bytes));
        let length = wanted.ok_or(OsError::INVALID_PARAMETER)?;
        self.file_system_mut(&FsId::Volume(id))?.length = length;
        Ok(0)
    }

    pub(crate) fn query_file_system(&self, handle: u64, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        match &self.opened(handle)?.object {
            Object::Disk(device) => self.disk(*device).and(Err(OsError::INVALID_FUNCTION)),
            Object::Volume { id, direct: true } => self.volume(*id).and(Err(OsError::INVALID_FUNCTION)),
            Object::Volume { id, direct: false } => {
                let (disk, volume) = self.volume(*id)?;
                let mounted = match volume.mounted() {
                    Err(OsError::UNRECOGNIZED_VOLUME) => None,
                    other => Some(other?),
                };
                answer(mounted, disk.is_read_only(), class, output)
            }
            Object::File { .. } => {
                let fs = self.file(handle)?.0;
                let read_only = self.check_writable(fs).is_err();
                answer(Some(self.file_system(fs)?), read_only, class, output)
            }
        }
    }

    pub(crate) fn flush(&self, handle: u64) -> OsResult<()> {
        self.check_access(handle, os::Access::WRITE_DATA | APPEND_DATA)?;
        match &self.opened(handle)?.object {
            Object::Disk(device) => self.disk(*device).map(drop),
            Object::Volume { id, .. } => {
                let (disk, volume) = self.volume(*id)?;
                match volume.health {
                    Health::Unreadable => Err(OsError::IO_DEVICE),
                    _ if disk.is_read_only() => Err(OsError::WRITE_PROTECT),
                    _ => Ok(()),
                }
            }
            Object::File { .. } => self.check_writable(self.file(handle)?.0),
        }
    }
}

pub(crate) fn partition_of(disk: &Disk, volume: Uuid) -> OsResult<&Partition> {
    let holds = |part: &&Partition| part.volume.as_ref().is_some_and(|held| held.id == volume);
    disk.partitions.iter().find(holds).ok_or(OsError::DEVICE_NOT_CONNECTED)
}

/// Answers the extents of a volume. If they do not all fit, answers their count and as many as fit, and fails with
/// `MORE_DATA`.
fn extents(disk: &Disk, part: &Partition, volume: &Volume, output: &mut [u8]) -> OsResult<usize> {
    const HEAD: usize = size_of::<VolumeDiskExtents>();
    const EXTENT: usize = size_of::<DiskExtent>();
    let first = (disk.number, part.offset, part.length);
    let all: Vec<DiskExtent> = std::iter::once(first)
        .chain(volume.further_extents.iter().copied())
        .map(|(disk_number, offset, length)| DiskExtent {
            disk_number,
            padding: 0,
            offset: signed(offset),
            length: signed(length),
        })
        .collect();
    if output.len() < HEAD + EXTENT {
        return Err(OsError::INSUFFICIENT_BUFFER);
    }
    let fitting = all.len().min((output.len() - HEAD) / EXTENT);
    let head = VolumeDiskExtents { count: u32::try_from(all.len()).unwrap_or(u32::MAX), padding: 0 };
    let answer = [head.as_bytes(), all[..fitting].as_bytes()].concat();
    output[..answer.len()].copy_from_slice(&answer);
    if fitting < all.len() { Err(OsError::MORE_DATA) } else { Ok(answer.len()) }
}

/// Answers `FILE_SYSTEM_RECOGNITION_INFORMATION`: the name of the file system on the medium, in nine bytes.
fn recognition(volume: &Volume, output: &mut [u8]) -> OsResult<usize> {
    let name = match volume.mounted() {
        Ok(file_system) => Some(file_system.kind.as_str()),
        Err(OsError::UNRECOGNIZED_VOLUME) => volume.recognised.as_deref(),
        Err(other) => return Err(other),
    };
    // Only ReFS writes the structure that this control code reads.
    let name = name.filter(|name| *name == "ReFS").ok_or(OsError::UNRECOGNIZED_VOLUME)?;
    let mut answer = [0; 9];
    let length = name.len().min(8);
    answer[..length].copy_from_slice(&name.as_bytes()[..length]);
    put(output, &answer)
}

/// Answers for a file system, or for RAWFS, which Windows mounts on a volume without a recognised file system.
fn answer(mounted: Option<&FileSystem>, read_only: bool, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
    match class {
        FsInfo::Attribute => attribute(mounted.map_or("RAW", |file_system| &file_system.kind), read_only, output),
        FsInfo::FullSize => {
            let file_system = mounted.ok_or(OsError::UNRECOGNIZED_VOLUME)?;
            let free = file_system.free() / CLUSTER;
            let size = FsFullSizeInformation {
                total_units: file_system.total() / CLUSTER,
                caller_available_units: free,
                available_units: free,
                sectors_per_unit: 8,
                bytes_per_sector: 512,
            };
            put(output, &size)
        }
    }
}

fn attribute(name: &str, read_only: bool, output: &mut [u8]) -> OsResult<usize> {
    const NTFS_ATTRIBUTES: u32 = 0x03e7_06ff;
    let name: Vec<u16> = name.encode_utf16().collect();
    let own = if name == [0x52, 0x41, 0x57] { 0 } else { NTFS_ATTRIBUTES };
    let head = FsAttributeInformation {
        attributes: own | if read_only { FsAttributeInformation::READ_ONLY_VOLUME } else { 0 },
        maximum_component_length: 255,
        name_length: u32::try_from(name.len() * 2).unwrap_or(u32::MAX),
    };
    if output.len() < FsAttributeInformation::NAME_OFFSET {
        return Err(OsError::INSUFFICIENT_BUFFER);
    }
    fill_part(output, &[head.as_bytes(), name.as_bytes()].concat())
}
