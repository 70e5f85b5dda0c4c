//! Disks as devices: their size, attributes and partition table.

use std::collections::HashSet;

use os::abi::{
    BASIC_DATA, ControlCode, DEVICE_TYPE_DISK, DISK_INTERFACE, DiskAttributes, DiskGeometryEx, DriveLayout,
    LengthInformation, MSFT_RESERVED, PartitionEntry, PartitionStyle, SetDiskAttributes, StorageDeviceNumber,
};
use os::{Access, Handle, NtPath, Open, Options, Os, OsError, OsResult, Uuid};
use zerocopy::IntoBytes;

use crate::devices::buffer;
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::host::Host;
use crate::host::device_queries::Device;
use crate::host::fallback::{Fallback, SecondWay};
use crate::provider::msft_storage::report;
use crate::scheduling::context::OperationContext;
use crate::scheduling::stop::RunResult;
use crate::types::DiskNumber;

/// Opens a device for queries that need no right to its data.
pub(crate) const OPEN_FOR_QUERY: Open = Open::existing(Access::empty(), Options::empty());

/// A mebibyte, the alignment of partitions.
pub(crate) const MIB: u64 = 1 << 20;

/// The size of the first buffer for a partition table, enough for about thirty partitions.
const LAYOUT_SIZE: usize = 4800;

/// An open disk. Its number was checked when it was opened.
pub(crate) struct Disk {
    pub(crate) number: DiskNumber,
    pub(crate) handle: Box<dyn Handle>,
}

/// The types of MBR partitions for which Windows creates volumes: variants of FAT, NTFS and exFAT.
const MBR_DATA: [u8; 7] = [0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e];

/// The types of MBR partitions that a computer starts from: recovery and EFI system.
const MBR_SYSTEM: [u8; 2] = [0x27, 0xef];

/// The types of GPT partitions that a computer starts from: EFI system and recovery.
/// <https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-partition_information_gpt>
const GPT_SYSTEM: [Uuid; 2] =
    [Uuid::from_u128(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b), Uuid::from_u128(0xde94bba4_06d1_4d40_a16a_bfd50179d6ac)];

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) number: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) kind: PartitionKind,
    /// Whether a BIOS starts a computer from this partition, if the disk is the one to start from.
    pub(crate) is_active: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    /// A basic data partition.
    Data,
    /// A Microsoft reserved partition, which never has a volume.
    Reserved,
    /// An EFI system or recovery partition.
    System,
    /// Any other partition, such as an extended one or one of another operating system.
    Other,
}

impl PartitionKind {
    /// Returns the kind of a GPT partition by its type.
    pub(crate) fn of_gpt(kind: Uuid) -> Self {
        match kind {
            MSFT_RESERVED => Self::Reserved,
            BASIC_DATA => Self::Data,
            kind if GPT_SYSTEM.contains(&kind) => Self::System,
            _ => Self::Other,
        }
    }

    /// Returns the kind of an MBR partition by its type.
    pub(crate) fn of_mbr(kind: u8) -> Self {
        match kind {
            kind if MBR_DATA.contains(&kind) => Self::Data,
            kind if MBR_SYSTEM.contains(&kind) => Self::System,
            _ => Self::Other,
        }
    }
}

/// The partition table of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionTable {
    pub(crate) style: TableStyle,
    /// In the order of their offsets.
    pub(crate) partitions: Vec<Partition>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableStyle {
    /// The disk has no partition table.
    Raw,
    /// An MBR without partitions and without a signature. A driver may report a disk without a partition table like that.
    BlankMbr,
    Mbr,
    Gpt,
}

