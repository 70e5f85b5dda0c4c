//! How the costs of calls grow with the node: not at all, or with each disk, volume or entry by
//! what that object must cost. This is a test program by itself because it counts the allocations
//! of its whole process.

use std::error::Error;
use std::time::Duration;

use api::GROUP_VERSIONS;
use call_costs::call::Call;
use call_costs::counts::{Cost, Rounds, of, of_one};
use os::{MethodCall, Namespace, Os as _, Time};
use os_sim::Sim;
use serde_json::{Value, json};

/// By how much the averages of costs that do not grow may differ for each call: a tree in which
/// something is looked up may move an entry to another node of it, and a task that the call before
/// woke may end late.
const ALLOCATIONS: f64 = 2.5;
const BYTES: f64 = 768.0;

/// The connections that are open besides those that make the calls.
const CONNECTIONS: usize = 256;

const MOUNTED: &str = r"C:\var\lib\kubelet\plugins\mounted";
const EMPTY: &str = r"C:\var\lib\kubelet\plugins\empty";
const LINK: &str = r"C:\var\lib\kubelet\pods\link";
const MISSING: &str = r"C:\var\lib\kubelet\plugins\missing";
const TREE: &str = r"C:\var\lib\kubelet\pods\tree";
const FIRST: &str = r"C:\var\lib\kubelet\pods\first";
const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Calls that are made one after the other, and what they must cost.
struct Step {
    /// The calls. The first names the step.
    calls: Vec<Call>,
    /// The calls of primitives on a node with one disk besides the system disk.
    primitives: u32,
    /// What each further disk adds.
    per_disk: Added,
    /// What each further volume adds.
    per_volume: Added,
}

/// What an object of the node adds to the costs of a step.
#[derive(Clone, Copy, Default)]
struct Added {
    /// Calls of primitives.
    calls: u32,
    /// The most allocations.
    allocations: u32,
}

impl Step {
    fn per_disk(self, calls: u32, allocations: u32) -> Self {
        Self {
            per_disk: Added { calls, allocations },
            ..self
        }
    }

    /// The step asks each volume on which disk it is.
    fn asks_each_volume(self) -> Self {
        Self {
            per_volume: Added {
                calls: 2,
                allocations: 6,
            },
            ..self
        }
    }
}

/// Returns a step of one call, which makes so many calls of primitives.
fn step(primitives: u32, rpc: &'static str, request: &Value) -> Step {
    steps_of(primitives, [(rpc, request)])
}

