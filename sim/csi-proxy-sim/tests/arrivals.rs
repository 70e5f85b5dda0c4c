//! The sequences of the drivers that stage a disk, on nodes on which the disk arrives in another
//! state: as a cloud, another node or a snapshot may have left it.
#![cfg(unix)]

use std::path::Path;
use std::{fs, io};

use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};
use os_sim::{Sim, VolumeView};
use serde_json::Value;

/// How a disk arrives. A row of [`ARRIVALS`] needs no other code.
#[derive(Debug)]
struct Arrival {
    /// What the node file says of the disk, beside what the driver looks for.
    disk: &'static str,
    /// Other disks of the node file, which are described before. Their numbers begin with 30.
    others: &'static str,
    drivers: Drivers,
}

/// The drivers that stage a disk after its arrival.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drivers {
    All,
    /// Those that call SetDiskState, or SetAttachState in old versions.
    ThatBringDisksOnline,
}

use Drivers::{All, ThatBringDisksOnline};

const fn arrival(disk: &'static str, drivers: Drivers) -> Arrival {
    Arrival {
        disk,
        others: "",
        drivers,
    }
}

const fn beside(others: &'static str, disk: &'static str, drivers: Drivers) -> Arrival {
    Arrival {
        disk,
        others,
        drivers,
    }
}

/// A formatted disk, of which the driver's disk is a copy.
const ORIGINAL: &str = r#"
[[disk]]
number = 30
size = "4 GiB"
content = "partitioned"
file_system = "NTFS"
"#;

const ARRIVALS: [Arrival; 38] = [
    arrival("", All),
    arrival("read_only = true", All),
    arrival("offline = true", All),
    arrival("offline = true\nread_only = true", All),
    arrival("offline = true\noffline_again = 1", All),
    // Initialized, without a data partition.
    arrival("content = 'gpt'", All),
    arrival("content = 'gpt'\nread_only = true", All),
    arrival("content = 'gpt'\noffline = true", All),
    arrival("content = 'gpt'\noffline = true\nread_only = true", All),
    // Partitioned, not formatted.
    arrival("content = 'partitioned'", All),
    arrival("content = 'partitioned'\nread_only = true", All),
    arrival("content = 'partitioned'\noffline = true", All),
    arrival(
        "content = 'partitioned'\noffline = true\nread_only = true",
        All,
    ),
    // Formatted.
    arrival("content = 'partitioned'\nfile_system = 'NTFS'", All),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\nread_only = true",
        All,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true",
        All,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\nread_only = true",
        All,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_again = 1",
        All,
    ),
    arrival("content = 'mbr'\nfile_system = 'NTFS'", All),
    arrival(
        "content = 'mbr'\nfile_system = 'NTFS'\noffline = true\nread_only = true",
        All,
    ),
    // A copy of a disk of the node, which Windows leaves offline.
    beside(ORIGINAL, "copy_of = 30", All),
    beside(ORIGINAL, "copy_of = 30\nread_only = true", All),
    // Windows' other reasons for keeping a disk offline, and together with a copy.
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 2",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 2\nread_only = true",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 3",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 3\nread_only = true",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 5",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 5\nread_only = true",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 6",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 6\nread_only = true",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 7",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 7\nread_only = true",
        ThatBringDisksOnline,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 4",
        All,
    ),
    arrival(
        "content = 'partitioned'\nfile_system = 'NTFS'\noffline = true\noffline_reason = 4\nread_only = true",
        All,
    ),
    beside(
        ORIGINAL,
        "copy_of = 30\noffline = true\noffline_reason = 1",
        All,
    ),
    beside(
        ORIGINAL,
        "copy_of = 30\noffline = true\noffline_reason = 4",
        All,
    ),
    beside(
        ORIGINAL,
        "copy_of = 30\noffline = true\noffline_reason = 2",
        ThatBringDisksOnline,
    ),
    beside(
        ORIGINAL,
        "copy_of = 30\noffline = true\noffline_reason = 6",
        ThatBringDisksOnline,
    ),
];

