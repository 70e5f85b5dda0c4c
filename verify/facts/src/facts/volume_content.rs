//! The content and the file system of volumes: `VOL`.

use os::abi::ControlCode;
use os::{Access, Handle, NtPath, Open, Options, OsError, OsResult, U16String};

use super::calls::assert_fails;
use super::devices::{FAILING, READ_WRITE, file_system, full_size, length, while_read_only};
use crate::fact::Fact;
use crate::node::{TestNode, TestVolume, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("VOL-04", |node| {
        for kind in [VolumeKind::Short, VolumeKind::Short4Kn] {
            let volume = node
                .volume(kind)
                .open(node.os(), READ_WRITE)
                .expect("the volume opens");
            let size = full_size(&*volume).expect("the size");
            let (sector, cluster) = (
                i64::from(size.bytes_per_sector),
                i64::from(size.sectors_per_unit),
            );
            // NTFS does not count the sectors after its last whole cluster.
            let now = i64::try_from(size.total_units).expect("a size") * cluster;
            let length = length(&*volume);
            let all = length / sector;
            for refused in [-1, 0, now - cluster, now, all + 1] {
                assert_eq!(
                    extend(&*volume, refused),
                    Err(OsError::INVALID_PARAMETER),
                    "{refused} of {all}"
                );
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
    }),
    Fact::new("VOL-32", |node| {
        let volume = node
            .volume(VolumeKind::Raw)
            .open(node.os(), READ_WRITE)
            .expect("the volume opens");
        let length = length(&*volume);
        assert_eq!(extend(&*volume, length / 512), Ok(0));
    }),
    Fact::new("VOL-05", |node| {
        let volume = node
            .volume(VolumeKind::Fat32)
            .open(node.os(), READ_WRITE)
            .expect("the volume opens");
        let length = length(&*volume);
        assert_eq!(
            extend(&*volume, length / 512),
            Err(OsError::INVALID_FUNCTION)
        );
        assert_eq!(recognition(&*volume), Err(OsError::INVALID_FUNCTION));
    }),
    Fact::new("VOL-10", |node| {
        let volume = open(node, VolumeKind::Recognized);
        let mut sector = [0; 4096];
        assert_eq!(volume.read(0, &mut sector), Ok(sector.len()));
        assert_eq!(sector[16..20], *b"FSRS");
        let name = recognition(&*volume).expect("the name");
        let length = name
            .iter()
            .position(|byte| *byte == 0)
            .expect("a zero ends the name");
        assert!(length > 0);
        assert_eq!(sector[3..3 + length], name[..length]);
    }),
    Fact::new("VOL-35", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
        let holder = volume
            .open(node.os(), READ_WRITE)
            .expect("the volume opens");
        let lock = || holder.control(ControlCode::FSCTL_LOCK_VOLUME, &[], &mut []);
        let how = Open::existing(Access::READ_DATA, Options::empty());
        let file = NtPath::volume_root(volume.id).join(&U16String::from_str("file"));
        let others = [
            volume.open_root(node.os(), Access::READ_DATA),
            node.os().open(&file, &how),
            volume.open(node.os(), Access::GENERIC_READ),
        ];
        for other in others.map(|other| other.expect("it opens")) {
            assert_eq!(lock(), Err(OsError::ACCESS_DENIED));
            drop(other);
        }
        assert_eq!(lock(), Ok(0));
    }),
    Fact::new("VOL-20", |node| {
        assert_eq!(
            recognition(&*open(node, VolumeKind::Raw)),
            Err(OsError::UNRECOGNIZED_VOLUME)
        );
    }),
    Fact::new("VOL-33", |node| {
        assert_eq!(
            recognition(&*open(node, VolumeKind::Ntfs)),
            Err(OsError::INVALID_FUNCTION)
        );
    }),
    Fact::new("VOL-21", |node| {
        let volume = open(node, VolumeKind::Short);
        let length = length(&*volume);
        assert_eq!(extend(&*volume, length / 512), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("VOL-22", |node| {
        assert_eq!(
            file_system(&*open(node, VolumeKind::Raw)).as_deref(),
            Ok("RAW")
        );
    }),
    Fact::new("VOL-23", |node| {
        assert_eq!(
            full_size(&*open(node, VolumeKind::Raw))
                .expect("the size")
                .bytes_per_sector,
            512
        );
    }),
    Fact::new("VOL-24", |node| {
        let volume = node
            .volume(VolumeKind::Ntfs)
            .open(node.os(), Access::empty())
            .expect("the volume opens");
        assert_eq!(file_system(&*volume).err(), Some(OsError::INVALID_FUNCTION));
        assert_eq!(full_size(&*volume).err(), Some(OsError::INVALID_FUNCTION));
    }),
    Fact::new("VOL-25", |node| {
        let read = |kind, offset, length| open(node, kind).read(offset, &mut vec![0; length]);
        for kind in [VolumeKind::Ntfs, VolumeKind::Raw, VolumeKind::Ntfs4Kn] {
            let sector: usize = if kind == VolumeKind::Ntfs4Kn {
                4096
            } else {
                512
            };
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
    }),
    Fact::new("VOL-27", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let flush = || {
            volume
                .open(node.os(), READ_WRITE)
                .and_then(|volume| volume.flush())
        };
        assert_eq!(
            while_read_only(node, volume, flush),
            Err(OsError::WRITE_PROTECT)
        );
    }),
    Fact::new("VOL-28", |node| {
        let refused = refusals(node, node.volume(VolumeKind::BitLocker));
        assert_eq!(refused, [Err(OsError::FVE_LOCKED_VOLUME); 3]);
    }),
    Fact::new("VOL-29", |node| {
        for refused in refusals(node, node.volume(VolumeKind::Unreadable)) {
            assert_fails(refused, &FAILING);
        }
    }),
    Fact::new("VOL-30", |node| {
        for (kind, sector) in [(VolumeKind::Ntfs, 512), (VolumeKind::Ntfs4Kn, 4096)] {
            assert_eq!(
                full_size(&*open(node, kind))
                    .expect("the size")
                    .bytes_per_sector,
                sector
            );
        }
    }),
];

/// Opens a volume of `kind` for reading.
fn open(node: &dyn TestNode, kind: VolumeKind) -> Box<dyn Handle> {
    node.volume(kind)
        .open(node.os(), Access::GENERIC_READ)
        .expect("the volume opens")
}

fn recognition(handle: &dyn Handle) -> OsResult<[u8; 9]> {
    let mut name = [0; 9];
    handle
        .control(
            ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION,
            &[],
            &mut name,
        )
        .map(|_| name)
}

fn extend(volume: &dyn Handle, sectors: i64) -> OsResult<usize> {
    volume.control(
        ControlCode::FSCTL_EXTEND_VOLUME,
        &sectors.to_le_bytes(),
        &mut [],
    )
}

/// Returns the errors of asking for the file system and its size, and of reading the first sectors.
fn refusals(node: &dyn TestNode, volume: TestVolume) -> [OsResult<()>; 3] {
    let open = || volume.open(node.os(), Access::GENERIC_READ);
    [
        open().and_then(|handle| file_system(&*handle)).map(drop),
        open().and_then(|handle| full_size(&*handle)).map(drop),
        open()
            .and_then(|handle| handle.read(0, &mut [0; 4096]))
            .map(drop),
    ]
}
