//! The content and the file system of volumes: `VOL`.

use os::abi::{ControlCode, FsFullSizeInformation, LengthInformation};
use os::{Access, FsInfo, Handle, OsError, OsResult};
use zerocopy::{FromZeros, IntoBytes};

use super::devices::{READ_WRITE, ask, file_system, is_listed, open_disk, set_attributes, set_offline, wait_until};
use crate::fact::Fact;
use crate::node::{TestDisk, TestNode, TestVolume, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "VOL-04",
        "FSCTL_EXTEND_VOLUME grows NTFS, without a lock, to a number of sectors that is at least a cluster above its \
         size and at most the size of the partition; other numbers fail with INVALID_PARAMETER (87).",
        "SDK FSCTL_EXTEND_VOLUME",
        |node| {
            for kind in [VolumeKind::Short, VolumeKind::Short4Kn] {
                let volume = node.volume(kind).open(node.os(), READ_WRITE).expect("the volume opens");
                let size = full_size(&*volume).expect("the size");
                let (sector, cluster) = (i64::from(size.bytes_per_sector), i64::from(size.sectors_per_unit));
                // NTFS does not count the sectors after its last whole cluster.
                let now = i64::try_from(size.total_units).expect("a size") * cluster;
                let length: LengthInformation = ask(&*volume, ControlCode::DISK_GET_LENGTH_INFO).expect("the length");
                let all = length.length / sector;
                for refused in [-1, 0, now - cluster, now, all + 1] {
                    assert_eq!(extend(&*volume, refused), Err(OsError::INVALID_PARAMETER), "{refused} of {all}");
                }
                let wanted = now + 16 * cluster;
                assert_eq!(extend(&*volume, wanted), Ok(0));
                let grown = full_size(&*volume).expect("the size").total_units;
                assert!(
                    grown > size.total_units && grown < size.total_units + 32,
                    "{grown} after {}",
                    size.total_units
                );
                assert_eq!(extend(&*volume, all), Ok(0));
                assert_eq!(extend(&*volume, all), Err(OsError::INVALID_PARAMETER));
            }
        },
    ),
    Fact::published(
        "VOL-32",
        "FSCTL_EXTEND_VOLUME succeeds on a volume without a file system.",
        "SDK FSCTL_EXTEND_VOLUME",
        |node| {
            let volume = node.volume(VolumeKind::Raw).open(node.os(), READ_WRITE).expect("the volume opens");
            let length: LengthInformation = ask(&*volume, ControlCode::DISK_GET_LENGTH_INFO).expect("the length");
            assert_eq!(extend(&*volume, length.length / 512), Ok(0));
        },
    ),
    Fact::published(
        "VOL-05",
        "FAT knows neither FSCTL_EXTEND_VOLUME nor FSCTL_QUERY_FILE_SYSTEM_RECOGNITION: both fail with \
         INVALID_FUNCTION (1).",
        "FF fsctrl.c",
        |node| {
            let volume = node.volume(VolumeKind::Fat32).open(node.os(), READ_WRITE).expect("the volume opens");
            let length: LengthInformation = ask(&*volume, ControlCode::DISK_GET_LENGTH_INFO).expect("the length");
            assert_eq!(extend(&*volume, length.length / 512), Err(OsError::INVALID_FUNCTION));
            assert_eq!(recognition(&*volume), Err(OsError::INVALID_FUNCTION));
        },
    ),
    Fact::published(
        "VOL-10",
        "On a volume whose file system is only recognized, FSCTL_QUERY_FILE_SYSTEM_RECOGNITION returns the name in \
         the first sector, where the bytes FSRS at offset 16 mark the structure.",
        "W32 obtaining-file-system-recognition-information; W32 file-system-recognition-structure",
        |node| {
            let volume = open(node, VolumeKind::Recognized);
            let mut sector = [0; 4096];
            assert_eq!(volume.read(0, &mut sector), Ok(sector.len()));
            assert_eq!(sector[16..20], *b"FSRS");
            let name = recognition(&*volume).expect("the name");
            let length = name.iter().position(|byte| *byte == 0).expect("a zero ends the name");
            assert!(length > 0);
            assert_eq!(sector[3..3 + length], name[..length]);
        },
    ),
    Fact::assumed(
        "VOL-20",
        "FSCTL_QUERY_FILE_SYSTEM_RECOGNITION on a volume without the structure fails with UNRECOGNIZED_VOLUME (1005).",
        "No page names the code. Every code except those of devices, of access and of BitLocker counts as no answer, \
         as does success with an empty name. The first sectors are then searched for signatures, including that of \
         the structure.",
        |node| {
            assert_eq!(recognition(&*open(node, VolumeKind::Raw)), Err(OsError::UNRECOGNIZED_VOLUME));
        },
    ),
    Fact::assumed(
        "VOL-33",
        "NTFS does not know FSCTL_QUERY_FILE_SYSTEM_RECOGNITION, and fails with INVALID_FUNCTION (1).",
        "FAT does so (VOL-05), and the page says that the RAW file system answers the request. Operations send it \
         only to a volume without a file system.",
        |node| {
            assert_eq!(recognition(&*open(node, VolumeKind::Ntfs)), Err(OsError::INVALID_FUNCTION));
        },
    ),
    Fact::assumed(
        "VOL-21",
        "FSCTL_EXTEND_VOLUME fails with ACCESS_DENIED (5) on a handle without the right to write.",
        "No page names the rights; FAT asks for the privilege SeManageVolumePrivilege in similar requests (FF \
         fsctrl.c). ResizeVolume opens the volume for reading and writing, and the process enables the privilege.",
        |node| {
            let volume = open(node, VolumeKind::Short);
            let length: LengthInformation = ask(&*volume, ControlCode::DISK_GET_LENGTH_INFO).expect("the length");
            assert_eq!(extend(&*volume, length.length / 512), Err(OsError::ACCESS_DENIED));
        },
    ),
    Fact::assumed(
        "VOL-22",
        "FileFsAttributeInformation of a volume without a file system returns the name RAW.",
        "No page says so. A volume without a name, with the name RAW or with the error UNRECOGNIZED_VOLUME (1005) \
         counts as raw, and only if its first sectors have no signature. After 1, 50 or 87 the same error of the \
         root directory (DEVICE-OPEN-09) counts as this one.",
        |node| {
            assert_eq!(file_system(&*open(node, VolumeKind::Raw)).as_deref(), Ok("RAW"));
        },
    ),
    Fact::assumed(
        "VOL-23",
        "FileFsFullSizeInformation of a volume without a file system succeeds and returns the size of a logical \
         sector.",
        "No source was found; ReactOS answers it. Operations ask for the name of the file system first, and treat \
         RAW as UNRECOGNIZED_VOLUME (1005) without asking for its size.",
        |node| {
            assert_eq!(full_size(&*open(node, VolumeKind::Raw)).expect("the size").bytes_per_sector, 512);
        },
    ),
    Fact::assumed(
        "VOL-24",
        "FileFsAttributeInformation and FileFsFullSizeInformation fail with INVALID_FUNCTION (1) on a volume that \
         was opened without a right to its data.",
        "No page names the code; such an open does not reach the file system. Operations open a volume for reading \
         before they ask for its file system.",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs).open(node.os(), Access::empty()).expect("the volume opens");
            assert_eq!(file_system(&*volume).err(), Some(OsError::INVALID_FUNCTION));
            assert_eq!(full_size(&*volume).err(), Some(OsError::INVALID_FUNCTION));
        },
    ),
    Fact::published(
        "VOL-25",
        "Reading a volume fails with INVALID_PARAMETER (87) unless offset and length are multiples of the size of a \
         sector.",
        "CL disk.c DiskReadWriteVerification; libyal/libfsntfs/issues/4",
        |node| {
            let read = |kind, offset, length| open(node, kind).read(offset, &mut vec![0; length]);
            for kind in [VolumeKind::Ntfs, VolumeKind::Raw, VolumeKind::Ntfs4Kn] {
                let sector: usize = if kind == VolumeKind::Ntfs4Kn { 4096 } else { 512 };
                let half = u64::try_from(sector / 2).expect("it fits");
                assert_eq!(read(kind, 0, sector), Ok(sector));
                assert_eq!(read(kind, 2 * half, sector), Ok(sector));
                for (offset, length) in [(0, sector / 2), (half, sector), (0, sector + 1)] {
                    assert_eq!(
                        read(kind, offset, length),
                        Err(OsError::INVALID_PARAMETER),
                        "{length} bytes at {offset}"
                    );
                }
            }
        },
    ),
    Fact::assumed(
        "VOL-27",
        "FlushFileBuffers on a volume of a read-only disk fails with WRITE_PROTECT (19).",
        "No source was found; FAT skips what cannot be written (FF flush.c). WriteVolumeCache treats the code as \
         success, as there is nothing to write, and UnmountVolume goes on.",
        |node| {
            const READ_ONLY: u64 = os::abi::DiskAttributes::READ_ONLY;
            let volume = node.volume(VolumeKind::Ntfs);
            let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
            set_offline(&*disk, true);
            set_attributes(&*disk, 40, READ_ONLY, READ_ONLY | os::abi::DiskAttributes::OFFLINE)
                .expect("read-only and online");
            let arrived = wait_until(node, || is_listed(node, volume.id));
            let flushed = volume.open(node.os(), READ_WRITE).and_then(|volume| volume.flush());
            set_offline(&*disk, false);
            assert!(arrived);
            assert_eq!(flushed, Err(OsError::WRITE_PROTECT));
        },
    ),
    Fact::published(
        "VOL-28",
        "The file system, its size and the content of a volume that is locked by BitLocker cannot be read: the calls \
         fail with FVE_LOCKED_VOLUME (0x80310000).",
        "balena-io-modules/drivelist/pull/206",
        |node| {
            let refused = refusals(node, node.volume(VolumeKind::BitLocker));
            assert_eq!(refused, [Some(OsError::FVE_LOCKED_VOLUME); 3]);
        },
    ),
    Fact::assumed(
        "VOL-29",
        "The file system, its size and the content of a volume on a failing disk cannot be read: the calls fail with \
         CRC (23), GEN_FAILURE (31) or IO_DEVICE (1117).",
        "The code is that of the device. Every error except UNRECOGNIZED_VOLUME (1005) makes IsVolumeFormatted and \
         FormatVolume fail.",
        |node| {
            refusals(node, node.volume(VolumeKind::Unreadable)).into_iter().for_each(assert_failing);
        },
    ),
    Fact::published(
        "VOL-30",
        "FileFsFullSizeInformation returns the size of a logical sector, which is 4096 bytes on a 4Kn disk.",
        "DDI FILE_FS_FULL_SIZE_INFORMATION",
        |node| {
            for (kind, sector) in [(VolumeKind::Ntfs, 512), (VolumeKind::Ntfs4Kn, 4096)] {
                assert_eq!(full_size(&*open(node, kind)).expect("the size").bytes_per_sector, sector);
            }
        },
    ),
];

