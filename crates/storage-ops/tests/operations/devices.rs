//! Tests of what disk operations send to the device and to the storage provider, and of how they
//! treat the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::automount::returning;
use crate::setup::{
    GIB, NoProbe, ONE, PARTITION, add_partition, both, failing, has_code,
    leaving_partitioned_disks, node_on, ntfs, partitioned_disk, probed, raw_disk, refused,
    refused_saying, set_online, traced, volume_on,
};
use faults::{Call, Fault, FaultAction, Probe, Race, When};
use os::abi::ControlCode;
use os::{Access, MethodCall, Namespace, NtPath, Open, Options, Os, OsError};
use os_sim::{DiskDescription, Sim};
use storage_ops::{
    ErrorKind::{
        FailedPrecondition, Internal, NotFound, PermissionDenied, StillRunning, Unavailable,
    },
    FormatVolume, GetDiskState, GetDiskStats, GetVolumeStats, IsVolumeFormatted, Rescan,
};

/// `FSCTL_DISMOUNT_VOLUME`.
const FSCTL_DISMOUNT_VOLUME: ControlCode = ControlCode(0x0009_0020);
const SET: &str = "control DISK_SET_DISK_ATTRIBUTES";

#[test]
fn contract_20a_the_device_sets_only_the_attributes_that_differ_and_online_means_writable() {
    for (name, sim, online, changes) in [
        ("offline", partitioned_disk().offline().build(), true, 1),
        (
            "offline and read-only",
            partitioned_disk().offline().read_only().build(),
            true,
            2,
        ),
        ("read-only", partitioned_disk().read_only().build(), true, 2),
        ("online", partitioned_disk().build(), true, 0),
        ("to be taken offline", partitioned_disk().build(), false, 1),
        (
            "offline already",
            partitioned_disk().offline().build(),
            false,
            0,
        ),
    ] {
        let (node, trace) = traced(&sim, NoProbe);
        node.run(&set_online(1, online)).unwrap();
        assert_eq!(
            (trace.counts().of(SET), trace.counts().wmi),
            (changes, 0),
            "{name}"
        );
        let disk = sim.disk(1).unwrap();
        assert_eq!(
            (disk.offline, online && disk.read_only),
            (!online, false),
            "{name}"
        );
    }
}

#[test]
fn a_disk_is_writable_before_it_comes_online() {
    let sim = partitioned_disk().offline().read_only().build();
    let seen = sim.clone();
    let checked = Race::before(1, move || {
        let disk = seen.disk(1).unwrap();
        assert!(
            disk.offline && !disk.read_only,
            "its volumes would be mounted read-only"
        );
    })
    .among(|call| call.primitive == SET);
    probed(&sim, checked).run(&set_online(1, true)).unwrap();
    assert!(!sim.disk(1).unwrap().offline);
}

#[test]
fn the_provider_sets_the_state_if_the_driver_does_not_support_it() {
    for (name, sim, online, attributes) in [
        ("offline", partitioned_disk().offline().build(), true, 0),
        // The provider refuses to change the attribute of a disk that is offline.
        (
            "offline and read-only",
            partitioned_disk().offline().read_only().build(),
            true,
            2,
        ),
        ("read-only", partitioned_disk().read_only().build(), true, 1),
        ("online", partitioned_disk().build(), false, 0),
    ] {
        let (node, trace) = traced(&sim, failing(SET, OsError::NOT_SUPPORTED));
        node.run(&set_online(1, online)).unwrap();
        let disk = sim.disk(1).unwrap();
        assert_eq!(
            (disk.offline, online && disk.read_only),
            (!online, false),
            "{name}"
        );
        assert_eq!(
            trace.counts().of("wmi call MSFT_Disk.SetAttributes"),
            attributes,
            "{name}"
        );
        assert_eq!(node.fallbacks()[0].call, "set_disk_state", "{name}");
    }
}

#[test]
fn a_partitioned_disk_that_is_offline_is_not_waited_for() {
    let sim = partitioned_disk().offline().build();
    let (node, trace) = leaving_partitioned_disks(&sim);
    let before = sim.now();
    node.run(&PARTITION).unwrap();
    assert_eq!((sim.now(), trace.counts().wmi), (before, 0));
    assert!(sim.disk(1).unwrap().offline);
}

