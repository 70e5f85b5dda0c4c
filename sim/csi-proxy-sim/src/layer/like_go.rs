//! What the csi-proxy written in Go does otherwise, as far as it can be done outside the operations.
//!
//! The table of the README lists what is imitated; `docs/design.md` has all differences.

use os::Uuid;
use os_sim::Sim;
use serde_json::Value;
use tonic::Code;

use super::answer::Answer;
use super::rpc::CONTROL;

/// A version of the Go program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoVersion {
    /// 1.2 and older.
    V1_2,
    /// 1.3, which has other texts.
    V1_3,
}

impl GoVersion {
    /// Parses the value of the flag: a switch, or a version.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        match text {
            "" | "false" => Ok(None),
            "true" | "1.2" => Ok(Some(Self::V1_2)),
            "1.3" => Ok(Some(Self::V1_3)),
            _ => Err("must be 1.2 or 1.3".to_owned()),
        }
    }

    /// Notes the state of the node before a call whose effect differs.
    pub(super) fn before(self, sim: &Sim, name: &str, request: &Value) -> Imitation {
        let rpc = name.rsplit('/').next().unwrap_or_default();
        let number = ["diskNumber", "diskID"].iter().find_map(|field| number(&request[field]));
        Imitation {
            version: self,
            is_of_driver: !name.starts_with(CONTROL),
            is_list: rpc == "ListVolumesOnDisk",
            is_search: matches!(rpc, "GetVolumeIDFromTargetPath" | "GetVolumeIDFromMount"),
            formatted: (rpc == "FormatVolume").then(|| formatted(sim, request["volumeId"].as_str()?)).flatten(),
            read_only: number.filter(|number| {
                let is_brought_online = matches!(rpc, "SetDiskState" | "SetAttachState") && request["isOnline"] == true;
                is_brought_online && sim.disk(*number).is_some_and(|disk| disk.read_only)
            }),
        }
    }
}

/// What is to be changed after a call.
pub(super) struct Imitation {
    version: GoVersion,
    is_of_driver: bool,
    is_list: bool,
    is_search: bool,
    /// The volume that already has a file system, which the Go program formats again.
    formatted: Option<Uuid>,
    /// The disk that was read-only, which the Go program leaves so.
    read_only: Option<u32>,
}

impl Imitation {
    pub(super) fn change(self, sim: &Sim, answer: &mut Answer) {
        match answer.status().code() {
            Code::Ok => {
                if let Some(volume) = self.formatted {
                    sim.format(volume);
                }
                if let Some(disk) = self.read_only {
                    sim.set_disk_read_only(disk, true);
                }
            }
            Code::NotFound if self.is_list => answer.set_empty(),
            Code::NotFound if self.is_search && self.version == GoVersion::V1_3 => {
                answer.set_status(Code::Unknown, Some("not a mounted folder"));
            }
            // grpc-go answers this, not the program.
            Code::Unimplemented => {}
            _ if self.is_of_driver => answer.set_status(Code::Unknown, None),
            _ => {}
        }
    }
}

/// Returns the GUID of a volume that has a file system.
fn formatted(sim: &Sim, id: &str) -> Option<Uuid> {
    let partitions = sim.disks().into_iter().flat_map(|disk| disk.partitions);
    let volume = partitions.filter_map(|partition| partition.volume).find(|volume| volume.name() == id)?;
    volume.file_system.is_some().then(|| Uuid::parse_str(id.get(r"\\?\Volume{".len()..id.len() - 2)?).ok()).flatten()
}

/// Returns a number, which older versions send as text.
fn number(value: &Value) -> Option<u32> {
    value.as_u64().map_or_else(|| value.as_str()?.parse().ok(), |number| number.try_into().ok())
}
