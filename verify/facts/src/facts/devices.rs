//! Requests to disks and volumes that the checks of several subjects make.

use std::time::Duration;

use os::abi::{
    BusType, ControlCode, DiskAttributes, DiskExtent, DriveLayout, FsAttributeInformation,
    FsFullSizeInformation, LengthInformation, PartitionEntry, SetDiskAttributes,
    StorageDeviceDescriptor, StorageDeviceNumber, StoragePropertyQuery, VolumeDiskExtents,
};
use os::{Access, FsInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, Uuid};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::node::{DiskKind, System, TestDisk, TestNode, TestVolume, missing};

/// The size of a buffer that every answer fits in.
pub const ENOUGH: usize = 16 << 10;

/// No disk is searched behind a gap of so many numbers.
const LONGEST_GAP: u32 = 100;

/// The rights to read and to write.
pub(crate) const READ_WRITE: Access = Access::GENERIC_READ.union(Access::GENERIC_WRITE);

/// Returns the system disk, for a check that asks Windows to change it and expects a refusal. Only
/// a simulated node can spare the disk if the request succeeds after all.
pub(crate) fn spare_system_disk(node: &dyn TestNode) -> TestDisk {
    if node.system() != System::Simulator {
        missing("a system disk that may be lost");
    }
    node.disk(DiskKind::System)
}

/// Opens a disk by its number; for writing, only a disk for tests.
pub(crate) fn open_disk(node: &dyn TestNode, disk: TestDisk, access: Access) -> Box<dyn Handle> {
    let how = Open::existing(access, Options::empty());
    let opened = node
        .os()
        .open(&NtPath::disk(disk.number), &how)
        .expect("the disk opens");
    assert!(
        !access.contains(Access::GENERIC_WRITE) || node.is_own(&*opened),
        "the disk for tests has gone"
    );
    opened
}

/// Sends a control code without input and returns the structure in the answer.
pub(crate) fn ask<T>(handle: &dyn Handle, code: ControlCode) -> OsResult<T>
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable,
{
    let mut answer = T::new_zeroed();
    let filled = handle.control(code, &[], answer.as_mut_bytes())?;
    assert_eq!(filled, size_of::<T>());
    Ok(answer)
}

/// Reads the device number of a disk or volume.
pub(crate) fn device_number(device: &dyn Handle) -> StorageDeviceNumber {
    ask(device, ControlCode::STORAGE_GET_DEVICE_NUMBER).expect("the device number")
}

/// Reads the length of a disk or volume.
pub(crate) fn length(device: &dyn Handle) -> i64 {
    ask::<LengthInformation>(device, ControlCode::DISK_GET_LENGTH_INFO)
        .expect("the length")
        .length
}

/// Reads the partition table of a disk.
pub(crate) fn partition_table(disk: &dyn Handle) -> (DriveLayout, Vec<PartitionEntry>) {
    let mut buffer = vec![0; ENOUGH];
    let filled = disk
        .control(ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], &mut buffer)
        .expect("the partition table");
    let (head, rest) =
        DriveLayout::read_from_prefix(&buffer[..filled]).expect("the head of the partition table");
    let entries = rest
        .chunks_exact(size_of::<PartitionEntry>())
        .take(head.partition_count as usize);
    let entries: Vec<_> = entries
        .map(|entry| PartitionEntry::read_from_bytes(entry).expect("an entry"))
        .collect();
    assert_eq!(
        entries.len(),
        head.partition_count as usize,
        "all entries are in the answer"
    );
    (head, entries)
}

/// Reads the extents of a volume.
pub(crate) fn extents(volume: &dyn Handle) -> OsResult<Vec<DiskExtent>> {
    let mut output = [0; 512];
    let filled = volume.control(
        ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS,
        &[],
        &mut output,
    )?;
    let (head, extents) = VolumeDiskExtents::read_from_prefix(&output[..filled]).expect("the head");
    let extents = extents
        .chunks_exact(size_of::<DiskExtent>())
        .take(head.count as usize);
    Ok(extents
        .map(|extent| DiskExtent::read_from_bytes(extent).expect("an extent"))
        .collect())
}

