//! Volumes and where they are mounted.

use os::{OsError, OsResult, U16Str, U16String};
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    DeleteVolumeMountPointW, FindFirstVolumeW, FindNextVolumeW, FindVolumeClose, GetVolumePathNamesForVolumeNameW,
    SetVolumeMountPointW,
};

use crate::error;

/// Room for a volume's name: 49 characters and a zero, with as much again to spare.
const ROOM: u32 = 100;

type Name = [u16; ROOM as usize];

/// A walk over all volumes.
struct Search(HANDLE);

impl Search {
    /// Begins it, and writes the first volume's name.
    fn begin(name: &mut Name) -> OsResult<Self> {
        // SAFETY: the pointer and the length are one live array's.
        let handle = unsafe { FindFirstVolumeW(name.as_mut_ptr(), ROOM) };
        if handle == INVALID_HANDLE_VALUE { Err(error::last()) } else { Ok(Self(handle)) }
    }

    /// Writes the next volume's name.
    fn next(&self, name: &mut Name) -> OsResult<()> {
        // SAFETY: the handle is this search's own, open until it is dropped; the array is live.
        error::check(unsafe { FindNextVolumeW(self.0, name.as_mut_ptr(), ROOM) })
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        // SAFETY: the handle came from FindFirstVolumeW and nobody else has it.
        unsafe { FindVolumeClose(self.0) };
    }
}

/// The names of all volumes.
pub(crate) fn all() -> OsResult<Vec<U16String>> {
    let mut name: Name = [0; ROOM as usize];
    let search = match Search::begin(&mut name) {
        Ok(search) => search,
        Err(OsError::NO_MORE_FILES) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut volumes = Vec::new();
    loop {
        volumes.push(name.iter().copied().take_while(|&unit| unit != 0).collect::<Vec<u16>>().into());
        match search.next(&mut name) {
            Ok(()) => {}
            Err(OsError::NO_MORE_FILES) => return Ok(volumes),
            Err(error) => return Err(error),
        }
    }
}

/// The paths by which the mount manager knows `volume`.
pub(crate) fn paths(volume: &U16Str) -> OsResult<Vec<U16String>> {
    let volume = error::terminated(volume)?;
    let mut room = 1024;
    loop {
        let mut names = vec![0; room as usize];
        let mut needed = 0;
        // SAFETY: the string ends with a zero; the array has the length that is said; both outlive the call.
        let done = error::check(unsafe {
            GetVolumePathNamesForVolumeNameW(volume.as_ptr(), names.as_mut_ptr(), room, &raw mut needed)
        });
        match done {
            Err(OsError::MORE_DATA) if needed > room => room = needed,
            Err(code) => return Err(code),
            // Each name ends with a zero, and the last with two.
            Ok(()) => {
                let names = names.split(|unit| *unit == 0).take_while(|name| !name.is_empty());
                return Ok(names.map(U16String::from_vec).collect());
            }
        }
    }
}

/// Mounts `volume` at `directory`.
pub(crate) fn set_mount_point(directory: &U16Str, volume: &U16Str) -> OsResult<()> {
    let (directory, volume) = (error::terminated(directory)?, error::terminated(volume)?);
    // SAFETY: both strings end with a zero and outlive the call.
    error::check(unsafe { SetVolumeMountPointW(directory.as_ptr(), volume.as_ptr()) })
}

/// Unmounts what is mounted at `directory`.
pub(crate) fn delete_mount_point(directory: &U16Str) -> OsResult<()> {
    let directory = error::terminated(directory)?;
    // SAFETY: the string ends with a zero and outlives the call.
    error::check(unsafe { DeleteVolumeMountPointW(directory.as_ptr()) })
}
