//! Tests of the number of primitive calls that operations make.

use crate::setup::{GIB, MOUNT, NoProbe, path, traced, volume_on};
use faults::Trace;
use storage_ops::{
    DiskNumber, GetBiosSerialNumber, GetClosestVolumeIdFromTargetPath, GetDiskNumberByName,
    GetDiskNumberFromVolumeId, GetDiskState, GetDiskStats, GetService, GetTargetDisks,
    GetVolumeIdFromTargetPath, GetVolumeStats, Iqn, IsSymlink, IsVolumeFormatted, ListDiskIds,
    ListDiskLocations, ListTargetPortals, ListVolumesOnDisk, Node, Operation, PathExists,
    ServiceName, TargetPortal, WriteVolumeCache,
};

/// Runs `operation`, checks that it has changed nothing, and returns the number of its WMI calls.
fn reads<O: Operation>(node: &Node, trace: &Trace, operation: &O) -> u64 {
    let before = trace.counts();
    trace.take();
    node.run(operation).unwrap();
    let mutating: Vec<_> = trace
        .take()
        .into_iter()
        .filter(|record| record.call.mutates)
        .collect();
    let harmless = ["control DISK_UPDATE_PROPERTIES", "flush"];
    assert!(
        mutating
            .iter()
            .all(|record| harmless.contains(&&*record.call.primitive)),
        "{} {mutating:?}",
        O::NAME
    );
    (trace.counts() - &before).wmi
}

#[test]
fn only_the_named_reads_call_wmi() {
    let sim = os_sim::node()
        .disk(GIB)
        .page83_ascii("Google  pvc-x")
        .partitioned()
        .formatted("NTFS")
        .mounted(MOUNT)
        .service("a", "A")
        .running()
        .service("MSiSCSI", "iSCSI")
        .running()
        .iscsi_portal("10.0.0.5", 3260)
        .target("iqn.x:y")
        .lun(GIB)
        .bios_serial("serial")
        .build();
    let (node, trace) = traced(&sim, NoProbe);
    let (volume, disk) = (volume_on(&node, 1), DiskNumber(1));
    let target = path(MOUNT);
    let costs = [
        reads(
            &node,
            &trace,
            &PathExists {
                path: target.clone(),
                context: None,
            },
        ),
        reads(
            &node,
            &trace,
            &IsSymlink {
                path: target.clone(),
            },
        ),
        reads(&node, &trace, &ListDiskIds),
        reads(
            &node,
            &trace,
            &GetDiskNumberByName {
                name: "pvc-x".into(),
            },
        ),
        reads(&node, &trace, &GetDiskStats { disk }),
        reads(&node, &trace, &GetDiskState { disk }),
        reads(&node, &trace, &ListVolumesOnDisk { disk, partition: 0 }),
        reads(&node, &trace, &IsVolumeFormatted { volume }),
        reads(&node, &trace, &GetVolumeStats { volume }),
        reads(&node, &trace, &GetDiskNumberFromVolumeId { volume }),
        reads(
            &node,
            &trace,
            &GetVolumeIdFromTargetPath {
                target: target.clone(),
            },
        ),
        reads(&node, &trace, &GetClosestVolumeIdFromTargetPath { target }),
        reads(&node, &trace, &WriteVolumeCache { volume }),
        reads(
            &node,
            &trace,
            &GetService {
                name: ServiceName::parse("a").unwrap(),
            },
        ),
        reads(&node, &trace, &GetBiosSerialNumber),
    ];
    assert_eq!(costs, [0; 15]);

    node.run(&storage_ops::AddTargetPortal {
        portal: TargetPortal::parse("10.0.0.5", 0).unwrap(),
    })
    .unwrap();
    node.run(&storage_ops::DiscoverTargetPortal {
        portal: TargetPortal::parse("10.0.0.5", 0).unwrap(),
    })
    .unwrap();
    let target = GetTargetDisks {
        portal: TargetPortal::parse("10.0.0.5", 0).unwrap(),
        iqn: Iqn::parse("iqn.x:y").unwrap(),
    };
    assert_eq!(reads(&node, &trace, &ListDiskLocations), 1);
    assert_eq!(reads(&node, &trace, &ListTargetPortals), 1);
    assert!(reads(&node, &trace, &target) > 0);
    let sim = os_sim::node().build();
    let (node, trace) = traced(&sim, NoProbe);
    assert_eq!(
        reads(&node, &trace, &GetBiosSerialNumber),
        1,
        "without a serial number in the firmware table, WMI is queried"
    );
}
