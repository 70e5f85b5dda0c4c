//! Disks as devices, offline and read-only: `DISK`.

use os::abi::DiskAttributes;
use os::{Access, Handle, NtPath, Open, OsError};

use super::devices::{
    READ_WRITE, attributes, is_listed, open_disk, partition_table, set_attributes, set_offline, spare_system_disk,
    wait_until,
};
use crate::fact::Fact;
use crate::node::{DiskKind, TestDisk, TestNode, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("DISK-09", |node| attributes_are_set_with(node, 16)),
    Fact::new("DISK-10", |node| {
        const BOTH: u64 = DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY;
        let disk = open_disk(node, node.disk(DiskKind::Raw), READ_WRITE);
        for (wanted, mask, expected) in [
            (BOTH, BOTH, BOTH),
            (0, DiskAttributes::READ_ONLY, DiskAttributes::OFFLINE),
            (BOTH, DiskAttributes::READ_ONLY, BOTH),
            (0, DiskAttributes::OFFLINE, DiskAttributes::READ_ONLY),
            (0, BOTH, 0),
        ] {
            assert_eq!(set_attributes(&*disk, 40, wanted, mask), Ok(()));
            assert_eq!(attributes(&*disk) & BOTH, expected);
        }
    }),
    Fact::new("DISK-30", |node| {
        let (original, copy) = collision(node);
        assert_eq!(attributes(&*copy) & DiskAttributes::OFFLINE, DiskAttributes::OFFLINE);
        assert_eq!(attributes(&*original) & DiskAttributes::OFFLINE, 0);
        assert_eq!(partition_table(&*copy).0.disk_id, partition_table(&*original).0.disk_id);
    }),
    Fact::new("DISK-31", |node| {
        let (original, copy) = collision(node);
        let signature = |disk: &dyn Handle| partition_table(disk).0.disk_id;
        let before = signature(&*original);
        set_attributes(&*copy, 40, DiskAttributes::READ_ONLY, DiskAttributes::READ_ONLY).expect("it is made read-only");
        // Whether this succeeds is not the fact.
        let _ = set_attributes(&*copy, 40, 0, DiskAttributes::OFFLINE);
        assert_eq!(signature(&*copy), before);
        set_offline(&*copy, true);
        set_offline(&*copy, false);
        assert!(wait_until(node, || signature(&*copy) != before));
        assert_eq!(signature(&*original), before);
    }),
    Fact::new("DISK-32", |node| attributes_are_set_with(node, 40)),
    Fact::new("DISK-34", |node| {
        let disk = open_disk(node, spare_system_disk(node), READ_WRITE);
        for attribute in [DiskAttributes::OFFLINE, DiskAttributes::READ_ONLY] {
            assert_eq!(set_attributes(&*disk, 40, attribute, attribute), Err(OsError::BUSY));
            assert_eq!(attributes(&*disk) & attribute, 0);
        }
    }),
    Fact::new("DISK-35", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
        set_offline(&*disk, true);
        assert!(wait_until(node, || !is_listed(node, volume.id)));
        set_offline(&*disk, false);
        assert!(wait_until(node, || is_listed(node, volume.id)));
    }),
    Fact::new("DISK-36", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
        let read_only = DiskAttributes::READ_ONLY;
        set_attributes(&*disk, 40, read_only, read_only).expect("the disk is made read-only");
        set_attributes(&*disk, 40, 0, read_only).expect("the disk is made writable");
        set_offline(&*disk, true);
        set_offline(&*disk, false);
        assert!(wait_until(node, || is_listed(node, volume.id)));
        let created = Open::new_directory(Access::READ_ATTRIBUTES);
        let name = NtPath::volume_root(volume.id).join(&os::U16String::from_str("created"));
        assert!(node.os().open(&name, &created).is_ok());
    }),
];

/// Returns a disk, and a copy of it with its signature.
fn collision(node: &dyn TestNode) -> (Box<dyn Handle>, Box<dyn Handle>) {
    let original = TestDisk { number: node.volume(VolumeKind::Ntfs).disk };
    let copy = node.copy_of(original);
    (open_disk(node, original, READ_WRITE), open_disk(node, copy, READ_WRITE))
}

fn attributes_are_set_with(node: &dyn TestNode, version: u32) {
    let disk = open_disk(node, node.disk(DiskKind::Raw), READ_WRITE);
    for wanted in [DiskAttributes::OFFLINE, 0] {
        assert_eq!(set_attributes(&*disk, version, wanted, DiskAttributes::OFFLINE), Ok(()));
        assert_eq!(attributes(&*disk) & DiskAttributes::OFFLINE, wanted);
    }
}
