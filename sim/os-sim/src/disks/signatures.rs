//! Reading from handles: the content of files, and the file-system signatures on volumes.

use os::{Access, OsError, OsResult};

use crate::description::VolumeHealth;
use crate::disks::volume_ioctls::partition_of;
use crate::disks::{Disk, Layout, Volume};
use crate::files::handles::Object;
use crate::state::State;

/// The signature of each file system: its name, the offset on the volume and the bytes.
const SIGNATURES: &[(&str, u64, &[u8])] = &[
    ("NTFS", 3, b"NTFS    "),
    ("ReFS", 3, b"ReFS\0\0\0\0"),
    ("exFAT", 3, b"EXFAT   "),
    ("FAT32", 82, b"FAT32   "),
    ("ext4", 1080, b"\x53\xef"),
    ("XFS", 0, b"XFSB"),
    ("LUKS", 0, b"LUKS\xba\xbe"),
    ("btrfs", 65600, b"_BHRfS_M"),
    // The header of a GUID partition table is in the second sector, of 512 or 4096 bytes. Windows
    // does not find a table that was written for another sector size.
    ("GPT of 512-byte sectors", 512, b"EFI PART"),
    ("GPT of 4096-byte sectors", 4096, b"EFI PART"),
    ("Linux RAID", 4096, b"\xfc\x4e\x2b\xa9"),
    ("ZFS", ZFS_NAME, ZFS),
    ("VMFS", 1 << 20, b"\x0d\xd0\x01\xc0"),
    ("OCFS2", 8192, b"OCFSV2"),
];

/// The first name in a ZFS label, with its length before it, and the offset of both in the label.
const ZFS: &[u8] = b"\0\0\0\x07version\0";
const ZFS_NAME: u64 = 16404;

/// The signatures near the end of a disk whose first sectors are zero: the name, the multiple to
/// which the size of the disk is rounded down, the distance from there and the bytes.
const AT_END: &[(&str, u64, u64, &[u8])] = &[
    ("backup GPT of 512-byte sectors", 512, 512, b"EFI PART"),
    ("backup GPT of 4096-byte sectors", 4096, 4096, b"EFI PART"),
    ("Linux RAID 1.0", 4096, 8192, b"\xfc\x4e\x2b\xa9"),
    ("Linux RAID 0.90", 65536, 65536, b"\xfc\x4e\x2b\xa9"),
    (
        "ZFS without its first labels",
        256 << 10,
        (512 << 10) - ZFS_NAME,
        ZFS,
    ),
];

/// The offset and the bytes of the identifier of the file system recognition structure. The name of
/// the file system stands before it, at [`STRUCTURE_NAME`].
const STRUCTURE: (u64, &[u8]) = (16, b"FSRS");

/// The offset of the name in the file system recognition structure.
const STRUCTURE_NAME: u64 = 3;

/// Returns whether the file system `name` writes the recognition structure to its first sector.
/// ReFS does. A file system that is not in the table stands for a future file system of Windows and
/// does too.
pub(crate) fn has_recognition_structure(name: &str) -> bool {
    let is_known = SIGNATURES.iter().any(|(known, ..)| *known == name)
        || AT_END.iter().any(|(known, ..)| *known == name);
    name == "ReFS" || !is_known
}

impl State {
    /// Reads from a file or a volume. A volume can only be read in whole sectors.
    pub(crate) fn read(&self, handle: u64, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.check_access(handle, Access::READ_DATA)?;
        match &self.opened(handle)?.object {
            Object::Disk(device) => read_disk(self.disk(*device)?, offset, output),
            Object::File { .. } => {
                let file = self.file_of(handle)?;
                if file.is_directory() {
                    return Err(OsError::INVALID_FUNCTION);
                }
                let data = file.data();
                let start = usize::try_from(offset)
                    .unwrap_or(usize::MAX)
                    .min(data.len());
                let length = output.len().min(data.len() - start);
                output[..length].copy_from_slice(&data[start..start + length]);
                Ok(length)
            }
            Object::Volume { id, .. } => {
                let (disk, volume) = self.volume(*id)?;
                if volume.offline {
                    return Err(OsError::NOT_READY);
                }
                let output = whole_sectors(disk, partition_of(disk, *id)?.length, offset, output)?;
                match volume.health {
                    VolumeHealth::Unreadable => return Err(OsError::IO_DEVICE),
                    VolumeHealth::Locked => return Err(OsError::FVE_LOCKED_VOLUME),
                    VolumeHealth::Readable | VolumeHealth::Unmountable => {}
                }
                read_volume(volume, offset, output);
                Ok(output.len())
            }
        }
    }
}

/// Returns the part of `output` that lies before `end`. Fails if the offset or the length is not a
/// multiple of a sector.
fn whole_sectors<'a>(
    disk: &Disk,
    end: u64,
    offset: u64,
    output: &'a mut [u8],
) -> OsResult<&'a mut [u8]> {
    let size = u64::try_from(output.len()).unwrap_or(u64::MAX);
    if !offset.is_multiple_of(disk.sector) || !size.is_multiple_of(disk.sector) {
        return Err(OsError::INVALID_PARAMETER);
    }
    let length = usize::try_from(end.saturating_sub(offset))
        .unwrap_or(usize::MAX)
        .min(output.len());
    Ok(&mut output[..length])
}

/// Reads from a disk: the content of its volume if that begins in the first sector, and otherwise
/// zeros, because the sectors of a partition table are not simulated.
fn read_disk(disk: &Disk, offset: u64, output: &mut [u8]) -> OsResult<usize> {
    let output = whole_sectors(disk, disk.size, offset, output)?;
    output.fill(0);
    if disk.layout == Layout::Superfloppy
        && let Some(volume) = disk.volumes().next()
    {
        read_volume(volume, offset, output);
    }
    if disk.layout == Layout::Raw
        && let Some(name) = &disk.foreign
    {
        write_signature(name, offset, output);
        for (_, multiple, back, bytes) in AT_END.iter().filter(|(known, ..)| known == name) {
            write_bytes(
                disk.size / multiple * multiple - back,
                bytes,
                offset,
                output,
            );
        }
    }
    Ok(output.len())
}

fn read_volume(volume: &Volume, offset: u64, output: &mut [u8]) {
    output.fill(0);
    let mounted = volume
        .file_system
        .as_ref()
        .map(|file_system| file_system.kind.as_str());
    if let Some(name) = mounted.or(volume.recognised.as_deref()) {
        write_signature(name, offset, output);
    }
}

/// Writes the part of the signatures of the file system `name` that lies in `output`, which starts
/// at `offset` on the volume.
fn write_signature(name: &str, offset: u64, output: &mut [u8]) {
    let own = SIGNATURES
        .iter()
        .filter(|(known, ..)| *known == name)
        .map(|(_, at, bytes)| (*at, *bytes));
    let structure =
        has_recognition_structure(name).then_some([(STRUCTURE_NAME, name.as_bytes()), STRUCTURE]);
    for (at, bytes) in own.chain(structure.into_iter().flatten()) {
        write_bytes(at, bytes, offset, output);
    }
}

/// Writes the part of `bytes`, which begin at `at`, that lies in `output`, which starts at
/// `offset`.
fn write_bytes(at: u64, bytes: &[u8], offset: u64, output: &mut [u8]) {
    for (at, byte) in (at..).zip(bytes) {
        let index = at
            .checked_sub(offset)
            .and_then(|index| usize::try_from(index).ok());
        if let Some(target) = index.and_then(|index| output.get_mut(index)) {
            *target = *byte;
        }
    }
}
