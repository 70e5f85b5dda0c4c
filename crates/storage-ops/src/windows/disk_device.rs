//! A disk as a device: finding it, its size, attributes and partition table.

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

/// Opening a device for queries alone.
pub(crate) const QUERY: Open = Open::existing(Access::empty(), Options::empty());

/// Room for a layout of some thirty partitions; more is asked for when needed.
const LAYOUT: usize = 4800;

/// An open disk whose number was just now what it was asked for.
pub(crate) struct Disk {
    pub(crate) number: DiskNumber,
    pub(crate) handle: Box<dyn Handle>,
}

impl Disk {
    /// Opens the disk `number`.
    pub(crate) fn open(host: &Host, number: DiskNumber, access: Access) -> OperationResult<Self> {
        let how = Open { access, ..QUERY };
        let handle = host.os().open(&NtPath::disk(number.0), &how).map_err(|code| missing(code, number))?;
        Self::opened(number, handle)
    }

    /// The disk behind `handle`, if its number is `number`.
    fn opened(number: DiskNumber, handle: Box<dyn Handle>) -> OperationResult<Self> {
        if device_number(&*handle)? == Some(number) {
            return Ok(Self { number, handle });
        }
        Err(OperationError::not_found(format!("there is no {number}")))
    }

    /// Checks that the handle is still on the disk of that number: numbers are given anew, devices are not.
    pub(crate) fn check_number(&self) -> OperationResult<()> {
        if device_number(&*self.handle)? == Some(self.number) {
            return Ok(());
        }
        Err(OperationError::precondition(format!("{} has become another disk meanwhile", self.number)))
    }

    /// Its size in bytes, as the device says it now.
    pub(crate) fn size(&self) -> OsResult<u64> {
        // Without this the size from before the disk grew may be what is answered, which is still better than none.
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

    /// Its geometry, of which the size and the sector's size are true.
    pub(crate) fn geometry(&self) -> OsResult<DiskGeometryEx> {
        buffer::control(&*self.handle, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[])
    }

    /// Makes the system look at the disk's size and partitions again.
    pub(crate) fn update(&self) -> OsResult<()> {
        match buffer::send(&*self.handle, ControlCode::DISK_UPDATE_PROPERTIES, &[]) {
            Err(code) if ErrorClass::Unsupported.contains(code) => Ok(()),
            outcome => outcome,
        }
    }

    /// Its partition table.
    pub(crate) fn partition_table(&self) -> OperationResult<PartitionTable> {
        let buffer = buffer::control_grown(&*self.handle, ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], LAYOUT)?;
        PartitionTable::parse(&buffer)
            .ok_or_else(|| OperationError::of(OsError::GEN_FAILURE, "its partition table cannot be read"))
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
pub(crate) fn all(host: &Host) -> OperationResult<(Vec<Disk>, Option<OsError>)> {
    let (mut disks, mut failed) = (Vec::new(), None);
    for interface in host.os().device_interfaces(DISK_INTERFACE)? {
        let opened = host.os().open(&NtPath::from_win32(&interface), &QUERY);
        // A disk that vanishes while the list is walked is simply not on it.
        let found = opened.and_then(|handle| Ok(device_number(&*handle)?.map(|number| Disk { number, handle })));
        match found {
            Ok(disk) => disks.extend(disk),
            Err(code) if ErrorClass::DeviceRemoved.contains(code) => {}
            Err(code) => {
                tracing::warn!(interface = %interface.display(), %code, "a disk is left out");
                failed = failed.or(Some(code));
            }
        }
    }
    disks.sort_unstable_by_key(|disk: &Disk| disk.number);
    Ok((disks, failed))
}

fn missing(code: OsError, number: DiskNumber) -> OperationError {
    if ErrorClass::DeviceRemoved.contains(code) {
        OperationError::not_found(format!("there is no {number} ({})", code.0))
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

    use super::{Disk, QUERY, device_number};
    use crate::error::Kind;
    use crate::types::DiskNumber;

    /// A device that says which it is and keeps the attributes it is given.
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
    fn only_a_disk_has_the_number_of_a_disk() {
        const CD_ROM: u32 = 2;
        let number = |device_type, number| device_number(&Device::new(device_type, number)).unwrap();
        assert_eq!(number(DEVICE_TYPE_DISK, 3), Some(DiskNumber(3)));
        assert_eq!(number(CD_ROM, 3), None);
        // What a member of a pool, or of several paths, answers.
        assert_eq!(number(DEVICE_TYPE_DISK, u32::MAX), None);
    }

    #[test]
    fn a_disk_that_has_another_number_once_it_is_open_is_refused() {
        let sim = os_sim::node().disk(1 << 30).disk(1 << 30).build();
        let open = |number| Disk::opened(DiskNumber(number), sim.open(&NtPath::disk(2), &QUERY).unwrap());
        assert_eq!(open(2).ok().map(|disk| disk.number), Some(DiskNumber(2)));
        assert_eq!(open(1).err().map(|fault| fault.kind), Some(Kind::NotFound));
    }

    #[test]
    fn a_disk_that_has_become_another_under_its_handle_is_noticed() {
        let disk = |number| Disk { number: DiskNumber(number), handle: Box::new(Device::new(DEVICE_TYPE_DISK, 1)) };
        assert_eq!(disk(1).check_number(), Ok(()));
        assert_eq!(disk(2).check_number().err().map(|fault| fault.kind), Some(Kind::FailedPrecondition));
    }

    #[test]
    fn attributes_are_set_for_good_and_no_others_with_them() {
        let device = Device::new(DEVICE_TYPE_DISK, 1);
        let disk = Disk { number: DiskNumber(1), handle: Box::new(device.clone()) };
        disk.set_attributes(0, DiskAttributes::OFFLINE).unwrap();
        let given = device.given.lock().unwrap();
        let given: Vec<_> = given.iter().map(|set| (set.persist, set.attributes, set.attributes_mask)).collect();
        assert_eq!(given, [(1, 0, DiskAttributes::OFFLINE)]);
    }
}
