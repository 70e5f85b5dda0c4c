//! Tests of growing a volume: by how much, up to which size, and when it is left unchanged.

use std::sync::Arc;

use crate::refusals::Log;
use crate::setup::{
    GIB, NoProbe, add_partition, has_code, layered, node_on, ntfs, partitioned_disk, probed,
    provider, raw_disk, refused, refused_saying, resize, says, traced, volume_on, volumes_of,
};
use faults::{Layer, Race};
use os::{
    CallStatus, Instance, MethodCall, Namespace, OsError, OsResult, PendingCall, Returned, Time,
    Value, Wmi,
};
use os_sim::Sim;
use storage_ops::{ErrorKind::FailedPrecondition, GetVolumeStats, Node, VolumeId};

const MIB: u64 = 1 << 20;

/// Returns a node whose disk has two partitions of 100 MiB with `gap` bytes between them, and the
/// volume on the first.
fn two_partitions(gap: u64) -> (Sim, VolumeId) {
    let sim = raw_disk().gpt().build();
    add_partition(&sim, Some(16 * MIB), 100 * MIB);
    add_partition(&sim, Some(116 * MIB + gap), 100 * MIB);
    let volumes = node_on(&sim).run(&volumes_of(1)).unwrap();
    assert_eq!(volumes.len(), 2);
    (sim, volumes[0])
}

/// Returns a node whose disk of one gibibyte has grown by `growth` bytes, and the only volume on
/// it.
fn grown(growth: u64) -> (Sim, VolumeId) {
    let sim = ntfs().build();
    let volume = volume_on(&node_on(&sim), 1);
    sim.grow_disk(1, GIB + growth);
    (sim, volume)
}

/// Returns the length in bytes of the first data partition.
fn length(sim: &Sim) -> u64 {
    sim.disk(1).unwrap().partitions[1].length
}

/// A provider that analyses the volume for ever when it is asked for the supported sizes of a
/// partition.
struct Analysing;

impl PendingCall for Analysing {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        std::mem::forget(then);
    }
}

impl Layer for Analysing {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        match call.method {
            "GetSupportedSize" => Ok(CallStatus::StillRunning(Box::new(Self))),
            _ => wmi.call(call, deadline),
        }
    }
}

#[test]
fn a_volume_grows_although_the_analysis_of_its_fragmentation_never_ends() {
    let (sim, volume) = grown(8 << 40);
    let node = layered(&sim, Analysing);
    for size in [2 * GIB, 0] {
        node.run(&resize(volume, size)).unwrap();
        let expected = if size == 0 {
            (8 << 40) + GIB - 17 * MIB
        } else {
            size
        };
        assert_eq!(length(&sim), expected);
        let total = node.run(&GetVolumeStats { volume }).unwrap().total;
        assert!(total <= expected && total + MIB > expected, "{total}");
    }
    assert_eq!(node.locked_objects(), 0);
}

/// A provider whose largest size of a partition is smaller than the free space.
struct Aligning(u64);

impl Layer for Aligning {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let done = |code, out| Ok(CallStatus::Done(Returned { code, out }));
        match call.method {
            "Resize" if call.arguments[0].1 != Value::Text(self.0.to_string()) => {
                done(SIZE_NOT_SUPPORTED, Instance::default())
            }
            "GetSupportedSize" => {
                let largest = ("SizeMax".to_owned(), Value::Text(self.0.to_string()));
                let properties = [largest].into_iter().collect();
                done(
                    0,
                    Instance {
                        properties,
                        ..Instance::default()
                    },
                )
            }
            _ => wmi.call(call, deadline),
        }
    }
}

const SIZE_NOT_SUPPORTED: u32 = 4097;

#[test]
fn a_volume_grows_to_the_largest_size_that_the_provider_supports() {
    let (sim, volume) = grown(GIB);
    let largest = 2 * GIB - 32 * MIB;
    let node = layered(&sim, Aligning(largest));
    for _ in 0..2 {
        node.run(&resize(volume, 0)).unwrap();
        assert_eq!(length(&sim), largest);
    }
    // A request for more names its size, and fails.
    let error = node.run(&resize(volume, largest + 10 * MIB)).unwrap_err();
    has_code(&error, OsError(SIZE_NOT_SUPPORTED));
}

#[test]
fn a_volume_grows_up_to_the_next_partition() {
    for gap in [0, 1, 57] {
        let (sim, volume) = two_partitions(gap * MIB);
        let (node, trace) = traced(&sim, NoProbe);
        node.run(&resize(volume, 0)).unwrap();
        assert_eq!(length(&sim), (100 + gap) * MIB);
        assert_eq!(
            trace.counts().wmi == 0,
            gap == 0,
            "WMI is not called if there is no space"
        );
        sim.invariants().unwrap();
    }
}

