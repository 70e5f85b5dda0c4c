//! How the costs of calls grow: with the disks of the node, with its volumes, and with the entries of a directory tree that
//! is removed.

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
use prost::Message;

use crate::call::Call;
use crate::client::Client;
use crate::counts::{Cost, Counted, with_daemon};

const MOUNTED: &str = r"C:\var\lib\kubelet\plugins\mounted";
const EMPTY: &str = r"C:\var\lib\kubelet\plugins\empty";
const LINK: &str = r"C:\var\lib\kubelet\pods\link";
const MISSING: &str = r"C:\var\lib\kubelet\plugins\missing";
const TREE: &str = r"C:\var\lib\kubelet\pods\tree";
const FIRST: &str = r"C:\var\lib\kubelet\pods\first";
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// The disk that the calls concern.
const DISK: u32 = 1;

/// Calls that are made one after the other, and what they must cost.
#[derive(Clone, Debug)]
pub struct Step {
    /// The calls. The first names the step.
    pub calls: Vec<Call>,
    /// The calls of primitives on a node with one disk besides the system disk.
    pub primitives: u32,
    /// What each further disk adds.
    pub per_disk: Added,
    /// What each further volume adds.
    pub per_volume: Added,
}

/// What an object of the node adds to the costs of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Calls of primitives.
    pub calls: u32,
    /// The most allocations.
    pub allocations: u32,
}

fn step<const N: usize>(primitives: u32, calls: [Call; N]) -> Step {
    Step { calls: calls.into(), primitives, per_disk: Added::default(), per_volume: Added::default() }
}

impl Step {
    fn per_disk(self, calls: u32, allocations: u32) -> Self {
        Self { per_disk: Added { calls, allocations }, ..self }
    }

    /// The step asks each volume on which disk it is.
    fn asks_each_volume(self) -> Self {
        Self { per_volume: Added { calls: 2, allocations: 6 }, ..self }
    }
}

fn disk(rpc: &'static str, request: &impl Message) -> Call {
    Call::new(rpc, "v1.Disk", rpc, request)
}

fn volume(rpc: &'static str, request: &impl Message) -> Call {
    Call::new(rpc, "v1.Volume", rpc, request)
}

fn file(rpc: &'static str, request: &impl Message) -> Call {
    Call::new(rpc, "v1.Filesystem", rpc, request)
}

/// Returns the steps. They concern disk 1 and its volume.
pub fn steps() -> Result<Vec<Step>, Box<dyn Error>> {
    let volume = with_disks(1).volume_on(DISK).ok_or("no volume found on disk 1")?.name();
    Ok([of_disks(), of_volumes(&volume), of_files()].concat())
}

fn of_disks() -> Vec<Step> {
    let disk_number = DISK;
    vec![
        step(9, [disk("ListDiskIDs", &ListDiskIDsRequest {})]).per_disk(4, 12),
        step(12, [disk("Rescan", &RescanRequest {})]).per_disk(4, 6),
        // One query, whose answer has all disks.
        step(1, [disk("ListDiskLocations", &ListDiskLocationsRequest {})]).per_disk(0, 12),
        step(5, [disk("GetDiskStats", &GetDiskStatsRequest { disk_number })]),
        step(3, [disk("GetDiskState", &GetDiskStateRequest { disk_number })]),
        // The disk is online already, and partitioned.
        step(15, [disk("SetDiskState", &SetDiskStateRequest { disk_number, is_online: true })]).asks_each_volume(),
        step(18, [disk("PartitionDisk", &PartitionDiskRequest { disk_number })]).asks_each_volume(),
    ]
}

fn of_volumes(id: &str) -> Vec<Step> {
    let volume_id = || id.to_owned();
    let target_path = || EMPTY.to_owned();
    let mount = MountVolumeRequest { volume_id: volume_id(), target_path: target_path() };
    let unmount = UnmountVolumeRequest { volume_id: volume_id(), target_path: target_path() };
    let list = ListVolumesOnDiskRequest { disk_number: DISK, partition_number: 0 };
    let of_path = GetVolumeIdFromTargetPathRequest { target_path: MOUNTED.to_owned() };
    let disk_number = GetDiskNumberFromVolumeIdRequest { volume_id: volume_id() };
    // The volume has no space to grow.
    let resize = ResizeVolumeRequest { volume_id: volume_id(), size_bytes: 0 };
    vec![
        step(9, [volume("ListVolumesOnDisk", &list)]).asks_each_volume(),
        step(2, [volume("IsVolumeFormatted", &IsVolumeFormattedRequest { volume_id: volume_id() })]),
        step(3, [volume("GetVolumeStats", &GetVolumeStatsRequest { volume_id: volume_id() })]),
        step(41, [volume("MountVolume", &mount), volume("UnmountVolume", &unmount)]),
        step(8, [volume("GetVolumeIDFromTargetPath", &of_path)]),
        step(2, [volume("GetDiskNumberFromVolumeID", &disk_number)]),
        step(18, [volume("ResizeVolume", &resize)]),
        step(2, [volume("WriteVolumeCache", &WriteVolumeCacheRequest { volume_id: volume_id() })]),
    ]
}

