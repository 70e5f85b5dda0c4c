//! Tests of DisconnectTarget while a volume of the target is mounted.

use faults::Layer;
use os::{Os, OsError, OsResult, U16Str, U16String};
use os_sim::Sim;
use storage_ops::{
    Authentication, DisconnectTarget, DiskNumber, ErrorKind::FailedPrecondition, FormatVolume,
    Node, PartitionDisk, VolumeId,
};

use crate::iscsi::{CHAP, DISCONNECT, connect, connected, sim};
use crate::setup::{
    MOUNT, NoProbe, PARTITION, failing, layered, mount, node_on, probed, provider, refused, traced,
    unmount, volume_on,
};

/// Returns a node whose target is connected, and whose volume is mounted at [`MOUNT`].
fn staged() -> (Sim, DisconnectTarget, VolumeId) {
    let sim = sim();
    let (node, disconnect) = connected(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    let volume = volume_on(&node, 1);
    node.run(&FormatVolume::new(volume)).unwrap();
    sim.external().mkdir_all(MOUNT).unwrap();
    node.run(&mount(volume, MOUNT)).unwrap();
    (sim, disconnect, volume)
}

#[test]
fn contract_30_a_target_stays_connected_while_a_volume_of_it_is_mounted_in_a_working_directory() {
    let (sim, disconnect, volume) = staged();
    provider(&sim, "SELECT * FROM MSFT_iSCSISession", "Register", &[]);
    let (node, trace) = traced(&sim, NoProbe);
    let error = refused(&node, &disconnect, FailedPrecondition);
    let text = error.to_string();
    assert!(
        text.contains(MOUNT) && text.contains(&volume.to_string()),
        "{text}"
    );
    for call in [DISCONNECT, "wmi call MSFT_iSCSISession.Unregister"] {
        assert_eq!(trace.counts().of(call), 0, "{call}");
    }
    node.run(&unmount(volume, MOUNT)).unwrap();
    node.run(&disconnect).unwrap();
    assert_eq!(sim.disks().len(), 1);
}

/// A mount manager that still lists a mount point that was removed without it.
struct StillLists;

impl Layer for StillLists {
    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        let mut paths = node.volume_paths(volume)?;
        paths.push(U16String::from_str(MOUNT));
        Ok(paths)
    }
}

#[test]
fn a_target_whose_volume_is_not_mounted_in_a_working_directory_is_disconnected() {
    let elsewhere: fn(&Sim) -> Node = |sim| {
        sim.external().mkdir_all(r"C:\mnt").unwrap();
        let volume = sim.volume_on(1).unwrap().id;
        sim.external().set_mount_point(r"C:\mnt", volume).unwrap();
        node_on(sim)
    };
    let removed: fn(&Sim) -> Node = |sim| layered(sim, StillLists);
    let replaced: fn(&Sim) -> Node = |sim| {
        sim.external().mkdir_all(MOUNT).unwrap();
        layered(sim, StillLists)
    };
    for node in [elsewhere, removed, replaced] {
        let (sim, disconnect, _) = staged();
        sim.external().remove(MOUNT).unwrap();
        node(&sim).run(&disconnect).unwrap();
        assert_eq!(sim.disks().len(), 1);
    }
}

#[test]
fn a_volume_that_does_not_answer_keeps_its_own_target_only() {
    for is_own in [true, false] {
        let (sim, disconnect, volume) = staged();
        if !is_own {
            node_on(&sim).run(&unmount(volume, MOUNT)).unwrap();
            let node = node_on(&sim);
            node.run(&connect(CHAP, Authentication::OneWayChap, "secret-secret"))
                .unwrap();
            node.run(&PartitionDisk {
                disk: DiskNumber(2),
            })
            .unwrap();
            let volume = volume_on(&node, 2);
            node.run(&FormatVolume::new(volume)).unwrap();
            node.run(&mount(volume, MOUNT)).unwrap();
        }
        let silent = failing(
            "control VOLUME_GET_VOLUME_DISK_EXTENTS",
            OsError::SEM_TIMEOUT,
        );
        let node = probed(&sim, silent);
        if is_own {
            refused(&node, &disconnect, FailedPrecondition);
        } else {
            node.run(&disconnect).unwrap();
        }
    }
}
