//! Tests of the operations on disks.

use crate::refusals::Log;
use crate::setup::{
    GIB, ONE, PARTITION, failing, failing_once, node_on, ntfs, probed, refused, set_online,
    volume_on, volumes_of,
};
use std::sync::Arc;

use faults::{Fault, FaultAction, When};
use os::OsError;
use os::abi::BusType;
use storage_ops::{
    DiskNumber, ErrorKind, GetDiskNumberByName, GetDiskState, GetDiskStats, ListDiskIds,
    ListDiskLocations, ListVolumesOnDisk, PartitionDisk, SetDiskState,
};

#[test]
fn contract_17_identifiers_are_returned_as_the_device_reports_them() {
    let sim = os_sim::node()
        .disk(GIB)
        .page83_ascii("Google  pvc-x")
        .serial("vol0abc_00000001.")
        .disk(GIB)
        .page83_binary(&[0x60, 0x00, 0xc2, 0x9a])
        .serial("                    ")
        .disk(GIB)
        .page83_ascii("        ")
        .disk(GIB)
        .no_page83()
        .build();
    let ids = node_on(&sim).run(&ListDiskIds).unwrap();
    assert_eq!(ids[&DiskNumber(1)].page83, "Google  pvc-x");
    assert_eq!(ids[&DiskNumber(1)].serial, "vol0abc_00000001.");
    assert_eq!(ids[&DiskNumber(2)].page83, "6000c29a");
    assert_eq!(ids[&DiskNumber(2)].serial, "                    ");
    assert_eq!(
        (
            ids[&DiskNumber(3)].page83.as_str(),
            ids[&DiskNumber(4)].page83.as_str()
        ),
        ("", "")
    );
}

#[test]
fn contract_17_an_identifier_longer_than_the_first_buffer_is_complete() {
    let long = "x".repeat(5000);
    let sim = os_sim::node().disk(GIB).page83_ascii(&long).build();
    assert_eq!(node_on(&sim).run(&ListDiskIds).unwrap()[&ONE].page83, long);
}

#[test]
fn contract_18_a_raw_disk_gets_a_gpt_and_one_volume_that_has_arrived() {
    // A reserved partition alone does not count.
    for disk in [
        os_sim::node().disk(GIB),
        os_sim::node().disk(GIB).offline(),
        os_sim::node().disk(GIB).gpt(),
    ] {
        let sim = disk.build();
        let node = node_on(&sim);
        for _ in 0..3 {
            node.run(&PARTITION).unwrap();
        }
        volume_on(&node, 1);
        assert!(node.run(&GetDiskState { disk: ONE }).unwrap());
        sim.invariants().unwrap();
    }
}

#[test]
fn contract_18_a_partitioned_disk_is_left_unchanged() {
    for (name, sim) in [
        (
            "partitioned",
            os_sim::node().disk(GIB).partitioned().build(),
        ),
        ("formatted", ntfs().build()),
        ("offline", ntfs().offline_because(0).build()),
        (
            "file system at sector 0",
            os_sim::node()
                .disk(GIB)
                .superfloppy()
                .formatted("NTFS")
                .build(),
        ),
        ("mbr", os_sim::node().disk(GIB).mbr().build()),
    ] {
        let before = sim.snapshot();
        node_on(&sim).run(&PARTITION).unwrap();
        assert_eq!(sim.snapshot(), before, "{name}");
    }
}

#[test]
fn contract_18_set_disk_state_waits_for_the_volumes_of_the_disk() {
    let sim = ntfs().offline_because(0).build();
    let node = node_on(&sim);
    node.run(&PARTITION).unwrap();
    refused(&node, &volumes_of(1), ErrorKind::FailedPrecondition);
    node.run(&set_online(1, true)).unwrap();
    assert_eq!(
        sim.volume_on(1).map(|volume| volume.arrived),
        Some(true),
        "the volume has arrived"
    );
}

