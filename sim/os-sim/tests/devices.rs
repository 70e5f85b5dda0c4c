//! Disks and volumes through handles: the output of each control code, byte for byte.

use os::abi::{
    BASIC_DATA, BusType, CODE_SET_ASCII, CODE_SET_BINARY, ControlCode, DISK_INTERFACE, DiskAttributes, DiskExtent,
    DriveLayout, FIRMWARE_SMBIOS, FsAttributeInformation, MSFT_RESERVED, PartitionEntry, PartitionStyle,
    STORAGE_PORT_INTERFACE, SetDiskAttributes, StorageDeviceDescriptor, StorageDeviceIdDescriptor, StorageDeviceNumber,
    StorageIdentifier, StoragePropertyQuery,
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

fn control<T: FromBytes + IntoBytes>(handle: &dyn Handle, code: ControlCode) -> OsResult<T> {
    let mut answer = T::new_zeroed();
    let length = handle.control(code, &[], answer.as_mut_bytes())?;
    assert_eq!(length, size_of::<T>());
    assert_eq!(handle.control(code, &[], &mut vec![0; length - 1]), Err(OsError::INSUFFICIENT_BUFFER));
    Ok(answer)
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

fn set(handle: &dyn Handle, version: u32, attributes: u64, mask: u64) -> OsResult<usize> {
    let input = SetDiskAttributes { version, attributes, attributes_mask: mask, ..SetDiskAttributes::default() };
    handle.control(ControlCode::DISK_SET_DISK_ATTRIBUTES, input.as_bytes(), &mut [])
}

#[test]
fn a_control_code_needs_the_access_encoded_in_its_number() {
    let node = node().disk(GIB).build();
    let bare = disk(&node, 1, Access::empty());
    assert!(control::<StorageDeviceNumber>(&*bare, ControlCode::STORAGE_GET_DEVICE_NUMBER).is_ok());
    assert_eq!(control::<i64>(&*bare, ControlCode::DISK_GET_LENGTH_INFO), Err(OsError::ACCESS_DENIED));
    let reader = disk(&node, 1, Access::GENERIC_READ);
    assert_eq!(control::<i64>(&*reader, ControlCode::DISK_GET_LENGTH_INFO), Ok(1 << 30));
    assert_eq!(set(&*reader, 40, 0, 1), Err(OsError::ACCESS_DENIED));
    assert_eq!(reader.control(ControlCode(0x0007_0fff & !0xc000), &[], &mut []), Err(OsError::INVALID_FUNCTION));
}

#[test]
fn attributes_are_set_by_mask_and_validated() {
    let node = node().disk(GIB).offline().read_only().build();
    let handle = disk(&node, 1, Access::GENERIC_READ | Access::GENERIC_WRITE);
    let attributes = || control::<DiskAttributes>(&*handle, ControlCode::DISK_GET_DISK_ATTRIBUTES).unwrap().attributes;
    assert_eq!(attributes(), DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY);
    assert_eq!(set(&*handle, 16, 0, 1), Err(OsError::INVALID_PARAMETER), "version");
    assert_eq!(set(&*handle, 40, 0, 4), Err(OsError::INVALID_PARAMETER), "mask");
    assert_eq!(set(&*handle, 40, 0, DiskAttributes::READ_ONLY), Ok(0));
    assert_eq!(attributes(), DiskAttributes::OFFLINE);
    let short = handle.control(ControlCode::DISK_SET_DISK_ATTRIBUTES, &[0; 39], &mut []);
    assert_eq!(short, Err(OsError::INVALID_PARAMETER));
    let system = disk(&node, 0, Access::GENERIC_READ | Access::GENERIC_WRITE);
    assert_eq!(set(&*system, 40, DiskAttributes::OFFLINE, DiskAttributes::OFFLINE), Err(OsError::BUSY));
}

#[test]
fn volumes_arrive_some_time_after_their_disk_came_online() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").offline().build();
    let handle = disk(&node, 1, Access::GENERIC_READ | Access::GENERIC_WRITE);
    let (head, entries) = layout(&*handle);
    assert_eq!((head.style, entries.len()), (PartitionStyle::GPT.0, 2), "the layout of an offline disk can be read");
    assert_eq!(node.volumes().unwrap().len(), 1);
    set(&*handle, 40, 0, DiskAttributes::OFFLINE).unwrap();
    assert_eq!(node.volumes().unwrap().len(), 1);
    node.clock().sleep(std::time::Duration::from_millis(150));
    assert_eq!(node.volumes().unwrap().len(), 2);
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
    assert_eq!(property(&*handle, StoragePropertyQuery::DEVICE_ID, 4096), Err(OsError::INVALID_FUNCTION));
    assert_eq!(property(&*handle, 57, 4096), Err(OsError::NOT_SUPPORTED));
    let short = handle.control(ControlCode::STORAGE_QUERY_PROPERTY, &[0; 4], &mut [0; 64]);
    assert_eq!(short, Err(OsError::INVALID_PARAMETER));
}

#[test]
fn a_disk_can_be_opened_by_its_interface() {
    let node = node().disk(GIB).number(5).build();
    let interfaces = node.device_interfaces(DISK_INTERFACE).unwrap();
    let numbers: Vec<u32> = interfaces
        .iter()
        .map(|interface| {
            let handle = open(&node, &NtPath::from_win32(interface), Access::empty()).unwrap();
            control::<StorageDeviceNumber>(&*handle, ControlCode::STORAGE_GET_DEVICE_NUMBER).unwrap().device_number
        })
        .collect();
    assert_eq!(numbers, [0, 5]);
}

#[test]
fn calls_on_handles_of_a_removed_disk_fail() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").mounted(r"C:\m").file(r"C:\m\f", "x").build();
    let handle = disk(&node, 1, Access::GENERIC_READ);
    let file = open(&node, &NtPath::from_win32(&U16String::from_str(r"C:\m\f")), Access::READ_ATTRIBUTES).unwrap();
    node.detach_disk(1).unwrap();
    for (_, code) in ControlCode::ALL.iter().filter(|(_, code)| !code.needs_write()) {
        assert_eq!(handle.control(*code, &[0; 64], &mut [0; 4096]), Err(OsError::DEVICE_NOT_CONNECTED), "{code:?}");
    }
    assert_eq!(file.query(os::FileInfo::Basic, &mut [0; 40]), Err(OsError::DEVICE_NOT_CONNECTED));
    assert_eq!(open(&node, &NtPath::disk(1), Access::empty()).err(), Some(OsError::FILE_NOT_FOUND));
    node.invariants().unwrap();
}

