//! The classes of the storage provider: `MSFT_Disk`, `MSFT_Partition`, `MSFT_Volume` and `MSFT_StorageSetting`.
//!
//! The provider answers from a cache, as on Windows: after a change by a control code the instance of a disk is out of
//! date until `Refresh` or `UpdateHostStorageCache`, and methods that change the disk return 40003.

use std::time::Duration;

use os::{Instance, OsError, OsResult, Uuid, Value};

use crate::disks::{Disk, Layout, Partition, PartitionKind, Volume};
use crate::files::file_system::FileSystem;
use crate::hex;
use crate::state::{DeviceId, State};
use crate::wmi::StartedCall;
use crate::wmi::method_call::{Arguments, instance, returned};
use crate::wmi::storage_jobs::{JobAction, code, supported_size};
use crate::wmi::wql::ObjectPath;

/// The prefix of the provider's object identifiers.
const PROVIDER: &str = r"{1}\\NODE\root/Microsoft/Windows/Storage/Providers_v2\WSP_";

/// Returns the instances of one of the provider's classes.
pub(crate) fn rows(state: &State, class: &str) -> Vec<Instance> {
    let disks = || state.disks.values().filter(|disk| disk.visible);
    match class {
        "MSFT_Disk" => disks().map(disk_instance).collect(),
        "MSFT_Partition" => {
            disks().flat_map(|disk| disk.partitions.iter().map(|part| partition_instance(state, disk, part))).collect()
        }
        "MSFT_Volume" => state.arrived_volumes().map(|(_, volume)| volume_instance(volume)).collect(),
        "MSFT_StorageSetting" => {
            vec![row("MSFT_StorageSetting", "", [("NewDiskPolicy", Value::U32(1)), ("ScrubPolicy", Value::U32(1))])]
        }
        _ => Vec::new(),
    }
}

/// Returns the instances of `class` that are associated with a disk, partition or volume.
pub(crate) fn associated(state: &State, object: &ObjectPath, class: &str) -> OsResult<Vec<Instance>> {
    let id = object.text("ObjectId").ok_or(ObjectPath::INVALID)?;
    if object.is_of("MSFT_Disk") {
        let disk = state.disk(disk_by_id(state, id)?)?;
        let parts = disk.partitions.iter().filter(|_| class == "MSFT_Partition");
        return Ok(parts.map(|part| partition_instance(state, disk, part)).collect());
    }
    if object.is_of("MSFT_Partition") {
        let (device, number) = partition_by_id(state, id)?;
        let disk = state.disk(device)?;
        let part = disk.partitions.iter().find(|part| part.number == number).ok_or(OsError::WBEM_NOT_FOUND)?;
        let volume = part.volume.as_ref().filter(|volume| volume.arrived);
        return Ok(match class {
            "MSFT_Disk" => vec![disk_instance(disk)],
            "MSFT_Volume" => volume.map(volume_instance).into_iter().collect(),
            _ => Vec::new(),
        });
    }
    let volume = volume_by_id(state, id)?;
    let (device, number) = state.location_of(volume).ok_or(OsError::WBEM_NOT_FOUND)?;
    let disk = state.disk(device)?;
    let row = (class == "MSFT_Partition").then(|| partition_by_number(state, disk, number)).flatten();
    Ok(row.into_iter().collect())
}

