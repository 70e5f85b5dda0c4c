//! The differences of the csi-proxy written in Go that can be imitated outside the operations.
//!
//! The table of the README lists them; `docs/design.md` has all differences.

use os::Uuid;
use os_sim::Sim;
use serde_json::Value;
use tonic::{Code, Status};

use super::answer::Answer;

/// The text of Windows for a new link whose path exists.
const EXISTS: &str = "Cannot create a file when that file already exists.";

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

    /// Returns the text of GetVolumeIDFromTargetPath where nothing is mounted; `None` if it is like
    /// ours.
    fn not_mounted(self, ours: &Status) -> Option<&'static str> {
        let is_there = !ours
            .message()
            .contains("there is no file or directory at the path");
        match (self, is_there) {
            (Self::V1_2, true) => {
                Some("cmd: (Get-Item -Path $Env:mount).Target, output: , error: <nil>")
            }
            (Self::V1_2, false) => None,
            (Self::V1_3, true) => Some("not a mounted folder"),
            (Self::V1_3, false) => Some("The system cannot find the file specified."),
        }
    }

    /// Notes the state of the node before a call whose effect differs.
    pub(super) fn before(self, sim: &Sim, name: &str, request: &Value) -> Imitation {
        let rpc = name.rsplit('/').next().unwrap_or_default();
        let number = ["diskNumber", "diskID"]
            .iter()
            .find_map(|field| number(&request[field]));
        let disk = number.and_then(|number| sim.disk(number));
        let is_brought_online =
            matches!(rpc, "SetDiskState" | "SetAttachState") && request["isOnline"] == true;
        Imitation {
            version: self,
            question: match rpc {
                "ListVolumesOnDisk" => Some(Question::VolumesOnDisk),
                "GetVolumeIDFromTargetPath" | "GetVolumeIDFromMount" => Some(Question::VolumeAt),
                "IsVolumeFormatted" => Some(Question::IsFormatted),
                _ => None,
            },
            finds_link: new_link(rpc, request).is_some_and(|path| {
                let files = sim.external();
                files.is_link(path) || files.exists(path)
            }),
            formatted: (rpc == "FormatVolume")
                .then(|| Formatted::find(sim, request["volumeId"].as_str()?))
                .flatten(),
            read_only: disk
                .as_ref()
                .filter(|disk| is_brought_online && disk.read_only)
                .and(number),
            cannot_partition: disk
                .filter(|disk| {
                    let is_partitioned = disk.partitions.iter().any(|part| part.volume.is_some());
                    let is_ready = !disk.offline && !disk.read_only;
                    rpc == "PartitionDisk" && !is_ready && !is_partitioned
                })
                .and(number),
        }
    }
}

/// A question that the Go program answers in another way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    VolumesOnDisk,
    VolumeAt,
    IsFormatted,
}

/// What is to be changed after a call.
pub(super) struct Imitation {
    version: GoVersion,
    question: Option<Question>,
    /// Whether the path of a new link exists, at which the Go program fails.
    finds_link: bool,
    /// The volume that the Go program formats whatever is on it.
    formatted: Option<Formatted>,
    /// The disk that was read-only, which the Go program leaves so.
    read_only: Option<u32>,
    /// The disk without partitions that is offline or read-only, which the Go program cannot
    /// partition.
    cannot_partition: Option<u32>,
}

impl Imitation {
    /// Returns the error of a call that the Go program refuses and ours does not.
    pub(super) fn refusal(&self) -> Option<Status> {
        let disk = self.cannot_partition?;
        Some(Status::unknown(format!(
            "like-go: disk {disk} is offline or read-only, so it cannot be partitioned"
        )))
    }

    pub(super) fn change(self, sim: &Sim, answer: &mut Answer) {
        let status = answer.status();
        // Ours refuses a volume with content.
        let is_refused = status.code() == Code::FailedPrecondition;
        if let Some(volume) = &self.formatted
            && (is_refused || status.code() == Code::Ok && volume.has_file_system)
        {
            sim.format(volume.id);
            answer.set_empty();
            return;
        }
        if is_refused && self.question == Some(Question::IsFormatted) {
            // The volume has a content that Windows cannot mount, which the Go program does not see.
            answer.set_empty();
            return;
        }
        match status.code() {
            Code::Ok if self.finds_link => answer.set_status(Code::Unknown, Some(EXISTS)),
            Code::Ok => {
                if let Some(disk) = self.read_only {
                    sim.set_disk_read_only(disk, true);
                }
            }
            Code::NotFound if self.question == Some(Question::VolumesOnDisk) => answer.set_empty(),
            Code::NotFound if self.question == Some(Question::VolumeAt) => {
                answer.set_status(Code::Unknown, self.version.not_mounted(&status));
            }
            // These codes come from gRPC and not from the program.
            Code::Unimplemented | Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable => {}
            _ => answer.set_status(Code::Unknown, None),
        }
    }
}

/// A volume of a disk that can be written.
struct Formatted {
    id: Uuid,
    has_file_system: bool,
}

impl Formatted {
    fn find(sim: &Sim, name: &str) -> Option<Self> {
        let volume = sim
            .disks()
            .into_iter()
            .filter(|disk| !disk.offline && !disk.read_only)
            .flat_map(|disk| disk.partitions)
            .filter_map(|partition| partition.volume)
            .find(|volume| volume.name() == name)?;
        let id = Uuid::parse_str(name.get(r"\\?\Volume{".len()..name.len() - 2)?).ok()?;
        let has_file_system = volume.file_system.is_some();
        Some(Self {
            id,
            has_file_system,
        })
    }
}

/// Returns the path of the link that a call makes.
fn new_link<'a>(rpc: &str, request: &'a Value) -> Option<&'a str> {
    let path = match rpc {
        "CreateSymlink" | "LinkPath" => &request["targetPath"],
        "NewSmbGlobalMapping" => &request["localPath"],
        _ => return None,
    };
    path.as_str().filter(|path| !path.is_empty())
}

/// Returns a number, which older versions send as text.
fn number(value: &Value) -> Option<u32> {
    value.as_u64().map_or_else(
        || value.as_str()?.parse().ok(),
        |number| number.try_into().ok(),
    )
}