/// Reads the attributes of a disk.
pub(crate) fn attributes(disk: &dyn Handle) -> u64 {
    ask::<DiskAttributes>(disk, ControlCode::DISK_GET_DISK_ATTRIBUTES)
        .expect("the attributes")
        .attributes
}

/// Sets the attributes of a disk in `mask`, until Windows is restarted.
pub(crate) fn set_attributes(
    disk: &dyn Handle,
    version: u32,
    attributes: u64,
    mask: u64,
) -> OsResult<()> {
    let input = SetDiskAttributes {
        version,
        attributes,
        attributes_mask: mask,
        ..SetDiskAttributes::default()
    };
    disk.control(
        ControlCode::DISK_SET_DISK_ATTRIBUTES,
        input.as_bytes(),
        &mut [],
    )
    .map(drop)
}

/// Brings a disk online and makes it writable, or takes it offline.
pub(crate) fn set_offline(disk: &dyn Handle, offline: bool) {
    let version = u32::try_from(size_of::<SetDiskAttributes>()).expect("40 fits");
    let (attributes, mask) = if offline {
        (DiskAttributes::OFFLINE, DiskAttributes::OFFLINE)
    } else {
        (0, DiskAttributes::OFFLINE | DiskAttributes::READ_ONLY)
    };
    set_attributes(disk, version, attributes, mask).expect("the attributes are set");
}

/// Calls `check` with a volume whose disk is read-only, and makes the disk writable again.
pub(crate) fn while_read_only<R>(
    node: &dyn TestNode,
    volume: TestVolume,
    check: impl FnOnce() -> R,
) -> R {
    const READ_ONLY: u64 = DiskAttributes::READ_ONLY;
    let disk = open_disk(
        node,
        TestDisk {
            number: volume.disk,
        },
        READ_WRITE,
    );
    set_offline(&*disk, true);
    set_attributes(&*disk, 40, READ_ONLY, READ_ONLY | DiskAttributes::OFFLINE)
        .expect("read-only and online");
    let arrived = wait_until(node, || is_listed(node, volume.id));
    let checked = check();
    set_offline(&*disk, false);
    assert!(arrived);
    checked
}

/// Reads at most `size` bytes of the descriptor of a property.
pub fn property(device: &dyn Handle, property_id: u32, size: usize) -> OsResult<Vec<u8>> {
    let query = StoragePropertyQuery {
        property_id,
        ..StoragePropertyQuery::default()
    };
    let mut buffer = vec![0; size];
    let filled = device.control(
        ControlCode::STORAGE_QUERY_PROPERTY,
        query.as_bytes(),
        &mut buffer,
    )?;
    buffer.truncate(filled);
    Ok(buffer)
}

/// What tells a disk from every other one as long as it is attached, whatever is on it and whatever
/// its number is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskIdentity {
    /// The size in bytes.
    pub size: i64,
    /// The descriptor of the device, with its serial number, and that of its page 83 identifiers.
    pub descriptors: Vec<u8>,
}

impl DiskIdentity {
    /// Returns the numbers and identities of the disks of this machine that are files. No other disk
    /// is asked for more than its bus: a disk whose connection is lost may not answer.
    pub fn of_files(os: &dyn Os) -> Vec<(u32, Self)> {
        let open = |number, access| {
            let how = Open::existing(access, Options::empty());
            os.open(&NtPath::disk(number), &how)
        };
        let (mut found, mut end) = (Vec::new(), LONGEST_GAP);
        let mut number = 0;
        while number < end {
            if let Ok(disk) = open(number, Access::empty()) {
                end = number + LONGEST_GAP;
                if bus_of(&*disk) == Ok(BusType::FILE_BACKED_VIRTUAL.0)
                    && let Ok(identity) =
                        open(number, Access::GENERIC_READ).and_then(|disk| Self::read(&*disk))
                {
                    found.push((number, identity));
                }
            }
            number += 1;
        }
        found
    }

