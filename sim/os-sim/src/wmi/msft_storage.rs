//! The classes of the storage provider: `MSFT_Disk`, `MSFT_Partition`, `MSFT_Volume` and
//! `MSFT_StorageSetting`.
//!
//! As on Windows, the provider answers from a cache. After a change by a control code, the instance
//! of a disk is out of date until `Refresh` or `UpdateHostStorageCache`, and methods that change
//! the disk return 40003. The provider learns of a new disk or volume some time after Windows shows
//! it, or by `UpdateHostStorageCache`.

use std::time::Duration;

use os::{Instance, OsError, OsResult, Returned, Uuid, Value};

use crate::description::VolumeHealth;
use crate::disks::{Disk, Layout, Volume};
use crate::state::{DeviceId, State};
use crate::wmi::method_call::{Arguments, Method, method, returned};
use crate::wmi::provider_instances::{
    disk_id, disk_instance, long, partition_by_number, partition_id, partition_instance, row,
    volume_id, volume_instance,
};
use crate::wmi::storage_jobs::{FormatArguments, JobAction, NewPartition, supported_size};
use crate::wmi::wql::{Associators, ObjectPath};
use crate::wmi::{StartedCall, return_value as code};

/// Returns the instances of one of the provider's classes.
pub(crate) fn rows(state: &State, class: &str) -> Vec<Instance> {
    let disks = || known_disks(state).map(|(_, disk)| disk);
    match class {
        "MSFT_Disk" => disks().map(disk_instance).collect(),
        "MSFT_Partition" => disks()
            .flat_map(|disk| {
                disk.partitions
                    .iter()
                    .map(|part| partition_instance(state, disk, part))
            })
            .collect(),
        "MSFT_Volume" => {
            let known = state
                .arrived_volumes()
                .filter(|(_, volume)| volume.known_to_provider);
            known
                .map(|(_, volume)| volume_instance(state, volume))
                .collect()
        }
        "MSFT_StorageSetting" => {
            vec![row("MSFT_StorageSetting", "", [])]
        }
        _ => Vec::new(),
    }
}

/// Returns the volume of a partition, or the partition of a volume. Other associations are not
/// simulated.
///
/// A volume over several partitions is on dynamic disks. The provider manages only basic disks and
/// associates no partition with such a volume.
pub(crate) fn associated(state: &State, query: &Associators) -> OsResult<Vec<Instance>> {
    let object = &query.object;
    let asks_for = |class: &str| query.result.is_none_or(|result| result == class);
    if query
        .association
        .is_some_and(|association| association != "MSFT_PartitionToVolume")
    {
        return Ok(Vec::new());
    }
    let id = object.text("ObjectId").ok_or(ObjectPath::INVALID)?;
    if object.is_of("MSFT_Partition") && asks_for("MSFT_Volume") {
        let (device, number) = partition_by_id(state, id)?;
        let part = state
            .disk(device)?
            .partition(number)
            .ok_or(OsError::WBEM_NOT_FOUND)?;
        let is_shown = |volume: &&Volume| {
            volume.arrived && volume.known_to_provider && volume.further_extents.is_empty()
        };
        let volume = part.volume.as_ref().filter(is_shown);
        return Ok(volume
            .map(|volume| volume_instance(state, volume))
            .into_iter()
            .collect());
    }
    if object.is_of("MSFT_Volume") && asks_for("MSFT_Partition") {
        let volume = volume_by_id(state, id)?;
        let (device, number) = state.location_of(volume).ok_or(OsError::WBEM_NOT_FOUND)?;
        let is_basic = state.volume(volume)?.1.further_extents.is_empty();
        let row = is_basic
            .then(|| partition_by_number(state, state.disk(device).ok()?, number))
            .flatten();
        return Ok(row.into_iter().collect());
    }
    Ok(Vec::new())
}

