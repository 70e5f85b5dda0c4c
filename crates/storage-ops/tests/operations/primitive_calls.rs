//! What operations cost: the calls that a trace counts.

use std::sync::Arc;

use crate::setup::{GIB, path, volume_on};
use faults::{Probed, Trace};
use os_sim::Sim;
use storage_ops::{
    Config, DiskNumber, GetBiosSerialNumber, GetClosestVolumeIdFromTargetPath, GetDiskNumberByName,
    GetDiskNumberFromVolumeId, GetDiskState, GetDiskStats, GetService, GetTargetDisks, GetVolumeIdFromTargetPath,
    GetVolumeStats, Iqn, IsSymlink, IsVolumeFormatted, ListDiskIds, ListDiskLocations, ListTargetPortals,
    ListVolumesOnDisk, Node, Operation, PathExists, Portal, ServiceName, WriteVolumeCache,
};

const MOUNT: &str = r"C:\var\lib\kubelet\plugins\v";

fn traced(sim: &Sim) -> (Node, Arc<Trace>) {
    let trace = Arc::new(Trace::recording());
    (Node::new(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Config::default()), trace)
}

/// Runs `operation`, checks that it has changed nothing, and answers how many WMI calls it made.
fn reads<O: Operation>(node: &Node, trace: &Trace, operation: &O) -> u64 {
    let before = trace.counts();
    trace.take();
    node.run(operation).unwrap();
    let mutating: Vec<_> = trace.take().into_iter().filter(|record| record.call.mutates).collect();
    let harmless = ["control DISK_UPDATE_PROPERTIES", "flush"];
    assert!(mutating.iter().all(|record| harmless.contains(&&*record.call.primitive)), "{} {mutating:?}", O::NAME);
    (trace.counts() - &before).wmi
}

#[test]
fn reading_needs_no_wmi_but_for_the_named_exceptions() {
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
    let (node, trace) = traced(&sim);
    let (volume, disk) = (volume_on(&node, 1), DiskNumber(1));
    let target = path(MOUNT);
    let costs = [
        reads(&node, &trace, &PathExists { path: target.clone(), context: None }),
        reads(&node, &trace, &IsSymlink { path: target.clone() }),
        reads(&node, &trace, &ListDiskIds),
        reads(&node, &trace, &GetDiskNumberByName { name: "pvc-x".into() }),
        reads(&node, &trace, &GetDiskStats { disk }),
        reads(&node, &trace, &GetDiskState { disk }),
        reads(&node, &trace, &ListVolumesOnDisk { disk, partition: 0 }),
        reads(&node, &trace, &IsVolumeFormatted { volume }),
        reads(&node, &trace, &GetVolumeStats { volume }),
        reads(&node, &trace, &GetDiskNumberFromVolumeId { volume }),
        reads(&node, &trace, &GetVolumeIdFromTargetPath { target: target.clone() }),
        reads(&node, &trace, &GetClosestVolumeIdFromTargetPath { target }),
        reads(&node, &trace, &WriteVolumeCache { volume }),
        reads(&node, &trace, &GetService { name: ServiceName::parse("a").unwrap() }),
        reads(&node, &trace, &GetBiosSerialNumber),
    ];
    assert_eq!(costs, [0; 15]);

    node.run(&storage_ops::AddTargetPortal { portal: Portal::parse("10.0.0.5", 0).unwrap() }).unwrap();
    node.run(&storage_ops::DiscoverTargetPortal { portal: Portal::parse("10.0.0.5", 0).unwrap() }).unwrap();
    let target = GetTargetDisks { portal: Portal::parse("10.0.0.5", 0).unwrap(), iqn: Iqn::parse("iqn.x:y").unwrap() };
    assert_eq!(reads(&node, &trace, &ListDiskLocations), 1);
    assert_eq!(reads(&node, &trace, &ListTargetPortals), 1);
    assert!(reads(&node, &trace, &target) > 0);
    let sim = os_sim::node().build();
    let (node, trace) = traced(&sim);
    assert_eq!(reads(&node, &trace, &GetBiosSerialNumber), 1, "without a serial in the firmware table, WMI is asked");
}

#[test]
fn a_pods_cycle_on_a_formatted_disk_needs_no_wmi() {
    let sim = os_sim::node().disk(GIB).partitioned().formatted("NTFS").dir(MOUNT).build();
    let (node, trace) = traced(&sim);
    let (disk, target) = (DiskNumber(1), path(MOUNT));
    node.run(&storage_ops::PartitionDisk { disk }).unwrap();
    node.run(&storage_ops::SetDiskState { disk, online: true }).unwrap();
    let volume = volume_on(&node, 1);
    node.run(&storage_ops::FormatVolume { volume }).unwrap();
    node.run(&storage_ops::MountVolume { volume, target: target.clone() }).unwrap();
    node.run(&storage_ops::ResizeVolume { volume, size: 0 }).unwrap();
    node.run(&storage_ops::CreateSymlink { source: target.clone(), target: path(r"\pods\l") }).unwrap();
    node.run(&storage_ops::Rmdir { path: path(r"\pods\l"), context: None, force: true }).unwrap();
    node.run(&storage_ops::UnmountVolume { volume, target: target.clone() }).unwrap();
    node.run(&storage_ops::Rmdir { path: target, context: None, force: true }).unwrap();
    node.run(&storage_ops::SetDiskState { disk, online: false }).unwrap();
    assert_eq!(trace.counts().wmi, 0);
    assert_eq!(sim.open_handles(), 1, "kubelet's directory alone stays open");
    assert_eq!(node.locked_objects(), 0);
}