#[test]
fn contract_20_set_disk_state_is_idempotent_and_stats_never_fail_for_a_present_disk() {
    let sim = os_sim::node().disk(GIB).partitioned().build();
    let node = node_on(&sim);
    for online in [true, false, false, true] {
        node.run(&set_online(1, online)).unwrap();
        assert_eq!(node.run(&GetDiskState { disk: ONE }).unwrap(), online);
        assert_eq!(node.run(&GetDiskStats { disk: ONE }).unwrap(), GIB);
    }
}

#[test]
fn contract_20b_a_disk_is_found_by_its_name_or_the_last_word_of_it() {
    let sim = os_sim::node()
        .disk(GIB)
        .page83_ascii("Google  pvc-x")
        .disk(GIB)
        .page83_ascii("Google  pvc-y")
        .disk(GIB)
        .page83_ascii("Google  pvc-y")
        .build();
    let node = node_on(&sim);
    let find = |name: &str| GetDiskNumberByName { name: name.into() };
    assert_eq!(node.run(&find("pvc-x")).unwrap(), ONE);
    assert_eq!(node.run(&find("Google  pvc-x")).unwrap(), ONE);
    refused(&node, &find("pvc"), ErrorKind::NotFound);
    refused(&node, &find("pvc-y"), ErrorKind::FailedPrecondition);
    refused(&node, &find(" "), ErrorKind::InvalidArgument);
}

#[test]
fn every_operation_reports_an_unknown_disk_as_not_found() {
    let sim = os_sim::node().build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    for disk in [DiskNumber(7), DiskNumber(u32::MAX)] {
        refused(&node, &GetDiskStats { disk }, ErrorKind::NotFound);
        refused(&node, &GetDiskState { disk }, ErrorKind::NotFound);
        refused(
            &node,
            &SetDiskState { disk, online: true },
            ErrorKind::NotFound,
        );
        refused(&node, &PartitionDisk { disk }, ErrorKind::NotFound);
        refused(
            &node,
            &ListVolumesOnDisk { disk, partition: 0 },
            ErrorKind::NotFound,
        );
    }
    assert_eq!(sim.snapshot(), before);
}

/// Returns a node on which the calls of `primitive` on NVMe disks fail: disk 1 has the name
/// `pvc-x`, and disk 2, which is on NVMe, too.
fn node_with_two_equal_names(primitive: &'static str, code: OsError) -> storage_ops::Node {
    let disks = os_sim::node().disk(GIB).page83_ascii("Google  pvc-x");
    let sim = disks
        .disk(GIB)
        .bus(BusType::NVME)
        .page83_ascii("Google  pvc-x")
        .build();
    let of_nvme =
        move |call: &faults::Call| call.primitive == primitive && call.object.contains("nvme#disk");
    probed(
        &sim,
        Fault::each(of_nvme, When::Before, FaultAction::Fail(code)),
    )
}

#[test]
fn a_name_leads_to_no_disk_while_another_disk_that_may_have_it_cannot_be_read() {
    const QUERY: &str = "control STORAGE_QUERY_PROPERTY";
    let find = |name: &str| GetDiskNumberByName { name: name.into() };
    for (primitive, code, names, kind) in [
        (
            QUERY,
            OsError::IO_DEVICE,
            "disk 2",
            ErrorKind::FailedPrecondition,
        ),
        (
            QUERY,
            OsError::SEM_TIMEOUT,
            "disk 2",
            ErrorKind::Unavailable,
        ),
        (
            "open",
            OsError::ACCESS_DENIED,
            "nvme#disk",
            ErrorKind::FailedPrecondition,
        ),
    ] {
        let node = node_with_two_equal_names(primitive, code);
        for name in ["pvc-x", "pvc-y"] {
            let error = refused(&node, &find(name), kind);
            assert!(
                error.code() == Some(code) && error.to_string().contains(names),
                "{error}"
            );
        }
    }
    // A disk that is gone has no name.
    for primitive in [QUERY, "open"] {
        let node = node_with_two_equal_names(primitive, OsError::DEVICE_NOT_CONNECTED);
        assert_eq!(node.run(&find("pvc-x")).unwrap(), ONE);
        refused(&node, &find("pvc-y"), ErrorKind::NotFound);
    }
}

