//! The mount manager: the names of all volumes, and their mount points.

use os::{OsError, OsResult, U16Str, U16String};
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    DeleteVolumeMountPointW, FindFirstVolumeW, FindNextVolumeW, FindVolumeClose,
    GetVolumePathNamesForVolumeNameW, SetVolumeMountPointW,
};

use crate::{buffer, error};

/// The capacity of the buffer for a volume name, twice the 49 characters and the zero that a name
/// has.
const NAME_CAPACITY: u32 = 100;

type Name = [u16; NAME_CAPACITY as usize];

/// An enumeration of all volumes.
struct VolumeSearch(HANDLE);

impl VolumeSearch {
    /// Starts the enumeration and writes the name of the first volume.
    fn begin(name: &mut Name) -> OsResult<Self> {
        // SAFETY: the pointer and the length are those of `name`, which outlives the call.
        let handle = unsafe { FindFirstVolumeW(name.as_mut_ptr(), NAME_CAPACITY) };
        if handle == INVALID_HANDLE_VALUE {
            Err(error::last())
        } else {
            Ok(Self(handle))
        }
    }

    /// Writes the name of the next volume.
    fn next(&self, name: &mut Name) -> OsResult<()> {
        // SAFETY: the handle is open until this value is dropped; the pointer and the length are
        // those of `name`.
        error::check(unsafe { FindNextVolumeW(self.0, name.as_mut_ptr(), NAME_CAPACITY) })
    }
}

impl Drop for VolumeSearch {
    fn drop(&mut self) {
        // SAFETY: the handle is from FindFirstVolumeW and has no other owner.
        unsafe { FindVolumeClose(self.0) };
    }
}

/// Returns the names of all volumes.
pub(crate) fn volumes() -> OsResult<Vec<U16String>> {
    let mut name: Name = [0; NAME_CAPACITY as usize];
    let search = match VolumeSearch::begin(&mut name) {
        Ok(search) => search,
        Err(OsError::NO_MORE_FILES) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut volumes = Vec::new();
    loop {
        volumes.push(
            name.iter()
                .copied()
                .take_while(|&unit| unit != 0)
                .collect::<Vec<u16>>()
                .into(),
        );
        match search.next(&mut name) {
            Ok(()) => {}
            Err(OsError::NO_MORE_FILES) => return Ok(volumes),
            Err(error) => return Err(error),
        }
    }
}

/// Returns the drive letters and mounted folders of `volume`.
pub(crate) fn volume_paths(volume: &U16Str) -> OsResult<Vec<U16String>> {
    let volume = error::terminated(volume)?;
    let mut capacity = 1024;
    loop {
        let mut names = vec![0; capacity as usize];
        let mut needed = 0;
        // SAFETY: the string is zero-terminated; the pointer and the capacity are those of `names`;
        // all outlive the call.
        let done = error::check(unsafe {
            GetVolumePathNamesForVolumeNameW(
                volume.as_ptr(),
                names.as_mut_ptr(),
                capacity,
                &raw mut needed,
            )
        });
        match done {
            Err(OsError::MORE_DATA) if needed > capacity => capacity = needed,
            Err(code) => return Err(code),
            Ok(()) => return Ok(buffer::strings(&names)),
        }
    }
}

/// Mounts `volume` at `directory`.
pub(crate) fn set_mount_point(directory: &U16Str, volume: &U16Str) -> OsResult<()> {
    let (directory, volume) = (error::terminated(directory)?, error::terminated(volume)?);
    // SAFETY: both strings are zero-terminated and outlive the call.
    error::check(unsafe { SetVolumeMountPointW(directory.as_ptr(), volume.as_ptr()) })
}

/// Removes the mount point at `directory`.
pub(crate) fn delete_mount_point(directory: &U16Str) -> OsResult<()> {
    let directory = error::terminated(directory)?;
    // SAFETY: the string is zero-terminated and outlives the call.
    error::check(unsafe { DeleteVolumeMountPointW(directory.as_ptr()) })
}
