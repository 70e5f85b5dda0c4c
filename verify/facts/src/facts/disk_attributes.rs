//! Disks as devices, offline and read-only, and their descriptors: `DISK`.

use os::abi::{
    ASSOCIATION_DEVICE, DiskAttributes, StorageDescriptorHead, StorageDeviceDescriptor,
    StorageDeviceIdDescriptor, StorageIdentifier, StoragePropertyQuery,
};
use os::{Access, Handle, NtPath, Open, OsError};
use zerocopy::FromBytes;

use super::calls::assert_fails;
use super::devices::{
    ENOUGH, READ_WRITE, attributes, is_listed, open_disk, partition_table, property,
    set_attributes, set_offline, spare_system_disk, wait_until,
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
        assert_eq!(
            attributes(&*copy) & DiskAttributes::OFFLINE,
            DiskAttributes::OFFLINE
        );
        assert_eq!(attributes(&*original) & DiskAttributes::OFFLINE, 0);
        assert_eq!(
            partition_table(&*copy).0.disk_id,
            partition_table(&*original).0.disk_id
        );
    }),
    Fact::new("DISK-31", |node| {
        let (original, copy) = collision(node);
        let signature = |disk: &dyn Handle| partition_table(disk).0.disk_id;
        let before = signature(&*original);
        set_attributes(
            &*copy,
            40,
            DiskAttributes::READ_ONLY,
            DiskAttributes::READ_ONLY,
        )
        .expect("it is made read-only");
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
            assert_eq!(
                set_attributes(&*disk, 40, attribute, attribute),
                Err(OsError::BUSY)
            );
            assert_eq!(attributes(&*disk) & attribute, 0);
        }
    }),
    Fact::new("DISK-35", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            READ_WRITE,
        );
        set_offline(&*disk, true);
        assert!(wait_until(node, || !is_listed(node, volume.id)));
        set_offline(&*disk, false);
        assert!(wait_until(node, || is_listed(node, volume.id)));
    }),
    Fact::new("DISK-36", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            READ_WRITE,
        );
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
    Fact::new("DISK-13", |node| {
        let disk = open_disk(node, node.disk(DiskKind::System), Access::empty());
        let head = property(&*disk, StoragePropertyQuery::DEVICE, 8).expect("the head");
        let head = StorageDescriptorHead::read_from_bytes(&head).expect("8 bytes");
        let whole = property(&*disk, StoragePropertyQuery::DEVICE, ENOUGH).expect("the descriptor");
        assert_eq!((head.version, head.size as usize), (40, whole.len()));
    }),
    Fact::new("DISK-14", |node| {
        refused_as_unknown(
            &*open_disk(node, node.disk(DiskKind::System), Access::empty()),
            0x7fff,
        );
    }),
    Fact::new("DISK-15", |node| {
        for (kind, has_serial) in [(DiskKind::Raw, true), (DiskKind::NoSerial, false)] {
            let disk = open_disk(node, node.disk(kind), Access::empty());
            let descriptor =
                property(&*disk, StoragePropertyQuery::DEVICE, ENOUGH).expect("the descriptor");
            let (head, _) =
                StorageDeviceDescriptor::read_from_prefix(&descriptor).expect("the head");
            assert_eq!(head.serial_number_offset != 0, has_serial);
            for offset in [
                head.vendor_id_offset,
                head.product_id_offset,
                head.product_revision_offset,
                head.serial_number_offset,
            ] {
                let text = descriptor
                    .get(offset as usize..)
                    .expect("the offset is in the descriptor");
                let end = text
                    .iter()
                    .position(|byte| *byte == 0)
                    .expect("a zero ends the text");
                assert!(offset == 0 || text[..end].is_ascii());
            }
        }
    }),
    Fact::new("DISK-37", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Raw), Access::empty());
        let descriptor =
            property(&*disk, StoragePropertyQuery::DEVICE_ID, ENOUGH).expect("the descriptor");
        let (head, _) = StorageDeviceIdDescriptor::read_from_prefix(&descriptor).expect("the head");
        assert_eq!(head.head.size as usize, descriptor.len());
        let mut offset = size_of::<StorageDeviceIdDescriptor>();
        let mut of_device = 0;
        for index in 1..=head.number_of_identifiers {
            let (identifier, _) =
                StorageIdentifier::read_from_prefix(&descriptor[offset..]).expect("an identifier");
            let end =
                offset + size_of::<StorageIdentifier>() + usize::from(identifier.identifier_size);
            assert!(identifier.identifier_size > 0 && end <= descriptor.len());
            of_device += u32::from(identifier.association == ASSOCIATION_DEVICE);
            if index < head.number_of_identifiers {
                offset += usize::from(identifier.next_offset);
                assert!(offset >= end, "the next identifier begins after this one");
            }
        }
        assert!(of_device > 0, "an identifier of the device itself");
    }),
    Fact::new("DISK-38", |node| {
        let disk = open_disk(node, node.disk(DiskKind::NoPage83), Access::empty());
        refused_as_unknown(&*disk, StoragePropertyQuery::DEVICE_ID);
    }),
];

/// Returns a disk, and a copy of it with its signature.
fn collision(node: &dyn TestNode) -> (Box<dyn Handle>, Box<dyn Handle>) {
    let original = TestDisk {
        number: node.volume(VolumeKind::Ntfs).disk,
    };
    let copy = node.copy_of(original);
    (
        open_disk(node, original, READ_WRITE),
        open_disk(node, copy, READ_WRITE),
    )
}

fn attributes_are_set_with(node: &dyn TestNode, version: u32) {
    let disk = open_disk(node, node.disk(DiskKind::Raw), READ_WRITE);
    for wanted in [DiskAttributes::OFFLINE, 0] {
        assert_eq!(
            set_attributes(&*disk, version, wanted, DiskAttributes::OFFLINE),
            Ok(())
        );
        assert_eq!(attributes(&*disk) & DiskAttributes::OFFLINE, wanted);
    }
}

fn refused_as_unknown(disk: &dyn Handle, property_id: u32) {
    let codes = [
        OsError::INVALID_FUNCTION,
        OsError::INVALID_PARAMETER,
        OsError::NOT_SUPPORTED,
    ];
    assert_fails(property(disk, property_id, ENOUGH), &codes);
}
