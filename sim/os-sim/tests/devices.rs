//! Disks and volumes through handles: the output of each control code, byte for byte.

use std::time::Duration;

use os::abi::{
    BASIC_DATA, BusType, CODE_SET_ASCII, CODE_SET_BINARY, ControlCode, DISK_INTERFACE, DriveLayout, FIRMWARE_SMBIOS,
    MSFT_RESERVED, PartitionEntry, PartitionStyle, STORAGE_PORT_INTERFACE, StorageDeviceDescriptor,
    StorageDeviceIdDescriptor, StorageIdentifier, StoragePropertyQuery,
};
use os::{Access, FsInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16String};
use os_sim::{Content, DiskDescription, Sim, node};
use zerocopy::{FromBytes, IntoBytes};

const GIB: u64 = 1 << 30;

fn open(os: &dyn Os, path: &NtPath, access: Access) -> OsResult<Box<dyn Handle>> {
    os.open(path, &Open::existing(access, Options::empty()))
}

fn disk(os: &dyn Os, number: u32, access: Access) -> Box<dyn Handle> {
    open(os, &NtPath::disk(number), access).unwrap()
}

fn volume(node: &Sim, disk: u32, access: Access) -> Box<dyn Handle> {
    open(node, &NtPath::volume(node.volume_on(disk).unwrap().id), access).unwrap()
}

fn layout(handle: &dyn Handle) -> (DriveLayout, Vec<PartitionEntry>) {
    let mut buffer = vec![0; 48];
    let length = loop {
        match handle.control(ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], &mut buffer) {
            Ok(length) => break length,
            Err(OsError::INSUFFICIENT_BUFFER) => buffer.resize(buffer.len() + 144, 0),
            Err(error) => panic!("{error}"),
        }
    };
    let (head, rest) = DriveLayout::read_from_prefix(&buffer[..length]).unwrap();
    let entries = rest.chunks(144).map(|entry| PartitionEntry::read_from_bytes(entry).unwrap()).collect();
    (head, entries)
}

fn property(handle: &dyn Handle, property_id: u32, size: usize) -> OsResult<Vec<u8>> {
    let query = StoragePropertyQuery { property_id, ..StoragePropertyQuery::default() };
    let mut buffer = vec![0; size];
    let length = handle.control(ControlCode::STORAGE_QUERY_PROPERTY, query.as_bytes(), &mut buffer)?;
    buffer.truncate(length);
    Ok(buffer)
}

/// Returns the identifiers of a disk as association, code set and bytes.
fn identifiers(handle: &dyn Handle) -> Vec<(u32, u32, Vec<u8>)> {
    let bytes = property(handle, StoragePropertyQuery::DEVICE_ID, 4096).unwrap();
    let (head, _) = StorageDeviceIdDescriptor::read_from_prefix(&bytes).unwrap();
    assert_eq!(usize::try_from(head.head.size).unwrap(), bytes.len());
    let mut at = size_of::<StorageDeviceIdDescriptor>();
    let mut found = Vec::new();
    for _ in 0..head.number_of_identifiers {
        let (one, rest) = StorageIdentifier::read_from_prefix(&bytes[at..]).unwrap();
        found.push((one.association, one.code_set, rest[..usize::from(one.identifier_size)].to_vec()));
        at += usize::from(one.next_offset);
    }
    found
}

#[test]
fn each_style_of_partition_table_is_reported() {
    let node = node().disk(GIB).disk(GIB).gpt().disk(GIB).partitioned().disk(GIB).mbr().disk(GIB).superfloppy().build();
    let styles: Vec<u32> = (1..=5).map(|number| layout(&*disk(&node, number, Access::empty())).0.style).collect();
    let [raw, gpt, mbr] = [PartitionStyle::RAW.0, PartitionStyle::GPT.0, PartitionStyle::MBR.0];
    assert_eq!(styles, [raw, gpt, gpt, mbr, mbr]);
    let entries = |number| layout(&*disk(&node, number, Access::empty())).1;
    assert!(entries(1).is_empty());
    assert_eq!(entries(2).iter().map(PartitionEntry::gpt_type).collect::<Vec<_>>(), [MSFT_RESERVED]);
    assert_eq!(entries(3).iter().map(PartitionEntry::gpt_type).collect::<Vec<_>>(), [MSFT_RESERVED, BASIC_DATA]);
    assert_eq!(entries(4).iter().map(PartitionEntry::mbr_type).collect::<Vec<_>>(), [7, 0, 0, 0]);
    assert_eq!((entries(5)[0].offset, entries(5)[0].length), (0, 1 << 30));
}

