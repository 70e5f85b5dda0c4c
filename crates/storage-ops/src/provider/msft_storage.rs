//! The storage provider of Windows: the WMI classes through which disks and volumes are changed.
//!
//! Changes that could destroy data are made here, because the provider refuses changes that the
//! control codes would make: it initializes only a disk without a partition table.
//!
//! The provider answers from a cache. What a change destroys is decided by what the devices report
//! right before it. The cache is refreshed if it differs from what they report, if the provider
//! refuses a change for a reason that an outdated cache explains, and before a partition grows.
//! Each query and each method is slow, so no others are made.

use os::abi::DiskAttributes;
use os::{Instance, OsError, Returned, U16String, Value};

use crate::devices::{Disk, Partition, disk_identifiers, volume};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::comparison::{Reported, difference, is_same_size};
use crate::provider::instances::{
    GPT, RAW, file_system_of, find, find_where, instance_with_number, invoke, number_at_path,
    refresh_all, refresh_instance,
};
use crate::provider::return_values::code;
use crate::provider::wmi;
use crate::scheduling::PoolKind;
use crate::types::VolumeId;
use crate::windows::Fallback;

/// The codes with which a provider whose cache is out of date may refuse to change a disk that is
/// ready.
const MAY_BE_STALE: [OsError; 7] = [
    code::STALE_CACHE,
    code::SIZE_NOT_SUPPORTED,
    code::NO_SPACE,
    code::NOT_INITIALIZED,
    code::DISK_READ_ONLY,
    code::DISK_OFFLINE,
    // The instance in the cache belongs to a removed disk.
    OsError::WBEM_NOT_FOUND,
];

/// The return values of `Format` that may be temporary. A new volume is read-only for a moment, or
/// the parameters that name it are not valid yet; another program that reacts to its arrival may
/// have locked it.
const TEMPORARY: [OsError; 6] = [
    code::INVALID_PARAMETER,
    code::IN_USE,
    code::DEVICE_BUSY,
    code::ACCESS_DENIED,
    code::STALE_CACHE,
    code::VOLUME_READ_ONLY,
];

/// Returns the registry key below `HKEY_LOCAL_MACHINE`, and its value, that record that the
/// formatting of a volume has begun and its root directory has not been given its access list.
/// Windows goes on formatting if the daemon ends meanwhile, and a driver that then finds the volume
/// formatted does not call FormatVolume again. The key is volatile: it outlives the daemon and not
/// Windows.
pub(crate) fn record_of(volume: VolumeId) -> (U16String, U16String) {
    (
        U16String::from_str(r"SOFTWARE\csi-proxy\VolumesBeingFormatted"),
        volume.to_windows(),
    )
}

/// Calls a method that changes a disk, or a partition of it, after checking that the disk still has
/// its number.
fn change(
    run: Run<'_>,
    disk: &Disk,
    instance: &Instance,
    method: &str,
    arguments: &[(&str, Value)],
) -> OperationResult<Returned> {
    disk.check_number()?;
    invoke(
        run,
        &instance.path,
        method,
        arguments,
        run.timeouts().change,
    )
    .map_err(|error| or_removed(error, || disk.check_number()))
}

/// Returns the error of a change whose object may have been removed meanwhile: the provider has no
/// return value for that. `find` looks for the object.
fn or_removed(error: OperationError, find: impl FnOnce() -> OperationResult<()>) -> OperationError {
    if matches!(
        error.kind,
        ErrorKind::StillRunning | ErrorKind::Unavailable | ErrorKind::Cancelled
    ) || !find().is_err_and(|missing| missing.is_not_found())
    {
        return error;
    }
    error
        .in_context("it was removed meanwhile")
        .with_kind(ErrorKind::NotFound)
}

/// Treats an error with `code` as success.
fn accept(code: OsError, outcome: OperationResult<Returned>) -> OperationResult<Returned> {
    match outcome {
        Err(error) if error.code == Some(code) => Ok(Returned::default()),
        outcome => outcome,
    }
}

