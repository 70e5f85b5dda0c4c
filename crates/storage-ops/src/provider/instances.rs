//! The instances of the storage provider's classes, their methods, and the refreshing of its cache.

use std::time::Duration;

use os::{Instance, MethodCall, Namespace, NtPath, OsError, Returned, U16String, Value};

use crate::devices::disk::{OPEN_FOR_QUERY, device_number};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::wmi;
use crate::types::DiskNumber;

/// The return values of the provider's methods that are distinguished here.
///
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/storage-management-api-common-return-codes>
pub(crate) mod code {
    use os::OsError;

    pub(crate) const NOT_SUPPORTED: OsError = OsError(1);
    pub(crate) const TIMEOUT: OsError = OsError(3);
    pub(crate) const INVALID_PARAMETER: OsError = OsError(5);
    pub(crate) const IN_USE: OsError = OsError(6);
    pub(crate) const SIZE_NOT_SUPPORTED: OsError = OsError(4097);
    pub(crate) const DEVICE_BUSY: OsError = OsError(4099);
    pub(crate) const NO_SPACE: OsError = OsError(40000);
    pub(crate) const ACCESS_DENIED: OsError = OsError(40001);
    pub(crate) const STALE_CACHE: OsError = OsError(40003);
    /// Of `Format`. Other methods return [`CLUSTERED`].
    pub(crate) const VOLUME_CLUSTERED: OsError = OsError(40018);
    pub(crate) const NOT_INITIALIZED: OsError = OsError(41000);
    pub(crate) const ALREADY_INITIALIZED: OsError = OsError(41001);
    pub(crate) const DISK_READ_ONLY: OsError = OsError(41002);
    pub(crate) const DISK_OFFLINE: OsError = OsError(41003);
    pub(crate) const CRITICAL_DISK: OsError = OsError(41009);
    pub(crate) const TOO_SMALL_FOR_GPT: OsError = OsError(41014);
    pub(crate) const CLUSTERED: OsError = OsError(41018);
    /// The partition was created, but no access path was assigned. None was requested.
    pub(crate) const PATH_NOT_ASSIGNED: OsError = OsError(42002);
    pub(crate) const UNKNOWN_FILE_SYSTEM: OsError = OsError(42009);
    pub(crate) const SYSTEM_PARTITION: OsError = OsError(42010);
    pub(crate) const VOLUME_READ_ONLY: OsError = OsError(43006);
}

/// The codes with which `Refresh` refuses a disk that is offline or has no partition table, or with
/// which it is not implemented, and that of an instance whose disk was removed.
const NOT_REFRESHED: [OsError; 5] = [
    code::NOT_SUPPORTED,
    code::STALE_CACHE,
    code::NOT_INITIALIZED,
    code::DISK_OFFLINE,
    OsError::WBEM_NOT_FOUND,
];

/// How long the provider may take to learn of an object that has just arrived, before its cache is
/// refreshed. Waiting costs less: a refresh reads all disks, partitions and volumes.
const ARRIVAL_GRACE: Duration = Duration::from_millis(300);

/// `MSFT_Disk.PartitionStyle` of a disk without a partition table. The control codes use other
/// numbers.
pub(crate) const RAW: u32 = 0;
/// `MSFT_Disk.PartitionStyle` of a disk with an MBR.
pub(crate) const MBR: u32 = 1;
/// `MSFT_Disk.PartitionStyle` of a disk with a GUID partition table.
pub(crate) const GPT: u32 = 2;

/// Calls a method of the provider. A return value other than 0 is an error.
pub(crate) fn invoke(
    run: Run<'_>,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
    timeout: Duration,
) -> OperationResult<Returned> {
    let call = MethodCall::new(Namespace::Storage, path, method, arguments);
    let returned = wmi::call(run, &call, timeout)?;
    if returned.code == 0 {
        Ok(returned)
    } else {
        Err(method_error(method, OsError(returned.code)))
    }
}

pub(crate) fn method_error(method: &str, code: OsError) -> OperationError {
    let (kind, reason) = match code {
        code::TIMEOUT => (ErrorKind::StillRunning, ": the provider timed out"),
        code::IN_USE | code::DEVICE_BUSY => (ErrorKind::Busy, ": the object is in use"),
        code::SIZE_NOT_SUPPORTED => (ErrorKind::FailedPrecondition, ": the size is not supported"),
        code::NO_SPACE => (
            ErrorKind::FailedPrecondition,
            ": there is not enough free space",
        ),
        code::ACCESS_DENIED => (ErrorKind::PermissionDenied, ": access is denied"),
        code::STALE_CACHE => (
            ErrorKind::FailedPrecondition,
            ": the cache of the provider is out of date",
        ),
        code::TOO_SMALL_FOR_GPT => (
            ErrorKind::FailedPrecondition,
            ": the disk is too small for a GPT",
        ),
        code::CLUSTERED | code::VOLUME_CLUSTERED => (
            ErrorKind::FailedPrecondition,
            ": the disk belongs to a cluster",
        ),
        code::NOT_INITIALIZED => (
            ErrorKind::FailedPrecondition,
            ": the disk has no partition table",
        ),
        code::DISK_READ_ONLY | code::VOLUME_READ_ONLY => {
            (ErrorKind::FailedPrecondition, ": the disk is read-only")
        }
        code::DISK_OFFLINE => (ErrorKind::FailedPrecondition, ": the disk is offline"),
        code::CRITICAL_DISK | code::SYSTEM_PARTITION => (
            ErrorKind::PermissionDenied,
            ": the disk is one that the node itself uses",
        ),
        // The cluster size is invalid, the file system is not supported, there are too many
        // clusters, or they are too small.
        OsError(43000 | 43001 | 43003 | 43005) => (
            ErrorKind::FailedPrecondition,
            ": -format-file-system or -format-allocation-unit does not suit the volume",
        ),
        code::UNKNOWN_FILE_SYSTEM => (
            ErrorKind::FailedPrecondition,
            ": the file system cannot be resized",
        ),
        _ => (ErrorKind::Internal, ""),
    };
    let reason = format!(
        "the storage provider's {method} failed{reason} ({})",
        code.0
    );
    OperationError {
        code: Some(code),
        ..OperationError::new(kind, reason)
    }
}