impl PartitionTable {
    /// Returns the basic data partitions.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Partition> {
        self.partitions.iter().filter(|partition| partition.kind == PartitionKind::Data)
    }

    /// Returns whether the disk has a partition other than the reserved one.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partitions.iter().any(|partition| partition.kind != PartitionKind::Reserved)
    }

    /// Returns whether the volume at `offset` is on the partition `number`, or on any partition if `number` is 0.
    pub(crate) fn holds(&self, number: u32, offset: u64) -> bool {
        if self.style == TableStyle::Raw {
            // The whole disk may be one volume.
            return number == 0;
        }
        let is_held = |partition: &Partition| number == 0 || partition.number == number;
        self.partitions.iter().any(|partition| partition.offset == offset && is_held(partition))
    }

    /// Decodes a `DRIVE_LAYOUT_INFORMATION_EX`. Returns `None` if it is malformed.
    pub(crate) fn parse(buffer: &[u8]) -> Option<Self> {
        let head: DriveLayout = buffer::at(buffer, 0)?;
        let style = PartitionStyle(head.style);
        let mut partitions = Vec::new();
        for index in 0..usize::try_from(head.partition_count).ok()? {
            let offset = index.checked_mul(size_of::<PartitionEntry>())?.checked_add(size_of::<DriveLayout>())?;
            let entry: PartitionEntry = buffer::at(buffer, offset)?;
            let kind = match style {
                PartitionStyle::MBR if entry.mbr_type() == 0 => continue,
                PartitionStyle::MBR => PartitionKind::of_mbr(entry.mbr_type()),
                _ if entry.gpt_type() == Uuid::nil() => continue,
                _ => PartitionKind::of_gpt(entry.gpt_type()),
            };
            let (offset, length) = (u64::try_from(entry.offset).ok()?, u64::try_from(entry.length).ok()?);
            let is_active = style == PartitionStyle::MBR && entry.mbr_is_active();
            partitions.push(Partition { number: entry.number, offset, length, kind, is_active });
        }
        partitions.sort_unstable_by_key(|partition| partition.offset);
        match style {
            PartitionStyle::RAW => Some(Self { style: TableStyle::Raw, partitions: Vec::new() }),
            PartitionStyle::MBR if partitions.is_empty() && head.disk_id[..4] == [0; 4] => {
                Some(Self { style: TableStyle::BlankMbr, partitions })
            }
            PartitionStyle::MBR => Some(Self { style: TableStyle::Mbr, partitions }),
            PartitionStyle::GPT => Some(Self { style: TableStyle::Gpt, partitions }),
            _ => None,
        }
    }
}

impl Disk {
    /// Opens the disk `number`, and checks that the device has that number.
    pub(crate) fn open(host: &Host, number: DiskNumber, access: Access) -> OperationResult<Self> {
        Self::open_on(host.os(), number, access)
    }

    fn open_on(os: &dyn Os, number: DiskNumber, access: Access) -> OperationResult<Self> {
        let how = Open { access, ..OPEN_FOR_QUERY };
        let handle = os.open(&NtPath::disk(number.0), &how).map_err(|code| open_error(code, number))?;
        Self::from_handle(number, handle)
    }

    /// Opens the disk again for reading. If that fails, returns it as it is.
    pub(crate) fn reopened_for_read(self, os: &dyn Os) -> Self {
        Self::open_on(os, self.number, Access::GENERIC_READ).unwrap_or(self)
    }

    /// Opens the disk `number` for reading or, if Windows denies that, for queries. Microsoft documents that the partition
    /// table needs the right to read, which its control code does not ask for.
    pub(crate) fn open_for_read(host: &Host, number: DiskNumber) -> OperationResult<Self> {
        Self::open(host, number, Access::GENERIC_READ).or_else(|_| Self::open(host, number, Access::empty()))
    }

    /// Opens the disk so that it keeps its number, for queries that need no right to its data. While the storage provider
    /// changes a disk, no other handle is open: a handle with rights to the data may be in its way.
    pub(crate) fn hold(host: &Host, number: DiskNumber) -> OperationResult<Self> {
        Self::open(host, number, Access::empty())
    }

    /// Opens the same disk again, as [`Self::open_for_read`] does.
    pub(crate) fn reader(&self, host: &Host) -> OperationResult<Self> {
        let reader = Self::open_for_read(host, self.number)?;
        self.check_number().map(|()| reader)
    }

