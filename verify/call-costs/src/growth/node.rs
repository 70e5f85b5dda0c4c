//! The calls whose growth is counted, and nodes with many disks or volumes.

use std::error::Error;
use std::time::Duration;

use api::disk::v1::{
    GetDiskStateRequest, GetDiskStatsRequest, ListDiskIDsRequest, ListDiskLocationsRequest, PartitionDiskRequest,
    RescanRequest, SetDiskStateRequest,
};
use api::filesystem::v1::{CreateSymlinkRequest, IsSymlinkRequest, MkdirRequest, PathExistsRequest, RmdirRequest};
use api::volume::v1::{
    GetDiskNumberFromVolumeIdRequest, GetVolumeIdFromTargetPathRequest, GetVolumeStatsRequest,
    IsVolumeFormattedRequest, ListVolumesOnDiskRequest, MountVolumeRequest, ResizeVolumeRequest, UnmountVolumeRequest,
    WriteVolumeCacheRequest,
};
use os::{MethodCall, Namespace, Os as _, Time, Value};
use os_sim::Sim;
use storage_ops::{Config, DiskNumber, ListVolumesOnDisk, Node};

use crate::call::Call;

const MOUNTED: &str = r"C:\var\lib\kubelet\plugins\mounted";
const EMPTY: &str = r"C:\var\lib\kubelet\plugins\empty";
const LINK: &str = r"C:\var\lib\kubelet\pods\link";
const MISSING: &str = r"C:\var\lib\kubelet\plugins\missing";
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Volumes on one disk, whose partition table has room for 128 partitions.
const VOLUMES_ON_DISK: usize = 125;
/// The disk that the calls concern.
const DISK: u32 = 1;
/// What asking each volume on which disk it is adds.
const EACH_VOLUME: Added = Added { calls: 2, allocations: 6 };

/// Calls that are made one after the other, and what their costs depend on.
#[derive(Clone, Debug)]
pub struct Step {
    /// The name of the step in the tables.
    pub name: &'static str,
    /// The calls.
    pub calls: Vec<Call>,
    /// What each disk of the node adds.
    pub per_disk: Added,
    /// What each volume of the node adds.
    pub per_volume: Added,
    /// Whether the charts have the step.
    pub is_drawn: bool,
}

/// What an object of the node adds to the costs of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Calls of primitives.
    pub calls: u32,
    /// The most allocations.
    pub allocations: u32,
}

impl Step {
    fn all(calls: Vec<Call>) -> Self {
        Self {
            name: calls.first().map_or("", |call| call.name),
            calls,
            per_disk: Added::default(),
            per_volume: Added::default(),
            is_drawn: false,
        }
    }

    fn of(name: &'static str, service: &'static str, rpc: &'static str, request: &dyn Encode) -> Self {
        Self::all(vec![request.call(name, service, rpc)])
    }
}

/// Returns the steps. They concern disk 1 and its volume.
pub fn steps() -> Result<Vec<Step>, Box<dyn Error>> {
    let listed = Node::new(with_disks(1).process(), Config::default())
        .run(&ListVolumesOnDisk { disk: DiskNumber(DISK), partition: 0 })?;
    let volume = listed.first().ok_or("no volume found on disk 1")?.to_string();
    Ok([of_disks(), of_volumes(&volume), of_files()].into_iter().flatten().collect())
}

fn of_disks() -> Vec<Step> {
    let disk = "v1.Disk";
    vec![
        Step {
            per_disk: Added { calls: 4, allocations: 12 },
            is_drawn: true,
            ..Step::of("ListDiskIDs", disk, "ListDiskIDs", &ListDiskIDsRequest {})
        },
        Step {
            per_disk: Added { calls: 4, allocations: 6 },
            is_drawn: true,
            ..Step::of("Rescan", disk, "Rescan", &RescanRequest {})
        },
        // One query, whose answer has all disks.
        Step {
            per_disk: Added { calls: 0, allocations: 12 },
            ..Step::of("ListDiskLocations", disk, "ListDiskLocations", &ListDiskLocationsRequest {})
        },
        Step::of("GetDiskStats", disk, "GetDiskStats", &GetDiskStatsRequest { disk_number: DISK }),
        Step::of("GetDiskState", disk, "GetDiskState", &GetDiskStateRequest { disk_number: DISK }),
        Step {
            per_volume: EACH_VOLUME,
            ..Step::of(
                "SetDiskState, online already",
                disk,
                "SetDiskState",
                &SetDiskStateRequest { disk_number: DISK, is_online: true },
            )
        },
        Step {
            per_volume: EACH_VOLUME,
            ..Step::of(
                "PartitionDisk, partitioned already",
                disk,
                "PartitionDisk",
                &PartitionDiskRequest { disk_number: DISK },
            )
        },
    ]
}

