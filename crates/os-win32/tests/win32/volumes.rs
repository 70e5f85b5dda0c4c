//! Tests of volumes, disks and mount points, as far as the machine has them.

use std::fs;

use crate::scratch::{Scratch, directory, wide};
use crate::skip::skipped_by_wine;
use os::abi::{
    ControlCode, DEVICE_TYPE_DISK, DISK_INTERFACE, DiskAttributes, DiskExtent, DiskGeometryEx, DriveLayout,
    FsAttributeInformation, FsFullSizeInformation, LengthInformation, STORAGE_PORT_INTERFACE, StorageDeviceDescriptor,
    StorageDeviceIdDescriptor, StorageDeviceNumber, StoragePropertyQuery, VolumeDiskExtents,
};
use os::{Access, FsInfo, Handle, NtPath, Open, Options, Os as _, OsError, PathForm, U16String};
use zerocopy::{FromBytes, IntoBytes};

use csi_proxy_os_win32::Windows;

fn system_drive() -> Box<dyn Handle> {
    Windows::new().open(&NtPath::drive_root('C'), &directory()).unwrap()
}

/// Returns the name of the volume of drive C:.
fn system_volume() -> U16String {
    system_drive().final_path(PathForm::VolumeGuid).unwrap()
}

/// Opens the system volume as a device: by its name without the final backslash, which would open the root directory.
fn system_volume_device(access: Access) -> Box<dyn Handle> {
    let name = system_volume().to_string().unwrap();
    let path = NtPath::from_win32(&wide(name.trim_end_matches('\\')));
    Windows::new().open(&path, &Open::existing(access, Options::empty())).unwrap()
}

/// Sends a control code and returns the first `T` of the answer.
fn ask<T: FromBytes>(device: &dyn Handle, code: ControlCode, input: &[u8]) -> Result<T, OsError> {
    let mut output = vec![0; 4096];
    let size = device.control(code, input, &mut output)?;
    Ok(T::read_from_prefix(&output[..size]).expect("the answer is long enough").0)
}

