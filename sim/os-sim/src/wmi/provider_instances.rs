//! The instances of the storage provider's classes: their identifiers and properties.

use os::{Instance, Uuid, Value};

use crate::disks::{Disk, Identifier, Layout, Partition, PartitionKind, Volume};
use crate::files::file_system::FileSystem;
use crate::hex;
use crate::state::State;
use crate::wmi::method_call::{instance, text};
use crate::wmi::msft_storage::volume_path;
use crate::wmi::wql::ObjectPath;

/// The prefix of the provider's object identifiers.
const PROVIDER: &str = r"{1}\\NODE\root/Microsoft/Windows/Storage/Providers_v2\WSP_";

/// Returns the `ObjectId` of a disk.
pub(crate) fn disk_id(disk: &Disk) -> String {
    format!(
        r#"{PROVIDER}Disk.ObjectId="{{{}}}:DI:{}""#,
        machine(),
        disk.interface()
    )
}

/// Returns the `ObjectId` of a partition.
pub(crate) fn partition_id(disk: &Disk, part: &Partition) -> String {
    let interface = disk.interface();
    format!(
        r#"{PROVIDER}Partition.ObjectId="{{{}}}:PR:{{{}}}{interface}:{}""#,
        machine(),
        part.id,
        part.offset
    )
}

/// Returns the `ObjectId` of a volume.
pub(crate) fn volume_id(volume: &Volume) -> String {
    format!(
        r#"{PROVIDER}Volume.ObjectId="{{{}}}:VO:{}""#,
        machine(),
        volume_path(volume.id)
    )
}

fn machine() -> Uuid {
    Uuid::from_u128(0x5f3e_9d4c_1111_11ef_8000_8061_6e6f_6963)
}

/// Returns a 64-bit integer as a text, as WMI passes it.
pub(crate) fn long(number: u64) -> Value {
    Value::Text(number.to_string())
}

/// Returns an object of `class` with this `ObjectId` and these properties.
pub(crate) fn row<const N: usize>(
    class: &str,
    id: &str,
    properties: [(&str, Value); N],
) -> Instance {
    let path = if id.is_empty() {
        ObjectPath::class(class)
    } else {
        ObjectPath::object(class, "ObjectId", id)
    };
    instance(&path, properties)
}

/// Returns the instance of a disk. A query can name only the properties that `CLASSES` in
/// `wql/schema.rs` lists too.
pub(crate) fn disk_instance(disk: &Disk) -> Instance {
    let id = disk_id(disk);
    let offline = disk.provider_cache.attributes & os::abi::DiskAttributes::OFFLINE != 0;
    let read_only = disk.provider_cache.attributes & os::abi::DiskAttributes::READ_ONLY != 0;
    let style = match disk.layout {
        Layout::Raw => 0,
        Layout::Mbr { .. } | Layout::Superfloppy => 1,
        Layout::Gpt { .. } => 2,
    };
    let best = disk
        .identifiers
        .as_ref()
        .and_then(|all| best_identifier(all));
    let unique_id = best.map(|best| hex::encode(&best.bytes));
    let friendly_name = format!("{} {}", disk.vendor.trim(), disk.product.trim());
    let location = if disk.location.is_empty() {
        Value::Null
    } else {
        text(&*disk.location)
    };
    let serial = disk.provider_serial.as_deref().or(disk.serial.as_deref());
    row(
        "MSFT_Disk",
        &id,
        [
            ("ObjectId", text(&*id)),
            ("UniqueId", unique_id.map_or(Value::Null, text)),
            (
                "UniqueIdFormat",
                best.map_or(Value::Null, |best| Value::U32(best.kind)),
            ),
            ("FriendlyName", text(friendly_name)),
            ("Manufacturer", text(&*disk.vendor)),
            ("Model", text(&*disk.product)),
            ("Number", Value::U32(disk.number)),
            ("Path", text(disk.interface())),
            ("Location", location),
            ("SerialNumber", serial.map_or(Value::Null, text)),
            ("Size", long(disk.provider_cache.size)),
            ("IsOffline", Value::Bool(offline)),
            ("IsReadOnly", Value::Bool(read_only)),
            (
                "OfflineReason",
                Value::U32(if offline { disk.offline_reason } else { 0 }),
            ),
            ("PartitionStyle", Value::U32(style)),
            ("BusType", Value::U32(disk.bus)),
            (
                "LargestFreeExtent",
                long(disk.largest_gap().map_or(0, |(_, length)| length)),
            ),
        ],
    )
}

/// Returns the identifier for `UniqueId`: the first identifier of the best type.
fn best_identifier(identifiers: &[Identifier]) -> Option<&Identifier> {
    const BY_QUALITY: [u32; 5] = [8, 3, 2, 1, 0];
    BY_QUALITY.iter().find_map(|kind| {
        identifiers
            .iter()
            .find(|identifier| identifier.kind == *kind)
    })
}

/// Returns the instance of the partition with `number`.
pub(crate) fn partition_by_number(state: &State, disk: &Disk, number: u32) -> Option<Instance> {
    disk.partition(number)
        .map(|part| partition_instance(state, disk, part))
}

/// Returns the instance of a partition.
pub(crate) fn partition_instance(state: &State, disk: &Disk, part: &Partition) -> Instance {
    let id = partition_id(disk, part);
    let volume = part.volume.as_ref().filter(|volume| volume.arrived);
    let is_offline = disk.is_offline() || volume.is_some_and(|volume| volume.offline);
    let paths = volume.map_or(Value::Null, |volume| {
        let prefixes = state.dos_prefixes(volume.id);
        let mounted = prefixes
            .into_iter()
            .map(|prefix| text(format!(r"{prefix}\")));
        Value::Array(mounted.chain([text(volume_path(volume.id))]).collect())
    });
    let (gpt, mbr) = match part.kind {
        PartitionKind::Gpt(kind) => (text(format!("{{{kind}}}")), Value::Null),
        PartitionKind::Mbr(kind) => (Value::Null, Value::U32(kind.into())),
    };
    // PartitionNumber counts by offset. The numbers in the partition table may have another order.
    let number = 1 + disk
        .partitions
        .iter()
        .filter(|other| other.offset < part.offset)
        .count();
    row(
        "MSFT_Partition",
        &id,
        [
            ("ObjectId", text(&*id)),
            ("DiskNumber", Value::U32(disk.number)),
            (
                "PartitionNumber",
                Value::U32(u32::try_from(number).unwrap_or(u32::MAX)),
            ),
            ("GptType", gpt),
            ("MbrType", mbr),
            ("Offset", long(part.offset)),
            ("Size", long(part.length)),
            ("AccessPaths", paths),
            ("IsOffline", Value::Bool(is_offline)),
            ("IsReadOnly", Value::Bool(disk.is_read_only())),
            ("IsBoot", Value::Bool(disk.system)),
            ("IsActive", Value::Bool(false)),
        ],
    )
}

/// Returns the instance of a volume. It has no file system if the volume is raw, locked or
/// unreadable. No operation depends on that.
pub(crate) fn volume_instance(state: &State, volume: &Volume) -> Instance {
    let id = volume_id(volume);
    let mounted = volume
        .mounted()
        .ok()
        .filter(|_| state.check_unlocked(volume.id).is_ok());
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
            ("Size", long(mounted.map_or(0, FileSystem::total))),
            ("SizeRemaining", long(mounted.map_or(0, FileSystem::free))),
        ],
    )
}