/// The methods that are simulated: class, name and parameters.
const METHODS: [(&str, &str, &[&str]); 13] = [
    ("MSFT_Disk", "Initialize", &["PartitionStyle"]),
    (
        "MSFT_Disk",
        "CreatePartition",
        &[
            "Size",
            "UseMaximumSize",
            "Offset",
            "Alignment",
            "DriveLetter",
            "AssignDriveLetter",
            "MbrType",
            "GptType",
            "IsHidden",
            "IsActive",
        ],
    ),
    ("MSFT_Disk", "Online", &[]),
    ("MSFT_Disk", "Offline", &[]),
    ("MSFT_Disk", "Refresh", &[]),
    ("MSFT_Partition", "GetSupportedSize", &[]),
    ("MSFT_Partition", "Resize", &["Size"]),
    ("MSFT_Partition", "Online", &[]),
    (
        "MSFT_Volume",
        "Format",
        &[
            "FileSystem",
            "FileSystemLabel",
            "AllocationUnitSize",
            "Full",
            "Force",
            "Compress",
            "ShortFileNameSupport",
            "SetIntegrityStreams",
            "UseLargeFRS",
            "DisableHeatGathering",
            "IsDAX",
            "RunAsJob",
        ],
    ),
    ("MSFT_Volume", "Flush", &[]),
    ("MSFT_Volume", "Resize", &["Size", "RunAsJob"]),
    ("MSFT_StorageSetting", "UpdateHostStorageCache", &[]),
    ("MSFT_Disk", "SetAttributes", &["IsReadOnly", "Signature", "Guid"]),
];

/// Starts a method of one of the provider's classes.
pub(crate) fn call(
    state: &mut State,
    object: &ObjectPath,
    method: &str,
    given: &[(&str, Value)],
) -> OsResult<StartedCall> {
    let known = |(class, name, _): &&(&str, &str, &[&str])| object.is_of(class) && name.eq_ignore_ascii_case(method);
    let (class, method, parameters) = METHODS.iter().find(known).ok_or(OsError::WBEM_INVALID_METHOD)?;
    let arguments = Arguments::new(given, parameters)?;
    if *class == "MSFT_StorageSetting" {
        return Ok(start_job(state, None, JobAction::Rescan));
    }
    let id = object.text("ObjectId").ok_or(ObjectPath::INVALID)?;
    match *class {
        "MSFT_Disk" => {
            let device = disk_by_id(state, id)?;
            call_disk(state, device, method, arguments)
        }
        "MSFT_Partition" => {
            let (device, number) = partition_by_id(state, id)?;
            call_partition(state, device, number, method, arguments)
        }
        _ => {
            let volume = volume_by_id(state, id)?;
            call_volume(state, volume, method, arguments)
        }
    }
}

fn call_disk(state: &mut State, device: DeviceId, method: &str, arguments: Arguments<'_>) -> OsResult<StartedCall> {
    let action = match method {
        "Initialize" => match arguments.u32("PartitionStyle")?.unwrap_or(2) {
            style @ (1 | 2) => JobAction::Initialize { gpt: style == 2 },
            _ => return Ok(StartedCall::Done(returned(code::INVALID_PARAMETER))),
        },
        "CreatePartition" => match create_partition_arguments(arguments)? {
            Some(action) => action,
            None => return Ok(StartedCall::Done(returned(code::INVALID_PARAMETER))),
        },
        "Online" => JobAction::SetOffline(false),
        "Offline" => JobAction::SetOffline(true),
        "SetAttributes" => match arguments.bool("IsReadOnly")? {
            Some(read_only) => JobAction::SetReadOnly(read_only),
            None => return Ok(StartedCall::Done(returned(code::NOT_SUPPORTED))),
        },
        _ => {
            state.disk_mut(device)?.refresh();
            return Ok(StartedCall::Done(returned(code::DONE)));
        }
    };
    Ok(start_job(state, Some(device), action))
}

/// Returns the arguments of `CreatePartition`, or `None` if they are not valid: it takes either a size or
/// `UseMaximumSize`. Drive letters are not simulated.
fn create_partition_arguments(arguments: Arguments<'_>) -> OsResult<Option<JobAction>> {
    let size = arguments.u64("Size")?;
    let maximum = arguments.bool("UseMaximumSize")?.unwrap_or(false);
    if size.is_some() == maximum || arguments.bool("AssignDriveLetter")?.unwrap_or(false) {
        return Ok(None);
    }
    let kind = match arguments.text("GptType")? {
        None => None,
        Some(kind) => match kind.trim_start_matches('{').trim_end_matches('}').parse() {
            Ok(kind) => Some(kind),
            Err(_) => return Ok(None),
        },
    };
    Ok(Some(JobAction::CreatePartition { offset: arguments.u64("Offset")?, size, kind }))
}