/// Returns whether the provider may have refused a change because its cache is out of date.
pub(crate) fn may_be_stale(error: &OperationError) -> bool {
    error.code.is_some_and(|code| MAY_BE_STALE.contains(&code))
}

/// Runs `change`. If the provider refuses it for a reason that an outdated cache explains,
/// refreshes the cache and runs `change` again.
fn retry_if_stale<T>(
    run: Run<'_>,
    mut change: impl FnMut() -> OperationResult<T>,
) -> OperationResult<T> {
    match change() {
        Err(error) if may_be_stale(&error) => {
            refresh_all(run)?;
            change()
        }
        outcome => outcome,
    }
}

/// Returns the provider's instance of a disk that is open as a device, after checking that both are
/// the same disk. If the provider reports it otherwise than the device, refreshes the provider's
/// data first.
pub(crate) fn instance_of(run: Run<'_>, disk: &Disk) -> OperationResult<Instance> {
    let instance = instance_with_number(run, disk.number)?;
    let device = disk
        .reader(run.os())
        .ok()
        .as_ref()
        .and_then(Reported::by_device);
    match check_same(run, disk, &instance) {
        Err(error) if error.code.is_some() => return Err(error),
        Ok(()) if difference(device, &instance).is_none() => return Ok(instance),
        // `Refresh` may be refused in other states than these.
        Ok(()) if device.is_some_and(|device| device.style != RAW && !device.is_offline) => {
            refresh_instance(run, &instance)?;
        }
        _ => refresh_all(run)?,
    }
    let instance = instance_with_number(run, disk.number)?;
    check_same(run, disk, &instance)?;
    if let Some(property) = difference(device, &instance)
        && run
            .windows()
            .fallbacks
            .count(Fallback::ProviderCache, OsError(property as u32))
    {
        let provider = Reported::by_provider(&instance);
        tracing::warn!(
            ?property,
            ?device,
            ?provider,
            "the storage provider reports a disk otherwise than the device, even after a refresh; \
             logged once"
        );
    }
    Ok(instance)
}

/// Checks that the provider's instance is that of the disk that is open as a device.
///
/// Windows may reuse the number of a disk. Therefore the path in the instance must lead to the
/// device with that number. If the path cannot be opened, the serial numbers must be equal or, if
/// the disk has none, the sizes.
fn check_same(run: Run<'_>, disk: &Disk, instance: &Instance) -> OperationResult<()> {
    let number = disk.number;
    let of_path = number_at_path(run, instance);
    // The open disk has had this number since it was opened, so no other device had it.
    disk.check_number()?;
    let of_device =
        disk_identifiers::serial(&*disk.handle).or_else(disk_identifiers::none_if_unsupported)?;
    let of_wmi = instance.text("SerialNumber").unwrap_or_default();
    let is_same = match (of_path, of_device.trim(), of_wmi.trim()) {
        (Some(of_path), ..) => of_path == number,
        (None, "", "") => instance
            .u64("Size")
            .is_some_and(|size| disk.size().is_ok_and(|own| is_same_size(own, size))),
        (None, of_device, of_wmi) => of_device == of_wmi,
    };
    if is_same {
        return Ok(());
    }
    let reason = format!(
        "{number} was replaced: the storage provider reports the serial number {of_wmi:?}, the \
         device {of_device:?}; rescan and retry"
    );
    Err(OperationError::precondition(reason))
}

/// Creates a GUID partition table on a disk without a partition table, which the device has just
/// reported. Does nothing if the provider reports that the disk has one.
pub(crate) fn initialize(run: Run<'_>, disk: &Disk, instance: &Instance) -> OperationResult<()> {
    if instance.u32("PartitionStyle") != Some(RAW) {
        return Ok(());
    }
    let style = [("PartitionStyle", Value::U32(GPT))];
    let initialized = change(run, disk, instance, "Initialize", &style);
    accept(code::ALREADY_INITIALIZED, initialized).map(drop)
}

