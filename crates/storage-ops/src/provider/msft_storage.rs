//! The storage provider of Windows: the WMI classes through which disks and volumes are changed.
//!
//! Changes that could destroy data are made here, because the provider refuses changes that the control codes would
//! make: it initializes only a disk without a partition table.
//!
//! The provider answers from a cache. What a change destroys is decided by what the devices report right before it. The
//! cache is refreshed if it differs from what they report, if the provider refuses a change for a reason that an outdated
//! cache explains, and before a partition grows. Each query and each method is slow, so no others are made.

mod comparison;
pub(crate) mod report;

use std::time::Duration;

use os::abi::DiskAttributes;
use os::{Access, Instance, MethodCall, Namespace, NtPath, OsError, Returned, U16String, Value};

use crate::devices::disk as disk_device;
use crate::devices::disk::{Disk, OPEN_FOR_QUERY, Partition};
use crate::devices::disk_identifiers;
use crate::devices::volume as volume_device;
use crate::devices::volume::VolumeState;
use crate::error::{Kind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::host::Host;
use crate::host::fallback::{Fallback, SecondWay};
use crate::provider::msft_storage::comparison::{Reported, difference, is_same_size};
use crate::provider::wmi;
use crate::scheduling::context::OperationContext;
use crate::scheduling::pool_kind::PoolKind;
use crate::scheduling::stop::{RunResult, Stop, caught};
use crate::types::{DiskNumber, VolumeId};

/// The return values of the provider's methods that are distinguished here.
///
/// <https://learn.microsoft.com/windows-hardware/drivers/storage/storage-management-api-common-return-codes>
mod code {
    use os::OsError;

    pub(super) const NOT_SUPPORTED: OsError = OsError(1);
    pub(super) const TIMEOUT: OsError = OsError(3);
    pub(super) const INVALID_PARAMETER: OsError = OsError(5);
    pub(super) const IN_USE: OsError = OsError(6);
    pub(super) const SIZE_NOT_SUPPORTED: OsError = OsError(4097);
    pub(super) const DEVICE_BUSY: OsError = OsError(4099);
    pub(super) const NO_SPACE: OsError = OsError(40000);
    pub(super) const ACCESS_DENIED: OsError = OsError(40001);
    pub(super) const STALE_CACHE: OsError = OsError(40003);
    /// Of `Format`. Other methods return [`CLUSTERED`].
    pub(super) const VOLUME_CLUSTERED: OsError = OsError(40018);
    pub(super) const NOT_INITIALIZED: OsError = OsError(41000);
    pub(super) const ALREADY_INITIALIZED: OsError = OsError(41001);
    pub(super) const DISK_READ_ONLY: OsError = OsError(41002);
    pub(super) const DISK_OFFLINE: OsError = OsError(41003);
    pub(super) const CRITICAL_DISK: OsError = OsError(41009);
    pub(super) const TOO_SMALL_FOR_GPT: OsError = OsError(41014);
    pub(super) const CLUSTERED: OsError = OsError(41018);
    /// The partition was created, but no access path was assigned. None was requested.
    pub(super) const PATH_NOT_ASSIGNED: OsError = OsError(42002);
    pub(super) const UNKNOWN_FILE_SYSTEM: OsError = OsError(42009);
    pub(super) const SYSTEM_PARTITION: OsError = OsError(42010);
    pub(super) const VOLUME_READ_ONLY: OsError = OsError(43006);
}

/// The codes with which `Refresh` refuses a disk that is offline or has no partition table, or with which it is not
/// implemented, and that of an instance whose disk was removed.
const NOT_REFRESHED: [OsError; 5] =
    [code::NOT_SUPPORTED, code::STALE_CACHE, code::NOT_INITIALIZED, code::DISK_OFFLINE, OsError::WBEM_NOT_FOUND];

/// The codes with which a provider whose cache is out of date may refuse to change a disk that is ready.
const MAY_BE_STALE: [OsError; 7] = [
    code::STALE_CACHE,
    code::SIZE_NOT_SUPPORTED,
    code::NO_SPACE,
    code::NOT_INITIALIZED,
    code::DISK_READ_ONLY,
    code::DISK_OFFLINE,
    // The instance in the cache is that of a disk that was removed.
    OsError::WBEM_NOT_FOUND,
];

/// How long the provider may take to learn of an object that has just arrived, before its cache is refreshed. Waiting costs
/// less: a refresh reads all disks, partitions and volumes.
const ARRIVAL_GRACE: Duration = Duration::from_millis(300);

/// The return values of `Format` that may be temporary. A new volume is read-only for a moment, or the parameters that
/// name it are not valid yet; another program that reacts to its arrival may have locked it.
const TEMPORARY: [OsError; 6] = [
    code::INVALID_PARAMETER,
    code::IN_USE,
    code::DEVICE_BUSY,
    code::ACCESS_DENIED,
    code::STALE_CACHE,
    code::VOLUME_READ_ONLY,
];

/// `MSFT_Disk.PartitionStyle` of a disk without a partition table. The control codes use other numbers.
const RAW: u32 = 0;
/// `MSFT_Disk.PartitionStyle` of a disk with an MBR.
const MBR: u32 = 1;
/// `MSFT_Disk.PartitionStyle` of a disk with a GUID partition table.
const GPT: u32 = 2;

/// Calls a method of the provider. A return value other than 0 is an error.
fn invoke(
    host: &Host,
    ctx: &OperationContext,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
    timeout: Duration,
) -> OperationResult<Returned> {
    let call = MethodCall::new(Namespace::Storage, path, method, arguments);
    let returned = wmi::call(host, ctx, &call, timeout)?;
    if returned.code == 0 { Ok(returned) } else { Err(method_error(method, OsError(returned.code)).into()) }
}

fn method_error(method: &str, code: OsError) -> OperationError {
    let (kind, reason) = match code {
        code::TIMEOUT => (Kind::StillRunning, ": the provider timed out"),
        code::IN_USE | code::DEVICE_BUSY => (Kind::Busy, ": the object is in use"),
        code::SIZE_NOT_SUPPORTED => (Kind::FailedPrecondition, ": the size is not supported"),
        code::NO_SPACE => (Kind::FailedPrecondition, ": there is not enough free space"),
        code::ACCESS_DENIED => (Kind::PermissionDenied, ": access is denied"),
        code::STALE_CACHE => (Kind::FailedPrecondition, ": the cache of the provider is out of date"),
        code::TOO_SMALL_FOR_GPT => (Kind::FailedPrecondition, ": the disk is too small for a GPT"),
        code::CLUSTERED | code::VOLUME_CLUSTERED => (Kind::FailedPrecondition, ": the disk belongs to a cluster"),
        code::NOT_INITIALIZED => (Kind::FailedPrecondition, ": the disk has no partition table"),
        code::DISK_READ_ONLY | code::VOLUME_READ_ONLY => (Kind::FailedPrecondition, ": the disk is read-only"),
        code::DISK_OFFLINE => (Kind::FailedPrecondition, ": the disk is offline"),
        code::CRITICAL_DISK | code::SYSTEM_PARTITION => {
            (Kind::PermissionDenied, ": the disk is one that the node itself uses")
        }
        code::UNKNOWN_FILE_SYSTEM => (Kind::FailedPrecondition, ": the file system cannot be resized"),
        _ => (Kind::Internal, ""),
    };
    let reason = format!("the storage provider's {method} failed{reason} ({})", code.0);
    OperationError { code: Some(code), ..OperationError::new(kind, reason) }
}

/// Calls a method that changes a disk, or a partition of it.
fn change(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    instance: &Instance,
    method: &str,
    arguments: &[(&str, Value)],
) -> OperationResult<Returned> {
    invoke(host, ctx, &instance.path, method, arguments, host.timeouts().change)
        .map_err(|error| or_removed(error, || disk.check_number()))
}

/// Returns the error of a change whose object may have been removed meanwhile: the provider has no return value for that.
/// `find` looks for the object.
fn or_removed(error: OperationError, find: impl FnOnce() -> OperationResult<()>) -> OperationError {
    if error.kind != Kind::Internal || !find().is_err_and(|missing| missing.is_not_found()) {
        return error;
    }
    let reason = format!("it was removed meanwhile: {}", error.reason);
    OperationError { kind: Kind::NotFound, reason, ..error }
}

/// Treats an error with `code` as success.
fn accept(code: OsError, outcome: OperationResult<Returned>) -> OperationResult<()> {
    match outcome {
        Err(error) if error.code != Some(code) => Err(error),
        _ => Ok(()),
    }
}

/// Runs `change`. If the provider refuses it for a reason that an outdated cache explains, refreshes the cache and runs
/// `change` again.
fn retry_if_stale<T>(host: &Host, ctx: &OperationContext, mut change: impl FnMut() -> RunResult<T>) -> RunResult<T> {
    match caught(change())? {
        Err(error) if error.code.is_some_and(|code| MAY_BE_STALE.contains(&code)) => {
            refresh_all(host, ctx)?;
            change()
        }
        outcome => Ok(outcome?),
    }
}

/// Returns the only instance that a query finds; `object` names it in errors.
///
/// The provider learns of a new disk or volume some time after Windows shows it. So its cache is refreshed if it still does
/// not know the object after a moment: the object exists, since the caller has opened it as a device.
fn find(host: &Host, ctx: &OperationContext, wql: &str, object: &str) -> OperationResult<Instance> {
    find_where(host, ctx, wql, object, |_| true)
}

/// Does the same as [`find`] with those instances only that `is_meant` accepts.
fn find_where(
    host: &Host,
    ctx: &OperationContext,
    wql: &str,
    object: &str,
    is_meant: impl Fn(&Instance) -> bool,
) -> OperationResult<Instance> {
    let query = || {
        let mut found = wmi::query(host, Namespace::Storage, wql)?;
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
    host.clock().sleep(ARRIVAL_GRACE);
    if let Some(instance) = known()? {
        return Ok(instance);
    }
    refresh_all(host, ctx)?;
    let found = host.poll(host.timeouts().arrival, known)?;
    found.ok_or_else(|| OperationError::not_found(format!("WMI found no {object}")))
}

/// Returns the provider's instance of a disk. It may be that of another disk, because Windows reuses numbers.
fn instance_with_number(host: &Host, ctx: &OperationContext, number: DiskNumber) -> OperationResult<Instance> {
    let wql = format!("SELECT * FROM MSFT_Disk WHERE Number = {}", number.0);
    find(host, ctx, &wql, &number.to_string())
}

/// Returns the provider's instance of a disk that is open as a device, after checking that both are the same disk. If the
/// provider reports it otherwise than the device, refreshes the provider's data first.
fn instance_of(host: &Host, ctx: &OperationContext, disk: &Disk) -> OperationResult<Instance> {
    let instance = instance_with_number(host, ctx, disk.number)?;
    let device = disk.reader(host).ok().as_ref().and_then(Reported::by_device);
    match check_same(host, disk, &instance) {
        Err(error) if error.code.is_some() => return Err(error.into()),
        Ok(()) if difference(device, &instance).is_none() => return Ok(instance),
        // `Refresh` may be refused in other states than these.
        Ok(()) if device.is_some_and(|device| device.style != RAW && !device.is_offline) => {
            refresh_instance(host, ctx, &instance)?;
        }
        _ => refresh_all(host, ctx)?,
    }
    let instance = instance_with_number(host, ctx, disk.number)?;
    check_same(host, disk, &instance)?;
    if let Some(property) = difference(device, &instance)
        && host.fallbacks().count(Fallback::ProviderCache, OsError(property as u32))
    {
        let provider = Reported::by_provider(&instance);
        tracing::warn!(
            ?property,
            ?device,
            ?provider,
            "the storage provider reports a disk otherwise than the device, even after a refresh; logged once"
        );
    }
    Ok(instance)
}

/// Checks that the provider's instance is that of the disk that is open as a device.
///
/// Windows may reuse the number of a disk. Therefore the path in the instance must lead to the device with that number.
/// If the path cannot be opened, the serial numbers must be equal or, if the disk has none, the sizes.
fn check_same(host: &Host, disk: &Disk, instance: &Instance) -> OperationResult<()> {
    let number = disk.number;
    let of_path = number_at_path(host, instance);
    // The open disk has had this number since it was opened, so no other device had it.
    disk.check_number()?;
    let of_device = disk_identifiers::serial(&*disk.handle).or_else(disk_identifiers::none_if_unsupported)?;
    let of_wmi = instance.text("SerialNumber").unwrap_or_default();
    let is_same = match (of_path, of_device.trim(), of_wmi.trim()) {
        (Some(of_path), ..) => of_path == number,
        (None, "", "") => instance.u64("Size").is_some_and(|size| disk.size().is_ok_and(|own| is_same_size(own, size))),
        (None, of_device, of_wmi) => of_device == of_wmi,
    };
    if is_same {
        return Ok(());
    }
    let reason = format!(
        "{number} in WMI (serial number {of_wmi:?}) is not the disk that is open (serial number {of_device:?})"
    );
    Err(OperationError::precondition(reason))
}

/// Returns the number of the device at the path in the instance, if it can be opened.
fn number_at_path(host: &Host, instance: &Instance) -> Option<DiskNumber> {
    let path = NtPath::from_win32(&U16String::from_str(instance.text("Path")?));
    let device = host.os().open(&path, &OPEN_FOR_QUERY).ok()?;
    disk_device::device_number(&*device).ok()?
}

/// Refreshes the provider's data of a disk.
pub(crate) fn refresh(host: &Host, ctx: &OperationContext, number: DiskNumber) -> OperationResult<()> {
    let instance = instance_with_number(host, ctx, number)?;
    refresh_instance(host, ctx, &instance)
}

fn refresh_instance(host: &Host, ctx: &OperationContext, disk: &Instance) -> OperationResult<()> {
    match invoke(host, ctx, &disk.path, "Refresh", &[], host.timeouts().change) {
        Err(error) if error.code.is_some_and(|code| NOT_REFRESHED.contains(&code)) => refresh_all(host, ctx),
        outcome => outcome.map(drop),
    }
}

/// Refreshes the provider's data of all disks, partitions and volumes.
pub(crate) fn refresh_all(host: &Host, ctx: &OperationContext) -> OperationResult<()> {
    invoke(host, ctx, "MSFT_StorageSetting", "UpdateHostStorageCache", &[], host.timeouts().change).map(drop)
}

/// Creates a GUID partition table on a disk without a partition table. Calls `is_needed` right before that, and does nothing
/// if it returns false. Returns the provider's instance of the disk, whose path stays valid.
pub(crate) fn initialize(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    is_needed: impl Fn() -> RunResult<bool>,
) -> RunResult<Instance> {
    retry_if_stale(host, ctx, || {
        let instance = instance_of(host, ctx, disk)?;
        if !is_needed()? || instance.u32("PartitionStyle") != Some(RAW) {
            return Ok(instance);
        }
        let style = [("PartitionStyle", Value::U32(GPT))];
        let initialized = change(host, ctx, disk, &instance, "Initialize", &style);
        Ok(accept(code::ALREADY_INITIALIZED, initialized).map(|()| instance)?)
    })
}

/// Creates one basic data partition in all the unallocated space of a disk, without a drive letter. A disk that has a
/// partition other than the reserved one is left unchanged. `known` is the provider's instance of the disk, if the provider
/// has just initialized it.
pub(crate) fn create_partition(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    mut known: Option<Instance>,
) -> RunResult<()> {
    let arguments = [
        ("UseMaximumSize", Value::Bool(true)),
        ("AssignDriveLetter", Value::Bool(false)),
        ("GptType", Value::Text(format!("{{{}}}", os::abi::BASIC_DATA))),
        ("IsHidden", Value::Bool(false)),
        ("IsActive", Value::Bool(false)),
    ];
    retry_if_stale(host, ctx, || {
        let instance = match known.take() {
            Some(instance) => check_same(host, disk, &instance).map(|()| instance)?,
            None => instance_of(host, ctx, disk)?,
        };
        // Another program, which our lock does not exclude, may have partitioned the disk, or the call that returned that
        // the cache is out of date.
        let reader = disk.reader(host)?;
        reader.update()?;
        if reader.partition_table()?.is_partitioned() {
            return Ok(());
        }
        drop(reader);
        let created = change(host, ctx, disk, &instance, "CreatePartition", &arguments);
        Ok(accept(code::PATH_NOT_ASSIGNED, created)?)
    })
}

/// Brings a disk online and makes it writable, or takes it offline.
pub(crate) fn set_online(host: &Host, ctx: &OperationContext, disk: &Disk, online: bool) -> RunResult<()> {
    retry_if_stale(host, ctx, || {
        let instance = instance_of(host, ctx, disk)?;
        let change = |method, arguments: &[(&str, Value)]| change(host, ctx, disk, &instance, method, arguments);
        if !online {
            return Ok(change("Offline", &[]).map(drop)?);
        }
        let make_writable = || {
            if instance.bool("IsReadOnly") != Some(true) {
                return Ok(());
            }
            // A disk without a partition table may be refused. Whether it is writable shows when it is initialized.
            accept(code::NOT_INITIALIZED, change("SetAttributes", &[("IsReadOnly", Value::Bool(false))]))
        };
        match make_writable() {
            // The method may require that the disk is online.
            Err(error) if error.code == Some(code::DISK_OFFLINE) => {
                change("Online", &[])?;
                Ok(make_writable()?)
            }
            outcome => {
                outcome?;
                Ok(change("Online", &[]).map(drop)?)
            }
        }
    })
}

/// Brings the volume of a partition online, which Windows does not do by itself if automatic mounting is disabled. If its
/// state is not known, the provider's report decides whether that is needed.
pub(crate) fn bring_volume_online(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    partition: &Partition,
    state: VolumeState,
) -> RunResult<()> {
    ctx.require_pool(PoolKind::Wmi)?;
    retry_if_stale(host, ctx, || {
        instance_of(host, ctx, disk)?;
        let instance = partition_instance(host, ctx, disk, partition)?;
        if state == VolumeState::Unknown && instance.bool("IsOffline") == Some(false) {
            return Ok(());
        }
        Ok(change(host, ctx, disk, &instance, "Online", &[]).map(drop)?)
    })
}

/// Brings the volume of a partition online that has just been created, so that the disk has been compared with the
/// provider's.
pub(crate) fn bring_new_volume_online(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    partition: &Partition,
) -> RunResult<()> {
    retry_if_stale(host, ctx, || {
        let instance = partition_instance(host, ctx, disk, partition)?;
        Ok(change(host, ctx, disk, &instance, "Online", &[]).map(drop)?)
    })
}

/// Formats a volume with NTFS (a quick format). Calls `needs_format` right before formatting, and does nothing if that
/// returns false.
pub(crate) fn format_ntfs(
    host: &Host,
    ctx: &OperationContext,
    volume: VolumeId,
    needs_format: impl Fn() -> RunResult<bool>,
) -> RunResult<()> {
    // There is no label: an empty text may reach the provider as a null pointer.
    let arguments =
        [("FileSystem", Value::Text("NTFS".into())), ("Full", Value::Bool(false)), ("Force", Value::Bool(true))];
    ctx.require_pool(PoolKind::Wmi)?;
    let wql = format!("SELECT * FROM MSFT_Volume WHERE Path = {}", wmi::quote(&volume.to_string()));
    // A disk that is removed and comes back during the call has the same volume again. Only this handle tells.
    let disk = volume_device::disk_of(host, SecondWay::Refused, volume)
        .and_then(|number| Ok(Disk::open(host, number, Access::empty())?));
    let mut refused = None;
    let formatted = host.poll(host.timeouts().arrival, || -> RunResult<_> {
        let instance = find(host, ctx, &wql, &format!("volume {volume}"))?;
        match caught(needs_format())? {
            Ok(true) => {}
            Ok(false) => return Ok(Some(())),
            // Another program has just locked the volume, which was readable before.
            Err(error) if refused.is_some() && error.is_of(ErrorClass::VolumeChanging) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // The provider's yes is evidence too. It may be out of date.
        if let Some(name) = report::file_system_of(&instance) {
            refresh_all(host, ctx)?;
            let reason = format!("the volume has no file system, but the storage provider reports {name}");
            refused = Some(OperationError::precondition(reason));
            return Ok(None);
        }
        match invoke(host, ctx, &instance.path, "Format", &arguments, host.timeouts().format) {
            Err(error) if error.code.is_some_and(|code| TEMPORARY.contains(&code)) => {
                if error.code == Some(code::STALE_CACHE) {
                    refresh_all(host, ctx)?;
                }
                // The volumes of a read-only disk do not become writable by themselves.
                let attributes = disk.as_ref().ok().and_then(|disk| disk.attributes().ok()).unwrap_or_default();
                if error.code == Some(code::VOLUME_READ_ONLY) && attributes & DiskAttributes::READ_ONLY != 0 {
                    return Err(error.into());
                }
                refused = Some(error);
                Ok(None)
            }
            Err(error) => Err(or_removed(error, || match &disk {
                Ok(disk) => disk.check_number(),
                Err(_) => volume_device::disk_of(host, SecondWay::Refused, volume).map(drop).map_err(Stop::into_error),
            })
            .into()),
            Ok(_) => Ok(Some(())),
        }
    })?;
    match (formatted, refused) {
        (None, Some(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the provider's instance of a partition of a disk that is open as a device and that has been compared with the
/// provider's. If the provider reports the partition otherwise than the device, refreshes its data first.
///
/// The partition is found by its offset: the provider numbers partitions in the order of the offsets, and the device may not.
fn partition_instance(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    partition: &Partition,
) -> OperationResult<Instance> {
    let (number, disk_number) = (partition.number, disk.number);
    let wql = format!("SELECT * FROM MSFT_Partition WHERE DiskNumber = {}", disk_number.0);
    let object = format!("partition {number} of {disk_number}");
    let select = || find_where(host, ctx, &wql, &object, |found| found.u64("Offset") == Some(partition.offset));
    let mut found = select()?;
    if found.u64("Size") != Some(partition.length) {
        refresh_all(host, ctx)?;
        instance_of(host, ctx, disk)?;
        found = select()?;
    }
    disk.check_number()?;
    Ok(found)
}

/// Grows a partition and its file system to `size` bytes, after refreshing the provider's data of the disk: a provider that
/// does not know that the disk has grown, or that another program has deleted the next partition, may refuse the size.
pub(crate) fn resize(
    host: &Host,
    ctx: &OperationContext,
    disk: &Disk,
    partition: &Partition,
    size: u64,
) -> RunResult<()> {
    ctx.require_pool(PoolKind::Wmi)?;
    let instance = instance_with_number(host, ctx, disk.number)?;
    match check_same(host, disk, &instance) {
        Ok(()) => refresh_instance(host, ctx, &instance)?,
        Err(error) if error.code.is_some() => return Err(error.into()),
        Err(_) => {
            refresh_all(host, ctx)?;
            check_same(host, disk, &instance_with_number(host, ctx, disk.number)?)?;
        }
    }
    let instance = partition_instance(host, ctx, disk, partition)?;
    let arguments = [("Size", Value::Text(size.to_string()))];
    retry_if_stale(host, ctx, || Ok(change(host, ctx, disk, &instance, "Resize", &arguments).map(drop)?))
}

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{accept, code, method_error};
    use crate::error::Kind;

    #[test]
    fn an_error_of_the_provider_has_the_kind_reason_and_code_of_its_return_value() {
        for (code, kind, words) in [
            (code::TIMEOUT, Kind::StillRunning, "timed out"),
            (code::IN_USE, Kind::Busy, "in use"),
            (code::ACCESS_DENIED, Kind::PermissionDenied, "denied"),
            (code::STALE_CACHE, Kind::FailedPrecondition, "out of date"),
            (code::TOO_SMALL_FOR_GPT, Kind::FailedPrecondition, "too small"),
            (code::CLUSTERED, Kind::FailedPrecondition, "cluster"),
            (code::VOLUME_CLUSTERED, Kind::FailedPrecondition, "cluster"),
            (code::DEVICE_BUSY, Kind::Busy, "in use"),
            (code::SIZE_NOT_SUPPORTED, Kind::FailedPrecondition, "size"),
            (code::NO_SPACE, Kind::FailedPrecondition, "space"),
            (code::NOT_INITIALIZED, Kind::FailedPrecondition, "no partition table"),
            (code::DISK_READ_ONLY, Kind::FailedPrecondition, "read-only"),
            (code::VOLUME_READ_ONLY, Kind::FailedPrecondition, "read-only"),
            (code::DISK_OFFLINE, Kind::FailedPrecondition, "offline"),
            (code::CRITICAL_DISK, Kind::PermissionDenied, "node itself"),
            (code::SYSTEM_PARTITION, Kind::PermissionDenied, "node itself"),
            (code::UNKNOWN_FILE_SYSTEM, Kind::FailedPrecondition, "file system"),
            (OsError(4), Kind::Internal, "failed"),
        ] {
            let error = method_error("Format", code);
            assert_eq!((error.kind, error.code), (kind, Some(code)));
            let sentence = error.to_string();
            assert!(sentence.contains("Format") && sentence.contains(words), "{sentence}");
            assert!(sentence.ends_with(&format!("({})", code.0)), "{sentence}");
        }
    }

    #[test]
    fn only_the_accepted_code_is_treated_as_success() {
        let create = |code| accept(code::PATH_NOT_ASSIGNED, Err(method_error("CreatePartition", code)));
        assert!(create(code::PATH_NOT_ASSIGNED).is_ok());
        assert!(create(code::ALREADY_INITIALIZED).is_err());
    }
}
