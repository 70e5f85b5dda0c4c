//! Conversion of calls to request messages of any version, and of responses to payloads that do not
//! depend on it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::GROUP_VERSIONS;
use serde_json::{Map, Value, json};

use crate::transition::{Call, VolumeName};
use dynamic_client::Rpc;

/// The RPCs of each group-version by name.
static RPCS: LazyLock<Vec<BTreeMap<&'static str, Rpc>>> =
    LazyLock::new(|| GROUP_VERSIONS.iter().map(dynamic_client::rpcs).collect());

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Empty,
    Bool(bool),
    Number(u64),
    /// The names of volumes.
    Volumes(Vec<String>),
    /// Adapter, bus, target and LUN by disk number.
    Locations(BTreeMap<u32, [String; 4]>),
    /// Page 83 identifier and serial number by disk number.
    Ids(BTreeMap<u32, [String; 2]>),
    Stats {
        total: u64,
        used: u64,
    },
}

/// A request: the row of its group-version, its RPC and its message.
pub(crate) struct Message {
    pub(crate) row: usize,
    pub(crate) rpc: &'static Rpc,
    pub(crate) request: Value,
}

type Field = (&'static [&'static str], Value);

const DISK: &[&str] = &["disk_number", "diskID", "disk_id"];
const VOLUME: &[&str] = &["volume_id"];
const TARGET: &[&str] = &["target_path", "path", "mount"];
const SIZE: &[&str] = &["size_bytes", "size"];
const PATH: &[&str] = &["path"];
const ONLINE: &[&str] = &["is_online", "isOnline"];

/// Returns the request for `call` in the n-th of the versions that have its RPC and fields.
pub(crate) fn message(
    call: &Call,
    version: usize,
    volume: impl Fn(&VolumeName) -> String,
) -> Message {
    let (names, fields) = names_and_fields(call, volume);
    let mut requests = Vec::new();
    for (row, rpcs) in RPCS.iter().enumerate() {
        for rpc in names.iter().filter_map(|name| rpcs.get(name)) {
            if let Some(request) = build_request(rpc, &fields) {
                requests.push(Message { row, rpc, request });
            }
        }
    }
    assert!(!requests.is_empty(), "no version has {call:?}");
    requests.swap_remove(version % requests.len())
}

/// Returns the fields under the names that the request has for them, or `None` if it lacks one.
fn build_request(rpc: &Rpc, fields: &[Field]) -> Option<Value> {
    let mut request = Map::new();
    for (names, value) in fields {
        let name = names
            .iter()
            .find(|name| rpc.request.get_field_by_name(name).is_some())?;
        request.insert((*name).to_owned(), value.clone());
    }
    Some(Value::Object(request))
}

/// Returns all names of the RPC of a call, and its fields, each with all its names.
fn names_and_fields(
    call: &Call,
    volume: impl Fn(&VolumeName) -> String,
) -> (&'static [&'static str], Vec<Field>) {
    let of = |id: &VolumeName| -> Field { (VOLUME, json!(volume(id))) };
    let disk = |number: &u32| -> Field { (DISK, json!(number.to_string())) };
    let path = |text: &String| -> Field { (PATH, json!(text)) };
    let target = |text: &String| -> Field { (TARGET, json!(text)) };
    match call {
        Call::ListDiskLocations => (&["ListDiskLocations"], vec![]),
        Call::ListDiskIds => (&["ListDiskIDs"], vec![]),
        Call::GetDiskNumberByName(name) => (
            &["GetDiskNumberByName"],
            vec![(&["disk_name"], json!(name))],
        ),
        Call::GetDiskStats(number) => (&["GetDiskStats", "DiskStats"], vec![disk(number)]),
        Call::GetDiskState(number) => (&["GetDiskState", "GetAttachState"], vec![disk(number)]),
        Call::SetDiskState(number, online) => (
            &["SetDiskState", "SetAttachState"],
            vec![disk(number), (ONLINE, json!(online))],
        ),
        Call::PartitionDisk(number) => (&["PartitionDisk"], vec![disk(number)]),
        Call::Rescan => (&["Rescan"], vec![]),
        Call::ListVolumesOnDisk(number, 0) => (&["ListVolumesOnDisk"], vec![disk(number)]),
        Call::ListVolumesOnDisk(number, part) => (
            &["ListVolumesOnDisk"],
            vec![disk(number), (&["partition_number"], json!(part))],
        ),
        Call::IsVolumeFormatted(id) => (&["IsVolumeFormatted"], vec![of(id)]),
        Call::FormatVolume(id) => (&["FormatVolume"], vec![of(id)]),
        Call::MountVolume(id, at) => (&["MountVolume"], vec![of(id), target(at)]),
        Call::UnmountVolume(id, at) => (
            &["UnmountVolume", "DismountVolume"],
            vec![of(id), target(at)],
        ),
        Call::ResizeVolume(id, size) => (
            &["ResizeVolume"],
            vec![of(id), (SIZE, json!(size.to_string()))],
        ),
        Call::ResizeDisk(number, size) => (
            &["ResizeVolume"],
            vec![
                (VOLUME, json!(number.to_string())),
                (SIZE, json!(size.to_string())),
            ],
        ),
        Call::GetVolumeStats(id) => (&["GetVolumeStats", "VolumeStats"], vec![of(id)]),
        Call::GetDiskNumberFromVolumeId(id) => (
            &["GetDiskNumberFromVolumeID", "GetVolumeDiskNumber"],
            vec![of(id)],
        ),
        Call::GetVolumeIdFromTargetPath(at) => (
            &["GetVolumeIDFromTargetPath", "GetVolumeIDFromMount"],
            vec![target(at)],
        ),
        Call::GetClosestVolumeIdFromTargetPath(at) => {
            (&["GetClosestVolumeIDFromTargetPath"], vec![target(at)])
        }
        Call::WriteVolumeCache(id) => (&["WriteVolumeCache"], vec![of(id)]),
        Call::PathExists(text) => (&["PathExists"], vec![path(text)]),
        Call::Mkdir(text) => (&["Mkdir"], vec![path(text)]),
        Call::Rmdir(text, force) => (&["Rmdir"], vec![path(text), (&["force"], json!(force))]),
        Call::RmdirContents(text) => (&["RmdirContents"], vec![path(text)]),
        Call::CreateSymlink { source, link } => {
            let fields: Vec<Field> = vec![
                (&["source_path"], json!(source)),
                (&["target_path"], json!(link)),
            ];
            (&["CreateSymlink", "LinkPath"], fields)
        }
        Call::IsSymlink(text) => (&["IsSymlink", "IsMountPoint"], vec![path(text)]),
        Call::NewSmbGlobalMapping {
            remote,
            local,
            user,
            password,
        } => {
            let fields: Vec<Field> = vec![
                (&["remote_path"], json!(remote)),
                (&["local_path"], json!(local)),
                (&["username"], json!(user)),
                (&["password"], json!(password)),
            ];
            (&["NewSmbGlobalMapping"], fields)
        }
        Call::RemoveSmbGlobalMapping(remote) => (
            &["RemoveSmbGlobalMapping"],
            vec![(&["remote_path"], json!(remote))],
        ),
    }
}