fn of_volumes(id: &str) -> Vec<Step> {
    let (volume, id) = ("v1.Volume", || id.to_owned());
    vec![
        Step {
            per_volume: EACH_VOLUME,
            is_drawn: true,
            ..Step::of(
                "ListVolumesOnDisk",
                volume,
                "ListVolumesOnDisk",
                &ListVolumesOnDiskRequest { disk_number: DISK, partition_number: 0 },
            )
        },
        Step::of("IsVolumeFormatted", volume, "IsVolumeFormatted", &IsVolumeFormattedRequest { volume_id: id() }),
        Step {
            is_drawn: true,
            ..Step::of("GetVolumeStats", volume, "GetVolumeStats", &GetVolumeStatsRequest { volume_id: id() })
        },
        Step {
            name: "MountVolume and UnmountVolume",
            is_drawn: true,
            ..Step::all(vec![
                MountVolumeRequest { volume_id: id(), target_path: EMPTY.to_owned() }.call("", volume, "MountVolume"),
                UnmountVolumeRequest { volume_id: id(), target_path: EMPTY.to_owned() }.call(
                    "",
                    volume,
                    "UnmountVolume",
                ),
            ])
        },
        Step::of(
            "GetVolumeIDFromTargetPath",
            volume,
            "GetVolumeIDFromTargetPath",
            &GetVolumeIdFromTargetPathRequest { target_path: MOUNTED.to_owned() },
        ),
        Step::of(
            "GetDiskNumberFromVolumeID",
            volume,
            "GetDiskNumberFromVolumeID",
            &GetDiskNumberFromVolumeIdRequest { volume_id: id() },
        ),
        Step::of(
            "ResizeVolume, nothing to grow",
            volume,
            "ResizeVolume",
            &ResizeVolumeRequest { volume_id: id(), size_bytes: 0 },
        ),
        Step::of("WriteVolumeCache", volume, "WriteVolumeCache", &WriteVolumeCacheRequest { volume_id: id() }),
    ]
}

fn of_files() -> Vec<Step> {
    let files = "v1.Filesystem";
    vec![
        Step {
            is_drawn: true,
            ..Step::of("PathExists", files, "PathExists", &PathExistsRequest { path: MISSING.to_owned() })
        },
        Step::of("IsSymlink", files, "IsSymlink", &IsSymlinkRequest { path: MOUNTED.to_owned() }),
        Step::of("Mkdir, existing", files, "Mkdir", &MkdirRequest { path: EMPTY.to_owned() }),
        Step {
            name: "CreateSymlink and Rmdir",
            ..Step::all(vec![
                CreateSymlinkRequest { source_path: MOUNTED.to_owned(), target_path: LINK.to_owned() }.call(
                    "",
                    files,
                    "CreateSymlink",
                ),
                RmdirRequest { path: LINK.to_owned(), force: false }.call("", files, "Rmdir"),
            ])
        },
    ]
}

/// A request that can be encoded, whatever its type.
trait Encode {
    fn call(&self, name: &'static str, service: &'static str, rpc: &'static str) -> Call;
}

impl<M: prost::Message> Encode for M {
    fn call(&self, name: &'static str, service: &'static str, rpc: &'static str) -> Call {
        Call::new(name, service, rpc, self)
    }
}

fn builder() -> os_sim::Builder {
    os_sim::node().dir(EMPTY).disk(10 * GIB).partitioned().formatted("NTFS").mounted(MOUNTED)
}

/// Returns a node with so many disks besides the system disk. The first of them has a volume.
pub fn with_disks(disks: usize) -> Sim {
    (1..disks).fold(builder(), |node, _| node.disk(GIB)).build()
}

/// Returns a node with so many volumes besides that of the system disk. The first of them is on disk 1, and the others
/// are on as few further disks as possible.
pub fn with_volumes(volumes: usize) -> Result<Sim, Box<dyn Error>> {
    let others = volumes.saturating_sub(1);
    let disks = others.div_ceil(VOLUMES_ON_DISK);
    let sim = (0..disks).fold(builder(), |node, _| node.disk(10 * GIB).gpt()).build();
    let (os, never) = (sim.process(), Time(Duration::MAX));
    for at in 0..others {
        let number = 2 + at / VOLUMES_ON_DISK;
        let query = format!("SELECT * FROM MSFT_Disk WHERE Number = {number}");
        let found = os.wmi().query(Namespace::Storage, &query, never)?;
        let disk = found.first().ok_or("the disk is missing")?;
        let arguments = [("Size", Value::Text((16 * MIB).to_string()))];
        os.wmi().call(&MethodCall::new(Namespace::Storage, &disk.path, "CreatePartition", &arguments), never)?;
    }
    sim.advance(Duration::from_mins(1));
    let arrived = os.volumes()?.len();
    if arrived == volumes + 1 { Ok(sim) } else { Err(format!("{arrived} volumes instead of {}", volumes + 1).into()) }
}
