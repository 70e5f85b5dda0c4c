//! The file system of a volume: whether a volume is formatted, and with what.

mod signatures;

use os::abi::{ControlCode, FsAttributeInformation};
use os::{FsInfo, Handle, OsError, OsResult};

use crate::devices::buffer;
use crate::devices::volume as volume_device;
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::host::Host;
use crate::host::fallback::{Fallback, SecondWay};
use crate::provider::msft_storage::report;
use crate::scheduling::stop::RunResult;
use crate::types::VolumeId;

/// The file system of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// No known file system.
    Raw,
    /// NTFS.
    Ntfs,
    /// Another file system, by its name.
    Other(String),
}

/// Determines the file system of `volume`. If it cannot be determined, that is an error, because callers format a raw
/// volume.
pub(crate) fn detect(host: &Host, volume: VolumeId) -> OperationResult<FileSystem> {
    let handle = volume_device::open(host, volume, &volume_device::OPEN_FOR_READ)?;
    let name = name_of(&*handle).or_else(|code| none_if_no_root(host, volume, code));
    let name = name.map_err(|code| OperationError::of(code, "the file system cannot be read"))?;
    match name.as_deref() {
        None => {}
        Some("NTFS") => return Ok(FileSystem::Ntfs),
        Some(name) => return Ok(FileSystem::Other(name.to_owned())),
    }
    // Windows has mounted no file system. The volume may still have one that Windows cannot mount.
    let mut recognized = [0; 16];
    match handle.control(ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION, &[], &mut recognized) {
        Err(code) if ErrorClass::Unreadable.contains(code) || ErrorClass::DeviceRemoved.contains(code) => {
            return Err(OperationError::of(code, "the file system cannot be determined"));
        }
        // No page says what is answered for a volume without the structure that the request reads, which may be an empty
        // name. The signature of the structure is searched for below.
        Err(code) if !ErrorClass::BufferTooSmall.contains(code) => {}
        Ok(_) if recognized[0] == 0 => {}
        _ => {
            return Err(OperationError::precondition(
                "the volume has a file system that Windows recognizes but cannot mount",
            ));
        }
    }
    let signature = signature_on(&*handle).map_err(|code| OperationError::of(code, "the volume cannot be read"))?;
    match signature {
        None => Ok(FileSystem::Raw),
        Some(name) => Err(OperationError::precondition(format!(
            "the volume has the signature of {name}, which Windows cannot mount"
        ))),
    }
}

/// Returns `detected`, the result of [`detect`]. If that failed, a file system that the storage provider reports is one; that
/// it reports none is no evidence.
pub(crate) fn or_reported(
    host: &Host,
    way: SecondWay<'_>,
    volume: VolumeId,
    detected: OperationResult<FileSystem>,
) -> RunResult<FileSystem> {
    host.or_second(way, Fallback::FileSystem, detected, || match report::file_system(host, way, volume)?.as_deref() {
        Some("NTFS") => Ok(FileSystem::Ntfs),
        Some(name) => Ok(FileSystem::Other(name.to_owned())),
        None => {
            Err(OperationError::precondition("the storage provider reports no file system, which is no evidence")
                .into())
        }
    })
}

/// Returns `None` for the name of the file system after `code`, if that says nothing about the volume and its root directory
/// cannot be opened because Windows has mounted no file system. Otherwise returns `code`.
fn none_if_no_root(host: &Host, volume: VolumeId, code: OsError) -> OsResult<Option<String>> {
    if ErrorClass::UnsupportedOrInvalid.contains(code)
        && host.os().open(&volume.root(), &volume_device::OPEN_FOR_READ).err() == Some(OsError::UNRECOGNIZED_VOLUME)
    {
        host.fallbacks().record(Fallback::FileSystem, code);
        return Ok(None);
    }
    Err(code)
}

/// Searches the first sectors of a volume, or of a disk, for the signature of a file system or container, and returns its
/// name.
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
pub(crate) fn signature_at_end_of(device: &dyn Handle, size: u64) -> OsResult<Option<&'static str>> {
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

/// Returns whether the first sectors of a disk, where a partition table begins, hold nothing but zeros.
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
    let name = buffer::units_at(answer, FsAttributeInformation::NAME_OFFSET, length).ok_or(OsError::GEN_FAILURE)?;
    let name = name.to_string_lossy();
    Ok((!name.is_empty() && name != "RAW").then_some(name))
}