    fn from_handle(number: DiskNumber, handle: Box<dyn Handle>) -> OperationResult<Self> {
        if device_number(&*handle)? == Some(number) {
            return Ok(Self { number, handle });
        }
        Err(OperationError::not_found(format!("{number} does not exist")))
    }

    /// Checks that the device still has the number of the disk: Windows reuses numbers.
    pub(crate) fn check_number(&self) -> OperationResult<()> {
        if device_number(&*self.handle)? == Some(self.number) {
            return Ok(());
        }
        Err(OperationError::precondition(format!("{} has been replaced by another disk", self.number)))
    }

    /// Queries the size in bytes.
    pub(crate) fn size(&self) -> OsResult<u64> {
        let before = self.known_size();
        // A driver above that of the disk may have kept the size from before the disk grew. If the update fails, that
        // size is still returned.
        let after = match self.update() {
            Err(code) if ErrorClass::DeviceRemoved.contains(code) => return Err(code),
            _ => self.known_size(),
        };
        match (before, after) {
            (_, Err(code)) if ErrorClass::DeviceRemoved.contains(code) => Err(code),
            (Ok(before), Ok(after)) => Ok(before.max(after)),
            (before, after) => after.or(before),
        }
    }

    /// Queries the size in bytes, as Windows knows it.
    pub(crate) fn known_size(&self) -> OsResult<u64> {
        let length = match buffer::control::<LengthInformation>(&*self.handle, ControlCode::DISK_GET_LENGTH_INFO, &[]) {
            Ok(info) => info.length,
            Err(_) => self.geometry()?.disk_size,
        };
        u64::try_from(length).map_err(|_| OsError::GEN_FAILURE)
    }

    /// Queries the geometry. Only the sizes of the disk and of its sectors are meaningful.
    pub(crate) fn geometry(&self) -> OsResult<DiskGeometryEx> {
        buffer::control(&*self.handle, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[])
    }

    /// Makes Windows read the size and the partition table of the disk again.
    pub(crate) fn update(&self) -> OsResult<()> {
        match buffer::send(&*self.handle, ControlCode::DISK_UPDATE_PROPERTIES, &[]) {
            Err(code) if ErrorClass::Unsupported.contains(code) => Ok(()),
            outcome => outcome,
        }
    }