/// The methods that are simulated.
pub(crate) static METHODS: [Method; 15] = [
    method("MSFT_Disk", "Initialize", "PartitionStyle"),
    method(
        "MSFT_Disk",
        "CreatePartition",
        "Size UseMaximumSize Offset AssignDriveLetter GptType IsHidden IsActive",
    ),
    method("MSFT_Disk", "Online", ""),
    method("MSFT_Disk", "Offline", ""),
    method("MSFT_Disk", "Refresh", ""),
    method("MSFT_Partition", "GetSupportedSize", ""),
    method("MSFT_Partition", "Resize", "Size"),
    method("MSFT_Partition", "Online", ""),
    method("MSFT_Partition", "Offline", ""),
    method(
        "MSFT_Partition",
        "AddAccessPath",
        "AccessPath AssignDriveLetter",
    ),
    method("MSFT_Partition", "RemoveAccessPath", "AccessPath"),
    method(
        "MSFT_Volume",
        "Format",
        "FileSystem FileSystemLabel AllocationUnitSize Full Force Compress ShortFileNameSupport \
         SetIntegrityStreams UseLargeFRS DisableHeatGathering IsDAX RunAsJob",
    ),
    method("MSFT_Volume", "Flush", ""),
    method("MSFT_StorageSetting", "UpdateHostStorageCache", ""),
    method("MSFT_Disk", "SetAttributes", "IsReadOnly"),
];

/// How a method ends that starts no job.
enum Ended {
    Error(OsError),
    Returned(Returned),
}

impl From<OsError> for Ended {
    fn from(error: OsError) -> Self {
        Self::Error(error)
    }
}

impl From<u32> for Ended {
    fn from(code: u32) -> Self {
        Self::Returned(returned(code))
    }
}

/// Starts a method of one of the provider's classes.
pub(crate) fn call(
    state: &mut State,
    object: &ObjectPath,
    method: &str,
    given: &[(&str, Value)],
) -> OsResult<StartedCall> {
    match start(state, object, method, given) {
        Ok(job) => Ok(StartedCall::Job(job)),
        Err(Ended::Returned(returned)) => Ok(StartedCall::Done(returned)),
        Err(Ended::Error(error)) => Err(error),
    }
}

/// Starts the job of a method and returns its number.
fn start(
    state: &mut State,
    object: &ObjectPath,
    method: &str,
    given: &[(&str, Value)],
) -> Result<u64, Ended> {
    let method = Method::find(&METHODS, object, method).ok_or(OsError::WBEM_NOT_FOUND)?;
    let arguments = method.arguments(given)?;
    // WMI refuses an empty text, because a BSTR without characters may be a null pointer.
    if given
        .iter()
        .any(|(_, value)| matches!(value, Value::Text(text) if text.is_empty()))
    {
        return Err(OsError::WBEM_INVALID_PARAMETER.into());
    }
    if method.class == "MSFT_StorageSetting" {
        return start_job(state, None, JobAction::Rescan);
    }
    let id = object.text("ObjectId").ok_or(ObjectPath::INVALID)?;
    match method.class {
        "MSFT_Disk" => {
            let device = disk_by_id(state, id)?;
            call_disk(state, device, method.name, arguments)
        }
        "MSFT_Partition" => {
            let (device, number) = partition_by_id(state, id)?;
            call_partition(state, device, number, method.name, arguments)
        }
        _ => {
            let volume = volume_by_id(state, id)?;
            call_volume(state, volume, method.name, arguments)
        }
    }
}

fn call_disk(
    state: &mut State,
    device: DeviceId,
    method: &str,
    arguments: Arguments<'_>,
) -> Result<u64, Ended> {
    let action = match method {
        "Initialize" => match arguments.u32("PartitionStyle")?.unwrap_or(2) {
            2 => JobAction::Initialize,
            _ => return Err(code::INVALID_PARAMETER.into()),
        },
        "CreatePartition" => JobAction::CreatePartition(create_partition_arguments(arguments)?),
        "Online" => JobAction::SetOffline(false),
        "Offline" => JobAction::SetOffline(true),
        "SetAttributes" => JobAction::SetReadOnly(
            arguments
                .bool("IsReadOnly")?
                .ok_or(code::INVALID_PARAMETER)?,
        ),
        _ => return Err(refresh(state.disk_mut(device)?).into()),
    };
    start_job(state, Some(device), action)
}