/// Returns the only instance that a query finds; `object` names it in errors.
///
/// The provider learns of a new disk or volume some time after Windows shows it. So its cache is
/// refreshed if it still does not know the object after a moment: the object exists, since the
/// caller has opened it as a device.
pub(crate) fn find(run: Run<'_>, wql: &str, object: &str) -> OperationResult<Instance> {
    find_where(run, wql, object, |_| true)
}

/// Does the same as [`find`] with those instances only that `is_meant` accepts.
pub(crate) fn find_where(
    run: Run<'_>,
    wql: &str,
    object: &str,
    is_meant: impl Fn(&Instance) -> bool,
) -> OperationResult<Instance> {
    let query = || {
        let mut found = wmi::query(run, Namespace::Storage, wql)?;
        found.retain(&is_meant);
        wmi::only(found, object)
    };
    let known = || match query() {
        Err(error) if error.is_not_found() && error.code.is_none() => Ok(None),
        outcome => outcome.map(Some),
    };
    if let Some(instance) = known()? {
        return Ok(instance);
    }
    run.clock().sleep(ARRIVAL_GRACE);
    if let Some(instance) = known()? {
        return Ok(instance);
    }
    refresh_all(run)?;
    let found = run.windows().poll(run.timeouts().arrival, known)?;
    found.ok_or_else(|| OperationError::not_found(format!("WMI found no {object}")))
}

/// Returns the provider's instance with the number of a disk. The instance may belong to another
/// disk, because Windows reuses numbers.
pub(crate) fn instance_with_number(run: Run<'_>, number: DiskNumber) -> OperationResult<Instance> {
    let wql = format!("SELECT * FROM MSFT_Disk WHERE Number = {}", number.0);
    find(run, &wql, &number.to_string())
}

/// Returns the number of the device at the path in the instance, if it can be opened.
pub(crate) fn number_at_path(run: Run<'_>, instance: &Instance) -> Option<DiskNumber> {
    let path = NtPath::from_win32(&U16String::from_str(instance.text("Path")?));
    let device = run.os().open(&path, &OPEN_FOR_QUERY).ok()?;
    device_number(&*device).ok()?
}

/// Refreshes the provider's data of a disk.
pub(crate) fn refresh(run: Run<'_>, number: DiskNumber) -> OperationResult<()> {
    let instance = instance_with_number(run, number)?;
    refresh_instance(run, &instance)
}

pub(crate) fn refresh_instance(run: Run<'_>, disk: &Instance) -> OperationResult<()> {
    match invoke(run, &disk.path, "Refresh", &[], run.timeouts().change) {
        Err(error) if error.code.is_some_and(|code| NOT_REFRESHED.contains(&code)) => {
            refresh_all(run)
        }
        outcome => outcome.map(drop),
    }
}

/// Refreshes the provider's data of all disks, partitions and volumes.
pub(crate) fn refresh_all(run: Run<'_>) -> OperationResult<()> {
    invoke(
        run,
        "MSFT_StorageSetting",
        "UpdateHostStorageCache",
        &[],
        run.timeouts().change,
    )
    .map(drop)
}

/// Returns the name of the file system in the instance of a volume. `None` is no evidence.
pub(crate) fn file_system_of(volume: &Instance) -> Option<String> {
    let kind = volume.u32("FileSystemType").filter(|kind| *kind != 0)?;
    let name = volume.text("FileSystem").filter(|name| !name.is_empty());
    Some(name.map_or_else(|| format!("of type {kind}"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{code, method_error};
    use crate::error::ErrorKind;

    #[test]
    fn an_error_of_the_provider_has_the_kind_reason_and_code_of_its_return_value() {
        for (code, kind, words) in [
            (code::TIMEOUT, ErrorKind::StillRunning, "timed out"),
            (code::IN_USE, ErrorKind::Busy, "in use"),
            (code::ACCESS_DENIED, ErrorKind::PermissionDenied, "denied"),
            (code::DISK_OFFLINE, ErrorKind::FailedPrecondition, "offline"),
            (
                code::CRITICAL_DISK,
                ErrorKind::PermissionDenied,
                "node itself",
            ),
            (OsError(4), ErrorKind::Internal, "failed"),
        ] {
            let error = method_error("Format", code);
            assert_eq!((error.kind, error.code), (kind, Some(code)));
            let sentence = error.to_string();
            assert!(
                sentence.contains("Format") && sentence.contains(words),
                "{sentence}"
            );
            assert!(sentence.ends_with(&format!("({})", code.0)), "{sentence}");
        }
    }
}
