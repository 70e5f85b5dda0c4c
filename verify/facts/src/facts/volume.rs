//! Volumes as devices: `VOL`.

use os::abi::{ControlCode, DiskExtent};
use os::{Access, OsError};

use super::calls::assert_fails;
use super::devices::{
    self, READ_WRITE, REMOVED, is_listed, length, open_disk, partition_table, set_offline,
    wait_until,
};
use crate::fact::Fact;
use crate::node::{TestDisk, TestNode, TestVolume, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("VOL-01", |node| {
        let volume = node
            .volume(VolumeKind::System)
            .open(node.os(), Access::empty())
            .expect("the volume opens");
        for size in [0, 8, 31] {
            assert_eq!(
                volume.control(EXTENTS, &[], &mut vec![0; size]),
                Err(OsError::INVALID_PARAMETER)
            );
        }
        assert_eq!(volume.control(EXTENTS, &[], &mut [0; 32]), Ok(32));
    }),
    Fact::new("VOL-02", |node| {
        let volume = node.volume(VolumeKind::Spanned);
        let handle = volume
            .open(node.os(), Access::empty())
            .expect("the volume opens");
        let mut output = [0; 32];
        assert_eq!(
            handle.control(EXTENTS, &[], &mut output),
            Err(OsError::MORE_DATA)
        );
        assert_eq!(output[..4], 2_u32.to_le_bytes());
        let all = extents(node, volume);
        assert_eq!(all.len(), 2);
        assert_ne!(all[0].disk_number, all[1].disk_number);
    }),
    Fact::new("VOL-14", |node| {
        let volume = node.volume(VolumeKind::System);
        let (_, offset, length) = partition(node, volume);
        let found: Vec<_> = extents(node, volume)
            .iter()
            .map(|extent| (extent.disk_number, extent.offset, extent.length))
            .collect();
        assert_eq!(found, [(volume.disk, offset, length)]);
    }),
    Fact::new("VOL-15", |node| {
        let volume = node.volume(VolumeKind::System);
        let mut names: Vec<_> = node
            .os()
            .volumes()
            .expect("the volumes")
            .iter()
            .map(|name| name.to_string_lossy())
            .collect();
        for name in &names {
            let guid = name
                .strip_prefix(r"\\?\Volume{")
                .and_then(|rest| rest.strip_suffix(r"}\"));
            assert!(
                guid.is_some_and(|guid| guid.parse::<os::Uuid>().is_ok() && guid.len() == 36),
                "{name}"
            );
        }
        names.retain(|name| *name == volume.guid_path().to_string_lossy());
        assert_eq!(names.len(), 1);
    }),
    Fact::new("VOL-17", |node| {
        let volume = node.volume(VolumeKind::System);
        let handle = volume
            .open(node.os(), Access::GENERIC_READ)
            .expect("the volume opens");
        let length = length(&*handle);
        assert_eq!(length, extents(node, volume)[0].length);
    }),
    Fact::new("VOL-18", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let handle = volume
            .open(node.os(), Access::GENERIC_READ)
            .expect("the volume opens");
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            READ_WRITE,
        );
        set_offline(&*disk, true);
        let gone = wait_until(node, || !is_listed(node, volume.id));
        let answers = [
            handle.control(EXTENTS, &[], &mut [0; 512]),
            handle.read(0, &mut [0; 4096]),
        ];
        set_offline(&*disk, false);
        assert!(gone);
        for answer in answers {
            assert_fails(answer, &[&REMOVED[..], &[OsError::NOT_READY]].concat());
        }
    }),
    Fact::new("VOL-19", |node| {
        for kind in [
            VolumeKind::Raw,
            VolumeKind::BitLocker,
            VolumeKind::Unreadable,
        ] {
            let volume = node.volume(kind);
            let found = extents(node, volume);
            assert!(
                matches!(found[..], [extent] if extent.disk_number == volume.disk),
                "{kind:?}: {found:?}"
            );
        }
    }),
];

const EXTENTS: ControlCode = ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS;

/// Reads the extents of a volume.
fn extents(node: &dyn TestNode, volume: TestVolume) -> Vec<DiskExtent> {
    let volume = volume
        .open(node.os(), Access::empty())
        .expect("the volume opens");
    devices::extents(&*volume).expect("the extents")
}

/// Returns the number, offset and length of the partition of a volume in the layout of its disk.
fn partition(node: &dyn TestNode, volume: TestVolume) -> (u32, i64, i64) {
    let offset = extents(node, volume)[0].offset;
    let disk = open_disk(
        node,
        TestDisk {
            number: volume.disk,
        },
        Access::GENERIC_READ,
    );
    let entries = partition_table(&*disk).1;
    let mut found = entries
        .iter()
        .filter(|entry| entry.offset == offset && entry.length > 0);
    let only = found
        .next()
        .filter(|_| found.next().is_none())
        .expect("one partition");
    (only.number, only.offset, only.length)
}
