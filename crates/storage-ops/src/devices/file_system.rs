//! File systems: the name and the size of a mounted one, and the signatures of others.

mod signatures;

use os::abi::{
    ControlCode, FileIdInfo, FileStreamInfo, FsAttributeInformation, FsFullSizeInformation,
};
use os::{FileInfo, FsInfo, Handle, Os, OsError, OsResult};
use zerocopy::{FromZeros, IntoBytes};

use crate::devices::buffer;
use crate::devices::volume::{self, OPEN_FOR_READ};
use crate::error::OperationResult;
use crate::error_class::ErrorClass;
use crate::types::{VolumeId, VolumeStats};

/// The file system of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// No known file system.
    Raw,
    /// The file system with this name.
    Named(String),
}

/// Searches the first sectors of a volume, or of a disk, for the signature of a file system or
/// container, and returns its name.
pub(crate) fn signature_on(device: &dyn Handle) -> OsResult<Option<&'static str>> {
    let mut block = vec![0; signatures::BLOCK];
    for offset in signatures::BLOCKS {
        let read = device.read(offset, &mut block)?;
        if let Some(name) = signatures::find(offset, &block[..read.min(signatures::BLOCK)]) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Searches the last sectors of a disk of `size` bytes for a signature, and returns its name.
pub(crate) fn signature_at_end_of(
    device: &dyn Handle,
    size: u64,
) -> OsResult<Option<&'static str>> {
    const BLOCK: usize = signatures::BLOCK;
    let mut block = vec![0; BLOCK];
    // Only whole sectors can be read.
    let size = size / 512 * 512;
    for (name, at, bytes) in signatures::at_end(size) {
        let begin = at / BLOCK as u64 * BLOCK as u64;
        let length = usize::try_from(size - begin).map_or(BLOCK, |rest| rest.min(BLOCK));
        if device.read(begin, &mut block[..length])? < length {
            return Err(OsError::GEN_FAILURE);
        }
        if signatures::has_at(&block[..length], begin, at, bytes) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Reads the first sectors of a volume, whatever they hold.
pub(crate) fn probe(volume: &dyn Handle) -> OsResult<()> {
    volume.read(0, &mut [0; signatures::BLOCK]).map(drop)
}

/// Returns whether the first sectors of a disk, where a partition table begins, hold nothing but
/// zeros.
pub(crate) fn is_blank(disk: &dyn Handle) -> OsResult<bool> {
    let mut block = vec![0; signatures::BLOCK];
    let read = disk.read(0, &mut block)?;
    Ok(read == signatures::BLOCK && block.iter().all(|byte| *byte == 0))
}

/// Returns the name of the file system of a volume, or `None` if Windows has mounted none.
pub(crate) fn name_of(handle: &dyn Handle) -> OsResult<Option<String>> {
    let mut answer = [0; FsAttributeInformation::NAME_OFFSET + 64];
    let filled = match handle.query_fs(FsInfo::Attribute, &mut answer) {
        Err(OsError::UNRECOGNIZED_VOLUME) => return Ok(None),
        filled => filled?,
    };
    let answer = &answer[..filled.min(answer.len())];
    let head: FsAttributeInformation = buffer::at(answer, 0).ok_or(OsError::GEN_FAILURE)?;
    let length = usize::try_from(head.name_length).map_err(|_| OsError::GEN_FAILURE)?;
    let name = buffer::units_at(answer, FsAttributeInformation::NAME_OFFSET, length)
        .ok_or(OsError::GEN_FAILURE)?;
    let name = name.to_string_lossy();
    Ok((!name.is_empty() && name != "RAW").then_some(name))
}

/// Returns whether files and directories of the file system of `handle` can have reparse points,
/// and so be links.
pub(crate) fn has_reparse_points(handle: &dyn Handle) -> OsResult<bool> {
    Ok(attributes(handle)? & FsAttributeInformation::SUPPORTS_REPARSE_POINTS != 0)
}

/// Returns the attributes of the file system of `handle`.
fn attributes(handle: &dyn Handle) -> OsResult<u32> {
    let mut answer = [0; FsAttributeInformation::NAME_OFFSET + 64];
    let filled = handle.query_fs(FsInfo::Attribute, &mut answer)?;
    let head: Option<FsAttributeInformation> = answer
        .get(..filled)
        .and_then(|answer| buffer::at(answer, 0));
    Ok(head.ok_or(OsError::GEN_FAILURE)?.attributes)
}

/// Returns the name of a data stream that the file or directory behind `handle` has besides the
/// content of a file; `None` if there is no such stream, or if the file system has none at all.
pub(crate) fn named_stream(handle: &dyn Handle) -> OsResult<Option<String>> {
    // A name has at most 255 units, without the colons and the type.
    let mut answer = [0; 2048];
    let unanswered = match handle.query(FileInfo::Stream, &mut answer) {
        Ok(()) => None,
        Err(OsError::HANDLE_EOF) => return Ok(None),
        // The first streams are in the answer.
        Err(OsError::MORE_DATA) => Some(OsError::MORE_DATA),
        Err(code)
            if ErrorClass::UnsupportedOrInvalid.contains(code)
                && attributes(handle)? & FsAttributeInformation::NAMED_STREAMS == 0 =>
        {
            return Ok(None);
        }
        Err(code) => return Err(code),
    };
    let mut offset = 0;
    loop {
        let stream: FileStreamInfo = buffer::at(&answer, offset).ok_or(OsError::FILE_CORRUPT)?;
        let length = usize::try_from(stream.name_length).map_err(|_| OsError::FILE_CORRUPT)?;
        let name = buffer::units_at(&answer, offset + FileStreamInfo::NAME_OFFSET, length)
            .ok_or(OsError::FILE_CORRUPT)?
            .to_string_lossy();
        if !["", "::$DATA"].contains(&&*name) {
            return Ok(Some(name));
        }
        match usize::try_from(stream.next_entry_offset) {
            Ok(0) => return unanswered.map_or(Ok(None), Err),
            Ok(step) if step >= FileStreamInfo::NAME_OFFSET => offset += step,
            _ => return Err(OsError::FILE_CORRUPT),
        }
    }
}

/// Queries the serial number of the file system of `handle`, which each format changes.
pub(crate) fn serial(handle: &dyn Handle) -> OsResult<u64> {
    Ok(buffer::query::<FileIdInfo>(handle, FileInfo::Id)?.volume_serial_number)
}

/// Queries the sizes of a mounted file system and of its clusters and sectors.
pub(crate) fn full_size(handle: &dyn Handle) -> OsResult<FsFullSizeInformation> {
    let mut size = FsFullSizeInformation::new_zeroed();
    handle.query_fs(FsInfo::FullSize, size.as_mut_bytes())?;
    Ok(size)
}

/// Returns the size that NTFS on `volume` can have in bytes, which its number of clusters limits;
/// `None` if the volume has another file system.
pub(crate) fn ntfs_limit(os: &dyn Os, volume: VolumeId) -> OperationResult<Option<u64>> {
    let handle = volume::open(os, volume, &OPEN_FOR_READ)?;
    if name_of(&*handle)?.as_deref() != Some("NTFS") {
        return Ok(None);
    }
    let size = full_size(&*handle)?;
    let cluster = u64::from(size.sectors_per_unit) * u64::from(size.bytes_per_sector);
    Ok(Some(cluster * u64::from(u32::MAX)))
}

/// Returns whether Windows recognizes a file system on a volume that it has not mounted.
///
/// Errors: only those that say that the volume cannot be read. No page says what Windows answers
/// for a volume without the structure that the request reads; the answer may be an empty name.
pub(crate) fn is_recognized(handle: &dyn Handle) -> OsResult<bool> {
    let mut recognized = [0; 16];
    match handle.control(
        ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION,
        &[],
        &mut recognized,
    ) {
        Ok(_) => Ok(recognized[0] != 0),
        Err(code)
            if ErrorClass::Unreadable.contains(code)
                || ErrorClass::DeviceRemoved.contains(code) =>
        {
            Err(code)
        }
        // The name of the file system does not fit.
        Err(code) => Ok(ErrorClass::BufferTooSmall.contains(code)),
    }
}

/// Queries the size and usage of the file system of `volume`.
pub(crate) fn stats(os: &dyn Os, volume: VolumeId) -> OperationResult<VolumeStats> {
    let handle = volume::open(os, volume, &OPEN_FOR_READ)?;
    // What a volume without a file system answers to the query of its size is not documented.
    if name_of(&*handle)?.is_none() {
        return Err(OsError::UNRECOGNIZED_VOLUME.into());
    }
    let size = full_size(&*handle)?;
    let unit = u64::from(size.sectors_per_unit) * u64::from(size.bytes_per_sector);
    let total = size.total_units.checked_mul(unit);
    let free = size.available_units.checked_mul(unit);
    let (Some(total), Some(free)) = (total, free) else {
        return Err(OsError::GEN_FAILURE.into());
    };
    Ok(VolumeStats {
        total,
        used: total.saturating_sub(free),
    })
}
