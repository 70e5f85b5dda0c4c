//! Tests that no operation changes a disk that takes the number of its disk while it runs.

use std::sync::{Arc, Mutex};

use faults::{Race, Trace};
use os_sim::{Builder, Content, DiskDescription, Sim};
use storage_ops::{Error, FormatVolume, Node, WriteVolumeCache};

use crate::setup::{
    GIB, NoProbe, PARTITION, mount, node_on, probed, resize, set_online, traced, unmount, volume_on,
};

const TARGET: &str = r"\plugins\v";

/// An operation, the disk that it is meant for, and the one that takes its number.
struct Case {
    name: &'static str,
    disk: fn(Builder) -> Builder,
    other: fn(&mut DiskDescription),
    run: fn(&Node, Option<storage_ops::VolumeId>) -> Result<(), Error>,
}

const CASES: [Case; 8] = [
    Case {
        name: "PartitionDisk",
        disk: |disk| disk,
        other: |_| {},
        run: |node, _| node.run(&PARTITION),
    },
    Case {
        name: "PartitionDisk of an offline disk",
        disk: |disk| disk.offline().read_only(),
        other: |other| (other.offline, other.read_only) = (true, true),
        run: |node, _| node.run(&PARTITION),
    },
    Case {
        name: "SetDiskState(online)",
        disk: |disk| disk.partitioned().formatted("NTFS").offline().read_only(),
        other: |other| (other.offline, other.read_only) = (true, true),
        run: |node, _| node.run(&set_online(1, true)),
    },
    Case {
        name: "SetDiskState(offline)",
        disk: |disk| disk.partitioned().formatted("NTFS"),
        other: |_| {},
        run: |node, _| node.run(&set_online(1, false)),
    },
    Case {
        name: "FormatVolume",
        disk: Builder::partitioned,
        other: |other| other.content = Content::Partitioned,
        run: |node, volume| node.run(&FormatVolume::new(volume.unwrap())),
    },
    Case {
        name: "MountVolume",
        disk: |disk| disk.partitioned().formatted("NTFS"),
        other: |other| {
            (other.content, other.file_system) = (Content::Partitioned, Some("NTFS".into()));
        },
        run: |node, volume| node.run(&mount(volume.unwrap(), TARGET)),
    },
    Case {
        name: "UnmountVolume",
        disk: |disk| {
            disk.partitioned()
                .formatted("NTFS")
                .mounted(r"C:\var\lib\kubelet\plugins\v")
        },
        other: |other| {
            (other.content, other.file_system) = (Content::Partitioned, Some("NTFS".into()));
        },
        run: |node, volume| {
            node.run(&WriteVolumeCache {
                volume: volume.unwrap(),
            })?;
            node.run(&unmount(volume.unwrap(), TARGET))
        },
    },
    Case {
        name: "ResizeVolume",
        disk: |disk| disk.partitioned().formatted("NTFS").grown_to(2 * GIB),
        other: |other| {
            (other.content, other.file_system) = (Content::Partitioned, Some("NTFS".into()));
            other.grown_to = Some(2 * GIB);
        },
        run: |node, volume| node.run(&resize(volume.unwrap(), 0)),
    },
];

impl Case {
    /// Returns a node with the disk, and the volume on it if it has one that is online.
    fn node(&self) -> (Sim, Option<storage_ops::VolumeId>) {
        let node = os_sim::node().dir(r"C:\var\lib\kubelet\plugins\v");
        let sim = (self.disk)(node.disk(GIB)).build();
        let disk = sim.disk(1).unwrap();
        let has_volume = !disk.offline && disk.layout != "raw";
        let volume = has_volume.then(|| volume_on(&node_on(&sim), 1));
        (sim, volume)
    }

    /// Returns how many calls an undisturbed run makes, and how many it has made once it has
    /// checked which disk it has opened.
    fn calls(&self) -> (u64, u64) {
        let (sim, volume) = self.node();
        let (node, trace): (Node, Arc<Trace>) = traced(&sim, NoProbe);
        (self.run)(&node, volume).unwrap();
        let calls = trace.take();
        let is_check = |call: &faults::Call| call.primitive == "control STORAGE_GET_DEVICE_NUMBER";
        // An operation on a volume identifies it by its id.
        let checked = if self.name.contains("Disk") {
            calls
                .iter()
                .position(|record| is_check(&record.call))
                .unwrap()
                + 1
        } else {
            0
        };
        (
            u64::try_from(calls.len()).unwrap(),
            u64::try_from(checked).unwrap(),
        )
    }
}

#[test]
fn a_disk_that_takes_the_number_of_another_one_is_never_changed() {
    for case in CASES {
        let (calls, checked) = case.calls();
        for (nth, returns) in (checked..calls).flat_map(|nth| [(nth, false), (nth, true)]) {
            let (sim, volume) = case.node();
            let (other, seen) = (sim.clone(), Arc::new(Mutex::new(None)));
            let mut description = DiskDescription::new(GIB);
            (case.other)(&mut description);
            let attached = Arc::clone(&seen);
            let replaced = Race::before(nth, move || {
                let removed = other.unplug_disk(1).unwrap();
                assert_eq!(other.attach_disk(&description, true), Ok(1));
                *attached.lock().unwrap() = Some(state(&other));
                if returns {
                    assert_eq!(other.plug_disk(removed, true), Some(2));
                }
            });
            let outcome = (case.run)(&probed(&sim, replaced), volume);
            let before = seen.lock().unwrap().take();
            assert_eq!(
                Some(state(&sim)),
                before,
                "{} before call {nth}, {returns}: {outcome:?}",
                case.name
            );
        }
    }
}

/// Returns what may not change on disk 1.
fn state(sim: &Sim) -> String {
    let disk = sim.disk(1).unwrap();
    let partitions: Vec<_> = disk
        .partitions
        .iter()
        .map(|partition| (partition.offset, partition.length))
        .collect();
    let volume = sim.volume_on(1);
    let file_system = volume.map(|volume| {
        (
            volume.file_system,
            volume.total,
            volume.formats,
            volume.paths,
        )
    });
    format!(
        "{} {} {} {partitions:?} {file_system:?}",
        disk.offline, disk.read_only, disk.layout
    )
}