#[test]
fn the_system_drives_volume_is_among_the_volumes() {
    let volumes = Windows::new().volumes().unwrap();
    assert!(volumes.contains(&system_volume()), "{volumes:?}");
    for volume in volumes {
        let name = volume.to_string().unwrap();
        assert!(name.starts_with(r"\\?\Volume{") && name.ends_with(r"}\") && name.len() == 49, "{name}");
    }
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
    assert_eq!(drive.query_fs(FsInfo::FullSize, &mut buffer), Ok(buffer.len()));
    let full = FsFullSizeInformation::read_from_bytes(&buffer).unwrap();
    assert!(full.total_units >= full.available_units && full.available_units >= full.caller_available_units);
    assert!(full.bytes_per_sector.is_power_of_two() && full.sectors_per_unit > 0 && full.total_units > 0);
}

#[test]
fn a_buffer_too_small_for_the_name_of_the_file_system_is_an_error() {
    let mut buffer = [0; FsAttributeInformation::NAME_OFFSET + 4];
    let answer = system_drive().query_fs(FsInfo::Attribute, &mut buffer);
    match answer {
        Err(OsError::MORE_DATA) => {}
        other => skipped_by_wine(&format!("NtQueryVolumeInformationFile returns {other:?}")),
    }
}

#[test]
fn a_volume_returns_its_disk_number_without_any_access_right() {
    let volume = system_volume_device(Access::empty());
    let number: StorageDeviceNumber = ask(&*volume, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[]).unwrap();
    assert_eq!(number.device_type, DEVICE_TYPE_DISK);
    let disk = Windows::new()
        .open(&NtPath::disk(number.device_number), &Open::existing(Access::empty(), Options::empty()))
        .unwrap();
    let again: StorageDeviceNumber = ask(&*disk, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[]).unwrap();
    assert_eq!((again.device_type, again.device_number), (DEVICE_TYPE_DISK, number.device_number));
}

#[test]
fn a_volume_returns_its_disk_extents() {
    let volume = system_volume_device(Access::empty());
    let mut output = vec![0; 4096];
    let size = match volume.control(ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS, &[], &mut output) {
        Ok(size) => size,
        Err(error) => return skipped_by_wine(&format!("IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS: {error}")),
    };
    let (head, extents) = VolumeDiskExtents::read_from_prefix(&output[..size]).unwrap();
    if head.count == 0 {
        return skipped_by_wine("a volume has no extents");
    }
    assert!(extents.len() >= size_of::<DiskExtent>() * head.count as usize);
}

#[test]
fn an_answer_that_does_not_fit_is_an_error() {
    let volume = system_volume_device(Access::empty());
    let answer = volume.control(ControlCode::STORAGE_GET_DEVICE_NUMBER, &[], &mut [0; 4]);
    match answer {
        Err(OsError::INSUFFICIENT_BUFFER | OsError::INVALID_PARAMETER) => {}
        Err(error) => panic!("{error}"),
        Ok(_) => skipped_by_wine("a device number is truncated"),
    }
}

#[test]
fn a_control_code_without_the_access_right_is_refused() {
    let disk = Windows::new().open(&NtPath::disk(0), &Open::existing(Access::empty(), Options::empty())).unwrap();
    let length = ask::<LengthInformation>(&*disk, ControlCode::DISK_GET_LENGTH_INFO, &[]);
    assert_eq!(length.err(), Some(OsError::ACCESS_DENIED));
}

/// Sends the first disk the control codes of every read, and prints those it does not support.
#[test]
fn the_first_disk_supports_every_control_code_that_is_sent_to_disks() {
    let disk = Windows::new().open(&NtPath::disk(0), &Open::existing(Access::empty(), Options::empty())).unwrap();
    let property = |property_id| StoragePropertyQuery { property_id, ..StoragePropertyQuery::default() };
    let query = ControlCode::STORAGE_QUERY_PROPERTY;
    let device = property(StoragePropertyQuery::DEVICE);
    let device_id = property(StoragePropertyQuery::DEVICE_ID);
    let results = [
        ("geometry", ask::<DiskGeometryEx>(&*disk, ControlCode::DISK_GET_DRIVE_GEOMETRY_EX, &[]).err()),
        ("device property", ask::<StorageDeviceDescriptor>(&*disk, query, device.as_bytes()).err()),
        ("device id property", ask::<StorageDeviceIdDescriptor>(&*disk, query, device_id.as_bytes()).err()),
        ("attributes", ask::<DiskAttributes>(&*disk, ControlCode::DISK_GET_DISK_ATTRIBUTES, &[]).err()),
        ("layout", ask::<DriveLayout>(&*disk, ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[]).err()),
        ("update", disk.control(ControlCode::DISK_UPDATE_PROPERTIES, &[], &mut []).err()),
    ];
    let mut unsupported = Vec::new();
    for (what, error) in results {
        match error {
            None => {}
            Some(error @ (OsError::NOT_SUPPORTED | OsError::INVALID_FUNCTION)) => {
                unsupported.push(format!("{what}: {error}"));
            }
            Some(error) => panic!("{what}: {error}"),
        }
    }
    if !unsupported.is_empty() {
        skipped_by_wine(&unsupported.join(", "));
    }
}

#[test]
fn every_disk_interface_is_a_disk() {
    let windows = Windows::new();
    let interfaces = match windows.device_interfaces(DISK_INTERFACE) {
        Ok(interfaces) => interfaces,
        Err(error) => return skipped_by_wine(&format!("CM_Get_Device_Interface_List_SizeW: {error}")),
    };
    assert!(!interfaces.is_empty());
    for interface in interfaces {
        let disk =
            windows.open(&NtPath::from_win32(&interface), &Open::existing(Access::empty(), Options::empty())).unwrap();
        let number: StorageDeviceNumber = ask(&*disk, ControlCode::STORAGE_GET_DEVICE_NUMBER, &[]).unwrap();
        assert_eq!(number.device_type, DEVICE_TYPE_DISK);
    }
}

#[test]
fn a_storage_port_can_be_enumerated_again() {
    let windows = Windows::new();
    let ports = match windows.device_interfaces(STORAGE_PORT_INTERFACE) {
        Ok(ports) => ports,
        Err(error) => return skipped_by_wine(&format!("CM_Get_Device_Interface_List_SizeW: {error}")),
    };
    assert!(!ports.is_empty());
    for port in ports {
        windows.reenumerate(&port).unwrap();
    }
}

#[test]
fn deleting_a_mount_point_that_does_not_exist_is_an_error() {
    let scratch = Scratch::new("unmount");
    fs::create_dir(scratch.join("plain")).unwrap();
    let directory = U16String::from_os_str(&format!(r"{}\", scratch.join("plain").display()));
    match scratch.windows.delete_volume_mount_point(&directory) {
        Err(OsError::NOT_A_REPARSE_POINT) => {}
        // Wine fails without setting the last error, so the code is that of an earlier call.
        other => skipped_by_wine(&format!("DeleteVolumeMountPointW returns {other:?}")),
    }
}

#[test]
fn a_mount_point_leads_to_its_volume_until_it_is_deleted() {
    let scratch = Scratch::new("mount");
    fs::create_dir(scratch.join("mount")).unwrap();
    let directory = U16String::from_os_str(&format!(r"{}\", scratch.join("mount").display()));
    match scratch.windows.set_volume_mount_point(&directory, &system_volume()) {
        Ok(()) => {}
        Err(error @ OsError::CALL_NOT_IMPLEMENTED) => {
            return skipped_by_wine(&format!("SetVolumeMountPointW: {error}"));
        }
        Err(error) => panic!("{error}"),
    }
    let through = scratch.windows.open(&NtPath::from_win32(&directory), &self::directory()).unwrap();
    assert_eq!(through.final_path(PathForm::VolumeGuid), Ok(system_volume()));
    drop(through);
    scratch.windows.delete_volume_mount_point(&directory).unwrap();
    let plain = scratch.windows.open(&NtPath::from_win32(&directory), &self::directory()).unwrap();
    assert_ne!(plain.final_path(PathForm::VolumeGuid), Ok(system_volume()));
}

#[test]
fn a_name_that_contains_a_zero_is_invalid() {
    let windows = Windows::new();
    let name = wide("C:\\a\0b\\");
    assert_eq!(windows.delete_volume_mount_point(&name), Err(OsError::INVALID_NAME));
    assert_eq!(windows.set_volume_mount_point(&name, &system_volume()), Err(OsError::INVALID_NAME));
    assert_eq!(windows.reenumerate(&name), Err(OsError::INVALID_NAME));
    assert_eq!(windows.open_service(&name, os::ServiceAccess::Query).err(), Some(OsError::INVALID_NAME));
}

#[test]
fn a_volume_can_be_flushed() {
    let name = system_volume().to_string().unwrap();
    let path = NtPath::from_win32(&wide(name.trim_end_matches('\\')));
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let volume = match Windows::new().open(&path, &Open::existing(access, Options::empty())) {
        Ok(volume) => volume,
        Err(error) => return skipped_by_wine(&format!("the volume cannot be opened for writing: {error}")),
    };
    if let Err(error) = volume.flush() {
        skipped_by_wine(&format!("FlushFileBuffers: {error}"));
    }
}