fn call_partition(
    state: &mut State,
    device: DeviceId,
    number: u32,
    method: &str,
    arguments: Arguments<'_>,
) -> OsResult<StartedCall> {
    match method {
        "GetSupportedSize" => {
            let disk = state.disk(device)?;
            let Some((smallest, largest)) = supported_size(disk, number) else {
                return Ok(StartedCall::Done(returned(code::FAILED)));
            };
            let mut answer = returned(code::DONE);
            answer.out = row("__PARAMETERS", "", [("SizeMin", long(smallest)), ("SizeMax", long(largest))]);
            Ok(StartedCall::Done(answer))
        }
        "Resize" => resize(state, device, number, arguments),
        _ => Ok(StartedCall::Done(returned(code::DONE))),
    }
}

fn call_volume(state: &mut State, volume: Uuid, method: &str, arguments: Arguments<'_>) -> OsResult<StartedCall> {
    let (device, number) = state.location_of(volume).ok_or(OsError::WBEM_NOT_FOUND)?;
    match method {
        "Format" => {
            let kind = arguments.text("FileSystem")?.unwrap_or("NTFS").to_owned();
            let label = arguments.text("FileSystemLabel")?.unwrap_or_default().to_owned();
            if !arguments.bool("Force")?.unwrap_or(false) && state.is_volume_open(volume) {
                return Ok(StartedCall::Done(returned(code::IN_USE)));
            }
            Ok(start_job(state, Some(device), JobAction::Format { volume, kind, label }))
        }
        "Resize" => resize(state, device, number, arguments),
        _ => Ok(StartedCall::Done(returned(code::DONE))),
    }
}

fn resize(state: &mut State, device: DeviceId, partition: u32, arguments: Arguments<'_>) -> OsResult<StartedCall> {
    Ok(match arguments.u64("Size")? {
        Some(size) => start_job(state, Some(device), JobAction::Resize { partition, size }),
        None => StartedCall::Done(returned(code::INVALID_PARAMETER)),
    })
}

fn start_job(state: &mut State, device: Option<DeviceId>, action: JobAction) -> StartedCall {
    let timing = state.timing;
    let takes = match &action {
        JobAction::Initialize { .. } => timing.initialize,
        JobAction::CreatePartition { .. } => timing.create_partition,
        JobAction::Format { .. } => timing.format,
        JobAction::Resize { .. } => timing.resize,
        JobAction::SetOffline(_) | JobAction::SetReadOnly(_) => timing.set_online,
        JobAction::Rescan => timing.rescan,
        JobAction::Remote { .. } => Duration::ZERO,
    };
    match state.start(device, action, takes) {
        Ok(job) => StartedCall::Job(job),
        Err(code) => StartedCall::Done(returned(code)),
    }
}

impl State {
    /// Returns whether a file on the volume is open.
    fn is_volume_open(&self, volume: Uuid) -> bool {
        let on = crate::state::FsId::Volume(volume);
        self.handles
            .values()
            .any(|opened| matches!(&opened.object, crate::files::handles::Object::File { fs, .. } if *fs == on))
    }
}

fn disk_by_id(state: &State, id: &str) -> OsResult<DeviceId> {
    let visible = state.disks.iter().filter(|(_, disk)| disk.visible);
    let mut found = visible.filter(|(_, disk)| disk_id(disk).eq_ignore_ascii_case(id)).map(|(device, _)| *device);
    found.next().ok_or(OsError::WBEM_NOT_FOUND)
}

fn partition_by_id(state: &State, id: &str) -> OsResult<(DeviceId, u32)> {
    let visible = state.disks.iter().filter(|(_, disk)| disk.visible);
    let parts = visible.flat_map(|(device, disk)| disk.partitions.iter().map(move |part| (*device, disk, part)));
    let mut found = parts.filter(|(_, disk, part)| partition_id(disk, part).eq_ignore_ascii_case(id));
    found.next().map(|(device, _, part)| (device, part.number)).ok_or(OsError::WBEM_NOT_FOUND)
}