fn of_files() -> Vec<Step> {
    let link = CreateSymlinkRequest { source_path: MOUNTED.to_owned(), target_path: LINK.to_owned() };
    vec![
        step(1, [file("PathExists", &PathExistsRequest { path: MISSING.to_owned() })]),
        step(9, [file("IsSymlink", &IsSymlinkRequest { path: MOUNTED.to_owned() })]),
        // The directory exists.
        step(5, [file("Mkdir", &MkdirRequest { path: EMPTY.to_owned() })]),
        step(21, [file("CreateSymlink", &link), file("Rmdir", &RmdirRequest { path: LINK.to_owned(), force: false })]),
    ]
}

fn builder() -> os_sim::Builder {
    os_sim::node().dir(EMPTY).disk(10 * GIB).partitioned().formatted("NTFS").mounted(MOUNTED)
}

/// Returns a node with so many disks besides the system disk. The first of them has a volume.
pub fn with_disks(disks: usize) -> Sim {
    (1..disks).fold(builder(), |node, _| node.disk(GIB)).build()
}

/// Returns a node with so many volumes besides that of the system disk. The first of them is on disk 1, and the others
/// are on disk 2.
pub fn with_volumes(volumes: usize) -> Result<Sim, Box<dyn Error>> {
    let sim = builder().disk(10 * GIB).gpt().build();
    let (os, never) = (sim.process(), Time(Duration::MAX));
    let found = os.wmi().query(Namespace::Storage, "SELECT * FROM MSFT_Disk WHERE Number = 2", never)?;
    let disk = found.first().ok_or("disk 2 is missing")?;
    for _ in 1..volumes {
        let arguments = [("Size", Value::Text((16 * MIB).to_string()))];
        os.wmi().call(&MethodCall::new(Namespace::Storage, &disk.path, "CreatePartition", &arguments), never)?;
    }
    sim.advance(Duration::from_mins(1));
    Ok(sim)
}

/// How the entries of a tree are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Files in one directory.
    Flat,
    /// Files in directories of ten.
    Tens,
    /// Each directory in another.
    Nested,
}

impl Shape {
    fn build(self, entries: usize) -> Sim {
        let node = os_sim::node().dir(FIRST).dir(TREE);
        match self {
            Self::Flat => (0..entries).fold(node, |node, at| node.file(&format!(r"{TREE}\file-{at:06}"), "")),
            Self::Tens => (0..entries).fold(node, |node, at| match (at / 11, at % 11) {
                (directory, 0) => node.dir(&format!(r"{TREE}\{directory:06}")),
                (directory, file) => node.file(&format!(r"{TREE}\{directory:06}\{file}"), ""),
            }),
            Self::Nested => node.dir(&format!("{TREE}{}", r"\d".repeat(entries))),
        }
        .build()
    }
}

/// Returns what removing a tree of so many entries costs for each entry.
pub fn of_deletion(shape: Shape, entries: usize) -> Result<Cost, Box<dyn Error>> {
    let remove = |path: &str| file("Rmdir", &RmdirRequest { path: path.to_owned(), force: true });
    let sim = shape.build(entries);
    let cost = with_daemon(&sim, async |counted: Counted<'_>| {
        // Before that, the connection becomes warm.
        let mut client = Client::connect(counted.daemon, &remove(FIRST)).await?;
        client.call(8).await?;
        client.set_call(&remove(TREE));
        counted.count(&mut [client], 1).await
    })?;
    if sim.external().exists(TREE) {
        return Err("the tree is still there".into());
    }
    let entries = f64::from(u32::try_from(entries)?);
    Ok(Cost {
        primitives: cost.primitives / entries,
        wmi: cost.wmi,
        writes: cost.writes,
        allocations: cost.allocations / entries,
        bytes: cost.bytes / entries,
    })
}
