//! Disks as devices: their size, attributes and partition table.

use os::abi::{
    ControlCode, DEVICE_TYPE_DISK, DiskAttributes, DiskGeometryEx, LengthInformation,
    SetDiskAttributes, StorageDeviceNumber,
};
use os::{Access, Handle, NtPath, Open, Options, Os, OsError, OsResult};
use zerocopy::IntoBytes;

use crate::devices::buffer;
use crate::devices::partition_table::PartitionTable;
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
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

impl Disk {
    /// Opens the disk `number`, and checks that the device has that number.
    pub(crate) fn open(os: &dyn Os, number: DiskNumber, access: Access) -> OperationResult<Self> {
        let how = Open {
            access,
            ..OPEN_FOR_QUERY
        };
        let handle = os
            .open(&NtPath::disk(number.0), &how)
            .map_err(|code| open_error(code, number))?;
        Self::from_handle(number, handle)
    }

    /// Opens the disk `number` for reading or, if Windows denies that, for queries. Microsoft
    /// documents that the partition table needs the right to read, which its control code does not
    /// ask for.
    pub(crate) fn open_for_read(os: &dyn Os, number: DiskNumber) -> OperationResult<Self> {
        Self::open(os, number, Access::GENERIC_READ)
            .or_else(|_| Self::open(os, number, Access::empty()))
    }

    /// Opens the disk so that it keeps its number, for queries that need no right to its data.
    /// While the storage provider changes a disk, no other handle is open: a handle with rights to
    /// the data may be in its way.
    pub(crate) fn hold(os: &dyn Os, number: DiskNumber) -> OperationResult<Self> {
        Self::open(os, number, Access::empty())
    }

    /// Opens the same disk again, as [`Self::open_for_read`] does.
    pub(crate) fn reader(&self, os: &dyn Os) -> OperationResult<Self> {
        let reader = Self::open_for_read(os, self.number)?;
        self.check_number().map(|()| reader)
    }

    fn from_handle(number: DiskNumber, handle: Box<dyn Handle>) -> OperationResult<Self> {
        if device_number(&*handle)? == Some(number) {
            return Ok(Self { number, handle });
        }
        Err(OperationError::not_found(format!(
            "{number} does not exist"
        )))
    }

    /// Checks that the device still has the number of the disk: Windows reuses numbers.
    pub(crate) fn check_number(&self) -> OperationResult<()> {
        if device_number(&*self.handle)? == Some(self.number) {
            return Ok(());
        }
        Err(OperationError::precondition(format!(
            "{} has been replaced by another disk",
            self.number
        )))
    }

    /// Makes Windows read the disk again, and queries the size in bytes.
    pub(crate) fn size(&self) -> OsResult<u64> {
        let before = self.known_size();
        // A driver above that of the disk may have kept the size from before the disk grew. If the
        // update fails, that size is still returned.
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
        self.length().or_else(|_| {
            let size = self.geometry()?.disk_size;
            u64::try_from(size).map_err(|_| OsError::GEN_FAILURE)
        })
    }

    /// Queries the size in bytes, which Windows reads from the disk each time (`DISK-03` in
    /// docs/facts.md).
    pub(crate) fn length(&self) -> OsResult<u64> {
        let code = ControlCode::DISK_GET_LENGTH_INFO;
        let length = buffer::control::<LengthInformation>(&*self.handle, code, &[])?.length;
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
        let buffer = buffer::control_grown(
            &*self.handle,
            ControlCode::DISK_GET_DRIVE_LAYOUT_EX,
            &[],
            LAYOUT_SIZE,
        )?;
        PartitionTable::parse(&buffer).ok_or_else(|| {
            OperationError::of(
                OsError::GEN_FAILURE,
                "the partition table cannot be decoded",
            )
        })
    }

    /// Queries [`DiskAttributes::OFFLINE`] and [`DiskAttributes::READ_ONLY`].
    pub(crate) fn attributes(&self) -> OsResult<u64> {
        let answer: DiskAttributes =
            buffer::control(&*self.handle, ControlCode::DISK_GET_DISK_ATTRIBUTES, &[])?;
        Ok(answer.attributes)
    }

    /// Returns whether the disk is offline.
    pub(crate) fn is_offline(&self) -> OsResult<bool> {
        Ok(self.attributes()? & DiskAttributes::OFFLINE != 0)
    }