#[test]
fn a_disk_of_the_node_or_one_without_a_readable_serial_number_hides_no_name() {
    let disk = || {
        os_sim::node()
            .disk(GIB)
            .bus(BusType::NVME)
            .page83_ascii("Google  pvc-x")
    };
    let find = |name: &str| GetDiskNumberByName { name: name.into() };
    let query = |call: &faults::Call| call.primitive == "control STORAGE_QUERY_PROPERTY";
    let failure = FaultAction::Fail(OsError::IO_DEVICE);
    let of_node = Fault::each(
        move |call| query(call) && !call.object.contains("nvme#disk"),
        When::Before,
        failure,
    );
    // The second query of a disk is that of its serial number.
    let serial = Fault::at(1, When::Before, failure)
        .among(move |call| query(call) && call.object.contains("nvme#disk"));
    for (which, fault) in [
        ("that of the node", of_node),
        ("without a serial number", serial),
    ] {
        let sim = disk().build();
        let node = probed(&sim, fault);
        assert_eq!(node.run(&find("pvc-x")), Ok(ONE), "{which}");
        refused(&node, &find("pvc-y"), ErrorKind::NotFound);
    }
}

#[test]
fn a_disk_without_a_lun_is_named_in_the_log_and_one_with_a_lun_is_not() {
    const LINE: &str = "Windows shows no LUN for disks, as on NVMe: a driver that looks for its \
                        disk by LUN does not find it; in Azure, azuredisk does as a HostProcess \
                        container";
    for (location, lines) in [
        ("Integrated : Bus 1 : Device 0 : Function 0 : Adapter 0", 1),
        ("Integrated : Adapter 0 : Port 0 : Target 0 : LUN 0", 0),
        (r"C:\sandbox.vhdx", 0),
    ] {
        let node = node_on(&os_sim::node().disk(GIB).location(location).build());
        let log = Arc::new(Log::default());
        tracing::subscriber::with_default(Arc::clone(&log), || {
            node.run(&ListDiskLocations).unwrap();
            // Drivers list the disks again and again.
            node.run(&ListDiskLocations).unwrap();
        });
        assert_eq!(log.with(LINE), lines, "{location}");
    }
}

#[test]
fn a_wmi_timeout_is_unavailable_and_has_its_code() {
    let sim = os_sim::node().build();
    let late = Fault::each(
        faults::Call::is_wmi,
        When::Before,
        FaultAction::Fail(OsError::WMI_TIMED_OUT),
    );
    let error = refused(
        &probed(&sim, late),
        &ListDiskLocations,
        ErrorKind::Unavailable,
    );
    assert!(error.to_string().contains("0xa0040002"), "{error}");
}

#[test]
fn a_disk_that_the_node_itself_uses_is_not_taken_offline() {
    let sim = os_sim::node().disk(GIB).partitioned().build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    refused(&node, &set_online(0, false), ErrorKind::PermissionDenied);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_20_the_size_is_returned_although_one_query_fails() {
    for broken in [
        failing("control DISK_UPDATE_PROPERTIES", OsError::BUSY),
        failing("control DISK_GET_LENGTH_INFO", OsError::BUSY),
        failing_once("open", OsError::ACCESS_DENIED),
    ] {
        let sim = os_sim::node().disk(GIB).build();
        assert_eq!(
            probed(&sim, broken)
                .run(&GetDiskStats { disk: ONE })
                .unwrap(),
            GIB
        );
    }
}

#[test]
fn contract_31_a_disk_id_is_a_decimal_of_32_bits() {
    assert_eq!(
        DiskNumber::parse("4294967295").unwrap(),
        DiskNumber(u32::MAX)
    );
    for bad in [
        "",
        "-1",
        "+1",
        " 1",
        "1 ",
        "0x1",
        "1.0",
        "4294967296",
        "99999999999999999999",
        "one",
    ] {
        assert!(DiskNumber::parse(bad).is_err(), "{bad:?}");
    }
}
