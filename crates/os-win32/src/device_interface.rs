//! Device interfaces, through the configuration manager (`CM_*` functions).

use std::ptr;

use os::{OsError, OsResult, U16Str, U16String, Uuid};
use widestring::U16CString;
use windows_sys::Win32::Devices::DeviceAndDriverInstallation::{
    CM_GET_DEVICE_INTERFACE_LIST_PRESENT, CM_Get_Device_Interface_List_SizeW,
    CM_Get_Device_Interface_ListW, CM_Get_Device_Interface_PropertyW, CM_LOCATE_DEVNODE_NORMAL,
    CM_Locate_DevNodeW, CM_REENUMERATE_SYNCHRONOUS, CM_Reenumerate_DevNode, CONFIGRET,
    CR_ACCESS_DENIED, CR_BUFFER_SMALL, CR_CALL_NOT_IMPLEMENTED, CR_INVALID_DEVICE_ID,
    CR_NO_SUCH_DEVICE_INTERFACE, CR_NO_SUCH_DEVNODE, CR_OUT_OF_MEMORY, CR_SUCCESS,
};
use windows_sys::Win32::Devices::Properties::{DEVPKEY_Device_InstanceId, DEVPROP_TYPE_STRING};
use windows_sys::core::GUID;

use crate::{buffer, error};

/// Returns the paths of all interfaces of `class` that are present.
pub(crate) fn interfaces(class: Uuid) -> OsResult<Vec<U16String>> {
    let class = GUID::from_u128(class.as_u128());
    loop {
        let mut length = 0;
        // SAFETY: both pointers are to locals that outlive the call; a null device id selects all
        // devices.
        check(unsafe {
            CM_Get_Device_Interface_List_SizeW(
                &raw mut length,
                &raw const class,
                ptr::null(),
                CM_GET_DEVICE_INTERFACE_LIST_PRESENT,
            )
        })?;
        let mut list = vec![0_u16; length as usize];
        // SAFETY: as above; the pointer and the length are those of `list`, which outlives the
        // call.
        let code = unsafe {
            CM_Get_Device_Interface_ListW(
                &raw const class,
                ptr::null(),
                list.as_mut_ptr(),
                length,
                CM_GET_DEVICE_INTERFACE_LIST_PRESENT,
            )
        };
        // The buffer is too small if a device arrived between the two calls.
        if code != CR_BUFFER_SMALL {
            check(code)?;
            return Ok(buffer::strings(&list));
        }
    }
}

/// Enumerates the children of the device of `interface` again.
pub(crate) fn reenumerate(interface: &U16Str) -> OsResult<()> {
    let instance = instance_id(interface)?;
    let mut node = 0;
    // SAFETY: `node` outlives the call; the id is zero-terminated.
    check(unsafe {
        CM_Locate_DevNodeW(&raw mut node, instance.as_ptr(), CM_LOCATE_DEVNODE_NORMAL)
    })?;
    // SAFETY: the function has only numbers as parameters.
    check(unsafe { CM_Reenumerate_DevNode(node, CM_REENUMERATE_SYNCHRONOUS) })
}

/// Returns the instance id of the device of `interface`.
fn instance_id(interface: &U16Str) -> OsResult<U16CString> {
    type Id = [u16; 200]; // MAX_DEVICE_ID_LEN
    let interface = error::terminated(interface)?;
    let mut id: Id = [0; 200];
    let mut size = buffer::size::<Id>();
    let mut kind = 0;
    let key = DEVPKEY_Device_InstanceId;
    // SAFETY: the path is zero-terminated, the other pointers are to locals that outlive the call,
    // and `size` is the size of `id` in bytes.
    check(unsafe {
        CM_Get_Device_Interface_PropertyW(
            interface.as_ptr(),
            &raw const key,
            &raw mut kind,
            id.as_mut_ptr().cast(),
            &raw mut size,
            0,
        )
    })?;
    if kind != DEVPROP_TYPE_STRING {
        return Err(OsError::GEN_FAILURE);
    }
    Ok(U16CString::from_vec_truncate(id))
}

/// Converts a result of the configuration manager.
///
/// `CM_MapCrToWin32Err` converts a few more codes, but csi-proxy distinguishes none of them, and
/// Wine 8 does not have the function.
fn check(code: CONFIGRET) -> OsResult<()> {
    Err(match code {
        CR_SUCCESS => return Ok(()),
        CR_ACCESS_DENIED => OsError::ACCESS_DENIED,
        CR_OUT_OF_MEMORY => OsError::NOT_ENOUGH_MEMORY,
        CR_BUFFER_SMALL => OsError::INSUFFICIENT_BUFFER,
        CR_CALL_NOT_IMPLEMENTED => OsError::CALL_NOT_IMPLEMENTED,
        CR_NO_SUCH_DEVNODE | CR_NO_SUCH_DEVICE_INTERFACE | CR_INVALID_DEVICE_ID => {
            OsError::FILE_NOT_FOUND
        }
        _ => OsError::GEN_FAILURE,
    })
}