    /// Queries the partition table.
    pub(crate) fn partition_table(&self) -> OperationResult<PartitionTable> {
        let buffer = buffer::control_grown(&*self.handle, ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], LAYOUT_SIZE)?;
        PartitionTable::parse(&buffer)
            .ok_or_else(|| OperationError::of(OsError::GEN_FAILURE, "the partition table cannot be decoded"))
    }

    /// Queries [`DiskAttributes::OFFLINE`] and [`DiskAttributes::READ_ONLY`].
    pub(crate) fn attributes(&self) -> OsResult<u64> {
        let answer: DiskAttributes = buffer::control(&*self.handle, ControlCode::DISK_GET_DISK_ATTRIBUTES, &[])?;
        Ok(answer.attributes)
    }

    /// Returns whether the disk is offline.
    pub(crate) fn is_offline(&self) -> OsResult<bool> {
        Ok(self.attributes()? & DiskAttributes::OFFLINE != 0)
    }

    /// Queries the attributes as [`Self::attributes`] does. If the device does not answer, the storage provider does.
    pub(crate) fn reported_attributes(&self, host: &Host, ctx: &OperationContext) -> RunResult<u64> {
        let first = self.attributes().map_err(OperationError::from);
        let second = || report::disk_attributes(host, ctx, self.number);
        host.or_second(SecondWay::Provider(ctx), Fallback::DiskState, first, second)
    }

    /// Queries the size as [`Self::size`] does. If the device does not answer, the storage provider does.
    pub(crate) fn reported_size(&self, host: &Host, ctx: &OperationContext) -> RunResult<u64> {
        let first = self.size().map_err(OperationError::from);
        let second = || report::disk_size(host, ctx, self.number);
        host.or_second(SecondWay::Provider(ctx), Fallback::DiskSize, first, second)
    }

    /// Queries the partition table as [`Self::partition_table`] does. If the device does not answer, the storage provider
    /// does. What it reports must not decide whether a disk is partitioned.
    pub(crate) fn reported_table(&self, host: &Host, ctx: &OperationContext) -> RunResult<PartitionTable> {
        let second = || report::partition_table(host, ctx, self.number);
        host.or_second(SecondWay::Provider(ctx), Fallback::PartitionTable, self.partition_table(), second)
    }

    /// Sets the attributes in `mask` to those in `attributes`, persistently. Opens the same disk again for that.
    pub(crate) fn set_attributes(&self, host: &Host, attributes: u64, mask: u64) -> OperationResult<()> {
        let writer = Self::open(host, self.number, Access::GENERIC_READ | Access::GENERIC_WRITE)?;
        self.check_number()?;
        Ok(writer.send_attributes(attributes, mask)?)
    }

    fn send_attributes(&self, attributes: u64, mask: u64) -> OsResult<()> {
        let size = u32::try_from(size_of::<SetDiskAttributes>()).expect("40 fits");
        let request = |version| SetDiskAttributes {
            version,
            persist: 1,
            attributes,
            attributes_mask: mask,
            ..SetDiskAttributes::default()
        };
        let send =
            |version| buffer::send(&*self.handle, ControlCode::DISK_SET_DISK_ATTRIBUTES, request(version).as_bytes());
        // Microsoft documents the size of `GET_DISK_ATTRIBUTES`; shipped programs pass that of `SET_DISK_ATTRIBUTES`.
        match send(size) {
            Err(OsError::INVALID_PARAMETER) => {
                send(u32::try_from(size_of::<DiskAttributes>()).expect("16 fits"))?;
            }
            outcome => outcome?,
        }
        // The attributes are set, whatever the update answers.
        self.update().or_else(|code| if ErrorClass::DeviceRemoved.contains(code) { Err(code) } else { Ok(()) })
    }
}

/// Queries the number of the disk behind `handle`; `None` for another kind of device.
pub(crate) fn device_number(handle: &dyn Handle) -> OsResult<Option<DiskNumber>> {
    let number: StorageDeviceNumber = buffer::control(handle, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[])?;
    let is_disk = number.device_type == DEVICE_TYPE_DISK && number.device_number != u32::MAX;
    Ok(is_disk.then_some(DiskNumber(number.device_number)))
}

/// A disk that could not be opened or read.
pub(crate) struct UnreadDisk {
    /// The disk, by its number if that is known.
    pub(crate) device: Device,
    /// What Windows answered; `SEM_TIMEOUT` if the disk has not answered in time.
    pub(crate) code: OsError,
}

/// What reads a disk that is open.
type Read<R> = fn(&dyn Os, Disk) -> R;

/// What was read of each disk, in the order of the numbers, and the disks that could not be opened or have not answered.
pub(crate) type DisksRead<R> = (Vec<(DiskNumber, R)>, Vec<UnreadDisk>);

/// Opens each disk and calls `read`. Both may hang, so `read` must ask the disk all that the caller wants to know.
pub(crate) fn read_all<R: Send + 'static>(host: &Host, read: Read<R>) -> OperationResult<DisksRead<R>> {
    let interfaces = host.os().device_interfaces(DISK_INTERFACE)?;
    let present: HashSet<_> = interfaces.iter().collect();
    host.device_queries().forget(|device| matches!(device, Device::Interface(path) if !present.contains(path)));
    let devices = interfaces.into_iter().map(|path| (NtPath::from_win32(&path), Device::Interface(path)));
    Ok(read_each(host, devices, read))
}