/// Refreshes the cache of a disk. Refuses a disk that is offline or has no partition table.
fn refresh(disk: &mut Disk) -> u32 {
    if disk.is_offline() {
        return code::DISK_OFFLINE;
    }
    if disk.layout == Layout::Raw {
        return code::NOT_INITIALIZED;
    }
    disk.refresh();
    code::DONE
}

/// Returns the arguments of `CreatePartition`. Without a size, the partition has the maximum size.
fn create_partition_arguments(arguments: Arguments<'_>) -> Result<NewPartition, Ended> {
    // Only `false`, which csi-proxy passes, is simulated.
    for flag in ["AssignDriveLetter", "IsHidden", "IsActive"] {
        if arguments.bool(flag)?.unwrap_or(false) {
            return Err(code::NOT_SUPPORTED.into());
        }
    }
    let gpt_type = arguments
        .text("GptType")?
        .map(|kind| kind.trim_start_matches('{').trim_end_matches('}').parse());
    let gpt_type = gpt_type.transpose().map_err(|_| code::INVALID_PARAMETER)?;
    Ok(NewPartition {
        offset: arguments.u64("Offset")?,
        size: arguments.u64("Size")?,
        gpt_type,
    })
}

fn call_partition(
    state: &mut State,
    device: DeviceId,
    number: u32,
    method: &str,
    arguments: Arguments<'_>,
) -> Result<u64, Ended> {
    match method {
        "GetSupportedSize" => {
            let (smallest, largest) = supported_size(state.disk(device)?, number)?;
            let mut answer = returned(code::DONE);
            answer.out = row(
                "__PARAMETERS",
                "",
                [("SizeMin", long(smallest)), ("SizeMax", long(largest))],
            );
            Err(Ended::Returned(answer))
        }
        "Resize" => {
            let size = arguments
                .u64("Size")?
                .filter(|size| *size > 0)
                .ok_or(code::INVALID_PARAMETER)?;
            start_job(
                state,
                Some(device),
                JobAction::Resize {
                    partition: number,
                    size,
                },
            )
        }
        "AddAccessPath" | "RemoveAccessPath" => {
            let path = arguments.text("AccessPath")?.unwrap_or_default();
            let code = change_access_path(state, device, number, method == "AddAccessPath", path);
            Err(code.into())
        }
        _ => Err(set_volume_offline(state, device, number, method == "Offline").into()),
    }
}