#[test]
fn extents_that_do_not_fit_are_counted() {
    let node = node().disk(GIB).disk(GIB).partitioned().formatted("NTFS").spanned(1, GIB / 2).build();
    let handle = volume(&node, 2, Access::empty());
    let code = ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS;
    let mut one = [0; 32];
    assert_eq!(handle.control(code, &[], &mut one), Err(OsError::MORE_DATA));
    assert_eq!(one[0], 2);
    assert_eq!(DiskExtent::read_from_bytes(&one[8..]).unwrap().disk_number, 2);
    let mut two = [0; 56];
    assert_eq!(handle.control(code, &[], &mut two), Ok(56));
    assert_eq!(DiskExtent::read_from_bytes(&two[32..]).unwrap().disk_number, 1);
    assert_eq!(handle.control(code, &[], &mut [0; 31]), Err(OsError::INSUFFICIENT_BUFFER));
    let number = control::<StorageDeviceNumber>(&*handle, ControlCode::STORAGE_GET_DEVICE_NUMBER);
    assert_eq!(number.err(), Some(OsError::INVALID_FUNCTION), "a spanned volume has no device number");
}

/// Returns the name of the file system, or the error of reading it.
fn file_system(handle: &dyn Handle) -> OsResult<String> {
    let mut buffer = [0; 64];
    let length = handle.query_fs(FsInfo::Attribute, &mut buffer)?;
    let units = buffer[FsAttributeInformation::NAME_OFFSET..length].chunks(2);
    Ok(units.map(|unit| char::from(unit[0])).collect())
}

