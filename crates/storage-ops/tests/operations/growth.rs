//! Growing a volume: by how much, up to where, and when nothing is to be done.

use crate::setup::{Calm, GIB, add_partition, over, probed, provider, refused, traced, volume_on};
use faults::{Fault, FaultAction, Race, When};
use os::{OsError, Value};
use os_sim::Sim;
use storage_ops::{DiskNumber, GetVolumeStats, Kind, ListVolumesOnDisk, ResizeVolume, VolumeId};

const MIB: u64 = 1 << 20;
const SUPPORTED: &str = "wmi call MSFT_Partition.GetSupportedSize";
const RESIZE: &str = "wmi call MSFT_Partition.Resize";

/// Two partitions of 100 MiB with `gap` bytes between them, and the volume on the first.
fn two(gap: u64) -> (Sim, VolumeId) {
    let sim = os_sim::node().disk(GIB).gpt().build();
    add_partition(&sim, Some(16 * MIB), 100 * MIB);
    add_partition(&sim, Some(116 * MIB + gap), 100 * MIB);
    let volumes = over(&sim).run(&ListVolumesOnDisk { disk: DiskNumber(1), partition: 0 }).unwrap();
    assert_eq!(volumes.len(), 2);
    (sim, volumes[0])
}

/// A disk of one gibibyte, all of it one volume, which has then grown by `growth` bytes.
fn grown(growth: u64) -> (Sim, VolumeId) {
    let sim = os_sim::node().disk(GIB).partitioned().formatted("NTFS").build();
    let volume = volume_on(&over(&sim), 1);
    sim.grow_disk(1, GIB + growth);
    (sim, volume)
}

/// The length in bytes of the data partition that comes first.
fn length(sim: &Sim) -> u64 {
    sim.disk(1).unwrap().partitions[1].length
}

/// Asking for the largest size needs the service that defragments, which may be disabled.
fn service(enabled: bool) -> Fault {
    let fails = move |call: &faults::Call| !enabled && call.primitive == SUPPORTED;
    Fault::each(fails, When::Before, FaultAction::Fail(OsError::WBEM_FAILED))
}

#[test]
fn a_volume_grows_up_to_the_next_partition_and_not_into_it() {
    for enabled in [true, false] {
        for gap in [0, 1, 57] {
            let (sim, volume) = two(gap * MIB);
            let (node, trace) = traced(&sim, service(enabled));
            node.run(&ResizeVolume { volume, size: 0 }).unwrap();
            assert_eq!(length(&sim), (100 + gap) * MIB, "{enabled}");
            assert_eq!(trace.counts().wmi == 0, gap == 0, "where there is no room, WMI need not say so");
            sim.invariants().unwrap();
        }
    }
}

#[test]
fn growth_of_the_disk_is_used_in_whole_mebibytes_and_less_is_not_asked_about() {
    for (growth, used) in [(512, 0), (MIB / 2, 0), (MIB, MIB), (MIB * 5 / 2, 3 * MIB)] {
        let (sim, volume) = grown(growth);
        let (before, (node, trace)) = (length(&sim), traced(&sim, Calm));
        node.run(&ResizeVolume { volume, size: 0 }).unwrap();
        assert_eq!(length(&sim) - before, used, "{growth}");
        assert_eq!(trace.counts().wmi == 0, used == 0, "{growth}");
    }
}

#[test]
fn a_size_is_reached_from_one_mebibyte_more_on() {
    let (sim, volume) = grown(GIB);
    let before = length(&sim);
    for (more, gained) in [(0, 0), (MIB - 1, 0), (MIB, MIB)] {
        let (node, trace) = traced(&sim, Calm);
        node.run(&ResizeVolume { volume, size: before + more }).unwrap();
        assert_eq!(length(&sim) - before, gained, "{more}");
        assert_eq!(trace.counts().of(RESIZE) == 0, gained == 0, "{more}");
        assert_eq!(trace.counts().wmi == 0, more == 0, "what is that large already is no matter for WMI");
    }
}

