//! A disk as a device: finding it, its size, attributes and partition table.

use os::abi::{
    BASIC_DATA, ControlCode, DEVICE_TYPE_DISK, DISK_INTERFACE, DiskAttributes, DiskGeometryEx, DriveLayout,
    LengthInformation, MSFT_RESERVED, PartitionEntry, PartitionStyle, SetDiskAttributes, StorageDeviceNumber,
};
use os::{Access, Handle, NtPath, Open, Options, OsError, OsResult, Uuid};
use zerocopy::IntoBytes;

use crate::buffer;
use crate::disk_number::DiskNumber;
use crate::error::{Fault, Outcome};
use crate::node::Node;

/// Opening a device for queries alone.
pub(crate) const QUERY: Open = Open::existing(Access::empty(), Options::empty());

/// A mebibyte, to which Windows aligns partitions.
pub(crate) const MIB: u64 = 1 << 20;

/// Room for a layout of some thirty partitions; more is asked for when needed.
const LAYOUT: usize = 4800;

/// An open disk whose number was just now what it was asked for.
pub(crate) struct Disk {
    pub(crate) number: DiskNumber,
    pub(crate) handle: Box<dyn Handle>,
}

/// The types of MBR partitions that Windows makes volumes of: FAT, NTFS and their kin.
const MBR_DATA: [u8; 7] = [0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e];

/// A partition, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) number: u32,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) kind: PartitionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionKind {
    /// A basic data partition.
    Data,
    /// Reserved by Windows; never a volume.
    Reserved,
    /// Anything else: EFI, recovery, extended, another system's.
    Other,
}

/// A disk's partition table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Raw,
    Mbr(Vec<Partition>),
    Gpt(Vec<Partition>),
}

impl Layout {
    /// The partitions there are.
    pub(crate) fn partitions(&self) -> &[Partition] {
        match self {
            Self::Raw => &[],
            Self::Mbr(partitions) | Self::Gpt(partitions) => partitions,
        }
    }

    /// Those that hold or can hold a volume of a driver's.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Partition> {
        self.partitions().iter().filter(|partition| partition.kind == PartitionKind::Data)
    }

    /// Whether somebody uses the disk: the reserved partition alone does not count.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.partitions().iter().any(|partition| partition.kind != PartitionKind::Reserved)
    }

    /// Reads a drive layout; none if it is not one.
    pub(crate) fn parse(buffer: &[u8]) -> Option<Self> {
        let head: DriveLayout = buffer::at(buffer, 0)?;
        let style = PartitionStyle(head.style);
        let mut partitions = Vec::new();
        for index in 0..usize::try_from(head.partition_count).ok()? {
            let offset = index.checked_mul(size_of::<PartitionEntry>())?.checked_add(size_of::<DriveLayout>())?;
            let entry: PartitionEntry = buffer::at(buffer, offset)?;
            let kind = match style {
                PartitionStyle::MBR if entry.mbr_type() == 0 => continue,
                PartitionStyle::MBR if MBR_DATA.contains(&entry.mbr_type()) => PartitionKind::Data,
                PartitionStyle::MBR => PartitionKind::Other,
                _ if entry.gpt_type() == Uuid::nil() => continue,
                _ if entry.gpt_type() == MSFT_RESERVED => PartitionKind::Reserved,
                _ if entry.gpt_type() == BASIC_DATA => PartitionKind::Data,
                _ => PartitionKind::Other,
            };
            let (offset, length) = (u64::try_from(entry.offset).ok()?, u64::try_from(entry.length).ok()?);
            partitions.push(Partition { number: entry.number, offset, length, kind });
        }
        partitions.sort_unstable_by_key(|partition| partition.offset);
        match style {
            PartitionStyle::RAW => Some(Self::Raw),
            PartitionStyle::MBR => Some(Self::Mbr(partitions)),
            PartitionStyle::GPT => Some(Self::Gpt(partitions)),
            _ => None,
        }
    }
}

impl Disk {
    /// Opens the disk `number`.
    pub(crate) fn open(node: &Node, number: DiskNumber, access: Access) -> Outcome<Self> {
        let how = Open { access: QUERY.access | access, ..QUERY };
        let handle = node.os().open(&NtPath::disk(number.0), &how).map_err(|code| missing(code, number))?;
        let disk = Self { number, handle };
        match device_number(&*disk.handle)? {
            Some(found) if found == number => Ok(disk),
            _ => Err(Fault::not_found(format!("there is no {number}"))),
        }
    }

    /// Checks that the handle is still on the disk of that number: numbers are given anew, devices are not.
    pub(crate) fn check_number(&self) -> Outcome<()> {
        if device_number(&*self.handle)? == Some(self.number) {
            return Ok(());
        }
        Err(Fault::precondition(format!("{} has become another disk meanwhile", self.number)))
    }