#[test]
fn a_volume_that_cannot_be_read_is_not_reported_as_raw() {
    let node = node()
        .disk(GIB)
        .partitioned()
        .disk(GIB)
        .partitioned()
        .formatted("ReFS")
        .disk(GIB)
        .partitioned()
        .bitlocker_locked()
        .disk(GIB)
        .partitioned()
        .unreadable()
        .disk(GIB)
        .partitioned()
        .unmountable()
        .build();
    let named = |number| file_system(&*volume(&node, number, Access::GENERIC_READ));
    assert_eq!(named(1).as_deref(), Ok("RAW"));
    assert_eq!(named(2).as_deref(), Ok("ReFS"));
    assert_eq!(named(3), Err(OsError::FVE_LOCKED_VOLUME));
    assert_eq!(named(4), Err(OsError::IO_DEVICE));
    assert_eq!(named(5).as_deref(), Ok("RAW"));
    let recognised = |number| {
        let code = ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION;
        volume(&node, number, Access::GENERIC_READ).control(code, &[], &mut [0; 16])
    };
    assert_eq!(recognised(1), Err(OsError::UNRECOGNIZED_VOLUME));
    assert_eq!(recognised(5), Ok(9), "the medium names a file system");
    assert_eq!(
        file_system(&*volume(&node, 2, Access::empty())),
        Err(OsError::INVALID_FUNCTION),
        "opened without access to data"
    );
    let root = open(&node, &NtPath::volume_root(node.volume_on(1).unwrap().id), Access::READ_DATA);
    assert_eq!(root.err(), Some(OsError::UNRECOGNIZED_VOLUME));
}

#[test]
fn a_flush_needs_write_access() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").disk(GIB).partitioned().formatted("NTFS").read_only();
    let node = node.build();
    let both = Access::GENERIC_READ | Access::GENERIC_WRITE;
    assert_eq!(volume(&node, 1, both).flush(), Ok(()));
    assert_eq!(volume(&node, 1, Access::GENERIC_READ).flush(), Err(OsError::ACCESS_DENIED));
    assert_eq!(volume(&node, 2, both).flush(), Err(OsError::WRITE_PROTECT));
}

#[test]
fn a_file_system_can_be_extended_up_to_its_partition() {
    let node = node().disk(GIB).partitioned().formatted("NTFS").build();
    let handle = volume(&node, 1, Access::GENERIC_READ | Access::GENERIC_WRITE);
    let length: i64 = control(&*handle, ControlCode::DISK_GET_LENGTH_INFO).unwrap();
    let extend = |sectors: i64| handle.control(ControlCode::FSCTL_EXTEND_VOLUME, &sectors.to_le_bytes(), &mut []);
    assert_eq!(extend(length / 512), Ok(0));
    assert_eq!(extend(length / 512 + 1), Err(OsError::INVALID_PARAMETER));
    assert_eq!(extend(length / 512 - 1), Err(OsError::INVALID_PARAMETER));
    assert_eq!(extend(-1), Err(OsError::INVALID_PARAMETER));
}

#[test]
fn the_size_of_a_grown_disk_is_read_by_update_properties() {
    let node = node().disk(GIB).partitioned().grown_to(2 * GIB).build();
    let handle = disk(&node, 1, Access::GENERIC_READ);
    let length = || control::<i64>(&*handle, ControlCode::DISK_GET_LENGTH_INFO).unwrap();
    assert_eq!(length(), 1 << 30);
    handle.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []).unwrap();
    assert_eq!(length(), 2 << 30);
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
    node.advance(std::time::Duration::from_millis(150));
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
