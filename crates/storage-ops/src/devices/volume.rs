//! Volumes as devices: the disks they are on, and their cache.

use os::abi::{ControlCode, DiskExtent, VolumeDiskExtents};
use os::{Access, Handle, Open, Options, Os, OsError, OsResult};

use crate::devices::buffer;
use crate::devices::disk::{OPEN_FOR_QUERY, is_disk};
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::types::{DiskNumber, VolumeId};

/// Opens the file system of a volume for reading. With fewer rights Windows would open the device.
pub(crate) const OPEN_FOR_READ: Open = Open::existing(Access::GENERIC_READ, Options::empty());

/// Opens the file system of a volume for changes.
pub(crate) const OPEN_FOR_CHANGE: Open = Open::existing(
    Access::GENERIC_READ.union(Access::GENERIC_WRITE),
    Options::empty(),
);

/// Opens `volume`.
pub(crate) fn open(os: &dyn Os, volume: VolumeId, how: &Open) -> OperationResult<Box<dyn Handle>> {
    os.open(&volume.device(), how)
        .map_err(|code| volume_error(code, volume))
}

fn volume_error(code: OsError, volume: VolumeId) -> OperationError {
    if ErrorClass::DeviceRemoved.contains(code) {
        let error =
            OperationError::not_found(format!("volume {volume} does not exist ({})", code.0));
        OperationError {
            code: Some(code),
            ..error
        }
    } else {
        code.into()
    }
}

/// Queries the extents of the volume behind `handle`.
pub(crate) fn extents(handle: &dyn Handle) -> OsResult<Vec<DiskExtent>> {
    let first = size_of::<VolumeDiskExtents>() + size_of::<DiskExtent>();
    let answer = buffer::control_grown(
        handle,
        ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS,
        &[],
        first,
    )?;
    parse_extents(&answer).ok_or(OsError::GEN_FAILURE)
}

/// Queries the extents of the volume behind `handle`. A volume on a drive that is no disk, such as
/// a DVD drive, has none.
pub(crate) fn extents_on_disks(handle: &dyn Handle) -> OsResult<Vec<DiskExtent>> {
    extents(handle).or_else(|code| match is_disk(handle) {
        Ok(false) => Ok(Vec::new()),
        _ => Err(code),
    })
}

/// Decodes a `VOLUME_DISK_EXTENTS`. Returns `None` if it is malformed.
pub(crate) fn parse_extents(answer: &[u8]) -> Option<Vec<DiskExtent>> {
    let head: VolumeDiskExtents = buffer::at(answer, 0)?;
    let offset = |index: usize| {
        index
            .checked_mul(size_of::<DiskExtent>())?
            .checked_add(size_of_val(&head))
    };
    (0..usize::try_from(head.count).ok()?)
        .map(|index| buffer::at(answer, offset(index)?))
        .collect()
}

/// Queries the extents of `volume`.
pub(crate) fn extents_of(os: &dyn Os, volume: VolumeId) -> OperationResult<Vec<DiskExtent>> {
    let handle = open(os, volume, &OPEN_FOR_QUERY)?;
    extents(&*handle).map_err(|code| volume_error(code, volume))
}

/// Returns the only one of the extents of a volume.
pub(crate) fn only(extents: &[DiskExtent]) -> OperationResult<DiskExtent> {
    match extents {
        [extent] => Ok(*extent),
        _ => Err(OperationError::precondition(format!(
            "the volume has {} extents; only volumes with one extent are supported",
            extents.len()
        ))),
    }
}

/// Returns the disk that `volume` is on.
pub(crate) fn disk_of(os: &dyn Os, volume: VolumeId) -> OperationResult<DiskNumber> {
    Ok(DiskNumber(only(&extents_of(os, volume)?)?.disk_number))
}

/// Checks that no file on `volume` is open, and that no other program has opened the volume: locks
/// the volume, which Windows refuses if it is in use, and unlocks it again.
pub(crate) fn ensure_unused(os: &dyn Os, volume: VolumeId) -> OperationResult<()> {
    let handle = open(os, volume, &OPEN_FOR_CHANGE)?;
    Ok(buffer::send(&*handle, ControlCode::FSCTL_LOCK_VOLUME, &[])?)
}

/// Opens the root directory of `volume`.
pub(crate) fn open_root(
    os: &dyn Os,
    volume: VolumeId,
    how: &Open,
) -> OperationResult<Box<dyn Handle>> {
    os.open(&volume.root(), how)
        .map_err(|code| volume_error(code, volume))
}

/// Writes the cache of `volume` to its disk (`FlushFileBuffers`). A write-protected volume has
/// nothing to write.
pub(crate) fn flush(os: &dyn Os, volume: VolumeId) -> OperationResult<()> {
    let flushed = open(os, volume, &OPEN_FOR_CHANGE).and_then(|handle| Ok(handle.flush()?));
    match flushed {
        Err(error) if error.code == Some(OsError::WRITE_PROTECT) => Ok(()),
        flushed => flushed,
    }
}