#[test]
fn partition_disk_returns_as_soon_as_the_volumes_have_arrived() {
    let sim = raw_disk().build();
    sim.set_timing(|timing| timing.volume_arrival = Duration::from_secs(7));
    // The provider does not make it arrive earlier.
    let (node, before) = (returning(&sim, "Online", 0), sim.now());
    node.run(&PARTITION).unwrap();
    assert!(sim.volume_on(1).is_some_and(|volume| volume.arrived));
    let waited = sim.now() - before;
    assert!((7..12).contains(&waited.as_secs()), "{waited:?}");
}

#[test]
fn contract_18_only_a_volume_that_does_not_arrive_is_brought_online() {
    let sim = raw_disk().gpt().build();
    add_partition(&sim, None, 100 << 20);
    sim.advance(Duration::from_mins(1));
    assert!(sim.volume_on(1).is_some_and(|volume| volume.arrived));
    sim.set_timing(|timing| timing.volume_arrival = Duration::from_hours(1));
    add_partition(&sim, None, 100 << 20);
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    let brought: Vec<_> = trace
        .take()
        .into_iter()
        .filter(|record| record.call.primitive.ends_with(".Online"))
        .collect();
    let second = sim.disk(1).unwrap().partitions[2].offset;
    assert!(
        matches!(&brought[..], [one] if one.call.object.contains(&format!(":{second}"))),
        "{brought:?}"
    );
}

#[test]
fn a_disk_that_another_program_initializes_first_is_partitioned() {
    for primitive in [
        "wmi call MSFT_Disk.Refresh",
        "wmi call MSFT_Disk.Initialize",
        "wmi call MSFT_Disk.CreatePartition",
    ] {
        let sim = raw_disk().build();
        let other = sim.clone();
        let earlier = Race::before(0, move || {
            let (os, deadline) = (other.process(), os::Time(Duration::MAX));
            let disk = "SELECT * FROM MSFT_Disk WHERE Number = 1";
            let disk = os
                .wmi()
                .query(Namespace::Storage, disk, deadline)
                .unwrap()
                .remove(0);
            os.wmi()
                .call(
                    &MethodCall::new(Namespace::Storage, &disk.path, "Initialize", &[]),
                    deadline,
                )
                .unwrap();
        })
        .among(move |call| call.primitive == primitive);
        let node = probed(&sim, earlier);
        node.run(&PARTITION).unwrap();
        volume_on(&node, 1);
        assert_eq!(sim.disk(1).unwrap().partitions.len(), 2, "{primitive}");
        sim.invariants().unwrap();
    }
}

#[test]
fn a_disk_without_a_serial_number_and_a_path_is_identified_in_wmi_by_its_size() {
    for (growth, same) in [(0, true), ((1 << 20) - 512, true), (1 << 20, false)] {
        // The cache of the provider is refreshed between the first query and the second, because
        // the disk comes online.
        let sim = raw_disk().serial("").offline().build();
        let other = sim.clone();
        let grown = Race::before(1, move || {
            other.grow_disk(1, GIB + growth);
        })
        .among(|call| call.primitive == "wmi query");
        let node = probed(
            &sim,
            vec![Arc::new(grown) as Arc<dyn Probe>, Arc::new(unknown_path())],
        );
        if same {
            node.run(&PARTITION).unwrap();
        } else {
            refused_saying(
                &node,
                &PARTITION,
                FailedPrecondition,
                "disk 1 was replaced: the storage provider reports",
            );
            assert_eq!(sim.disk(1).unwrap().layout, "raw");
        }
    }
}

/// Simulates a provider whose paths of disks cannot be opened.
fn unknown_path() -> Fault {
    Fault::each(
        |call| call.primitive == "open" && call.object.contains("scsi#disk"),
        When::Before,
        FaultAction::Fail(OsError::FILE_NOT_FOUND),
    )
}

