//! Disks as devices: their size, attributes and partition table.

use os::abi::{
    ControlCode, DEVICE_TYPE_DISK, DISK_INTERFACE, DiskAttributes, DiskGeometryEx, LengthInformation,
    SetDiskAttributes, StorageDeviceNumber,
};
use os::{Access, Handle, NtPath, Open, Options, OsError, OsResult};
use zerocopy::IntoBytes;

use crate::error::{OperationError, OperationResult};
use crate::types::DiskNumber;
use crate::windows::Host;
use crate::windows::buffer;
use crate::windows::error_class::ErrorClass;
use crate::windows::partition_table::PartitionTable;

/// Opens a device for queries that need no right to its data.
pub(crate) const OPEN_FOR_QUERY: Open = Open::existing(Access::empty(), Options::empty());

/// The size of the first buffer for a partition table: some thirty partitions.
const LAYOUT_SIZE: usize = 4800;

/// An open disk. Its number was checked when it was opened.
pub(crate) struct Disk {
    pub(crate) number: DiskNumber,
    pub(crate) handle: Box<dyn Handle>,
}

impl Disk {
    /// Opens the disk `number`, and checks that the device has that number.
    pub(crate) fn open(host: &Host, number: DiskNumber, access: Access) -> OperationResult<Self> {
        let how = Open { access, ..OPEN_FOR_QUERY };
        let handle = host.os().open(&NtPath::disk(number.0), &how).map_err(|code| open_error(code, number))?;
        Self::from_handle(number, handle)
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
        // Otherwise Windows may return the size from before the disk grew. If the update fails, that size is still
        // returned.
        if let Err(code) = self.update()
            && ErrorClass::DeviceRemoved.contains(code)
        {
            return Err(code);
        }
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

    /// Whether the disk is offline.
    pub(crate) fn is_offline(&self) -> OsResult<bool> {
        Ok(self.attributes()? & DiskAttributes::OFFLINE != 0)
    }

    /// Sets the attributes in `mask` to those in `attributes`, persistently.
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
        // Microsoft documents the size of `GET_DISK_ATTRIBUTES` here; shipped programs pass that of
        // `SET_DISK_ATTRIBUTES`.
        match send(size) {
            Err(OsError::INVALID_PARAMETER) => {
                send(u32::try_from(size_of::<DiskAttributes>()).expect("16 fits"))?;
            }
            outcome => outcome?,
        }
        self.update()
    }
}

/// Queries the number of the disk behind `handle`; `None` for another kind of device.
pub(crate) fn device_number(handle: &dyn Handle) -> OsResult<Option<DiskNumber>> {
    let number: StorageDeviceNumber = buffer::control(handle, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[])?;
    let is_disk = number.device_type == DEVICE_TYPE_DISK && number.device_number != u32::MAX;
    Ok(is_disk.then_some(DiskNumber(number.device_number)))
}

/// Opens all disks. Returns them in the order of their numbers, and the first error of a disk that could not be opened.
pub(crate) fn all(host: &Host) -> OperationResult<(Vec<Disk>, Option<OsError>)> {
    let (mut disks, mut failed) = (Vec::new(), None);
    for interface in host.os().device_interfaces(DISK_INTERFACE)? {
        let opened = host.os().open(&NtPath::from_win32(&interface), &OPEN_FOR_QUERY);
        // A disk that is removed while the list is read is left out.
        let found = opened.and_then(|handle| Ok(device_number(&*handle)?.map(|number| Disk { number, handle })));
        match found {
            Ok(disk) => disks.extend(disk),
            Err(code) if ErrorClass::DeviceRemoved.contains(code) => {}
            Err(code) => {
                tracing::warn!(interface = %interface.display(), %code, "left out a disk that could not be opened");
                failed = failed.or(Some(code));
            }
        }
    }
    disks.sort_unstable_by_key(|disk: &Disk| disk.number);
    Ok((disks, failed))
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

    use os::abi::{ControlCode, DEVICE_TYPE_DISK, DiskAttributes, SetDiskAttributes, StorageDeviceNumber};
    use os::{FileInfo, FsInfo, Handle, NtPath, Open, Os, OsError, OsResult, PathForm, U16Str, U16String};
    use zerocopy::{FromBytes, IntoBytes};

    use super::{Disk, OPEN_FOR_QUERY, device_number};
    use crate::error::Kind;
    use crate::types::DiskNumber;

    /// A device with a fixed number that records the attributes it is given.
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
    fn a_disk_that_has_another_number_when_it_is_open_is_not_found() {
        let sim = os_sim::node().disk(1 << 30).disk(1 << 30).build();
        let open = |number| Disk::from_handle(DiskNumber(number), sim.open(&NtPath::disk(2), &OPEN_FOR_QUERY).unwrap());
        assert_eq!(open(2).ok().map(|disk| disk.number), Some(DiskNumber(2)));
        assert_eq!(open(1).err().map(|error| error.kind), Some(Kind::NotFound));
    }

    #[test]
    fn a_disk_whose_number_changes_while_it_is_open_is_refused() {
        let disk = |number| Disk { number: DiskNumber(number), handle: Box::new(Device::new(DEVICE_TYPE_DISK, 1)) };
        assert_eq!(disk(1).check_number(), Ok(()));
        assert_eq!(disk(2).check_number().err().map(|error| error.kind), Some(Kind::FailedPrecondition));
    }

    #[test]
    fn attributes_are_set_persistently_and_only_those_in_the_mask() {
        let device = Device::new(DEVICE_TYPE_DISK, 1);
        let disk = Disk { number: DiskNumber(1), handle: Box::new(device.clone()) };
        disk.set_attributes(0, DiskAttributes::OFFLINE).unwrap();
        let given = device.given.lock().unwrap();
        let given: Vec<_> = given.iter().map(|set| (set.persist, set.attributes, set.attributes_mask)).collect();
        assert_eq!(given, [(1, 0, DiskAttributes::OFFLINE)]);
    }
}