/// Does the same as [`read_all`] with the disks that have these numbers.
pub(crate) fn read_numbered<R: Send + 'static>(host: &Host, numbers: Vec<DiskNumber>, read: Read<R>) -> DisksRead<R> {
    read_each(host, numbers.into_iter().map(|number| (NtPath::disk(number.0), Device::Disk(number))), read)
}

fn read_each<R: Send + 'static>(
    host: &Host,
    devices: impl Iterator<Item = (NtPath, Device)>,
    read: Read<R>,
) -> DisksRead<R> {
    let (mut disks, mut unread) = (Vec::new(), Vec::new());
    let targets = devices.map(|(path, device)| (device, (path, read)));
    let answers = host.query_each(targets, |os, (path, read), identify| {
        let handle = os.open(&path, &OPEN_FOR_QUERY)?;
        let Some(number) = device_number(&*handle)? else { return Ok(None) };
        identify(number);
        Ok(Some((number, read(os, Disk { number, handle }))))
    });
    for (device, answer) in answers {
        match (answer, device) {
            (None, device) => {
                unread.push(UnreadDisk { device: host.device_queries().as_disk(device), code: OsError::SEM_TIMEOUT });
            }
            // The number belongs to another disk by now.
            (Some(Ok(Some((number, _)))), Device::Disk(asked)) if number != asked => {}
            (Some(Ok(disk)), _) => disks.extend(disk),
            // A disk that is removed while the list is read is left out.
            (Some(Err(code)), _) if ErrorClass::DeviceRemoved.contains(code) => {}
            (Some(Err(code)), device) => {
                let device = host.device_queries().as_disk(device);
                tracing::warn!(%device, %code, "left out a disk that could not be opened");
                unread.push(UnreadDisk { device, code });
            }
        }
    }
    disks.sort_unstable_by_key(|(number, _)| *number);
    (disks, unread)
}

