//! The instances of the storage provider's classes, their methods, and the refreshing of its cache.

use std::time::Duration;

use os::{Instance, MethodCall, Namespace, NtPath, OsError, Returned, U16String, Value};

use crate::devices::disk::{OPEN_FOR_QUERY, device_number};
use crate::error::{OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::return_values::{code, is_of_provider, method_error};
use crate::provider::wmi;
use crate::types::DiskNumber;

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
    let code = match wmi::call(run, &call, timeout) {
        Ok(returned) if returned.code == 0 => return Ok(returned),
        Ok(returned) => OsError(returned.code),
        Err(OperationError {
            code: Some(code), ..
        }) if is_of_provider(code) => code,
        Err(error) => return Err(error),
    };
    Err(method_error(method, code))
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
