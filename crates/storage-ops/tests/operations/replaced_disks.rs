//! Tests that no operation changes a disk that takes the number of its disk while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use faults::{Layer, Race, Trace};
use os::abi::ControlCode;
use os::{Handle, OsResult};
use os_sim::{Builder, Content, DiskDescription, Sim};
use storage_ops::{Error, FormatVolume, Kind, Node, WriteVolumeCache};

use crate::setup::{
    GIB, NoProbe, PARTITION, layered, mount, node_on, probed, refused, resize, set_online, traced, unmount, volume_on,
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
    Case { name: "PartitionDisk", disk: |disk| disk, other: |_| {}, run: |node, _| node.run(&PARTITION) },
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
        run: |node, volume| node.run(&FormatVolume { volume: volume.unwrap() }),
    },
    Case {
        name: "MountVolume",
        disk: |disk| disk.partitioned().formatted("NTFS"),
        other: |other| (other.content, other.file_system) = (Content::Partitioned, Some("NTFS".into())),
        run: |node, volume| node.run(&mount(volume.unwrap(), TARGET)),
    },
    Case {
        name: "UnmountVolume",
        disk: |disk| disk.partitioned().formatted("NTFS").mounted(r"C:\var\lib\kubelet\plugins\v"),
        other: |other| (other.content, other.file_system) = (Content::Partitioned, Some("NTFS".into())),
        run: |node, volume| {
            node.run(&WriteVolumeCache { volume: volume.unwrap() })?;
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

    /// Returns how many calls an undisturbed run makes, and how many it has made once it has checked which disk it has opened.
    fn calls(&self) -> (u64, u64) {
        let (sim, volume) = self.node();
        let (node, trace): (Node, Arc<Trace>) = traced(&sim, NoProbe);
        (self.run)(&node, volume).unwrap();
        let calls = trace.take();
        let is_check = |call: &faults::Call| call.primitive == "control STORAGE_GET_DEVICE_NUMBER";
        // An operation on a volume identifies it by its id.
        let checked = if self.name.contains("Disk") {
            calls.iter().position(|record| is_check(&record.call)).unwrap() + 1
        } else {
            0
        };
        (u64::try_from(calls.len()).unwrap(), u64::try_from(checked).unwrap())
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
                let removed = other.detach_disk(1).unwrap();
                assert_eq!(other.attach_disk(&description, true), Ok(1));
                *attached.lock().unwrap() = Some(state(&other));
                if returns {
                    assert_eq!(other.reattach_disk(removed, true), 2);
                }
            });
            let outcome = (case.run)(&probed(&sim, replaced), volume);
            let before = seen.lock().unwrap().take();
            assert_eq!(Some(state(&sim)), before, "{} before call {nth}, {returns}: {outcome:?}", case.name);
        }
    }
}

/// Returns what may not change on disk 1.
fn state(sim: &Sim) -> String {
    let disk = sim.disk(1).unwrap();
    let partitions: Vec<_> = disk.partitions.iter().map(|partition| (partition.offset, partition.length)).collect();
    let volume = sim.volume_on(1);
    let file_system = volume.map(|volume| (volume.file_system, volume.total, volume.formats, volume.paths));
    format!("{} {} {} {partitions:?} {file_system:?}", disk.offline, disk.read_only, disk.layout)
}

/// A node whose disk gets another number after it has been opened.
struct Renumbered(AtomicUsize);

impl Layer for Renumbered {
    fn control(&self, handle: &dyn Handle, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        let size = handle.control(code, input, output)?;
        if code == ControlCode::STORAGE_GET_DEVICE_NUMBER {
            // After each opening of a second handle, the first one is queried.
            let query = self.0.fetch_add(1, Ordering::SeqCst);
            if query >= 2 && query.is_multiple_of(2) {
                output[4] = 7;
            }
        }
        Ok(size)
    }
}

#[test]
fn a_disk_whose_number_changes_while_it_is_open_is_not_changed() {
    let sim = os_sim::node().disk(GIB).disk(GIB).build();
    let before = sim.snapshot();
    let node = layered(&sim, Renumbered(0.into()));
    let error = refused(&node, &PARTITION, Kind::FailedPrecondition);
    assert!(error.to_string().contains("has been replaced by another disk"), "{error}");
    assert_eq!(sim.snapshot(), before);
}