#[test]
fn a_disk_is_identified_in_wmi_by_its_path_and_otherwise_by_its_serial_number() {
    for (name, provider_serial, has_path, same) in [
        ("equal", None, true, true),
        ("equal, without a path", None, false, true),
        ("worded differently", Some("other words"), true, true),
        (
            "worded differently, without a path",
            Some("other words"),
            false,
            false,
        ),
    ] {
        let disk = raw_disk().serial("words");
        let sim = provider_serial
            .into_iter()
            .fold(disk, os_sim::Builder::provider_serial)
            .build();
        let node = if has_path {
            node_on(&sim)
        } else {
            probed(&sim, unknown_path())
        };
        assert_eq!(node.run(&PARTITION).is_ok(), same, "{name}");
        assert_eq!(sim.disk(1).unwrap().layout != "raw", same, "{name}");
    }
}

#[test]
fn a_path_in_wmi_that_leads_to_another_disk_is_refused() {
    let sim = raw_disk().serial("same").build();
    let other = sim.clone();
    // The provider still shows the removed disk, whose number and serial number another disk has by
    // now.
    let swapped = Race::before(0, move || {
        let removed = other.unplug_disk(1).unwrap();
        other
            .attach_disk(
                &DiskDescription {
                    serial: Some("same".into()),
                    ..DiskDescription::new(GIB)
                },
                true,
            )
            .unwrap();
        assert_eq!(other.plug_disk(removed, true), Some(2));
    })
    .among(|call| call.primitive == "open" && call.object.contains("scsi#disk"));
    let error = probed(&sim, swapped).run(&PARTITION).unwrap_err();
    assert!(
        sim.disk(1).unwrap().layout == "raw" && sim.disk(2).unwrap().layout == "raw",
        "{error}"
    );
}

/// Removes disk 1 before the first call of `primitive`.
fn removal_before(sim: &Sim, primitive: &'static str) -> Race {
    let other = sim.clone();
    Race::before(0, move || assert!(other.unplug_disk(1).is_some()))
        .among(move |call: &Call| call.primitive == primitive)
}

#[test]
fn every_query_reports_a_removed_disk_as_not_found() {
    let primitives = [
        "open",
        "control STORAGE_GET_DEVICE_NUMBER",
        "control DISK_GET_LENGTH_INFO",
    ];
    for (primitive, code) in primitives
        .into_iter()
        .flat_map(|primitive| [2, 55, 433, 1167].map(|code| (primitive, code)))
    {
        let sim = raw_disk().build();
        sim.set_removed_code(OsError(code));
        refused(
            &probed(&sim, removal_before(&sim, primitive)),
            &GetDiskStats { disk: ONE },
            NotFound,
        );
    }
    for primitive in ["open", "control DISK_GET_DISK_ATTRIBUTES", SET] {
        let sim = raw_disk().offline().build();
        let (node, trace) = traced(&sim, removal_before(&sim, primitive));
        refused(&node, &set_online(1, true), NotFound);
        assert_eq!(trace.counts().wmi, 0, "WMI is not called");
    }
    let absent = probed(
        &os_sim::node().build(),
        failing("open", OsError::NO_SUCH_DEVICE),
    );
    let error = refused(&absent, &GetDiskState { disk: ONE }, NotFound);
    assert!(
        error.to_string().ends_with("disk 1 does not exist (433)"),
        "{error}"
    );
}

#[test]
fn a_volume_that_another_program_has_locked_is_neither_missing_nor_raw() {
    let sim = ntfs().build();
    let volume = volume_on(&node_on(&sim), 1);
    let holder = sim.process();
    let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
    let device = NtPath::volume(sim.volume_on(1).unwrap().id);
    let device = holder
        .open(&device, &Open::existing(access, Options::empty()))
        .unwrap();
    for (control, code, kind) in [
        (
            ControlCode::FSCTL_LOCK_VOLUME,
            OsError::ACCESS_DENIED,
            PermissionDenied,
        ),
        (
            FSCTL_DISMOUNT_VOLUME,
            OsError::NOT_READY,
            FailedPrecondition,
        ),
    ] {
        device.control(control, &[], &mut []).unwrap();
        let error = refused(&node_on(&sim), &IsVolumeFormatted { volume }, kind);
        has_code(&error, code);
        refused(&node_on(&sim), &GetVolumeStats { volume }, kind);
        refused(&node_on(&sim), &FormatVolume::new(volume), kind);
    }
    drop(device);
    assert!(node_on(&sim).run(&IsVolumeFormatted { volume }).unwrap());
}