/// Returns the built-in node, on which the disk with this number arrives in another state.
fn node(arrival: &Arrival, disk: u32) -> Sim {
    const TABLE: &str = "[[disk]]\n";
    let text = Sim::default_node_file();
    let mut tables = text.split(TABLE).map(str::to_owned).collect::<Vec<_>>();
    // The disks have no number and are numbered from 1 on, after the text before the first one.
    tables[disk as usize].insert_str(0, &format!("{}\n", arrival.disk));
    tables[0] += arrival.others;
    let sim = Sim::from_toml(&tables.join(TABLE));
    sim.unwrap_or_else(|error| panic!("{arrival:?}: {error}"))
}

/// Returns the sequence of a file, as the driver continues it if the volume is already formatted.
fn sequence(file: &str, is_formatted: bool) -> Sequence {
    let mut sequence: Value = serde_json::from_str(&text_of(file)).expect("JSON");
    if is_formatted {
        let phases = sequence["phases"].as_array_mut().expect("phases");
        for phase in phases {
            let steps = phase["steps"].as_array_mut().expect("steps");
            steps.retain(|step| !is_call(step, "FormatVolume"));
            for step in steps
                .iter_mut()
                .filter(|step| is_call(step, "IsVolumeFormatted"))
            {
                step["want"]["formatted"] = Value::Bool(true);
            }
        }
    }
    let sequence = sequence.to_string().parse::<Sequence>();
    sequence.unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn is_call(step: &Value, rpc: &str) -> bool {
    step["call"]
        .as_str()
        .is_some_and(|call| call.ends_with(rpc))
}

fn text_of(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers");
    fs::read_to_string(folder.join(format!("{file}.json"))).expect("a sequence")
}

/// Runs the sequence of a driver once for each arrival of its disk. A volume that was formatted
/// before must remain: the sequence checks that it was not formatted again.
async fn check(file: &str, disk: u32) {
    let text = text_of(file);
    let brings_online = ["/SetDiskState", "/SetAttachState"]
        .iter()
        .any(|rpc| text.contains(rpc));
    let staged = |arrival: &&Arrival| arrival.drivers == All || brings_online;
    let mut problems = Vec::new();
    for arrival in ARRIVALS.iter().filter(staged) {
        let sim = node(arrival, disk);
        let is_formatted = |volume: &VolumeView| volume.file_system.is_some();
        let before = sim.volume_on(disk).filter(is_formatted);
        let sequence = sequence(file, before.is_some());
        let daemon = Daemon::start_on(sim, Vec::new()).expect("a daemon");
        let report = run(&sequence, &daemon, &mut Screen::new(io::sink())).await;
        let after = daemon.sim().volume_on(disk).expect("a volume");
        if let Some(before) = before {
            assert_eq!(after.id, before.id, "{file}, {arrival:?}: another volume");
        }
        daemon.stop().await.expect("an end");
        if !report.unexpected.is_empty() {
            problems.push(format!("{file}, {arrival:?}: {:?}", report.unexpected));
        }
    }
    assert_eq!(problems, Vec::<String>::new());
}

macro_rules! each_driver_stages_its_disk_in_whatever_state_it_arrives {
    ($($test:ident: $file:literal, $disk:literal;)*) => {
        /// The sequences that run here.
        const FILES: &[&str] = &[$($file),*];
    $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            check($file, $disk).await;
        }
    )*};
}

// The number is that of the driver's disk on the built-in node.
each_driver_stages_its_disk_in_whatever_state_it_arrives! {
    azuredisk: "01-azuredisk", 1;
    azuredisk_v1beta: "02-azuredisk-v1beta", 2;
    gce_pd: "07-gce-pd", 4;
    gce_pd_v1beta: "08-gce-pd-v1beta", 7;
    aws_ebs: "09-aws-ebs", 5;
    vsphere: "10-vsphere", 6;
}

/// The disk of an iSCSI session has no state of its own on a node.
#[test]
fn every_driver_that_partitions_a_disk_which_the_cloud_attaches_runs_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers");
    let files = fs::read_dir(folder).expect("the folder").map(|entry| {
        let name = entry.expect("an entry").file_name();
        name.to_string_lossy().replace(".json", "")
    });
    let mut partitioning: Vec<String> = files
        .filter(|file| {
            let text = text_of(file);
            text.contains("/PartitionDisk") && !text.contains("iscsi/")
        })
        .collect();
    partitioning.sort();
    assert_eq!(partitioning, FILES);
}
