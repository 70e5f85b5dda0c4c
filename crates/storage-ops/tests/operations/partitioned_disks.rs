//! PartitionDisk and ListVolumesOnDisk of disks that arrive offline or read-only (contract 18, 19).

use std::sync::Arc;

use faults::{Fault, FaultAction, Race, When};
use os::OsError;
use os_sim::{Builder, DiskDescription, Sim};
use storage_ops::{
    DiskNumber, Error,
    ErrorKind::{FailedPrecondition, NotFound},
    Node, PartitionDisk,
};

use crate::refusals::Log;
use crate::setup::{
    GIB, PARTITION, both, failing, failing_on, has_code, leaving_partitioned_disks, node_on, ntfs,
    probed, raw_disk, refused, says, set_online, volumes_of,
};

const POLICY: u32 = 1;
const REDUNDANT_PATH: u32 = 2;
const COLLISION: u32 = 4;

/// The control code that sets the attributes of a disk.
const SET_ATTRIBUTES: &str = "control DISK_SET_DISK_ATTRIBUTES";

/// Returns a formatted disk with a name, whose volume has a file.
fn arrived(change: fn(Builder) -> Builder) -> Sim {
    change(ntfs().page83_ascii("Google  pvc-x")).build()
}

fn is_usable(sim: &Sim) -> bool {
    let disk = sim.disk(1).unwrap();
    !disk.offline && !disk.read_only
}

/// The line of the log about a disk that keeps its state.
const LEFT: &str = "left a partitioned disk offline or read-only";

const MADE_USABLE: &str = "brought a partitioned disk online and made it writable";

/// Runs PartitionDisk, which logs `line`, and returns what ListVolumesOnDisk then answers.
fn partition_and_list(node: &Node, line: &str) -> Result<usize, String> {
    let log = Arc::new(Log::default());
    tracing::subscriber::with_default(Arc::clone(&log), || node.run(&PARTITION).unwrap());
    assert_eq!(log.with(line), 1, "{line}");
    node.run(&volumes_of(1))
        .map(|volumes| volumes.len())
        .map_err(|error| {
            texts::seen!(error.to_string());
            error.to_string()
        })
}

#[test]
fn contract_18_each_state_and_reason_of_a_partitioned_disk_has_its_outcome() {
    for read_only in [false, true] {
        for reason in 0..=8 {
            let builder = ntfs().page83_ascii("Google  pvc-x").offline_because(reason);
            let sim = if read_only {
                builder.read_only().build()
            } else {
                builder.build()
            };
            let (before, node) = (sim.snapshot(), node_on(&sim));
            let line = match reason {
                POLICY => MADE_USABLE,
                COLLISION => {
                    "brought a disk online that has the signature of another disk; Windows gives \
                     it a new signature"
                }
                _ => LEFT,
            };
            let listed = partition_and_list(&node, line);
            if [POLICY, COLLISION].contains(&reason) {
                assert_eq!(listed, Ok(1), "{reason}");
                assert!(is_usable(&sim), "{reason}");
            } else {
                assert_eq!(sim.snapshot(), before, "{reason}");
                let named = match reason {
                    0 => "gives no reason".to_owned(),
                    _ => format!("(OfflineReason {reason})"),
                };
                assert!(listed.clone().unwrap_err().contains(&named), "{listed:?}");
            }
        }
    }
    let sim = arrived(Builder::read_only);
    assert_eq!(partition_and_list(&node_on(&sim), MADE_USABLE), Ok(1));
    assert!(is_usable(&sim));
}

