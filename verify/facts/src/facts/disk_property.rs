//! Disks as devices, their descriptors: `DISK`.

use os::abi::{
    ASSOCIATION_DEVICE, StorageDescriptorHead, StorageDeviceDescriptor, StorageDeviceIdDescriptor, StorageIdentifier,
    StoragePropertyQuery,
};
use os::{Access, OsError};
use zerocopy::FromBytes;

use super::calls::assert_fails;
use super::devices::{ENOUGH, open_disk, property};
use crate::fact::Fact;
use crate::node::DiskKind;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("DISK-13", |node| {
        let disk = open_disk(node, node.disk(DiskKind::System), Access::empty());
        let head = property(&*disk, StoragePropertyQuery::DEVICE, 8).expect("the head");
        let head = StorageDescriptorHead::read_from_bytes(&head).expect("8 bytes");
        let whole = property(&*disk, StoragePropertyQuery::DEVICE, ENOUGH).expect("the descriptor");
        assert_eq!((head.version, head.size as usize), (40, whole.len()));
    }),
    Fact::new("DISK-14", |node| {
        refused_as_unknown(&*open_disk(node, node.disk(DiskKind::System), Access::empty()), 0x7fff);
    }),
    Fact::new("DISK-15", |node| {
        for (kind, has_serial) in [(DiskKind::Raw, true), (DiskKind::NoSerial, false)] {
            let disk = open_disk(node, node.disk(kind), Access::empty());
            let descriptor = property(&*disk, StoragePropertyQuery::DEVICE, ENOUGH).expect("the descriptor");
            let (head, _) = StorageDeviceDescriptor::read_from_prefix(&descriptor).expect("the head");
            assert_eq!(head.serial_number_offset != 0, has_serial);
            for offset in
                [head.vendor_id_offset, head.product_id_offset, head.product_revision_offset, head.serial_number_offset]
            {
                let text = descriptor.get(offset as usize..).expect("the offset is in the descriptor");
                let end = text.iter().position(|byte| *byte == 0).expect("a zero ends the text");
                assert!(offset == 0 || text[..end].is_ascii());
            }
        }
    }),
    Fact::new("DISK-37", |node| {
        let disk = open_disk(node, node.disk(DiskKind::Raw), Access::empty());
        let descriptor = property(&*disk, StoragePropertyQuery::DEVICE_ID, ENOUGH).expect("the descriptor");
        let (head, _) = StorageDeviceIdDescriptor::read_from_prefix(&descriptor).expect("the head");
        assert_eq!(head.head.size as usize, descriptor.len());
        let mut offset = size_of::<StorageDeviceIdDescriptor>();
        let mut of_device = 0;
        for index in 1..=head.number_of_identifiers {
            let (identifier, _) = StorageIdentifier::read_from_prefix(&descriptor[offset..]).expect("an identifier");
            let end = offset + size_of::<StorageIdentifier>() + usize::from(identifier.identifier_size);
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

fn refused_as_unknown(disk: &dyn os::Handle, property_id: u32) {
    let codes = [OsError::INVALID_FUNCTION, OsError::INVALID_PARAMETER, OsError::NOT_SUPPORTED];
    assert_fails(property(disk, property_id, ENOUGH), &codes);
}
