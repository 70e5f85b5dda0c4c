//! Virtual disks in files (VHDX), which programs for tests attach.
//!
//! csi-proxy attaches no disks. The feature `virtual-disk` therefore keeps this module out of the
//! program that is shipped.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::path::Path;
use std::ptr;

use widestring::{U16CStr, U16CString};
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, HANDLE};
use windows_sys::Win32::Storage::Vhd::{
    CREATE_VIRTUAL_DISK_FLAG_NONE, CREATE_VIRTUAL_DISK_PARAMETERS, CREATE_VIRTUAL_DISK_VERSION_2,
    CreateVirtualDisk, GetVirtualDiskPhysicalPath, OPEN_VIRTUAL_DISK_FLAG_NONE, OpenVirtualDisk,
    VIRTUAL_DISK_ACCESS_GET_INFO, VIRTUAL_DISK_ACCESS_NONE, VIRTUAL_STORAGE_TYPE,
    VIRTUAL_STORAGE_TYPE_DEVICE_VHDX, VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT,
};

static VHDX: VIRTUAL_STORAGE_TYPE = VIRTUAL_STORAGE_TYPE {
    DeviceId: VIRTUAL_STORAGE_TYPE_DEVICE_VHDX,
    VendorId: VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT,
};

/// The longest path of a disk in UTF-16 code units, of which `\\.\PhysicalDrive4294967295` needs 28.
const LONGEST_PATH: usize = 64;

/// Creates a virtual disk that grows up to `size` bytes, with logical and physical sectors of
/// `sector_size` bytes, which must be 512 or 4096. Does not attach the disk.
///
/// <https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-createvirtualdisk>
pub fn create(file: &Path, size: u64, sector_size: u32) -> io::Result<()> {
    let path = U16CString::from_os_str(file).map_err(io::Error::other)?;
    let mut parameters = CREATE_VIRTUAL_DISK_PARAMETERS {
        Version: CREATE_VIRTUAL_DISK_VERSION_2,
        ..Default::default()
    };
    parameters.Anonymous.Version2.MaximumSize = size;
    parameters.Anonymous.Version2.SectorSizeInBytes = sector_size;
    parameters.Anonymous.Version2.PhysicalSectorSizeInBytes = sector_size;
    let mut handle: HANDLE = ptr::null_mut();
    // SAFETY: the path is zero-terminated; the storage type and the parameters, whose version says
    // which member of the union is set, outlive the call; `handle` is writable; without an
    // `OVERLAPPED`, the call returns when the disk is created.
    let code = unsafe {
        CreateVirtualDisk(
            &raw const VHDX,
            path.as_ptr(),
            VIRTUAL_DISK_ACCESS_NONE,
            ptr::null_mut(),
            CREATE_VIRTUAL_DISK_FLAG_NONE,
            0,
            &raw const parameters,
            ptr::null(),
            &raw mut handle,
        )
    };
    owned(code, handle).map(drop)
}

/// Returns the number of the disk that Windows shows for an attached file.
///
/// <https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-getvirtualdiskphysicalpath>
pub fn number(file: &Path) -> io::Result<u32> {
    let path = U16CString::from_os_str(file).map_err(io::Error::other)?;
    let mut handle: HANDLE = ptr::null_mut();
    // SAFETY: the path is zero-terminated; the storage type outlives the call; the parameters may be
    // null; `handle` is writable.
    let code = unsafe {
        OpenVirtualDisk(
            &raw const VHDX,
            path.as_ptr(),
            VIRTUAL_DISK_ACCESS_GET_INFO,
            OPEN_VIRTUAL_DISK_FLAG_NONE,
            ptr::null(),
            &raw mut handle,
        )
    };
    let disk = owned(code, handle)?;
    let mut disk_path = [0; LONGEST_PATH];
    let mut size = u32::try_from(size_of_val(&disk_path)).map_err(io::Error::other)?;
    // SAFETY: the handle is open, and `size` is the size of the buffer in bytes.
    let code = unsafe {
        GetVirtualDiskPhysicalPath(disk.as_raw_handle(), &raw mut size, disk_path.as_mut_ptr())
    };
    succeeded(code)?;
    let disk_path = U16CStr::from_slice_truncate(&disk_path)
        .map_err(io::Error::other)?
        .to_string_lossy();
    let number = disk_path.strip_prefix(r"\\.\PhysicalDrive");
    number
        .and_then(|number| number.parse().ok())
        .ok_or(io::ErrorKind::InvalidData.into())
}

fn owned(code: u32, handle: HANDLE) -> io::Result<OwnedHandle> {
    succeeded(code)?;
    // SAFETY: a call that has succeeded has opened the handle, which nothing else closes.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn succeeded(code: u32) -> io::Result<()> {
    match code {
        ERROR_SUCCESS => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.cast_signed())),
    }
}