    /// Its size in bytes, as the device says it now.
    pub(crate) fn size(&self) -> OsResult<u64> {
        // Without this the size from before the disk grew may be what is answered, which is still better than none.
        if let Err(code) = self.update()
            && is_gone(code)
        {
            return Err(code);
        }
        let length = match buffer::control::<LengthInformation>(&*self.handle, ControlCode::DISK_GET_LENGTH_INFO, &[]) {
            Ok(info) => info.length,
            Err(code) if is_gone(code) => return Err(code),
            Err(_) => self.geometry()?.disk_size,
        };
        u64::try_from(length).map_err(|_| OsError::GEN_FAILURE)
    }

    /// Its geometry, of which the size and the sector's size are true.
    pub(crate) fn geometry(&self) -> OsResult<DiskGeometryEx> {
        buffer::control(&*self.handle, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[])
    }

    /// Makes the system look at the disk's size and partitions again.
    pub(crate) fn update(&self) -> OsResult<()> {
        match buffer::send(&*self.handle, ControlCode::DISK_UPDATE_PROPERTIES, &[]) {
            Err(OsError::INVALID_FUNCTION | OsError::NOT_SUPPORTED) => Ok(()),
            outcome => outcome,
        }
    }

    /// Its partition table.
    pub(crate) fn layout(&self) -> Outcome<Layout> {
        let buffer = buffer::control_grown(&*self.handle, ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], LAYOUT)?;
        Layout::parse(&buffer).ok_or_else(|| Fault::of(OsError::GEN_FAILURE, "its partition table cannot be read"))
    }

    /// [`DiskAttributes::OFFLINE`] and [`DiskAttributes::READ_ONLY`].
    pub(crate) fn attributes(&self) -> OsResult<u64> {
        let answer: DiskAttributes = buffer::control(&*self.handle, ControlCode::DISK_GET_DISK_ATTRIBUTES, &[])?;
        Ok(answer.attributes)
    }

    /// Whether it is offline.
    pub(crate) fn is_offline(&self) -> OsResult<bool> {
        Ok(self.attributes()? & DiskAttributes::OFFLINE != 0)
    }

    /// Sets the attributes in `mask` to those in `attributes`, for good.
    pub(crate) fn set_attributes(&self, attributes: u64, mask: u64) -> OsResult<()> {
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
        // The documentation wants the size of the other structure here, shipped programs pass this one's.
        match send(size) {
            Err(OsError::INVALID_PARAMETER) => {
                send(u32::try_from(size_of::<DiskAttributes>()).expect("16 fits"))?;
            }
            outcome => outcome?,
        }
        self.update()
    }
}

/// The number of the disk behind `handle`; none for another kind of device.
pub(crate) fn device_number(handle: &dyn Handle) -> OsResult<Option<DiskNumber>> {
    let number: StorageDeviceNumber = buffer::control(handle, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[])?;
    let is_disk = number.device_type == DEVICE_TYPE_DISK && number.device_number != u32::MAX;
    Ok(is_disk.then_some(DiskNumber(number.device_number)))
}

/// All disks that are present, in the order of their numbers, and the first error with which one was not opened.
pub(crate) fn all(node: &Node) -> Outcome<(Vec<Disk>, Option<OsError>)> {
    let (mut disks, mut failed) = (Vec::new(), None);
    for interface in node.os().device_interfaces(DISK_INTERFACE)? {
        let opened = node.os().open(&NtPath::from_win32(&interface), &QUERY);
        // A disk that vanishes while the list is walked is simply not on it.
        let found = opened.and_then(|handle| Ok(device_number(&*handle)?.map(|number| Disk { number, handle })));
        match found {
            Ok(disk) => disks.extend(disk),
            Err(code) if is_gone(code) => {}
            Err(code) => {
                tracing::warn!(interface = %interface.display(), %code, "a disk is left out");
                failed = failed.or(Some(code));
            }
        }
    }
    disks.sort_unstable_by_key(|disk: &Disk| disk.number);
    Ok((disks, failed))
}

/// Whether the device has been removed.
pub(crate) fn is_gone(code: OsError) -> bool {
    matches!(
        code,
        OsError::FILE_NOT_FOUND
            | OsError::PATH_NOT_FOUND
            | OsError::DEVICE_NOT_CONNECTED
            | OsError::NO_SUCH_DEVICE
            | OsError::DEV_NOT_EXIST
            | OsError::NOT_READY
    )
}

fn missing(code: OsError, number: DiskNumber) -> Fault {
    if is_gone(code) { Fault::not_found(format!("there is no {number} ({})", code.0)) } else { code.into() }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    proptest::proptest! {
        #[test]
        fn layouts_of_any_kind_are_read_without_a_panic(mut bytes: Vec<u8>, style in 0u32..3, count in 0u32..5) {
            if bytes.len() >= 8 {
                bytes[..4].copy_from_slice(&style.to_le_bytes());
                bytes[4..8].copy_from_slice(&count.to_le_bytes());
            }
            let _ = Layout::parse(&bytes);
        }
    }
}