#[test]
fn a_partition_of_an_mbr_grows_up_to_two_tebibytes() {
    let sim = raw_disk().mbr().formatted("NTFS").grown_to(3 << 40).build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    let error = refused(&node, &resize(volume, 5 << 39), FailedPrecondition);
    assert!(error.to_string().contains("an MBR cannot describe more"));
    assert_eq!(warned_of_limit(&node, volume), 1);
    let partition = sim.disk(1).unwrap().partitions[0].clone();
    assert_eq!(partition.offset + partition.length, 2 << 40);
}

/// Grows a volume to its maximum. Returns how often the log then says that this is less than the
/// disk.
fn warned_of_limit(node: &Node, volume: VolumeId) -> usize {
    let log = Arc::new(Log::default());
    tracing::subscriber::with_default(Arc::clone(&log), || {
        node.run(&resize(volume, 0)).unwrap();
    });
    log.with("the volume cannot use the whole disk")
}

#[test]
fn contract_26_an_ntfs_volume_grows_up_to_the_limit_of_its_clusters() {
    let sim = os_sim::node()
        .disk(8 << 40)
        .partitioned()
        .formatted("NTFS")
        .grown_to(20 << 40)
        .build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    refused_saying(
        &node,
        &resize(volume, 18 << 40),
        FailedPrecondition,
        "4294967295 clusters",
    );
    // In every stage of two drivers.
    for _ in 0..2 {
        assert_eq!(warned_of_limit(&node, volume), 1);
        assert_eq!(length(&sim), (16 << 40) - MIB);
    }
    let stats = node.run(&GetVolumeStats { volume }).unwrap();
    assert!(stats.total <= 4096 * u64::from(u32::MAX));
}

#[test]
fn contract_26_a_size_beyond_the_maximum_is_accepted_if_the_growth_is_below_100_mib() {
    for (more, is_accepted) in [(99 * MIB, true), (100 * MIB, false)] {
        let sim = ntfs().build();
        let node = node_on(&sim);
        let volume = volume_on(&node, 1);
        let before = length(&sim);
        let grown = resize(volume, before + more);
        if is_accepted {
            node.run(&grown).unwrap();
        } else {
            refused_saying(&node, &grown, FailedPrecondition, "the disk ends there");
        }
        assert_eq!(length(&sim), before);
    }
}

#[test]
fn a_volume_grows_into_the_space_of_a_partition_that_another_program_has_deleted() {
    for size in [0, 150 * MIB] {
        for gap in [0, 1, 57] {
            let (sim, volume) = two_partitions(gap * MIB);
            assert!(sim.delete_partition(1, 3));
            node_on(&sim).run(&resize(volume, size)).unwrap();
            let expected = if size == 0 { GIB - 17 * MIB } else { size };
            assert_eq!(length(&sim), expected, "{gap}");
            sim.invariants().unwrap();
        }
    }
}

/// A provider that knows disk 2 by the number of disk 1, also after a refresh.
struct Exchanged;

impl Layer for Exchanged {
    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        wmi.query(
            namespace,
            &wql.replace("Number = 1", "Number = 2"),
            deadline,
        )
    }
}

#[test]
fn a_disk_that_the_provider_knows_by_the_number_of_another_one_is_not_changed() {
    let sim = os_sim::node()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let volume = volume_on(&node_on(&sim), 1);
    assert!(sim.grow_disk(1, 2 * GIB) && sim.grow_disk(2, 2 * GIB));
    let partitions = || {
        format!(
            "{:?} {:?}",
            sim.disk(1).unwrap().partitions,
            sim.disk(2).unwrap().partitions
        )
    };
    let before = partitions();
    let node = layered(&sim, Exchanged);
    refused_saying(
        &node,
        &resize(volume, 0),
        FailedPrecondition,
        "was replaced: the storage provider reports",
    );
    assert_eq!(partitions(), before);
}

#[test]
fn contract_26_growth_of_less_than_100_mib_is_used_and_less_than_one_is_ignored_without_wmi() {
    for (growth, used) in [(512, 0), (MIB / 2, 0), (MIB, MIB), (MIB * 5 / 2, 2 * MIB)] {
        let (sim, volume) = grown(growth);
        let (before, (node, trace)) = (length(&sim), traced(&sim, NoProbe));
        node.run(&resize(volume, 0)).unwrap();
        assert_eq!(length(&sim) - before, used, "{growth}");
        assert_eq!(trace.counts().wmi == 0, used == 0, "{growth}");
    }
}

