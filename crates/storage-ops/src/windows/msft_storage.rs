//! Windows' storage provider: the WMI classes through which disks and volumes are changed.
//!
//! What could destroy data goes through here, because the provider refuses what the raw control codes would do: it
//! initialises only a disk that has no partition table. Its answers come from a cache, so it is made to look again
//! before it is relied on.

use os::{Instance, Namespace, OsError, Returned, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::types::DiskNumber;
use crate::types::VolumeId;
use crate::windows::Host;
use crate::windows::disk_device::Disk;
use crate::windows::disk_identifiers;
use crate::windows::partition_table::{MIB, Partition};
use crate::windows::wmi::{call, one, quote};

/// What the provider's methods return, beside 0 for success.
mod code {
    pub(super) const TIMEOUT: u32 = 3;
    pub(super) const IN_USE: u32 = 6;
    pub(super) const ACCESS_DENIED: u32 = 40001;
    pub(super) const STALE_CACHE: u32 = 40003;
    pub(super) const ALREADY_INITIALISED: u32 = 41001;
    pub(super) const TOO_SMALL_FOR_GPT: u32 = 41014;
    pub(super) const CLUSTERED: u32 = 41018;
    /// The partition was made; only a path could not be assigned, which was not asked for.
    pub(super) const PATH_NOT_ASSIGNED: u32 = 42002;
}

/// `PartitionStyle` of `MSFT_Disk`; not the numbers that control codes use.
const RAW: u32 = 0;
const GPT: u32 = 2;

fn storage(
    host: &Host,
    ctx: &OperationContext,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OperationResult<Returned> {
    ctx.require_pool(PoolKind::Wmi)?;
    call(host, ctx, Namespace::Storage, path, method, arguments, host.timeouts().change)
}

/// The provider's refusal as a failure.
fn refused(method: &str, code: u32) -> OperationError {
    let (kind, words) = match code {
        code::TIMEOUT => (Kind::StillRunning, "ran into a timeout of its own"),
        code::IN_USE => (Kind::Busy, "says that the object is in use"),
        code::ACCESS_DENIED => (Kind::PermissionDenied, "says that access is denied"),
        code::STALE_CACHE => (Kind::FailedPrecondition, "says that its cache is out of date"),
        code::TOO_SMALL_FOR_GPT => (Kind::FailedPrecondition, "says that the disk is too small for a GPT"),
        code::CLUSTERED => (Kind::FailedPrecondition, "says that the disk belongs to a cluster"),
        _ => (Kind::Internal, "failed"),
    };
    OperationError {
        code: Some(OsError(code)),
        ..OperationError::new(kind, format!("the storage provider's {method} {words} ({code})"))
    }
}

fn done(method: &str, returned: &Returned) -> OperationResult<()> {
    if returned.code == 0 { Ok(()) } else { Err(refused(method, returned.code)) }
}

/// As [`done`], where `code` is as good as success.
fn done_or(code: u32, method: &str, returned: &Returned) -> OperationResult<()> {
    if returned.code == code { Ok(()) } else { done(method, returned) }
}

/// The provider's view of a disk, which must be the one that is open.
///
/// Numbers are given anew, devices are not: where the device tells a serial number, the provider must know the same,
/// and where it tells none, the same size.
fn disk(host: &Host, disk: &Disk) -> OperationResult<Instance> {
    let number = disk.number;
    let wql = format!("SELECT * FROM MSFT_Disk WHERE Number = {}", number.0);
    let instance = one(host, Namespace::Storage, &wql, &number.to_string())?;
    disk.check_number()?;
    let serial = disk_identifiers::serial(&*disk.handle)?;
    let known = instance.text("SerialNumber").unwrap_or_default();
    let same = match (serial.trim(), known.trim()) {
        ("", "") => instance.u64("Size").is_none_or(|size| disk.size().is_ok_and(|own| own.abs_diff(size) < MIB)),
        (serial, known) => serial == known,
    };
    if same {
        return Ok(instance);
    }
    let reason = format!("{number} is another disk to WMI (serial {known:?}) than to the device ({serial:?})");
    Err(OperationError::precondition(reason))
}

/// Makes the provider look at a disk again.
fn refresh(host: &Host, ctx: &OperationContext, number: DiskNumber) -> OperationResult<()> {
    ctx.require_pool(PoolKind::Wmi)?;
    let wql = format!("SELECT * FROM MSFT_Disk WHERE Number = {}", number.0);
    let instance = one(host, Namespace::Storage, &wql, &number.to_string())?;
    done("Refresh", &storage(host, ctx, &instance.path, "Refresh", &[])?)
}

/// Makes the provider look at all disks, partitions and volumes again.
pub(crate) fn refresh_all(host: &Host, ctx: &OperationContext) -> OperationResult<()> {
    done("UpdateHostStorageCache", &storage(host, ctx, "MSFT_StorageSetting", "UpdateHostStorageCache", &[])?)
}

/// Runs `change`; where the provider finds its cache out of date, makes it look again and runs `change` once more.
fn fresh(
    host: &Host,
    ctx: &OperationContext,
    change: impl Fn() -> OperationResult<Returned>,
) -> OperationResult<Returned> {
    let returned = change()?;
    if returned.code != code::STALE_CACHE {
        return Ok(returned);
    }
    refresh_all(host, ctx)?;
    change()
}

/// Puts a GUID partition table on a disk that has no table. One that has is refused by the provider itself.
pub(crate) fn initialize(host: &Host, ctx: &OperationContext, open: &Disk) -> OperationResult<()> {
    refresh(host, ctx, open.number)?;
    let returned = fresh(host, ctx, || {
        let disk = disk(host, open)?;
        if disk.u32("PartitionStyle") != Some(RAW) {
            return Ok(Returned::default());
        }
        storage(host, ctx, &disk.path, "Initialize", &[("PartitionStyle", Value::U32(GPT))])
    })?;
    done_or(code::ALREADY_INITIALISED, "Initialize", &returned)
}

/// Makes one basic data partition of all the room on a disk, without a drive letter.
pub(crate) fn create_partition(host: &Host, ctx: &OperationContext, open: &Disk) -> OperationResult<()> {
    refresh(host, ctx, open.number)?;
    let arguments = [
        ("UseMaximumSize", Value::Bool(true)),
        ("AssignDriveLetter", Value::Bool(false)),
        ("GptType", Value::Text(format!("{{{}}}", os::abi::BASIC_DATA))),
        ("IsHidden", Value::Bool(false)),
        ("IsActive", Value::Bool(false)),
    ];
    let returned = fresh(host, ctx, || {
        let disk = disk(host, open)?;
        storage(host, ctx, &disk.path, "CreatePartition", &arguments)
    })?;
    done_or(code::PATH_NOT_ASSIGNED, "CreatePartition", &returned)
}

/// Brings a disk online and makes it writable, or takes it offline, where the control code did not.
pub(crate) fn set_online(host: &Host, ctx: &OperationContext, open: &Disk, online: bool) -> OperationResult<()> {
    refresh(host, ctx, open.number)?;
    let disk = disk(host, open)?;
    if !online {
        return done("Offline", &storage(host, ctx, &disk.path, "Offline", &[])?);
    }
    if disk.bool("IsReadOnly") == Some(true) {
        let writable = [("IsReadOnly", Value::Bool(false))];
        done("SetAttributes", &storage(host, ctx, &disk.path, "SetAttributes", &writable)?)?;
    }
    done("Online", &storage(host, ctx, &disk.path, "Online", &[])?)
}

/// Brings a partition's volume online, which Windows leaves to others where automatic mounting is off.
pub(crate) fn bring_volume_online(
    host: &Host,
    ctx: &OperationContext,
    open: &Disk,
    partition: &Partition,
) -> OperationResult<()> {
    let instance = self::partition(host, ctx, open.number, partition.number, partition.offset)?;
    done("Online", &storage(host, ctx, &instance.path, "Online", &[])?)
}

/// Formats a volume with NTFS, quickly, if the caller still says so right before.
pub(crate) fn format_ntfs(
    host: &Host,
    ctx: &OperationContext,
    volume: VolumeId,
    still_raw: impl Fn() -> OperationResult<bool>,
) -> OperationResult<()> {
    let arguments = [
        ("FileSystem", Value::Text("NTFS".into())),
        ("FileSystemLabel", Value::Text(String::new())),
        ("Full", Value::Bool(false)),
        ("Force", Value::Bool(true)),
    ];
    ctx.require_pool(PoolKind::Wmi)?;
    let returned = fresh(host, ctx, || {
        let wql = format!("SELECT * FROM MSFT_Volume WHERE Path = {}", quote(&volume.to_string()));
        let instance = one(host, Namespace::Storage, &wql, &format!("volume {volume}"))?;
        if !still_raw()? {
            return Ok(Returned::default());
        }
        let timeout = host.timeouts().format;
        call(host, ctx, Namespace::Storage, &instance.path, "Format", &arguments, timeout)
    })?;
    done("Format", &returned)
}

/// A partition as the provider sees it, looked at again just now.
pub(crate) fn partition(
    host: &Host,
    ctx: &OperationContext,
    number: DiskNumber,
    partition: u32,
    offset: u64,
) -> OperationResult<Instance> {
    refresh(host, ctx, number)?;
    let wql = format!("SELECT * FROM MSFT_Partition WHERE DiskNumber = {} AND PartitionNumber = {partition}", number.0);
    let found = one(host, Namespace::Storage, &wql, &format!("partition {partition} of {number}"))?;
    if found.u64("Offset") != Some(offset) {
        return Err(OperationError::precondition(format!("WMI sees partition {partition} of {number} somewhere else")));
    }
    Ok(found)
}

/// The largest size in bytes that a partition can have.
pub(crate) fn largest(host: &Host, ctx: &OperationContext, partition: &Instance) -> OperationResult<u64> {
    let returned = fresh(host, ctx, || storage(host, ctx, &partition.path, "GetSupportedSize", &[]))?;
    done("GetSupportedSize", &returned)?;
    let missing = || OperationError::new(Kind::Internal, "the storage provider's GetSupportedSize gave no SizeMax");
    returned.out.u64("SizeMax").ok_or_else(missing)
}

/// Grows a partition and its file system to `size` bytes.
pub(crate) fn resize(host: &Host, ctx: &OperationContext, partition: &Instance, size: u64) -> OperationResult<()> {
    let arguments = [("Size", Value::Text(size.to_string()))];
    let returned = fresh(host, ctx, || storage(host, ctx, &partition.path, "Resize", &arguments))?;
    done("Resize", &returned)
}

#[cfg(test)]
mod tests {
    use os::{OsError, Returned};

    use super::{code, done_or, refused};
    use crate::error::Kind;

    #[test]
    fn each_refusal_tells_the_caller_what_it_can_conclude_and_keeps_its_number() {
        for (code, kind, words) in [
            (code::TIMEOUT, Kind::StillRunning, "timeout"),
            (code::IN_USE, Kind::Busy, "in use"),
            (code::ACCESS_DENIED, Kind::PermissionDenied, "denied"),
            (code::STALE_CACHE, Kind::FailedPrecondition, "out of date"),
            (code::TOO_SMALL_FOR_GPT, Kind::FailedPrecondition, "too small"),
            (code::CLUSTERED, Kind::FailedPrecondition, "cluster"),
            (4, Kind::Internal, "failed"),
        ] {
            let fault = refused("Format", code);
            assert_eq!((fault.kind, fault.code), (kind, Some(OsError(code))));
            let sentence = fault.to_string();
            assert!(sentence.contains("Format") && sentence.contains(words), "{sentence}");
            assert!(sentence.ends_with(&format!("({code})")), "{sentence}");
        }
    }

    #[test]
    fn a_partition_without_the_path_that_nobody_asked_for_is_made_and_any_other_code_is_a_failure() {
        let create =
            |code| done_or(code::PATH_NOT_ASSIGNED, "CreatePartition", &Returned { code, ..Returned::default() });
        assert!(create(0).is_ok() && create(code::PATH_NOT_ASSIGNED).is_ok());
        assert!(create(code::ALREADY_INITIALISED).is_err());
    }
}