#[test]
fn the_identifier_of_the_device_follows_that_of_the_port() {
    let node = node().disk(GIB).page83_ascii("Google  pvc-1").disk(GIB).page83_binary(&[0x60, 0]).build();
    let [port, device] = &identifiers(&*disk(&node, 1, Access::empty()))[..] else { panic!("two") };
    assert_eq!(port.0, 1);
    assert_eq!(device, &(0, CODE_SET_ASCII, b"Google  pvc-1".to_vec()));
    assert_eq!(identifiers(&*disk(&node, 2, Access::empty()))[1], (0, CODE_SET_BINARY, vec![0x60, 0]));
}

#[test]
fn a_descriptor_is_truncated_to_the_output_buffer() {
    let node = node().disk(GIB).serial("vol0abc").bus(BusType::NVME).no_page83().build();
    let handle = disk(&node, 1, Access::empty());
    let whole = property(&*handle, StoragePropertyQuery::DEVICE, 4096).unwrap();
    let (head, _) = StorageDeviceDescriptor::read_from_prefix(&whole).unwrap();
    assert_eq!(head.bus_type, BusType::NVME.0);
    let serial = &whole[usize::try_from(head.serial_number_offset).unwrap()..];
    assert_eq!(serial, b"vol0abc\0");
    assert_eq!(property(&*handle, StoragePropertyQuery::DEVICE, 40).unwrap(), whole[..40]);
    assert_eq!(property(&*handle, StoragePropertyQuery::DEVICE, 7), Err(OsError::INSUFFICIENT_BUFFER));
}

#[test]
fn requests_to_a_removed_disk_fail_with_the_code_that_was_set() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").build();
    let (handle, volume) = (disk(&node, 1, Access::GENERIC_READ), volume(&node, 1, Access::GENERIC_READ));
    node.detach_disk(1).unwrap();
    let requests = || {
        let number = handle.control(ControlCode::STORAGE_GET_DEVICE_NUMBER, &[], &mut [0; 64]);
        [number, volume.read(0, &mut [0; 512]), volume.query_fs(FsInfo::Attribute, &mut [0; 64])]
    };
    assert_eq!(requests(), [Err(OsError::DEV_NOT_EXIST); 3]);
    node.set_removed_code(OsError::NO_SUCH_DEVICE);
    assert_eq!(requests(), [Err(OsError::NO_SUCH_DEVICE); 3]);
    node.invariants().unwrap();
}

#[test]
fn a_disk_has_sectors_of_512_or_4096_bytes() {
    for (size, sector, valid) in [(GIB, 512, true), (GIB, 4096, true), (GIB, 1024, false), (GIB + 512, 4096, false)] {
        assert_eq!(node().disk(size).sector_size(sector).try_build().is_ok(), valid, "{size} {sector}");
    }
}

#[test]
fn a_rescan_detects_a_newly_attached_disk() {
    let node = node().build();
    let partitioned = DiskDescription { content: Content::Partitioned, ..DiskDescription::new(GIB) };
    assert_eq!(node.attach_disk(&partitioned, false), Ok(1));
    assert_eq!(node.device_interfaces(DISK_INTERFACE).unwrap().len(), 1);
    let ports = node.device_interfaces(STORAGE_PORT_INTERFACE).unwrap();
    node.reenumerate(&ports[0]).unwrap();
    assert_eq!(node.device_interfaces(DISK_INTERFACE).unwrap().len(), 2);
    node.advance(Duration::from_millis(150));
    assert_eq!(node.volumes().unwrap().len(), 2);
    assert_eq!(node.reenumerate(&U16String::from_str(r"\\?\nothing")), Err(OsError::FILE_NOT_FOUND));
}

#[test]
fn the_smbios_table_contains_the_serial_number() {
    let node = node().bios_serial("VMware-56 4d").build();
    let size = node.firmware_table(FIRMWARE_SMBIOS, 0, &mut []).unwrap();
    let mut table = vec![0; size];
    assert_eq!(node.firmware_table(FIRMWARE_SMBIOS, 0, &mut table), Ok(size));
    assert!(table.windows(12).any(|window| window == b"VMware-56 4d"));
    assert_eq!(node.firmware_table(1, 0, &mut table), Err(OsError::INVALID_FUNCTION));
}