/// Returns the content of the response to `call` in any version.
pub(crate) fn payload(call: &Call, answer: &Value) -> Payload {
    if let Some(error) = answer.get("error") {
        assert_eq!(error, "", "the error field of old versions stays empty");
    }
    let field = |names: &[&str]| {
        names
            .iter()
            .find_map(|name| answer.get(name))
            .unwrap_or_else(|| panic!("{answer}"))
    };
    let yes = |names: &[&str]| Payload::Bool(field(names).as_bool().expect("a bool"));
    let number = |names: &[&str]| number(field(names));
    let text = |names: &[&str]| text(field(names));
    let texts = |names: &[&str]| {
        field(names)
            .as_array()
            .expect("a list")
            .iter()
            .map(self::text)
            .collect::<Vec<_>>()
    };
    match call {
        Call::ListDiskLocations => {
            Payload::Locations(by_number(field(&["disk_locations"]), |at| {
                ["Adapter", "Bus", "Target", "LUNID"].map(|part| self::text(&at[part]))
            }))
        }
        Call::ListDiskIds => Payload::Ids(by_number(field(&["diskIDs"]), |ids| {
            match ids.get("identifiers") {
                None => ["page83", "serial_number"].map(|id| self::text(&ids[id])),
                Some(old) => {
                    assert_eq!(
                        old.as_object().map(Map::len),
                        Some(2),
                        "{old} must have the two keys that clients know"
                    );
                    ["page83", "serialNumber"].map(|id| self::text(&old[id]))
                }
            }
        })),
        Call::GetDiskNumberByName(_) => Payload::Number(number(&["disk_number"])),
        Call::GetDiskStats(_) => Payload::Number(number(&["total_bytes", "diskSize"])),
        Call::GetDiskState(_) => yes(&["is_online", "isOnline"]),
        Call::ListVolumesOnDisk(..) => Payload::Volumes(texts(&["volume_ids"])),
        Call::IsVolumeFormatted(_) => yes(&["formatted"]),
        Call::GetVolumeStats(_) => {
            let (total, used) = (
                number(&["total_bytes", "volumeSize"]),
                number(&["used_bytes", "volumeUsedSize"]),
            );
            Payload::Stats { total, used }
        }
        Call::GetDiskNumberFromVolumeId(_) => {
            Payload::Number(number(&["disk_number", "diskNumber"]))
        }
        Call::GetVolumeIdFromTargetPath(_) | Call::GetClosestVolumeIdFromTargetPath(_) => {
            Payload::Volumes(vec![text(&["volume_id"])])
        }
        Call::PathExists(_) => yes(&["exists"]),
        Call::IsSymlink(_) => yes(&["is_symlink", "is_mount_point"]),
        _ => Payload::Empty,
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// Numbers beyond 32 bits are strings in JSON, and all numbers are strings in old versions.
fn number(value: &Value) -> u64 {
    let read = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    read.unwrap_or_else(|| panic!("{value} is no number"))
}

fn by_number<T>(map: &Value, read: impl Fn(&Value) -> T) -> BTreeMap<u32, T> {
    let number = |text: &String| text.parse().expect("a disk's number");
    map.as_object()
        .expect("a map")
        .iter()
        .map(|(key, value)| (number(key), read(value)))
        .collect()
}