#[test]
fn a_size_may_be_less_than_a_mebibyte_more_than_there_is_room_for() {
    for enabled in [true, false] {
        let (sim, volume) = two(57 * MIB);
        let node = probed(&sim, service(enabled));
        let error = refused(&node, &ResizeVolume { volume, size: 158 * MIB }, Kind::FailedPrecondition);
        let room = 157 * MIB;
        assert!(error.to_string().contains(&format!("there is room for {room}")), "{error}");
        assert_eq!(error.code().is_none(), enabled, "{error}");
        assert_eq!(length(&sim), 100 * MIB);
        node.run(&ResizeVolume { volume, size: 158 * MIB - 1 }).unwrap();
        assert_eq!(length(&sim), room);
    }
}

#[test]
fn a_provider_that_has_no_time_is_not_taken_for_one_that_cannot_tell() {
    let (sim, volume) = grown(GIB);
    let busy = Fault::each(|call| call.primitive == SUPPORTED, When::Before, FaultAction::Fail(OsError::BUSY));
    let before = sim.snapshot();
    refused(&probed(&sim, busy), &ResizeVolume { volume, size: 0 }, Kind::Unavailable);
    assert_eq!(sim.disk(1).unwrap().partitions[1].length, GIB - 17 * MIB, "{:?}", before.difference(&sim.snapshot()));
}

#[test]
fn growth_that_did_not_last_is_not_reported() {
    let (sim, volume) = grown(GIB);
    let (other, before) = (sim.clone(), length(&sim));
    // Between the change and the look at what has come of it.
    let undone = Race::before(1, move || {
        assert_eq!(length(&other), before + 100 * MIB);
        let wql = "SELECT * FROM MSFT_Partition WHERE DiskNumber = 1 AND PartitionNumber = 2";
        provider(&other, wql, "Resize", &[("Size", Value::Text(before.to_string()))]);
    })
    .among(|call| call.primitive == "control DISK_UPDATE_PROPERTIES");
    let node = probed(&sim, undone);
    let error = refused(&node, &ResizeVolume { volume, size: before + 100 * MIB }, Kind::FailedPrecondition);
    assert!(error.to_string().ends_with("but the partition has not grown"), "{error}");
}

#[test]
fn a_file_system_that_fell_behind_its_partition_is_made_as_large_if_it_is_ntfs() {
    for (name, fills) in [("NTFS", true), ("ReFS", false)] {
        let sim = os_sim::node().disk(GIB).partitioned().formatted(name).file_system_of(GIB / 2).build();
        let node = over(&sim);
        let volume = volume_on(&node, 1);
        node.run(&ResizeVolume { volume, size: 0 }).unwrap();
        let total = node.run(&GetVolumeStats { volume }).unwrap().total;
        if fills {
            assert!(total <= length(&sim) && total + MIB > length(&sim), "{total}");
        } else {
            assert!(total <= GIB / 2, "{total}");
        }
    }
}

#[test]
fn a_file_system_is_extended_from_one_mebibyte_of_room_on() {
    // NTFS keeps one cluster at the end for itself.
    let full = GIB - 17 * MIB + 4096;
    for (missing, extended) in [(4096, 0), (MIB - 4096, 0), (MIB, 1)] {
        let sim = os_sim::node().disk(GIB).partitioned().formatted("NTFS").file_system_of(full - missing).build();
        let (node, trace) = traced(&sim, Calm);
        let volume = volume_on(&node, 1);
        node.run(&ResizeVolume { volume, size: 0 }).unwrap();
        assert_eq!(trace.counts().of("control FSCTL_EXTEND_VOLUME"), extended, "{missing}");
    }
}

#[test]
fn a_file_system_whose_size_cannot_be_read_is_not_called_large_enough() {
    let (sim, volume) = grown(0);
    for code in [OsError::IO_DEVICE, OsError::ACCESS_DENIED, OsError::FVE_LOCKED_VOLUME] {
        let broken = Fault::each(|call| call.primitive == "query_fs FullSize", When::Before, FaultAction::Fail(code));
        let error = probed(&sim, broken).run(&ResizeVolume { volume, size: 0 }).unwrap_err();
        assert_eq!(error.code(), Some(code));
    }
}
