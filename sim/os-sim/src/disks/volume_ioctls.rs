//! The control codes of volumes and their file systems. The output buffers are laid out as Windows
//! lays them out.

use std::iter;

use os::abi::{
    ControlCode, DiskExtent, FsAttributeInformation, FsFullSizeInformation, LengthInformation,
    VolumeDiskExtents,
};
use os::{Access, FsInfo, OsError, OsResult, Uuid};
use zerocopy::IntoBytes;

use crate::description::{Span, VolumeHealth};
use crate::disks::disk_ioctls::{property, put, signed};
use crate::disks::{Disk, Partition, SECTOR, Volume, signatures};
use crate::files::file_system::{FileSystem, is_fat};
use crate::files::handles::{APPEND_DATA, Object};
use crate::files::{BAD_LENGTH, fill, fill_part, reparse_point};
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
            Object::Volume { id, direct: false }
                if let Some(done) = self.control_lock(handle, id, code) =>
            {
                done
            }
            Object::Volume { id, direct } => {
                self.control_volume(handle, id, direct, code, input, output)
            }
            Object::File { .. } => match code {
                ControlCode::FSCTL_GET_REPARSE_POINT => {
                    reparse_point::read(self.file_of(handle)?.reparse.as_deref(), output)
                }
                ControlCode::FSCTL_SET_REPARSE_POINT => self.set_reparse_point(handle, input),
                _ => Err(OsError::INVALID_FUNCTION),
            },
        }
    }

    fn control_volume(
        &mut self,
        handle: u64,
        id: Uuid,
        direct: bool,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let (disk, volume) = self.volume(id)?;
        let part = partition_of(disk, id)?;
        if volume.offline
            && !(self.offline_volumes_have_extents
                && code == ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS)
        {
            return Err(OsError::NOT_READY);
        }
        match code {
            ControlCode::STORAGE_QUERY_PROPERTY => property(disk, input, output),
            ControlCode::DISK_GET_LENGTH_INFO => put(
                output,
                &LengthInformation {
                    length: signed(part.length),
                },
            ),
            ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS => extents(disk, part, volume, output),
            _ if direct => Err(OsError::INVALID_FUNCTION),
            ControlCode::FSCTL_EXTEND_VOLUME => self.extend(handle, id, input),
            ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION => recognition(volume, output),
            _ => Err(OsError::INVALID_FUNCTION),
        }
    }

    /// Extends the file system of a volume to a number of sectors. RAW has nothing to extend.
    fn extend(&mut self, handle: u64, id: Uuid, input: &[u8]) -> OsResult<usize> {
        const EXTENDABLE: [&str; 2] = ["NTFS", "ReFS"];
        let (disk, volume) = self.volume(id)?;
        let available = partition_of(disk, id)?.length;
        let sector = disk.sector;
        let smallest = match volume.mounted() {
            Err(OsError::UNRECOGNIZED_VOLUME) => return Ok(0),
            Ok(file_system) if !EXTENDABLE.contains(&&*file_system.kind) => {
                return Err(OsError::INVALID_FUNCTION);
            }
            mounted => mounted.map(|file_system| file_system.length + file_system.cluster)?,
        };
        self.check_access(handle, Access::WRITE_DATA)?;
        self.check_writable(FsId::Volume(id))?;
        let sectors: &[u8; 8] = input.first_chunk().ok_or(OsError::INVALID_PARAMETER)?;
        let sectors =
            u64::try_from(i64::from_le_bytes(*sectors)).map_err(|_| OsError::INVALID_PARAMETER)?;
        let wanted = sectors
            .checked_mul(sector)
            .filter(|bytes| (smallest..=available).contains(bytes));
        let length = wanted.ok_or(OsError::INVALID_PARAMETER)?;
        self.file_system_mut(FsId::Volume(id))?.length = length;
        Ok(0)
    }

    pub(crate) fn query_file_system(
        &self,
        handle: u64,
        class: FsInfo,
        output: &mut [u8],
    ) -> OsResult<usize> {
        match &self.opened(handle)?.object {
            Object::Disk(device) => self.disk(*device).and(Err(OsError::INVALID_FUNCTION)),
            Object::Volume { id, direct: true } => {
                self.volume(*id).and(Err(OsError::INVALID_FUNCTION))
            }
            Object::Volume { id, direct: false } => answer(&self.mounted_on(*id)?, class, output),
            Object::File { .. } => match self.file(handle)?.0 {
                FsId::Volume(id) => answer(&self.mounted_on(id)?, class, output),
                share @ FsId::Share(_) => {
                    let file_system = self.file_system(share)?;
                    let length = file_system.length;
                    let file_system = Some(file_system);
                    answer(
                        &Mounted {
                            file_system,
                            length,
                            sector: SECTOR,
                            read_only: false,
                        },
                        class,
                        output,
                    )
                }
            },
        }
    }

    fn mounted_on(&self, id: Uuid) -> OsResult<Mounted<'_>> {
        let (disk, volume) = self.volume(id)?;
        let file_system = match volume.mounted() {
            Err(OsError::UNRECOGNIZED_VOLUME) => None,
            mounted => Some(mounted?),
        };
        let length = partition_of(disk, id)?.length;
        Ok(Mounted {
            file_system,
            length,
            sector: disk.sector,
            read_only: disk.is_read_only(),
        })
    }

    pub(crate) fn flush(&self, handle: u64) -> OsResult<()> {
        self.check_access(handle, Access::WRITE_DATA | APPEND_DATA)?;
        match &self.opened(handle)?.object {
            Object::Disk(device) => self.disk(*device).map(drop),
            Object::Volume { id, .. } => {
                let (disk, volume) = self.volume(*id)?;
                match volume.health {
                    _ if volume.offline => Err(OsError::NOT_READY),
                    VolumeHealth::Unreadable => Err(OsError::IO_DEVICE),
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
    disk.partitions
        .iter()
        .find(holds)
        .ok_or(OsError::DEV_NOT_EXIST)
}

/// Writes the extents of a volume. If they do not all fit, writes only their count and fails with
/// `MORE_DATA`.
fn extents(disk: &Disk, part: &Partition, volume: &Volume, output: &mut [u8]) -> OsResult<usize> {
    let first = Span {
        disk: disk.number,
        offset: part.offset,
        length: part.length,
    };
    let extent = |span: Span| DiskExtent {
        disk_number: span.disk,
        padding: 0,
        offset: signed(span.offset),
        length: signed(span.length),
    };
    let all: Vec<DiskExtent> = iter::once(first)
        .chain(volume.further_extents.iter().copied())
        .map(extent)
        .collect();
    if output.len() < size_of::<VolumeDiskExtents>() + size_of::<DiskExtent>() {
        return Err(OsError::INVALID_PARAMETER);
    }
    let head = VolumeDiskExtents {
        count: u32::try_from(all.len()).unwrap_or(u32::MAX),
        padding: 0,
    };
    let answer = [head.as_bytes(), all.as_bytes()].concat();
    let Some(whole) = output.get_mut(..answer.len()) else {
        output[..size_of_val(&head)].copy_from_slice(head.as_bytes());
        return Err(OsError::MORE_DATA);
    };
    whole.copy_from_slice(&answer);
    Ok(answer.len())
}

/// Writes `FILE_SYSTEM_RECOGNITION_INFORMATION`: the name of the file system on the medium, in nine
/// bytes. Only RAWFS implements the control code. It reads the recognition structure, which most
/// file systems do not write.
fn recognition(volume: &Volume, output: &mut [u8]) -> OsResult<usize> {
    match volume.mounted() {
        Err(OsError::UNRECOGNIZED_VOLUME) => {}
        mounted => return mounted.and(Err(OsError::INVALID_FUNCTION)),
    }
    let name = volume
        .recognised
        .as_deref()
        .filter(|name| signatures::has_recognition_structure(name));
    let name = name.ok_or(OsError::UNRECOGNIZED_VOLUME)?;
    let mut answer = [0; 9];
    let length = name.len().min(8);
    answer[..length].copy_from_slice(&name.as_bytes()[..length]);
    put(output, &answer)
}

/// The mounted file system of a volume. Windows mounts RAWFS if it does not recognise the file
/// system.
struct Mounted<'a> {
    file_system: Option<&'a FileSystem>,
    /// The size of the volume in bytes.
    length: u64,
    /// The size of a logical sector in bytes.
    sector: u64,
    read_only: bool,
}

fn answer(mounted: &Mounted<'_>, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
    match class {
        FsInfo::Attribute => {
            let name = mounted
                .file_system
                .map_or("RAW", |file_system| &file_system.kind);
            attribute(name, mounted.read_only, output)
        }
        FsInfo::FullSize => {
            // An allocation unit of RAWFS is a sector, and no sector is free.
            let (total, free, unit) = match mounted.file_system {
                Some(file_system) => (file_system.total(), file_system.free(), file_system.cluster),
                None => (mounted.length, 0, mounted.sector),
            };
            let count = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
            let size = FsFullSizeInformation {
                total_units: total / unit,
                caller_available_units: free / unit,
                available_units: free / unit,
                sectors_per_unit: count(unit / mounted.sector),
                bytes_per_sector: count(mounted.sector),
            };
            fill(output, size.as_bytes()).map(|()| size_of_val(&size))
        }
    }
}

/// Writes the attributes and the name of a file system. A name that does not fit is cut, and
/// `name_length` is the length of the part that was written.
fn attribute(kind: &str, read_only: bool, output: &mut [u8]) -> OsResult<usize> {
    const NTFS_ATTRIBUTES: u32 = 0x03e7_06ff;
    /// Case is preserved, and names are Unicode.
    const FAT_ATTRIBUTES: u32 = 0x6;
    /// The size of the structure with the first unit of the name and padding.
    const SMALLEST: usize = 16;
    if output.len() < SMALLEST {
        return Err(BAD_LENGTH);
    }
    let own = match kind {
        "RAW" => 0,
        kind if is_fat(kind) => FAT_ATTRIBUTES,
        _ => NTFS_ATTRIBUTES,
    };
    let name: Vec<u16> = kind.encode_utf16().collect();
    let fitting = size_of_val(&name[..]).min(output.len() - FsAttributeInformation::NAME_OFFSET);
    let head = FsAttributeInformation {
        attributes: own
            | if read_only {
                FsAttributeInformation::READ_ONLY_VOLUME
            } else {
                0
            },
        maximum_component_length: 255,
        name_length: u32::try_from(fitting).unwrap_or(u32::MAX),
    };
    fill_part(output, &[head.as_bytes(), name.as_bytes()].concat())
}