/// Creates one basic data partition in all the unallocated space of a disk, without a drive letter.
/// A disk that has a partition other than the reserved one is left unchanged. `known` is the
/// provider's instance of the disk, if the provider has just initialized it. Returns what the
/// method returned, which may have the new partition.
pub(crate) async fn create_partition(
    run: Run<'_>,
    disk: &Disk,
    mut known: Option<Instance>,
) -> OperationResult<Returned> {
    run.enter(PoolKind::Wmi).await;
    let arguments = [
        ("UseMaximumSize", Value::Bool(true)),
        ("AssignDriveLetter", Value::Bool(false)),
        (
            "GptType",
            Value::Text(format!("{{{}}}", os::abi::BASIC_DATA)),
        ),
        ("IsHidden", Value::Bool(false)),
        ("IsActive", Value::Bool(false)),
    ];
    retry_if_stale(run, || {
        let instance = match known.take() {
            Some(instance) => check_same(run, disk, &instance).map(|()| instance)?,
            None => instance_of(run, disk)?,
        };
        // Another program, which our lock does not exclude, may have partitioned the disk, or the
        // call that returned that the cache is out of date.
        let reader = disk.reader(run.os())?;
        reader.update()?;
        if reader.partition_table()?.is_partitioned() {
            return Ok(Returned::default());
        }
        drop(reader);
        let created = change(run, disk, &instance, "CreatePartition", &arguments);
        accept(code::PATH_NOT_ASSIGNED, created)
    })
}

/// Queries why Windows keeps a disk offline (WMI-DISK-12). Returns `None` if Windows gives no reason.
pub(crate) async fn offline_reason(run: Run<'_>, disk: &Disk) -> OperationResult<Option<u32>> {
    run.enter(PoolKind::Wmi).await;
    let instance = instance_of(run, disk)?;
    // The provider may still report a disk as online that has just been taken offline.
    let is_offline = instance.bool("IsOffline") == Some(true);
    let reason = instance.u32("OfflineReason");
    Ok(reason.filter(|reason| *reason != 0 && is_offline))
}

