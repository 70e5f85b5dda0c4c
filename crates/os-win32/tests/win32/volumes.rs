//! Tests of volumes, disks and mount points, as far as the machine has them.

use crate::scratch::{directory, wide};
use crate::skip::skipped_by_wine;
use os::abi::{
    ControlCode, DiskAttributes, DiskGeometryEx, DriveLayout, FsAttributeInformation,
    FsFullSizeInformation, StorageDeviceDescriptor, StorageDeviceIdDescriptor,
    StoragePropertyQuery,
};
use os::{Access, FsInfo, Handle, NtPath, Open, Options, Os as _, OsError, PathForm, U16String};
use zerocopy::{FromBytes, IntoBytes};

use csi_proxy_os_win32::Windows;

fn system_drive() -> Box<dyn Handle> {
    Windows::new()
        .open(&NtPath::drive_root('C'), &directory())
        .unwrap()
}

/// Returns the name of the volume of drive C:.
fn system_volume() -> U16String {
    system_drive().final_path(PathForm::VolumeGuid).unwrap()
}

/// Sends a control code and returns the first `T` of the answer.
fn ask<T: FromBytes>(device: &dyn Handle, code: ControlCode, input: &[u8]) -> Result<T, OsError> {
    let mut output = vec![0; 4096];
    let size = device.control(code, input, &mut output)?;
    Ok(T::read_from_prefix(&output[..size])
        .expect("the answer is long enough")
        .0)
}

#[test]
fn a_file_system_returns_its_name_and_size() {
    let drive = system_drive();
    let mut buffer = [0; 512];
    let size = drive.query_fs(FsInfo::Attribute, &mut buffer).unwrap();
    let (head, _) = FsAttributeInformation::read_from_prefix(&buffer[..size]).unwrap();
    let name = &buffer[FsAttributeInformation::NAME_OFFSET..][..head.name_length as usize];
    assert_eq!(name, wide("NTFS").as_slice().as_bytes());
    assert_eq!(size, FsAttributeInformation::NAME_OFFSET + name.len());

    let mut buffer = [0; size_of::<FsFullSizeInformation>()];
    assert_eq!(
        drive.query_fs(FsInfo::FullSize, &mut buffer),
        Ok(buffer.len())
    );
    let full = FsFullSizeInformation::read_from_bytes(&buffer).unwrap();
    assert!(
        full.total_units >= full.available_units
            && full.available_units >= full.caller_available_units
    );
    assert!(
        full.bytes_per_sector.is_power_of_two()
            && full.sectors_per_unit > 0
            && full.total_units > 0
    );
}

#[test]
fn a_buffer_too_small_for_the_name_of_the_file_system_is_an_error() {
    let mut buffer = [0; FsAttributeInformation::NAME_OFFSET + 4];
    let answer = system_drive().query_fs(FsInfo::Attribute, &mut buffer);
    if answer == Ok(buffer.len()) {
        return skipped_by_wine("NtQueryVolumeInformationFile truncates the name without an error");
    }
    assert_eq!(answer, Err(OsError::MORE_DATA));
}

/// Sends the first disk the control codes of every read.
#[test]
fn the_first_disk_supports_every_control_code_that_is_sent_to_disks() {
    let disk = Windows::new()
        .open(
            &NtPath::disk(0),
            &Open::existing(Access::empty(), Options::empty()),
        )
        .unwrap();
    let property = |property_id| StoragePropertyQuery {
        property_id,
        ..StoragePropertyQuery::default()
    };
    let query = ControlCode::STORAGE_QUERY_PROPERTY;
    let device = property(StoragePropertyQuery::DEVICE);
    let device_id = property(StoragePropertyQuery::DEVICE_ID);
    assert_eq!(
        ask::<DiskGeometryEx>(&*disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[]).err(),
        None
    );
    assert_eq!(
        ask::<StorageDeviceDescriptor>(&*disk, query, device.as_bytes()).err(),
        None
    );
    let errors = [
        ask::<StorageDeviceIdDescriptor>(&*disk, query, device_id.as_bytes()).err(),
        ask::<DiskAttributes>(&*disk, ControlCode::DISK_GET_DISK_ATTRIBUTES, &[]).err(),
        ask::<DriveLayout>(&*disk, ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[]).err(),
        disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut [])
            .err(),
    ];
    if errors == [Some(OsError::NOT_SUPPORTED); 4] {
        return skipped_by_wine("a disk has no device id property, attributes, layout or update");
    }
    assert_eq!(errors, [None; 4]);
}

#[test]
fn a_name_that_contains_a_zero_is_invalid() {
    let windows = Windows::new();
    let name = wide("C:\\a\0b\\");
    assert_eq!(
        windows.delete_volume_mount_point(&name),
        Err(OsError::INVALID_NAME)
    );
    assert_eq!(
        windows.set_volume_mount_point(&name, &system_volume()),
        Err(OsError::INVALID_NAME)
    );
    assert_eq!(windows.reenumerate(&name), Err(OsError::INVALID_NAME));
    assert_eq!(
        windows.open_service(&name, os::ServiceAccess::Query).err(),
        Some(OsError::INVALID_NAME)
    );
}

#[test]
fn a_volume_can_be_flushed() {
    let name = system_volume().to_string().unwrap();
    let path = NtPath::from_win32(&wide(name.trim_end_matches('\\')));
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let volume = Windows::new()
        .open(&path, &Open::existing(access, Options::empty()))
        .unwrap();
    let flushed = volume.flush();
    if flushed == Err(OsError::INVALID_FUNCTION) {
        return skipped_by_wine("FlushFileBuffers of a volume is an invalid function");
    }
    assert_eq!(flushed, Ok(()));
}