    /// Sets the attributes in `mask` to those in `attributes`, persistently. Opens the same disk
    /// again for that.
    pub(crate) fn set_attributes(
        &self,
        os: &dyn Os,
        attributes: u64,
        mask: u64,
    ) -> OperationResult<()> {
        let writer = Self::open(
            os,
            self.number,
            Access::GENERIC_READ | Access::GENERIC_WRITE,
        )?;
        let send = |version: usize| {
            let request = set_request(version, attributes, mask);
            buffer::send(
                &*writer.handle,
                ControlCode::DISK_SET_DISK_ATTRIBUTES,
                request.as_bytes(),
            )
        };
        self.check_number()?;
        // Microsoft documents the size of `GET_DISK_ATTRIBUTES`; shipped programs pass that of
        // `SET_DISK_ATTRIBUTES`.
        match send(size_of::<SetDiskAttributes>()) {
            Err(OsError::INVALID_PARAMETER) => {
                self.check_number()?;
                send(size_of::<DiskAttributes>())?;
            }
            outcome => outcome?,
        }
        // The attributes are set, whatever the update answers.
        match writer.update() {
            Err(code) if ErrorClass::DeviceRemoved.contains(code) => Err(code.into()),
            _ => Ok(()),
        }
    }
}

/// Encodes a request that sets the attributes in `mask`, and no others, persistently.
fn set_request(version: usize, attributes: u64, mask: u64) -> SetDiskAttributes {
    SetDiskAttributes {
        version: u32::try_from(version).expect("the size of a structure"),
        persist: 1,
        attributes,
        attributes_mask: mask,
        ..SetDiskAttributes::default()
    }
}

/// Queries the number of the disk behind `handle`; `None` for another kind of device.
pub(crate) fn device_number(handle: &dyn Handle) -> OsResult<Option<DiskNumber>> {
    buffer::control(handle, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[]).map(disk_number)
}

/// Queries whether the device behind `handle` is a disk, or a volume on disks.
pub(crate) fn is_disk(handle: &dyn Handle) -> OsResult<bool> {
    let device: StorageDeviceNumber =
        buffer::control(handle, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[])?;
    Ok(device.device_type == DEVICE_TYPE_DISK)
}

/// Returns the number of a disk; `None` for another kind of device. The number of a disk that is a
/// member of a storage pool or of a multipath device is `u32::MAX`.
fn disk_number(device: StorageDeviceNumber) -> Option<DiskNumber> {
    let is_disk = device.device_type == DEVICE_TYPE_DISK && device.device_number != u32::MAX;
    is_disk.then_some(DiskNumber(device.device_number))
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
    use os::abi::{DEVICE_TYPE_DISK, DiskAttributes, StorageDeviceNumber};
    use os::{NtPath, Os};

    use super::{Disk, OPEN_FOR_QUERY, disk_number, set_request};
    use crate::error::ErrorKind;
    use crate::types::DiskNumber;

    fn number(device_type: u32, device_number: u32) -> Option<DiskNumber> {
        disk_number(StorageDeviceNumber {
            device_type,
            device_number,
            partition_number: 0,
        })
    }

    #[test]
    fn only_a_disk_has_a_disk_number() {
        const CD_ROM: u32 = 2;
        assert_eq!(number(DEVICE_TYPE_DISK, 3), Some(DiskNumber(3)));
        assert_eq!(number(CD_ROM, 3), None);
        assert_eq!(number(DEVICE_TYPE_DISK, u32::MAX), None);
    }

    #[test]
    fn a_disk_whose_device_has_another_number_is_not_found() {
        let sim = os_sim::node().disk(1 << 30).disk(1 << 30).build();
        let open = |number| {
            Disk::from_handle(
                DiskNumber(number),
                sim.open(&NtPath::disk(2), &OPEN_FOR_QUERY).unwrap(),
            )
        };
        assert_eq!(open(2).ok().map(|disk| disk.number), Some(DiskNumber(2)));
        assert_eq!(
            open(1).err().map(|error| error.kind),
            Some(ErrorKind::NotFound)
        );
    }

    #[test]
    fn attributes_are_set_persistently_and_only_those_in_the_mask() {
        let request = set_request(40, 0, DiskAttributes::OFFLINE);
        assert_eq!(
            (request.persist, request.attributes, request.attributes_mask),
            (1, 0, DiskAttributes::OFFLINE)
        );
    }
}
