//! Whether a volume is formatted, and with what.

use os::{OsError, OsResult};

use crate::devices::volume::OPEN_FOR_READ;
use crate::devices::{FileSystem, file_system, volume};
use crate::error::{OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::node::run::Run;
use crate::provider::report;
use crate::types::VolumeId;
use crate::windows::{Fallback, Windows};

/// Determines the file system of `volume`. If it cannot be determined, that is an error, because
/// callers format a raw volume.
pub(crate) fn detect(windows: &Windows, volume: VolumeId) -> OperationResult<FileSystem> {
    let handle = volume::open(windows.os(), volume, &OPEN_FOR_READ)?;
    let name =
        file_system::name_of(&*handle).or_else(|code| none_if_no_root(windows, volume, code));
    let name = name.map_err(|code| OperationError::of(code, "the file system cannot be read"))?;
    if let Some(name) = name {
        return Ok(FileSystem::Named(name));
    }
    // Windows has mounted no file system. The volume may still have one that Windows cannot mount.
    let is_recognized = file_system::is_recognized(&*handle)
        .map_err(|code| OperationError::of(code, "the file system cannot be determined"))?;
    if is_recognized {
        return Err(OperationError::precondition(
            "the volume has a file system that Windows recognizes but cannot mount",
        ));
    }
    let signature = file_system::signature_on(&*handle)
        .map_err(|code| OperationError::of(code, "the volume cannot be read"))?;
    match signature {
        None => Ok(FileSystem::Raw),
        Some(name) => Err(OperationError::precondition(format!(
            "the volume has the signature of {name}, which Windows cannot mount"
        ))),
    }
}

/// Returns `detected`, the result of [`detect`]. If `detect` has failed, a file system that the
/// storage provider reports exists. A report of no file system is no evidence: the cache of the
/// provider may be out of date.
pub(crate) async fn or_reported(
    run: Run<'_>,
    volume: VolumeId,
    detected: OperationResult<FileSystem>,
) -> OperationResult<FileSystem> {
    let detected = super::volume::unless_changing(run, volume, detected);
    run.or_fallback(Fallback::FileSystem, detected, || {
        let reported = report::file_system(run, volume)?;
        reported.map(FileSystem::Named).ok_or_else(|| {
            OperationError::precondition(
                "the storage provider reports no file system, but its cache may be out of date, so \
                 the volume is not treated as unformatted",
            )
        })
    })
    .await
}

/// Returns `None` for the name of the file system after `code`, if that says nothing about the
/// volume and its root directory cannot be opened because Windows has mounted no file system.
/// Otherwise returns `code`.
fn none_if_no_root(windows: &Windows, volume: VolumeId, code: OsError) -> OsResult<Option<String>> {
    if ErrorClass::UnsupportedOrInvalid.contains(code)
        && windows.os().open(&volume.root(), &OPEN_FOR_READ).err()
            == Some(OsError::UNRECOGNIZED_VOLUME)
    {
        windows.fallbacks.record(Fallback::FileSystem, code);
        return Ok(None);
    }
    Err(code)
}