/// Brings a disk online and makes it writable, or takes it offline.
pub(crate) async fn set_online(run: Run<'_>, disk: &Disk, online: bool) -> OperationResult<()> {
    run.enter(PoolKind::Wmi).await;
    retry_if_stale(run, || {
        let instance = instance_of(run, disk)?;
        let change =
            |method, arguments: &[(&str, Value)]| change(run, disk, &instance, method, arguments);
        if !online {
            return change("Offline", &[]).map(drop);
        }
        let make_writable = || {
            if instance.bool("IsReadOnly") != Some(true) {
                return Ok(());
            }
            // A disk without a partition table may be refused. Whether it is writable shows when it
            // is initialized.
            let writable = change("SetAttributes", &[("IsReadOnly", Value::Bool(false))]);
            accept(code::NOT_INITIALIZED, writable).map(drop)
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

/// Brings the volume of a partition online, which Windows does not do by itself if automatic
/// mounting is disabled. If its state is not known, the provider's report decides whether that is
/// needed.
pub(crate) async fn bring_volume_online(
    run: Run<'_>,
    disk: &Disk,
    partition: &Partition,
    is_known_offline: bool,
) -> OperationResult<()> {
    run.enter(PoolKind::Wmi).await;
    retry_if_stale(run, || {
        instance_of(run, disk)?;
        let instance = partition_instance(run, disk, partition)?;
        if !is_known_offline && instance.bool("IsOffline") == Some(false) {
            return Ok(());
        }
        change(run, disk, &instance, "Online", &[]).map(drop)
    })
}

/// Brings the volume of a partition online that has just been created, so that the disk has been
/// compared with the provider's. If what `CreatePartition` returned does not lead to the partition,
/// looks the partition up.
pub(crate) async fn bring_new_volume_online(
    run: Run<'_>,
    disk: &Disk,
    partition: &Partition,
    created: &Returned,
) -> OperationResult<()> {
    run.enter(PoolKind::Wmi).await;
    if let Some(instance) = created_partition(created, partition) {
        match change(run, disk, &instance, "Online", &[]).map(drop) {
            Err(error)
                if !matches!(
                    error.kind,
                    ErrorKind::StillRunning | ErrorKind::Unavailable | ErrorKind::PermissionDenied
                ) => {}
            outcome => return outcome,
        }
    }
    retry_if_stale(run, || {
        change(
            run,
            disk,
            &partition_instance(run, disk, partition)?,
            "Online",
            &[],
        )
        .map(drop)
    })
}

/// Returns the partition that `CreatePartition` returned, if the device reports it at the same
/// place. The instance that the method returns has no path.
fn created_partition(returned: &Returned, partition: &Partition) -> Option<Instance> {
    let Value::Object(created) = returned.out.get("CreatedPartition")? else {
        return None;
    };
    let is_same = created.u64("Offset") == Some(partition.offset)
        && created.u64("Size") == Some(partition.length);
    let path = wmi::object_path("MSFT_Partition", "ObjectId", created.text("ObjectId")?);
    is_same.then(|| Instance {
        path,
        ..Instance::default()
    })
}

/// How a volume is formatted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formatting {
    /// The volume has no file system, and so no open file.
    First,
    /// The volume has a file system. The provider refuses a volume that is in use.
    Again,
}

/// The formatting of a volume (a quick format), which the provider may refuse for a moment.
pub(crate) struct Format<'a> {
    run: Run<'a>,
    id: VolumeId,
    arguments: Vec<(&'static str, Value)>,
    /// A disk that is removed and comes back during the call has the same volume again. Only this
    /// handle tells.
    disk: OperationResult<Disk>,
    /// Why the last attempt may be repeated.
    refused: Option<OperationError>,
}

impl<'a> Format<'a> {
    /// Prepares the formatting, on a thread of the pool for WMI.
    pub(crate) async fn prepare(run: Run<'a>, id: VolumeId) -> Self {
        let config = run.node().config();
        let file_system = Value::Text(config.new_file_system().into());
        // There is no label: an empty text may reach the provider as a null pointer.
        let mut arguments = vec![("FileSystem", file_system), ("Full", Value::Bool(false))];
        arguments.extend(
            config
                .format_allocation_unit
                .map(|bytes| ("AllocationUnitSize", Value::U32(bytes))),
        );
        run.enter(PoolKind::Wmi).await;
        let number = run.locked_disk().expect("the disk of the volume is locked");
        Self {
            run,
            id,
            arguments,
            disk: Disk::hold(run.os(), number),
            refused: None,
        }
    }

    /// Returns the provider's instance of the volume.
    pub(crate) fn instance(&self) -> OperationResult<Instance> {
        let wql = format!(
            "SELECT * FROM MSFT_Volume WHERE Path = {}",
            wmi::quote(&self.id.to_string())
        );
        find(self.run, &wql, &format!("volume {}", self.id))
    }

    /// Returns why the last attempt may be repeated, if there was one.
    pub(crate) fn refused(&self) -> Option<&OperationError> {
        self.refused.as_ref()
    }

    /// Makes the provider format the volume, which has just been found to need that. Returns
    /// whether it has; if not, the attempt may be repeated after a look at the volume.
    pub(crate) fn attempt(
        &mut self,
        instance: &Instance,
        formatting: Formatting,
    ) -> OperationResult<bool> {
        let (run, id) = (self.run, self.id);
        // The provider's yes is evidence too. It may be out of date.
        if formatting == Formatting::First
            && let Some(name) = file_system_of(instance)
        {
            refresh_all(run)?;
            let reason =
                format!("the volume has no file system, but the storage provider reports {name}");
            self.refused = Some(OperationError::precondition(reason));
            return Ok(false);
        }
        if !run.node().config().format_writers.is_empty() {
            run.begin_mutation()?;
            let (key, name) = record_of(id);
            run.os().set_volatile_text(&key, &name, &U16String::new())?;
        }
        let force = ("Force", Value::Bool(formatting == Formatting::First));
        match invoke(
            run,
            &instance.path,
            "Format",
            &[&self.arguments[..], &[force]].concat(),
            run.timeouts().format,
        ) {
            Err(error) if error.code.is_some_and(|code| TEMPORARY.contains(&code)) => {
                if error.code == Some(code::STALE_CACHE) {
                    refresh_all(run)?;
                }
                // The volumes of a read-only disk do not become writable by themselves.
                let attributes = self
                    .disk
                    .as_ref()
                    .ok()
                    .and_then(|disk| disk.attributes().ok())
                    .unwrap_or_default();
                if error.code == Some(code::VOLUME_READ_ONLY)
                    && attributes & DiskAttributes::READ_ONLY != 0
                {
                    return Err(error);
                }
                if self.refused.is_none() {
                    tracing::warn!(
                        volume = %id, %error,
                        "repeating the format that the storage provider refused"
                    );
                }
                self.refused = Some(error);
                Ok(false)
            }
            Err(error) => Err(or_removed(error, || match &self.disk {
                Ok(disk) => disk.check_number(),
                Err(_) => volume::disk_of(run.os(), id).map(drop),
            })),
            Ok(_) => Ok(true),
        }
    }
}

/// Returns the provider's instance of a partition of a disk that is open as a device and that has
/// been compared with the provider's. If the provider reports the partition otherwise than the
/// device, refreshes its data first.
///
/// The partition is found by its offset: the provider numbers partitions in the order of the
/// offsets, and the device may not.
fn partition_instance(
    run: Run<'_>,
    disk: &Disk,
    partition: &Partition,
) -> OperationResult<Instance> {
    let (number, disk_number) = (partition.number, disk.number);
    let wql = format!(
        "SELECT * FROM MSFT_Partition WHERE DiskNumber = {}",
        disk_number.0
    );
    let object = format!("partition {number} of {disk_number}");
    let select = || {
        find_where(run, &wql, &object, |found| {
            found.u64("Offset") == Some(partition.offset)
        })
    };
    let mut found = select()?;
    if found.u64("Size") != Some(partition.length) {
        refresh_all(run)?;
        instance_of(run, disk)?;
        found = select()?;
    }
    Ok(found)
}

/// Grows a partition and its file system to `size` bytes, after refreshing the provider's data of
/// the disk: a provider that does not know that the disk has grown, or that another program has
/// deleted the next partition, may refuse the size.
///
/// If `is_largest`, the size was computed as the largest one that the disk allows. The provider may
/// allow less, for example because of the geometry of the disk, and is then asked for its largest
/// size. That question takes long: the provider also determines the smallest size. Returns false if
/// the partition has the largest size already.
pub(crate) async fn resize(
    run: Run<'_>,
    disk: &Disk,
    partition: &Partition,
    size: u64,
    is_largest: bool,
) -> OperationResult<bool> {
    run.enter(PoolKind::Wmi).await;
    let instance = instance_with_number(run, disk.number)?;
    match check_same(run, disk, &instance) {
        Ok(()) => refresh_instance(run, &instance)?,
        Err(error) if error.code.is_some() => return Err(error),
        Err(_) => {
            refresh_all(run)?;
            check_same(run, disk, &instance_with_number(run, disk.number)?)?;
        }
    }
    let instance = partition_instance(run, disk, partition)?;
    let to = |size: u64| {
        let arguments = [("Size", Value::Text(size.to_string()))];
        change(run, disk, &instance, "Resize", &arguments).map(drop)
    };
    match retry_if_stale(run, || to(size)) {
        Err(error) if is_largest && error.code == Some(code::SIZE_NOT_SUPPORTED) => {
            let supported = change(run, disk, &instance, "GetSupportedSize", &[])?;
            match supported.out.u64("SizeMax") {
                Some(largest) if largest <= partition.length => Ok(false),
                Some(largest) if largest < size => to(largest).map(|()| true),
                _ => Err(error),
            }
        }
        resized => resized.map(|()| true),
    }
}