#[test]
fn contract_26_a_partition_grows_by_at_least_one_mebibyte() {
    let (sim, volume) = grown(GIB);
    let before = length(&sim);
    for (more, gained) in [(0, 0), (MIB - 1, 0), (MIB, MIB)] {
        let (node, trace) = traced(&sim, NoProbe);
        node.run(&resize(volume, before + more)).unwrap();
        assert_eq!(length(&sim) - before, gained, "{more}");
        assert_eq!(
            trace.counts().wmi == 0,
            gained == 0,
            "WMI is not called if the partition is large enough"
        );
    }
}

#[test]
fn a_size_less_than_a_mebibyte_above_the_maximum_is_accepted() {
    let (sim, volume) = two_partitions(157 * MIB);
    let node = node_on(&sim);
    let error = refused(&node, &resize(volume, 258 * MIB), FailedPrecondition);
    let max = 257 * MIB;
    says(&error, &format!("at most {max}"));
    assert_eq!(length(&sim), 100 * MIB);
    node.run(&resize(volume, 258 * MIB - 1)).unwrap();
    assert_eq!(length(&sim), max);
}

#[test]
fn growth_that_was_undone_is_not_reported_as_success() {
    let (sim, volume) = grown(GIB);
    let (other, before) = (sim.clone(), length(&sim));
    // Between the change and the check of its result.
    let undone = Race::before(2, move || {
        assert_eq!(length(&other), before + 100 * MIB);
        let wql = "SELECT * FROM MSFT_Partition WHERE DiskNumber = 1 AND PartitionNumber = 2";
        provider(
            &other,
            wql,
            "Resize",
            &[("Size", Value::Text(before.to_string()))],
        );
    })
    .among(|call| call.primitive == "control DISK_UPDATE_PROPERTIES");
    let node = probed(&sim, undone);
    let error = refused(
        &node,
        &resize(volume, before + 100 * MIB),
        FailedPrecondition,
    );
    assert!(
        error
            .to_string()
            .ends_with("but the partition has not grown"),
        "{error}"
    );
}

#[test]
fn a_file_system_smaller_than_its_partition_is_extended_if_it_is_ntfs() {
    for (name, sector, fills) in [
        ("NTFS", 512, true),
        ("NTFS", 4096, true),
        ("ReFS", 512, false),
    ] {
        let disk = raw_disk().sector_size(sector).partitioned().formatted(name);
        let sim = disk.file_system_of(GIB / 2).build();
        let node = node_on(&sim);
        let volume = volume_on(&node, 1);
        node.run(&resize(volume, 0)).unwrap();
        let total = node.run(&GetVolumeStats { volume }).unwrap().total;
        if fills {
            assert!(
                total <= length(&sim) && total + MIB > length(&sim),
                "{total}"
            );
        } else {
            assert!(total <= GIB / 2, "{total}");
        }
    }
}

#[test]
fn a_file_system_is_extended_if_at_least_one_mebibyte_is_missing() {
    // NTFS reserves the last cluster.
    let full = GIB - 17 * MIB + 4096;
    for (missing, extended) in [(4096, 0), (MIB - 4096, 0), (MIB, 1)] {
        let sim = ntfs().file_system_of(full - missing).build();
        let (node, trace) = traced(&sim, NoProbe);
        let volume = volume_on(&node, 1);
        node.run(&resize(volume, 0)).unwrap();
        assert_eq!(
            trace.counts().of("control FSCTL_EXTEND_VOLUME"),
            extended,
            "{missing}"
        );
    }
}

#[test]
fn a_volume_with_large_allocation_units_that_fills_its_partition_is_left_unchanged() {
    for unit in [MIB, 2 * MIB] {
        let sim = partitioned_disk().build();
        let (unit, node) = (u32::try_from(unit).unwrap(), node_on(&sim));
        let volume = volume_on(&node, 1);
        let wql = format!(
            "SELECT * FROM MSFT_Volume WHERE Path = '{}'",
            volume.to_string().replace('\\', r"\\")
        );
        provider(
            &sim,
            &wql,
            "Format",
            &[("AllocationUnitSize", Value::U32(unit))],
        );
        let before = sim.snapshot();
        node.run(&resize(volume, 0)).unwrap();
        assert_eq!(sim.snapshot(), before, "{unit}");
    }
}