#[test]
fn each_failure_of_a_wmi_method_has_its_own_kind() {
    const RESCAN: &str = "wmi call MSFT_StorageSetting.UpdateHostStorageCache";
    for (code, kind) in [
        (OsError::WMI_TIMED_OUT, Unavailable),
        (OsError::WMI_QUEUE_FULL, Unavailable),
        // What a provider posts is its own answer, not that of the queue or the connection.
        (OsError::BUSY, FailedPrecondition),
        (OsError::WAIT_TIMEOUT, Internal),
        (OsError(0x8007_06ba), Internal),
        (OsError::RPC_CALL_FAILED, StillRunning),
        (OsError::WBEM_TRANSPORT_FAILURE, StillRunning),
        (OsError::WBEM_NOT_FOUND, NotFound),
        (OsError::WBEM_FAILED, Internal),
    ] {
        let sim = os_sim::node().build();
        let error = refused(&probed(&sim, failing(RESCAN, code)), &Rescan, kind);
        has_code(&error, code);
    }
}

#[test]
fn a_method_that_outlives_its_timeout_keeps_the_lock_until_it_ends() {
    let sim = raw_disk().build();
    sim.set_timing(|timing| timing.create_partition = Duration::from_mins(5));
    let node = node_on(&sim);
    refused_saying(
        &node,
        &PARTITION,
        StillRunning,
        "CreatePartition is still running after 120 s",
    );
    assert_eq!(node.locked_objects(), 1);
    // Waits for the lock and finds the disk partitioned.
    node.run(&PARTITION).unwrap();
    assert_eq!(node.locked_objects(), 0);
    assert_eq!(sim.disk(1).unwrap().partitions.len(), 2);
}

#[test]
fn a_volume_whose_disk_is_renumbered_is_locked_by_the_new_number() {
    let sim = raw_disk().disk(GIB).partitioned().build();
    let volume = volume_on(&node_on(&sim), 2);
    let other = sim.clone();
    // The first lookup is for the lock, the second is under that lock.
    let moved = Race::before(1, move || {
        other.unplug_disk(1);
        let disk = other.unplug_disk(2).unwrap();
        assert_eq!(other.plug_disk(disk, true), Some(1));
        other.advance(Duration::from_secs(1));
    })
    .among(|call| call.primitive == "open" && call.object.contains("Volume"));
    let node = probed(&sim, moved);
    node.run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(
        sim.volume_on(1)
            .and_then(|volume| volume.file_system)
            .as_deref(),
        Some("NTFS")
    );
}

#[test]
fn a_change_whose_outcome_is_unknown_is_not_repeated_although_the_disk_is_offline_again() {
    const CREATE: &str = "wmi call MSFT_Disk.CreatePartition";
    for code in [OsError::RPC_CALL_FAILED, OsError::WBEM_TRANSPORT_FAILURE] {
        let sim = raw_disk().build();
        let other = sim.clone();
        let offline = Race::before(0, move || {
            node_on(&other).run(&set_online(1, false)).unwrap();
        })
        .among(|call| call.primitive == CREATE);
        let lost = failing(CREATE, code);
        let (node, trace) = traced(&sim, both(offline, lost));
        let error = refused(&node, &PARTITION, StillRunning);
        assert_eq!((error.code(), trace.counts().of(CREATE)), (Some(code), 1));
    }
}

#[test]
fn a_failed_change_is_reported_even_if_the_state_of_its_disk_cannot_be_queried_then() {
    let sim = raw_disk().build();
    let state = Arc::new(AtomicBool::new(false));
    let failed = Arc::clone(&state);
    let change = Fault::each(
        move |call| {
            let matches = call.primitive == "wmi call MSFT_Disk.CreatePartition";
            failed.fetch_or(matches, Ordering::SeqCst);
            matches
        },
        When::Before,
        FaultAction::Fail(OsError::WBEM_FAILED),
    );
    let attributes = Fault::each(
        move |call| {
            call.primitive == "control DISK_GET_DISK_ATTRIBUTES" && state.load(Ordering::SeqCst)
        },
        When::Before,
        FaultAction::Fail(OsError::IO_DEVICE),
    );
    let error = refused(
        &probed(&sim, both(change, attributes)),
        &PARTITION,
        Internal,
    );
    has_code(&error, OsError::WBEM_FAILED);
}
