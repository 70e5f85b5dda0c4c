//! Virtual disks in files (VHDX), which programs for tests attach.
//!
//! csi-proxy attaches no disks. The feature `virtual-disk` therefore keeps this module out of the
//! program that is shipped.

use std::io;
use std::os::windows::io::{FromRawHandle as _, OwnedHandle};
use std::path::Path;
use std::ptr;

use widestring::U16CString;
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, HANDLE};
use windows_sys::Win32::Storage::Vhd::{
    CREATE_VIRTUAL_DISK_FLAG_NONE, CREATE_VIRTUAL_DISK_PARAMETERS, CREATE_VIRTUAL_DISK_VERSION_2,
    CreateVirtualDisk, VIRTUAL_DISK_ACCESS_NONE, VIRTUAL_STORAGE_TYPE,
    VIRTUAL_STORAGE_TYPE_DEVICE_VHDX, VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT,
};

static VHDX: VIRTUAL_STORAGE_TYPE = VIRTUAL_STORAGE_TYPE {
    DeviceId: VIRTUAL_STORAGE_TYPE_DEVICE_VHDX,
    VendorId: VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT,
};

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
    if code != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(code.cast_signed()));
    }
    // SAFETY: the call has succeeded and has opened the handle, which nothing else closes.
    drop(unsafe { OwnedHandle::from_raw_handle(handle) });
    Ok(())
}