fn volume_by_id(state: &State, id: &str) -> OsResult<Uuid> {
    let mut found = state.arrived_volumes().filter(|(_, volume)| volume_id(volume).eq_ignore_ascii_case(id));
    found.next().map(|(_, volume)| volume.id).ok_or(OsError::WBEM_NOT_FOUND)
}

fn disk_id(disk: &Disk) -> String {
    format!(r#"{PROVIDER}Disk.ObjectId="{{{}}}:DI:{}""#, machine(), disk.interface())
}

fn partition_id(disk: &Disk, part: &Partition) -> String {
    let interface = disk.interface();
    format!(r#"{PROVIDER}Partition.ObjectId="{{{}}}:PR:{{{}}}{interface}:{}""#, machine(), part.id, part.offset)
}

fn volume_id(volume: &Volume) -> String {
    format!(r#"{PROVIDER}Volume.ObjectId="{{{}}}:VO:{}""#, machine(), volume_path(volume.id))
}

fn machine() -> Uuid {
    Uuid::from_u128(0x5f3e_9d4c_1111_11ef_8000_8061_6e6f_6963)
}

/// Returns `\\?\Volume{...}\`.
pub(crate) fn volume_path(id: Uuid) -> String {
    format!(r"\\?\Volume{{{id}}}\")
}

/// Returns a 64-bit integer as WMI passes it, which is as text.
pub(crate) fn long(number: u64) -> Value {
    Value::Text(number.to_string())
}

fn row<const N: usize>(class: &str, id: &str, properties: [(&str, Value); N]) -> Instance {
    let path = if id.is_empty() { ObjectPath::class(class) } else { ObjectPath::object(class, "ObjectId", id) };
    instance(&path, properties)
}

fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

/// Returns the instance of a disk.
pub(crate) fn disk_instance(disk: &Disk) -> Instance {
    let id = disk_id(disk);
    let offline = disk.provider_cache.attributes & os::abi::DiskAttributes::OFFLINE != 0;
    let read_only = disk.provider_cache.attributes & os::abi::DiskAttributes::READ_ONLY != 0;
    let style = match disk.layout {
        Layout::Raw => 0,
        Layout::Mbr { .. } | Layout::Superfloppy => 1,
        Layout::Gpt { .. } => 2,
    };
    let guid = match disk.layout {
        Layout::Gpt { id, .. } => text(format!("{{{id}}}")),
        _ => Value::Null,
    };
    let signature = match disk.layout {
        Layout::Mbr { signature } => Value::U32(signature),
        _ => Value::Null,
    };
    let unique_id = disk.identifiers.as_ref().and_then(|all| all.first()).map(|first| hex::encode(&first.bytes));
    let allocated: u64 = disk.partitions.iter().map(|part| part.length).sum();
    let parts = u32::try_from(disk.partitions.len()).unwrap_or(u32::MAX);
    row(
        "MSFT_Disk",
        &id,
        [
            ("ObjectId", text(&*id)),
            ("UniqueId", unique_id.map_or(Value::Null, text)),
            ("Number", Value::U32(disk.number)),
            ("Path", text(disk.interface())),
            ("Location", text(&*disk.location)),
            ("FriendlyName", text(format!("{} {}", disk.vendor.trim(), disk.product.trim()))),
            ("Manufacturer", text(&*disk.vendor)),
            ("Model", text(&*disk.product)),
            ("SerialNumber", disk.serial.as_deref().map_or(Value::Null, text)),
            ("BusType", Value::U32(disk.bus)),
            ("Size", long(disk.provider_cache.size)),
            ("AllocatedSize", long(allocated)),
            ("LogicalSectorSize", Value::U32(u32::try_from(disk.sector).unwrap_or(u32::MAX))),
            ("PhysicalSectorSize", Value::U32(4096)),
            ("IsOffline", Value::Bool(offline)),
            ("IsReadOnly", Value::Bool(read_only)),
            ("IsSystem", Value::Bool(disk.system)),
            ("IsBoot", Value::Bool(disk.system)),
            ("BootFromDisk", Value::Bool(disk.system)),
            ("IsClustered", Value::Bool(false)),
            ("PartitionStyle", Value::U32(style)),
            ("Guid", guid),
            ("Signature", signature),
            ("NumberOfPartitions", Value::U32(parts)),
            ("LargestFreeExtent", long(disk.largest_gap().map_or(0, |(_, length)| length))),
            ("HealthStatus", Value::U32(0)),
        ],
    )
}

/// Returns the instance of the partition with `number`.
pub(crate) fn partition_by_number(state: &State, disk: &Disk, number: u32) -> Option<Instance> {
    disk.partitions.iter().find(|part| part.number == number).map(|part| partition_instance(state, disk, part))
}

fn partition_instance(state: &State, disk: &Disk, part: &Partition) -> Instance {
    let id = partition_id(disk, part);
    let volume = part.volume.as_ref().filter(|volume| volume.arrived);
    let paths = volume.map_or(Value::Null, |volume| {
        let prefixes = state.dos_prefixes(volume.id, 0);
        let mounted = prefixes.into_iter().map(|prefix| text(format!(r"{prefix}\")));
        Value::Array(mounted.chain([text(volume_path(volume.id))]).collect())
    });
    let (gpt, mbr) = match part.kind {
        PartitionKind::Gpt(kind) => (text(format!("{{{kind}}}")), Value::Null),
        PartitionKind::Mbr(kind) => (Value::Null, Value::U32(kind.into())),
    };
    let guid = if mbr == Value::Null { text(format!("{{{}}}", part.id)) } else { Value::Null };
    row(
        "MSFT_Partition",
        &id,
        [
            ("ObjectId", text(&*id)),
            ("DiskId", text(disk.interface())),
            ("DiskNumber", Value::U32(disk.number)),
            ("PartitionNumber", Value::U32(part.number)),
            ("GptType", gpt),
            ("MbrType", mbr),
            ("Guid", guid),
            ("Offset", long(part.offset)),
            ("Size", long(part.length)),
            ("AccessPaths", paths),
            ("IsOffline", Value::Bool(disk.is_offline())),
            ("IsReadOnly", Value::Bool(disk.is_read_only())),
            ("IsSystem", Value::Bool(disk.system)),
            ("IsBoot", Value::Bool(disk.system)),
            ("IsHidden", Value::Bool(false)),
            ("OperationalStatus", Value::U32(if disk.is_offline() { 4 } else { 1 })),
        ],
    )
}

fn volume_instance(volume: &Volume) -> Instance {
    let id = volume_id(volume);
    let mounted = volume.mounted().ok();
    let kind = mounted.map_or("", |file_system| &file_system.kind);
    let kind_number = match kind {
        "" => 0,
        "NTFS" => 14,
        "ReFS" => 15,
        "FAT32" => 6,
        _ => 7,
    };
    row(
        "MSFT_Volume",
        &id,
        [
            ("ObjectId", text(&*id)),
            ("UniqueId", text(volume_path(volume.id))),
            ("Path", text(volume_path(volume.id))),
            ("FileSystem", text(kind)),
            ("FileSystemType", Value::U32(kind_number)),
            ("FileSystemLabel", text(mounted.map_or("", |file_system| &file_system.label))),
            ("AllocationUnitSize", Value::U32(if mounted.is_some() { 4096 } else { 0 })),
            ("DriveType", Value::U32(3)),
            ("Size", long(mounted.map_or(0, FileSystem::total))),
            ("SizeRemaining", long(mounted.map_or(0, FileSystem::free))),
            ("HealthStatus", Value::U32(0)),
        ],
    )
}