fn steps_of<const N: usize>(primitives: u32, calls: [(&'static str, &Value); N]) -> Step {
    let calls = calls.map(|(rpc, request)| call(rpc, request)).into();
    Step {
        calls,
        primitives,
        per_disk: Added::default(),
        per_volume: Added::default(),
    }
}

/// Returns a call of an RPC such as `v1.Disk/Rescan`.
fn call(rpc: &'static str, request: &Value) -> Call {
    let (service, rpc) = rpc.split_once('/').expect("a service and a name");
    let row = GROUP_VERSIONS
        .iter()
        .find(|row| row.service == service)
        .expect("a service of the table");
    Call::new(
        rpc,
        service,
        rpc,
        &dynamic_client::rpcs(row)[rpc].request(request),
    )
}

/// Returns the steps. They concern disk 1 and its volume.
fn steps() -> Vec<Step> {
    let id = with_disks(1).volume_on(1).expect("a volume").name();
    let (none, disk, volume) = (
        json!({}),
        json!({"disk_number": 1}),
        json!({"volume_id": id}),
    );
    let online = json!({"disk_number": 1, "is_online": true});
    let at_empty = json!({"volume_id": id, "target_path": EMPTY});
    let link = json!({"source_path": MOUNTED, "target_path": LINK});
    let path = |path: &str| json!({"path": path});
    vec![
        step(9, "v1.Disk/ListDiskIDs", &none).per_disk(4, 12),
        step(12, "v1.Disk/Rescan", &none).per_disk(4, 6),
        // One query, whose answer has all disks.
        step(1, "v1.Disk/ListDiskLocations", &none).per_disk(0, 12),
        step(3, "v1.Disk/GetDiskStats", &disk),
        step(3, "v1.Disk/GetDiskState", &disk),
        // The disk is online already, and partitioned.
        step(14, "v1.Disk/SetDiskState", &online).asks_each_volume(),
        step(14, "v1.Disk/PartitionDisk", &disk).asks_each_volume(),
        step(9, "v1.Volume/ListVolumesOnDisk", &disk).asks_each_volume(),
        step(2, "v1.Volume/IsVolumeFormatted", &volume),
        step(3, "v1.Volume/GetVolumeStats", &volume),
        steps_of(
            41,
            [
                ("v1.Volume/MountVolume", &at_empty),
                ("v1.Volume/UnmountVolume", &at_empty),
            ],
        ),
        step(
            5,
            "v1.Volume/GetVolumeIDFromTargetPath",
            &json!({"target_path": MOUNTED}),
        ),
        step(2, "v1.Volume/GetDiskNumberFromVolumeID", &volume),
        // The volume has no space to grow.
        step(16, "v1.Volume/ResizeVolume", &volume),
        step(2, "v1.Volume/WriteVolumeCache", &volume),
        step(1, "v1.Filesystem/PathExists", &path(MISSING)),
        step(5, "v1.Filesystem/IsSymlink", &path(MOUNTED)),
        // The directory exists.
        step(5, "v1.Filesystem/Mkdir", &path(EMPTY)),
        steps_of(
            25,
            [
                ("v1.Filesystem/CreateSymlink", &link),
                ("v1.Filesystem/Rmdir", &path(LINK)),
            ],
        ),
    ]
}

fn builder() -> os_sim::Builder {
    os_sim::node()
        .dir(EMPTY)
        .disk(10 * GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(MOUNTED)
}

/// Returns a node with so many disks besides the system disk. The first of them has a volume.
fn with_disks(disks: usize) -> Sim {
    (1..disks).fold(builder(), |node, _| node.disk(GIB)).build()
}

/// Returns a node with so many volumes besides that of the system disk. The first of them is on
/// disk 1, and the others are on disk 2.
fn with_volumes(volumes: usize) -> Result<Sim, Box<dyn Error>> {
    let sim = builder().disk(10 * GIB).gpt().build();
    let (os, never) = (sim.process(), Time(Duration::MAX));
    let found = os.wmi().query(
        Namespace::Storage,
        "SELECT * FROM MSFT_Disk WHERE Number = 2",
        never,
    )?;
    let disk = found.first().ok_or("disk 2 is missing")?;
    for _ in 1..volumes {
        let arguments = [("Size", os::Value::Text((16 * MIB).to_string()))];
        os.wmi().call(
            &MethodCall::new(
                Namespace::Storage,
                &disk.path,
                "CreatePartition",
                &arguments,
            ),
            never,
        )?;
    }
    sim.advance(Duration::from_mins(1));
    Ok(sim)
}

/// Returns how `many` differs from what it should be: as much as `few`, and what `objects` further
/// objects add.
fn differences(step: &Step, few: Cost, many: Cost, objects: &[(u32, Added)]) -> Vec<String> {
    let sum = |figure: fn(&Added) -> u32| {
        objects
            .iter()
            .map(|(count, added)| f64::from(count * figure(added)))
            .sum()
    };
    let calls: f64 = sum(|added| added.calls);
    let allocations: f64 = sum(|added| added.allocations);
    let made = f64::from(u32::try_from(step.calls.len()).unwrap_or(u32::MAX));
    let (spare, bytes) = (made * ALLOCATIONS, made * BYTES);
    let most_bytes = if allocations > 0.0 { f64::MAX } else { bytes };
    let added = [
        (
            "primitive calls",
            few.primitives,
            many.primitives,
            calls,
            calls,
        ),
        ("WMI calls", few.wmi, many.wmi, 0.0, 0.0),
        (
            "allocations",
            few.allocations,
            many.allocations,
            -spare,
            allocations + spare,
        ),
        ("bytes allocated", few.bytes, many.bytes, -bytes, most_bytes),
    ];
    let wrong = added
        .into_iter()
        .filter(|(_, few, many, least, most)| !(*least..=*most).contains(&(many - few)));
    wrong
        .map(|(what, few, many, ..)| format!("{}: {few} {what}, then {many}", step.calls[0].name))
        .collect()
}

/// One test, since tests that run at the same time would count each other's allocations.
#[test]
fn costs_grow_with_nothing_or_with_each_disk_volume_and_entry() -> Result<(), Box<dyn Error>> {
    check_nodes()?;
    check_deletion()
}

fn check_nodes() -> Result<(), Box<dyn Error>> {
    let steps = steps();
    let calls: Vec<&[Call]> = steps.iter().map(|step| &step.calls[..]).collect();
    let one = of(&with_disks(1), &calls, Rounds::FEW, 0)?;
    let disks = of(&with_disks(16), &calls, Rounds::FEW, 0)?;
    let volumes = of(&with_volumes(10)?, &calls, Rounds::FEW, 0)?;
    let connections = of(&with_disks(1), &calls, Rounds::FEW, CONNECTIONS)?;
    let mut found = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        println!(
            "{}: {:?}, {:?}, {:?}",
            step.calls[0].name, one[at], disks[at], volumes[at]
        );
        if (one[at].primitives - f64::from(step.primitives)).abs() > 0.0 {
            found.push(format!(
                "{}: {} primitive calls, not {}",
                step.calls[0].name, one[at].primitives, step.primitives
            ));
        }
        found.extend(differences(
            step,
            one[at],
            disks[at],
            &[(15, step.per_disk)],
        ));
        // The volumes are on one further disk.
        found.extend(differences(
            step,
            one[at],
            volumes[at],
            &[(1, step.per_disk), (9, step.per_volume)],
        ));
        found.extend(differences(step, one[at], connections[at], &[]));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// How the entries of a tree are arranged.
#[derive(Clone, Copy, Debug)]
enum Shape {
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
            Self::Flat => (0..entries).fold(node, |node, at| {
                node.file(&format!(r"{TREE}\file-{at:06}"), "")
            }),
            Self::Tens => (0..entries).fold(node, |node, at| match (at / 11, at % 11) {
                (directory, 0) => node.dir(&format!(r"{TREE}\{directory:06}")),
                (directory, file) => node.file(&format!(r"{TREE}\{directory:06}\{file}"), ""),
            }),
            Self::Nested => node.dir(&format!("{TREE}{}", r"\d".repeat(entries))),
        }
        .build()
    }

    /// Returns what removing a tree of so many entries costs for each entry: primitive calls,
    /// allocations and bytes.
    fn removed(self, entries: u32) -> Result<[f64; 3], Box<dyn Error>> {
        let remove =
            |path: &str| call("v1.Filesystem/Rmdir", &json!({"path": path, "force": true}));
        let sim = self.build(usize::try_from(entries)?);
        let cost = of_one(&sim, &remove(FIRST), &remove(TREE))?;
        assert!(!sim.external().exists(TREE), "the tree is still there");
        Ok([cost.primitives, cost.allocations, cost.bytes].map(|total| total / f64::from(entries)))
    }
}

/// The costs of removing an entry do not grow with the tree.
fn check_deletion() -> Result<(), Box<dyn Error>> {
    // The simulator walks up from each directory to the root, so nested trees are small.
    for (shape, sizes, most_allocations) in [
        (Shape::Flat, [1000, 4000], 2.2),
        (Shape::Tens, [1000, 4000], 3.0),
        (Shape::Nested, [100, 400], 8.0),
    ] {
        let [few, many] = [shape.removed(sizes[0])?, shape.removed(sizes[1])?];
        println!("{shape:?}: {few:?}, {many:?}");
        let grows = many.iter().zip(few).any(|(many, few)| *many > few);
        assert!(
            !grows && many[1] <= most_allocations,
            "{shape:?}: {few:?}, {many:?} in a larger tree"
        );
    }
    Ok(())
}