/// Adds or removes an access path: a directory where the volume of the partition is mounted. The
/// path needs no final backslash. Drive letters are not simulated.
fn change_access_path(
    state: &mut State,
    device: DeviceId,
    number: u32,
    add: bool,
    path: &str,
) -> u32 {
    let part = state
        .disk(device)
        .ok()
        .and_then(|disk| disk.partition(number));
    let Some(volume) = part
        .and_then(|part| part.volume.as_ref())
        .filter(|volume| volume.arrived)
    else {
        return code::FAILED;
    };
    let volume = volume.id;
    let path = os::U16String::from_str(&format!(r"{}\", path.trim_end_matches('\\')));
    let name = os::U16String::from_str(&volume_path(volume));
    let outcome = if add {
        state.mount(&path, &name)
    } else if state.is_mounted_at(&path, volume) {
        state.unmount(&path)
    } else {
        Err(OsError::NOT_A_REPARSE_POINT)
    };
    match outcome {
        Ok(()) => code::DONE,
        Err(OsError::ACCESS_DENIED) => code::ACCESS_DENIED,
        Err(OsError::SHARING_VIOLATION) => code::FAILED,
        Err(_) => code::INVALID_ACCESS_PATH,
    }
}

/// Dismounts the volume of a data partition and takes it offline, or makes it arrive and brings it
/// online.
fn set_volume_offline(state: &mut State, device: DeviceId, number: u32, offline: bool) -> u32 {
    let Ok(disk) = state.disk(device) else {
        return code::FAILED;
    };
    let Some(volume) = disk.partition(number).and_then(|part| part.volume.as_ref()) else {
        return code::NO_DATA_PARTITION;
    };
    let volume = volume.id;
    if disk.is_offline() {
        return code::FAILED;
    }
    if offline {
        state.dismount_file_system(volume);
    } else {
        state.volume_arrives(volume);
    }
    match state.volume_mut(volume) {
        Ok(volume) => {
            volume.offline = offline;
            code::DONE
        }
        Err(_) => code::FAILED,
    }
}

fn call_volume(
    state: &mut State,
    volume: Uuid,
    method: &str,
    arguments: Arguments<'_>,
) -> Result<u64, Ended> {
    let (device, _) = state.location_of(volume).ok_or(OsError::WBEM_NOT_FOUND)?;
    match method {
        "Format" => {
            let kind = arguments.text("FileSystem")?.unwrap_or("NTFS").to_owned();
            let is_forced = arguments.bool("Force")?.unwrap_or(false);
            if !is_forced && state.is_volume_in_use(volume, None) {
                return Err(code::ACCESS_DENIED.into());
            }
            let cluster_size = arguments.u32("AllocationUnitSize")?;
            start_job(
                state,
                Some(device),
                JobAction::Format(FormatArguments {
                    volume,
                    kind,
                    cluster_size,
                }),
            )
        }
        // "Flush"
        _ if state.volume(volume)?.1.health == VolumeHealth::Unreadable => Err(code::FAILED.into()),
        _ => Err(code::DONE.into()),
    }
}

fn start_job(state: &mut State, device: Option<DeviceId>, action: JobAction) -> Result<u64, Ended> {
    let timing = state.timing;
    let takes = match &action {
        JobAction::Initialize => timing.initialize,
        JobAction::CreatePartition(_) => timing.create_partition,
        JobAction::Format(_) => timing.format,
        JobAction::Resize { .. } => timing.resize,
        JobAction::SetOffline(_) | JobAction::SetReadOnly(_) => timing.set_online,
        JobAction::Rescan => timing.rescan,
        JobAction::Remote { .. } => Duration::ZERO,
    };
    Ok(state.start(device, action, takes)?)
}

/// Returns the disks that the provider knows.
fn known_disks(state: &State) -> impl Iterator<Item = (DeviceId, &Disk)> {
    state
        .visible_disks()
        .filter(|(_, disk)| disk.known_to_provider)
}

fn disk_by_id(state: &State, id: &str) -> OsResult<DeviceId> {
    let mut found = known_disks(state).filter(|(_, disk)| disk_id(disk).eq_ignore_ascii_case(id));
    found
        .next()
        .map(|(device, _)| device)
        .ok_or(OsError::WBEM_NOT_FOUND)
}

fn partition_by_id(state: &State, id: &str) -> OsResult<(DeviceId, u32)> {
    let parts = known_disks(state)
        .flat_map(|(device, disk)| disk.partitions.iter().map(move |part| (device, disk, part)));
    let mut found =
        parts.filter(|(_, disk, part)| partition_id(disk, part).eq_ignore_ascii_case(id));
    found
        .next()
        .map(|(device, _, part)| (device, part.number))
        .ok_or(OsError::WBEM_NOT_FOUND)
}

fn volume_by_id(state: &State, id: &str) -> OsResult<Uuid> {
    let known = state
        .arrived_volumes()
        .filter(|(_, volume)| volume.known_to_provider);
    let mut found = known.filter(|(_, volume)| volume_id(volume).eq_ignore_ascii_case(id));
    found
        .next()
        .map(|(_, volume)| volume.id)
        .ok_or(OsError::WBEM_NOT_FOUND)
}

/// Returns `\\?\Volume{...}\`.
pub(crate) fn volume_path(id: Uuid) -> String {
    format!(r"\\?\Volume{{{id}}}\")
}