fn open_error(code: OsError, number: DiskNumber) -> OperationError {
    if ErrorClass::DeviceRemoved.contains(code) {
        OperationError::not_found(format!("{number} does not exist ({})", code.0))
    } else {
        code.into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use os::abi::{
        BASIC_DATA, ControlCode, DEVICE_TYPE_DISK, DiskAttributes, DriveLayout, MSFT_RESERVED, PartitionEntry,
        PartitionStyle, SetDiskAttributes, StorageDeviceNumber, gpt_entry, gpt_layout,
    };
    use os::{FileInfo, FsInfo, Handle, NtPath, Open, Os, OsError, OsResult, PathForm, U16Str, U16String, Uuid};
    use zerocopy::{FromBytes, IntoBytes};

    use super::{Disk, MIB, OPEN_FOR_QUERY, Partition, PartitionKind, PartitionTable, TableStyle, device_number};
    use crate::error::Kind;
    use crate::types::DiskNumber;

    const EFI: Uuid = Uuid::from_u128(0xc12a_7328_f81f_11d2_ba4b_00a0_c93e_c93b);

    fn decoded(style: PartitionStyle, entries: &[PartitionEntry]) -> Option<PartitionTable> {
        let partition_count = u32::try_from(entries.len()).unwrap();
        let head = DriveLayout { style: style.0, ..gpt_layout(Uuid::nil(), 0, 0, partition_count) };
        PartitionTable::parse(&[head.as_bytes(), entries.as_bytes()].concat())
    }

    /// Returns the partition `number`, which begins at that many mebibytes and is one mebibyte long.
    fn entry(number: u32, partition_type: [u8; 16]) -> PartitionEntry {
        let (offset, length) = (i64::from(number) << 20, 1 << 20);
        PartitionEntry { partition_type, ..gpt_entry(number, Uuid::nil(), Uuid::nil(), offset, length) }
    }

    fn partition(number: u32, kind: PartitionKind) -> Partition {
        Partition { number, offset: u64::from(number) * MIB, length: MIB, kind, is_active: false }
    }

    #[test]
    fn a_volume_is_on_the_partition_at_its_offset_or_on_a_disk_without_a_partition_table() {
        let partitions = vec![partition(1, PartitionKind::Data), partition(2, PartitionKind::Data)];
        for style in [TableStyle::Gpt, TableStyle::Mbr] {
            let table = PartitionTable { style, partitions: partitions.clone() };
            assert!(table.holds(0, MIB) && table.holds(0, 2 * MIB) && !table.holds(0, 3 * MIB));
            assert!(table.holds(1, MIB) && table.holds(2, 2 * MIB));
            assert!(!table.holds(1, 2 * MIB) && !table.holds(2, MIB) && !table.holds(3, MIB));
        }
        let raw = PartitionTable { style: TableStyle::Raw, partitions: Vec::new() };
        assert!(raw.holds(0, 0) && !raw.holds(1, 0));
    }

    #[test]
    fn the_entries_of_a_gpt_are_decoded_by_type_and_sorted_by_offset() {
        let types = [EFI, MSFT_RESERVED, BASIC_DATA, Uuid::nil()].map(|kind| kind.to_bytes_le());
        let entries = [entry(4, types[2]), entry(1, types[0]), entry(2, types[1]), entry(3, types[3])];
        let (efi, reserved) = (partition(1, PartitionKind::System), partition(2, PartitionKind::Reserved));
        let partitions = vec![efi, reserved, partition(4, PartitionKind::Data)];
        let expected = PartitionTable { style: TableStyle::Gpt, partitions };
        assert_eq!(decoded(PartitionStyle::GPT, &entries), Some(expected));
    }

    #[test]
    fn the_entries_of_an_mbr_are_decoded_by_type() {
        let of = |mbr: u8, boot| [mbr, boot, 1, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let entries = [
            entry(1, of(0x07, 0)),
            entry(2, of(0x0c, 1)),
            entry(3, of(0x83, 0)),
            entry(0, of(0, 0)),
            // In an MBR entry these bytes have another meaning.
            entry(4, MSFT_RESERVED.to_bytes_le()),
        ];
        let kinds = [PartitionKind::Data, PartitionKind::Data, PartitionKind::Other, PartitionKind::Other];
        let with_flag = |(number, kind)| {
            // In an entry of a GPT the second byte is a part of the type.
            let is_active = [2, 4].contains(&number);
            Partition { is_active, ..partition(number, kind) }
        };
        let partitions = (1..).zip(kinds).map(with_flag).collect();
        assert_eq!(decoded(PartitionStyle::MBR, &entries), Some(PartitionTable { style: TableStyle::Mbr, partitions }));
    }

    #[test]
    fn a_disk_with_only_a_reserved_partition_or_an_empty_entry_is_not_partitioned() {
        let is_partitioned = |style, entry| decoded(style, &[entry]).unwrap().is_partitioned();
        assert!(is_partitioned(PartitionStyle::GPT, entry(1, EFI.to_bytes_le())));
        assert!(is_partitioned(PartitionStyle::GPT, entry(1, BASIC_DATA.to_bytes_le())));
        assert!(!is_partitioned(PartitionStyle::GPT, entry(1, MSFT_RESERVED.to_bytes_le())));
        assert!(!is_partitioned(PartitionStyle::GPT, entry(1, [0; 16])));
        assert!(!is_partitioned(PartitionStyle::MBR, entry(0, [0; 16])));
        assert_eq!(decoded(PartitionStyle::MBR, &[]).unwrap().style, TableStyle::BlankMbr);
        assert_eq!(decoded(PartitionStyle(3), &[]), None, "an unknown style is not an empty disk");
    }

    /// A device with a fixed number that records the attributes that are set.
    #[derive(Clone)]
    struct Device {
        number: StorageDeviceNumber,
        given: Arc<Mutex<Vec<SetDiskAttributes>>>,
    }

    impl Device {
        fn new(device_type: u32, device_number: u32) -> Self {
            let number = StorageDeviceNumber { device_type, device_number, partition_number: 0 };
            Self { number, given: Arc::default() }
        }
    }

    impl Handle for Device {
        fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
            match code {
                ControlCode::STORAGE_GET_DEVICE_NUMBER => {
                    output.copy_from_slice(self.number.as_bytes());
                    Ok(output.len())
                }
                ControlCode::DISK_SET_DISK_ATTRIBUTES => {
                    self.given.lock().unwrap().push(SetDiskAttributes::read_from_bytes(input).unwrap());
                    Ok(0)
                }
                _ => Err(OsError::INVALID_FUNCTION),
            }
        }

        fn open_child(&self, _name: &U16Str, _how: &Open) -> OsResult<Box<dyn Handle>> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn open_below(&self, _path: &U16Str, _how: &Open) -> OsResult<Box<dyn Handle>> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn query(&self, _class: FileInfo, _output: &mut [u8]) -> OsResult<()> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn set(&self, _class: FileInfo, _input: &[u8]) -> OsResult<()> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn query_fs(&self, _class: FsInfo, _output: &mut [u8]) -> OsResult<usize> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn list(&self, _restart: bool, _output: &mut [u8]) -> OsResult<()> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn final_path(&self, _form: PathForm) -> OsResult<U16String> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn security_descriptor(&self) -> OsResult<os::abi::SecurityDescriptor> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn read(&self, _offset: u64, _output: &mut [u8]) -> OsResult<usize> {
            Err(OsError::NOT_SUPPORTED)
        }

        fn flush(&self) -> OsResult<()> {
            Err(OsError::NOT_SUPPORTED)
        }
    }

    #[test]
    fn only_a_disk_has_a_disk_number() {
        const CD_ROM: u32 = 2;
        let number = |device_type, number| device_number(&Device::new(device_type, number)).unwrap();
        assert_eq!(number(DEVICE_TYPE_DISK, 3), Some(DiskNumber(3)));
        assert_eq!(number(CD_ROM, 3), None);
        // The number of a disk that is a member of a storage pool or of a multipath device.
        assert_eq!(number(DEVICE_TYPE_DISK, u32::MAX), None);
    }

    #[test]
    fn a_disk_whose_device_has_another_number_is_not_found() {
        let sim = os_sim::node().disk(1 << 30).disk(1 << 30).build();
        let open = |number| Disk::from_handle(DiskNumber(number), sim.open(&NtPath::disk(2), &OPEN_FOR_QUERY).unwrap());
        assert_eq!(open(2).ok().map(|disk| disk.number), Some(DiskNumber(2)));
        assert_eq!(open(1).err().map(|error| error.kind), Some(Kind::NotFound));
    }

    #[test]
    fn a_disk_whose_number_changes_while_it_is_open_is_refused() {
        let disk = |number| Disk { number: DiskNumber(number), handle: Box::new(Device::new(DEVICE_TYPE_DISK, 1)) };
        assert!(disk(1).check_number().is_ok());
        assert_eq!(disk(2).check_number().unwrap_err().kind, Kind::FailedPrecondition);
    }

    #[test]
    fn attributes_are_set_persistently_and_only_those_in_the_mask() {
        let device = Device::new(DEVICE_TYPE_DISK, 1);
        let disk = Disk { number: DiskNumber(1), handle: Box::new(device.clone()) };
        disk.send_attributes(0, DiskAttributes::OFFLINE).unwrap();
        let given = device.given.lock().unwrap();
        let given: Vec<_> = given.iter().map(|set| (set.persist, set.attributes, set.attributes_mask)).collect();
        assert_eq!(given, [(1, 0, DiskAttributes::OFFLINE)]);
    }

    proptest::proptest! {
        #[test]
        fn decoding_any_layout_does_not_panic(mut bytes: Vec<u8>, style in 0u32..3, count in 0u32..5) {
            if bytes.len() >= 8 {
                bytes[..4].copy_from_slice(&style.to_le_bytes());
                bytes[4..8].copy_from_slice(&count.to_le_bytes());
            }
            let _ = PartitionTable::parse(&bytes);
        }
    }
}