#[test]
fn contract_18_a_disk_whose_identifier_another_disk_has_keeps_its_state() {
    let second_path: fn(Builder) -> Builder = |builder| {
        builder
            .offline_because(COLLISION)
            .disk(GIB)
            .page83_ascii("Google  pvc-x")
    };
    let without_page83: fn(Builder) -> Builder = |builder| {
        let first = builder.no_page83().serial("lun-77").offline();
        first.disk(GIB).no_page83().serial(" lun-77 ")
    };
    let without_identifier: fn(Builder) -> Builder =
        |builder| builder.no_page83().serial("").offline();
    let read_only: fn(Builder) -> Builder =
        |builder| builder.read_only().disk(GIB).page83_ascii("Google  pvc-x");
    for (change, named) in [
        (second_path, "disk 2 has the same identifier"),
        (without_page83, "disk 2 has the same identifier"),
        (without_identifier, "no identifier"),
    ] {
        let sim = arrived(change);
        let (before, node) = (sim.snapshot(), node_on(&sim));
        let listed = partition_and_list(&node, LEFT).unwrap_err();
        assert!(listed.contains(named), "{listed}");
        assert_eq!(sim.snapshot(), before);
        // A driver that knows better can do it.
        let log = Arc::new(Log::default());
        tracing::subscriber::with_default(Arc::clone(&log), || {
            node.run(&set_online(1, true)).unwrap();
        });
        assert!(is_usable(&sim));
        let warned = log.with(
            "brings a disk online that has the identifier of another disk: if both are paths to \
             one LUN, writing through both destroys its file system; install MPIO",
        );
        assert_eq!(warned, usize::from(named.starts_with("disk 2")));
    }
    let sim = arrived(read_only);
    let before = sim.snapshot();
    assert_eq!(partition_and_list(&node_on(&sim), LEFT), Ok(1));
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_18_a_disk_that_cannot_be_read_may_have_the_same_identifier() {
    let sim = arrived(|builder| builder.offline().disk(GIB));
    let before = sim.snapshot();
    let node = probed(
        &sim,
        failing_on(
            "open",
            |object| object.contains("&000002"),
            OsError::IO_DEVICE,
        ),
    );
    let listed = partition_and_list(&node, LEFT).unwrap_err();
    assert!(listed.contains("cannot be read"), "{listed}");
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_18_a_refusal_of_the_driver_is_final() {
    for change in [
        Builder::offline as fn(Builder) -> Builder,
        Builder::read_only,
        |builder| builder.offline().read_only(),
    ] {
        let sim = arrived(change);
        let before = sim.snapshot();
        // A cluster or a virtual machine that uses the disk makes its driver refuse.
        let node = probed(&sim, failing(SET_ATTRIBUTES, OsError::ACCESS_DENIED));
        let line = "the driver of the disk refuses the change: access is denied (5)";
        let _ = partition_and_list(&node, line);
        assert_eq!(sim.snapshot(), before);
    }
    // The driver makes the disk writable, and refuses to bring it online.
    let sim = arrived(|builder| builder.offline().read_only());
    let before = sim.snapshot();
    let refusing = |count| {
        Fault::some(1, count, When::Before, FaultAction::Fail(OsError::BUSY))
            .among(|call| call.primitive == SET_ATTRIBUTES)
    };
    let _ = partition_and_list(&probed(&sim, refusing(1)), LEFT);
    assert_eq!(sim.snapshot(), before);
    let line = "a disk that could not be brought online was read-only and is writable now";
    let _ = partition_and_list(&probed(&sim, refusing(u64::MAX)), line);
    assert!(sim.disk(1).unwrap().offline);
}

fn list(node: &Node) -> Error {
    refused(node, &volumes_of(1), FailedPrecondition)
}

#[test]
fn contract_19_the_error_of_an_offline_disk_says_why() {
    let sim = arrived(|builder| builder.offline_because(COLLISION));
    let text = list(&node_on(&sim)).to_string();
    assert!(text.contains("a disk with the same signature"), "{text}");
    let error = list(&probed(
        &sim,
        failing("control DISK_GET_DRIVE_LAYOUT_EX", OsError::IO_DEVICE),
    ));
    has_code(&error, OsError::IO_DEVICE);
    let unlisted = both(
        failing("device_interfaces", OsError::ACCESS_DENIED),
        failing("wmi query", OsError::ACCESS_DENIED),
    );
    let text = list(&probed(&sim, unlisted)).to_string();
    assert!(
        text.contains("the identifiers of the disks cannot be read"),
        "{text}"
    );
}

#[test]
fn contract_18_a_provider_that_does_not_answer_leaves_the_disk_as_it_is() {
    let sim = arrived(Builder::offline);
    let before = sim.snapshot();
    let node = probed(&sim, failing("wmi query", OsError::ACCESS_DENIED));
    let listed = partition_and_list(&node, LEFT).unwrap_err();
    assert!(listed.contains("cannot be read"), "{listed}");
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_18_a_disk_that_is_replaced_during_the_checks_is_an_error() {
    let replaced = || {
        let sim = arrived(Builder::offline);
        let other = sim.clone();
        let replace = move || {
            other.unplug_disk(1).unwrap();
            let other = other.attach_disk(&DiskDescription::new(GIB), true);
            assert_eq!(other, Ok(1));
        };
        let race = Race::before(0, replace).among(|call| call.primitive == "wmi query");
        probed(&sim, race)
    };
    refused(&replaced(), &PARTITION, NotFound);
    refused(&replaced(), &volumes_of(1), NotFound);
}

#[test]
fn contract_18_a_flag_restores_the_behaviour_of_the_go_program() {
    for change in [
        Builder::offline as fn(Builder) -> Builder,
        Builder::read_only,
    ] {
        let sim = arrived(change);
        let before = sim.snapshot();
        let (node, trace) = leaving_partitioned_disks(&sim);
        node.run(&PARTITION).unwrap();
        assert_eq!((sim.snapshot(), trace.counts().wmi), (before, 0));
        if sim.disk(1).unwrap().offline {
            let error = refused(&node, &volumes_of(1), FailedPrecondition);
            says(&error, "-leave-partitioned-disks");
        }
    }
}

#[test]
fn contract_18_a_copy_beside_its_source_gets_a_new_signature() {
    let sim = ntfs().build();
    let copy = DiskDescription {
        copy_of: Some(1),
        ..DiskDescription::new(GIB)
    };
    sim.attach_disk(&copy, true).unwrap();
    assert!(sim.disk(2).unwrap().offline);
    let node = node_on(&sim);
    let disk = DiskNumber(2);
    node.run(&PartitionDisk { disk }).unwrap();
    assert!(!sim.disk(2).unwrap().offline);
    assert_eq!(node.run(&volumes_of(2)).unwrap().len(), 1);
}

#[test]
fn contract_19_a_disk_without_partitions_has_an_empty_list_in_each_state() {
    for change in [
        |builder: Builder| builder,
        Builder::offline,
        Builder::read_only,
        |builder| builder.offline_because(REDUNDANT_PATH).read_only(),
        // An interrupted PartitionDisk.
        Builder::gpt,
        |builder| builder.gpt().offline(),
    ] as [fn(Builder) -> Builder; 6]
    {
        let sim = change(raw_disk()).build();
        let before = sim.snapshot();
        assert_eq!(node_on(&sim).run(&volumes_of(1)), Ok(Vec::new()));
        assert_eq!(sim.snapshot(), before);
    }
    // A driver that indexes the list partitions the disk first.
    let sim = raw_disk().build();
    let node = node_on(&sim);
    assert_eq!(node.run(&volumes_of(1)), Ok(Vec::new()));
    node.run(&PARTITION).unwrap();
    assert_eq!(node.run(&volumes_of(1)).map(|volumes| volumes.len()), Ok(1));
}

#[test]
fn bringing_a_disk_online_by_request_does_not_need_its_identifier() {
    let sim = arrived(|builder| builder.no_page83().serial("").offline());
    node_on(&sim).run(&set_online(1, true)).unwrap();
    assert!(is_usable(&sim));
}