/// Opens a volume of `kind` for reading.
fn open(node: &dyn TestNode, kind: VolumeKind) -> Box<dyn Handle> {
    node.volume(kind).open(node.os(), Access::GENERIC_READ).expect("the volume opens")
}

fn full_size(handle: &dyn Handle) -> OsResult<FsFullSizeInformation> {
    let mut size = FsFullSizeInformation::new_zeroed();
    handle.query_fs(FsInfo::FullSize, size.as_mut_bytes()).map(|_| size)
}

fn recognition(handle: &dyn Handle) -> OsResult<[u8; 9]> {
    let mut name = [0; 9];
    handle.control(ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION, &[], &mut name).map(|_| name)
}

fn extend(volume: &dyn Handle, sectors: i64) -> OsResult<usize> {
    volume.control(ControlCode::FSCTL_EXTEND_VOLUME, &sectors.to_le_bytes(), &mut [])
}

/// Checks that an error is one of a failing disk.
fn assert_failing(error: Option<OsError>) {
    let codes = [OsError::CRC, OsError::GEN_FAILURE, OsError::IO_DEVICE];
    assert!(error.is_some_and(|code| codes.contains(&code)), "{error:?}");
}

/// Returns the errors of asking for the file system and its size, and of reading the first sectors.
fn refusals(node: &dyn TestNode, volume: TestVolume) -> [Option<OsError>; 3] {
    let open = || volume.open(node.os(), Access::GENERIC_READ);
    [
        open().and_then(|handle| file_system(&*handle)).err(),
        open().and_then(|handle| full_size(&*handle)).err(),
        open().and_then(|handle| handle.read(0, &mut [0; 4096])).err(),
    ]
}