    /// Reads the identity of an open disk, with the right to read.
    pub fn read(disk: &dyn Handle) -> OsResult<Self> {
        let mut descriptors = property(disk, StoragePropertyQuery::DEVICE, ENOUGH)?;
        let size = ask::<LengthInformation>(disk, ControlCode::DISK_GET_LENGTH_INFO)?.length;
        descriptors
            .extend(property(disk, StoragePropertyQuery::DEVICE_ID, ENOUGH).unwrap_or_default());
        Ok(Self { size, descriptors })
    }
}

/// Reads the bus of a disk (`STORAGE_BUS_TYPE`).
fn bus_of(disk: &dyn Handle) -> OsResult<u32> {
    let descriptor = property(disk, StoragePropertyQuery::DEVICE, ENOUGH)?;
    let (head, _) =
        StorageDeviceDescriptor::read_from_prefix(&descriptor).map_err(|_| OsError::BAD_LENGTH)?;
    Ok(head.bus_type)
}

/// Returns the name of the file system behind a handle.
pub(crate) fn file_system(handle: &dyn Handle) -> OsResult<String> {
    let mut buffer = [0; 128];
    let filled = handle.query_fs(FsInfo::Attribute, &mut buffer)?;
    let units = buffer[FsAttributeInformation::NAME_OFFSET..filled].chunks_exact(2);
    Ok(units.map(|unit| char::from(unit[0])).collect())
}

/// Reads the size of the file system behind a handle.
pub(crate) fn full_size(handle: &dyn Handle) -> OsResult<FsFullSizeInformation> {
    let mut size = FsFullSizeInformation::new_zeroed();
    handle
        .query_fs(FsInfo::FullSize, size.as_mut_bytes())
        .map(|filled| {
            assert_eq!(filled, size_of_val(&size));
            size
        })
}

/// Returns the free space of drive C: in bytes.
pub fn free_space(os: &dyn Os) -> OsResult<u64> {
    let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
    let size = full_size(&*os.open(&NtPath::drive_root('C'), &how)?)?;
    let unit = u64::from(size.sectors_per_unit) * u64::from(size.bytes_per_sector);
    Ok(size.caller_available_units * unit)
}

/// Returns whether Windows lists the volume.
pub(crate) fn is_listed(node: &dyn TestNode, volume: Uuid) -> bool {
    let name = format!(r"\\?\Volume{{{volume}}}\");
    node.os()
        .volumes()
        .expect("the volumes")
        .iter()
        .any(|listed| listed.to_string_lossy() == name)
}

/// Waits for at most 20 seconds and returns whether `reached` has become true.
pub(crate) fn wait_until(node: &dyn TestNode, reached: impl Fn() -> bool) -> bool {
    for _ in 0..200 {
        if reached() {
            return true;
        }
        node.os().clock().sleep(Duration::from_millis(100));
    }
    reached()
}

/// The codes with which Windows answers requests to a device that was removed.
pub(crate) const REMOVED: [OsError; 4] = [
    OsError::FILE_NOT_FOUND,
    OsError::DEV_NOT_EXIST,
    OsError::NO_SUCH_DEVICE,
    OsError::DEVICE_NOT_CONNECTED,
];

/// The codes with which a failing disk answers.
pub(crate) const FAILING: [OsError; 3] = [OsError::CRC, OsError::GEN_FAILURE, OsError::IO_DEVICE];

/// `FSCTL_DISMOUNT_VOLUME`.
pub(crate) const FSCTL_DISMOUNT_VOLUME: ControlCode = ControlCode(0x0009_0020);
