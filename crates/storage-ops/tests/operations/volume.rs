//! Tests of the operations on volumes.

use crate::setup::{
    GIB, KUBELET, MOUNT, ONE, PARTITION, both, closest, failing, failing_on, failing_once, is_link,
    layered, mount, mounted_at, node_on, ntfs, path, probed, refused, resize, unmount, volume_on,
    volumes_of,
};
use std::sync::atomic::{AtomicU32, Ordering};

use faults::{Fault, FaultAction, Layer, When};
use os::abi::ControlCode;
use os::{Handle, OsError, OsResult};
use storage_ops::{
    Config, DiskNumber, ErrorKind, FormatVolume, GetClosestVolumeIdFromTargetPath,
    GetDiskNumberFromVolumeId, GetVolumeStats, HostPath, IsVolumeFormatted, ListVolumesOnDisk,
    MountVolume, Node, VolumeId, WriteVolumeCache,
};

fn unknown_volume() -> VolumeId {
    VolumeId::parse(r"\\?\Volume{00000000-0000-0000-0000-00000000dead}\").unwrap()
}

#[test]
fn contract_08_the_error_where_nothing_is_mounted_contains_because_it_does_not_exist() {
    let sim = ntfs()
        .mounted(MOUNT)
        .dir(r"C:\var\lib\kubelet\plugins\plain")
        .symlink(
            r"C:\var\lib\kubelet\pods\l",
            r"C:\var\lib\kubelet\plugins\plain",
        )
        .symlink(r"C:\var\lib\kubelet\pods\d", r"C:\missing-target")
        .build();
    let node = node_on(&sim);
    sim.unplug_disk(1);
    for unmounted in [
        r"C:\var\lib\kubelet\plugins\missing",
        r"C:\missing\missing",
        r"C:\var\lib\kubelet\plugins\plain",
        r"C:\var\lib\kubelet\pods\l",
        r"C:\var\lib\kubelet\pods\d",
        MOUNT,
    ] {
        let error = refused(&node, &mounted_at(unmounted), ErrorKind::NotFound);
        assert!(
            error.to_string().contains("because it does not exist"),
            "{error}"
        );
    }
}

#[test]
fn mounted_not_mounted_and_stale_are_distinguished() {
    let sim = ntfs().mounted(MOUNT).build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    assert_eq!(node.run(&mounted_at(MOUNT)).unwrap(), volume);
    let plain = node.run(&mounted_at(KUBELET)).unwrap_err().to_string();
    sim.unplug_disk(1);
    let stale = node.run(&mounted_at(MOUNT)).unwrap_err().to_string();
    assert!(plain.contains("not a mount point"), "{plain}");
    // csi-proxyctl recognises a stale mount point by this text: `STALE_TEXT` in get/mounts.rs.
    assert!(stale.contains("the mount point is stale"), "{stale}");
}

#[test]
fn a_path_that_leads_to_a_share_is_not_called_a_stale_mount_point() {
    const LINK: &str = r"C:\var\lib\kubelet\pods\share";
    const CHAIN: &str = r"C:\var\lib\kubelet\pods\chain";
    let sim = os_sim::node()
        .smb_server("nas")
        .share("share")
        .guest()
        .symlink(LINK, r"\\nas\share")
        .symlink(CHAIN, LINK)
        .symlink(r"C:\var\lib\kubelet\pods\gone", r"\\nas\gone")
        .build();
    let node = node_on(&sim);
    let why = |path| refused(&node, &mounted_at(path), ErrorKind::NotFound).to_string();
    // csi-proxyctl recognises a share by this text: `SHARE_TEXT` in get/mounts.rs.
    for path in [LINK, CHAIN] {
        let text = why(path);
        assert!(text.contains("the path leads to a share, which"), "{text}");
        let target = HostPath::parse(path).unwrap();
        let closest = GetClosestVolumeIdFromTargetPath { target };
        let text = refused(&node, &closest, ErrorKind::NotFound).to_string();
        assert!(text.contains("the path leads to a share, which"), "{text}");
    }
    let gone = why(r"C:\var\lib\kubelet\pods\gone");
    assert!(gone.contains("the path leads to a share: ") && gone.contains("(67)"));
    sim.set_smb_reachable("nas", false);
    for path in [LINK, CHAIN] {
        let text = why(path);
        assert!(
            text.contains("the path leads to a share: ") && text.contains("(53)"),
            "{text}"
        );
    }
}

#[test]
fn contract_19_volumes_are_in_partition_order_and_only_a_disk_without_partitions_has_none() {
    let sim = os_sim::node().disk(GIB).disk(GIB).partitioned().build();
    let node = node_on(&sim);
    assert_eq!(node.run(&volumes_of(1)), Ok(Vec::new()));
    let volumes = node.run(&volumes_of(2)).unwrap();
    assert!(volumes[0].to_string().ends_with(r"}\"));
    let data = sim.disk(2).unwrap().partitions.last().unwrap().number;
    assert_eq!(
        node.run(&ListVolumesOnDisk {
            disk: DiskNumber(2),
            partition: data
        })
        .unwrap(),
        volumes
    );
    refused(
        &node,
        &ListVolumesOnDisk {
            disk: DiskNumber(2),
            partition: 9,
        },
        ErrorKind::NotFound,
    );
}

#[test]
fn contract_19_a_disk_that_is_one_file_system_has_one_volume() {
    let sim = os_sim::node()
        .disk(GIB)
        .superfloppy()
        .formatted("NTFS")
        .build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    assert_eq!(
        node.run(&ListVolumesOnDisk {
            disk: ONE,
            partition: 1
        })
        .unwrap(),
        [volume]
    );
    refused(
        &node,
        &ListVolumesOnDisk {
            disk: ONE,
            partition: 2,
        },
        ErrorKind::NotFound,
    );
}

#[test]
fn contract_22_any_file_system_counts_as_formatted_and_an_unknown_state_is_an_error() {
    for (name, sim, expected) in [
        (
            "raw",
            os_sim::node().disk(GIB).partitioned().build(),
            Some(false),
        ),
        ("NTFS", ntfs().build(), Some(true)),
        (
            "ReFS",
            os_sim::node()
                .disk(GIB)
                .partitioned()
                .formatted("ReFS")
                .build(),
            Some(true),
        ),
        (
            "FAT32",
            os_sim::node()
                .disk(GIB)
                .partitioned()
                .formatted("FAT32")
                .build(),
            Some(true),
        ),
        ("locked", ntfs().bitlocker_locked().build(), None),
        ("unreadable", ntfs().unreadable().build(), None),
    ] {
        let node = node_on(&sim);
        let volume = volume_on(&node, 1);
        assert_eq!(
            node.run(&IsVolumeFormatted { volume }).ok(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn contract_22_a_formatted_volume_is_never_formatted_again() {
    for (name, sim, kind) in [
        ("NTFS", ntfs().build(), None),
        (
            "ReFS",
            os_sim::node()
                .disk(GIB)
                .partitioned()
                .formatted("ReFS")
                .build(),
            Some(ErrorKind::FailedPrecondition),
        ),
        (
            "locked",
            ntfs().bitlocker_locked().build(),
            Some(ErrorKind::FailedPrecondition),
        ),
        (
            "unreadable",
            ntfs().unreadable().build(),
            Some(ErrorKind::FailedPrecondition),
        ),
    ] {
        let node = node_on(&sim);
        let (volume, before) = (volume_on(&node, 1), sim.snapshot());
        match kind {
            None => node.run(&FormatVolume::new(volume)).unwrap(),
            Some(kind) => drop(refused(&node, &FormatVolume::new(volume), kind)),
        }
        assert_eq!(sim.snapshot(), before, "{name}");
    }
}

#[test]
fn contract_22_a_raw_volume_is_formatted_once() {
    let sim = os_sim::node().disk(GIB).partitioned().build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    for _ in 0..2 {
        node.run(&FormatVolume::new(volume)).unwrap();
    }
    assert!(node.run(&IsVolumeFormatted { volume }).unwrap());
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);
}

#[test]
fn contract_23_mounting_twice_succeeds_and_an_occupied_target_is_an_error() {
    let sim = ntfs()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .dir(MOUNT)
        .dir(r"C:\var\lib\kubelet\plugins\full\x")
        .symlink(r"C:\var\lib\kubelet\plugins\l", r"C:\Windows")
        .build();
    let node = node_on(&sim);
    let (one, two) = (volume_on(&node, 1), volume_on(&node, 2));
    for _ in 0..2 {
        node.run(&mount(one, MOUNT)).unwrap();
    }
    let before = sim.snapshot();
    refused(&node, &mount(two, MOUNT), ErrorKind::FailedPrecondition);
    refused(
        &node,
        &mount(two, r"\plugins\full"),
        ErrorKind::FailedPrecondition,
    );
    refused(
        &node,
        &mount(two, r"\plugins\l"),
        ErrorKind::FailedPrecondition,
    );
    for missing in [r"\plugins\missing", r"\nowhere\missing"] {
        let error = refused(&node, &mount(two, missing), ErrorKind::NotFound).to_string();
        assert!(
            error.contains(&format!(
                r"the directory C:\var\lib\kubelet{missing} does not exist ("
            )),
            "{error}"
        );
    }
    refused(&node, &mount(unknown_volume(), MOUNT), ErrorKind::NotFound);
    refused(
        &node,
        &mount(two, r"C:\Windows"),
        ErrorKind::PermissionDenied,
    );
    assert_eq!(sim.snapshot(), before);
    sim.invariants().unwrap();
}

#[test]
fn contract_15_mounting_over_a_stale_mount_point_replaces_it() {
    let sim = ntfs()
        .mounted(MOUNT)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let node = node_on(&sim);
    sim.unplug_disk(1);
    let volume = volume_on(&node, 2);
    node.run(&mount(volume, MOUNT)).unwrap();
    assert_eq!(node.run(&mounted_at(MOUNT)).unwrap(), volume);
}

#[test]
fn contract_24_unmounting_removes_the_mount_point_and_fails_if_another_volume_or_data_is_there() {
    let sim = ntfs()
        .mounted(MOUNT)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let node = node_on(&sim);
    let (one, two) = (volume_on(&node, 1), volume_on(&node, 2));
    refused(&node, &unmount(two, MOUNT), ErrorKind::FailedPrecondition);
    node.run(&unmount(one, MOUNT)).unwrap();
    assert!(sim.external().exists(MOUNT));
    assert_eq!(
        node.run(&GetDiskNumberFromVolumeId { volume: one })
            .unwrap(),
        ONE,
        "it needs no path"
    );
    // The answer may have been lost.
    node.run(&unmount(one, MOUNT)).unwrap();
    // Drivers remove the directory with its contents next.
    sim.external()
        .write(&format!(r"{MOUNT}\data.txt"), b"of a pod")
        .unwrap();
    let error = refused(&node, &unmount(one, MOUNT), ErrorKind::FailedPrecondition);
    assert!(error.to_string().contains("data.txt"), "{error}");
    refused(&node, &unmount(one, r"\missing"), ErrorKind::NotFound);
    sim.invariants().unwrap();
}

#[test]
fn contract_24_a_link_or_a_file_is_not_an_unmounted_directory() {
    let sim = ntfs().dir(r"C:\var\lib\kubelet\empty").build();
    let (node, external) = (node_on(&sim), sim.external());
    let volume = volume_on(&node, 1);
    external
        .symlink(r"C:\var\lib\kubelet\link", r"C:\var\lib\kubelet\empty")
        .unwrap();
    external.write(r"C:\var\lib\kubelet\file", b"").unwrap();
    for path in [r"\link", r"\file"] {
        let before = sim.snapshot();
        refused(&node, &unmount(volume, path), ErrorKind::FailedPrecondition);
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn contract_25_the_closest_volume_is_that_of_the_nearest_mount_above() {
    let sim = ntfs()
        .mounted(MOUNT)
        .symlink(r"C:\var\lib\kubelet\pods\a", MOUNT)
        .build();
    sim.external()
        .mkdir_all(r"C:\var\lib\kubelet\plugins\v\nested\deep")
        .unwrap();
    let node = node_on(&sim);
    let (system, volume) = (volume_on(&node, 0), volume_on(&node, 1));
    let closest = |text: &str| closest(text);
    for (text, expected) in [
        (r"C:\", system),
        (r"C:\var\lib\kubelet\pods", system),
        (r"C:\var\lib\kubelet\plugins\v\nested\deep", volume),
        (r"C:\var\lib\kubelet\pods\a", volume),
    ] {
        assert_eq!(node.run(&closest(text)).unwrap(), expected, "{text}");
    }
    refused(&node, &closest(r"C:\missing"), ErrorKind::NotFound);
}

#[test]
fn contract_26_a_grown_disk_needs_no_rescan_and_stats_show_the_new_size_at_once() {
    let sim = ntfs().mounted(MOUNT).build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    sim.grow_disk(1, 2 * GIB);
    let size = GIB + GIB / 2;
    node.run(&resize(volume, size)).unwrap();
    let total = node.run(&GetVolumeStats { volume }).unwrap().total;
    assert!(total <= size && total > size - (20 << 20), "{total}");
    node.run(&resize(volume, 0)).unwrap();
    let total = node.run(&GetVolumeStats { volume }).unwrap().total;
    assert!(total > 2 * GIB - (20 << 20), "{total}");
    sim.invariants().unwrap();
}

#[test]
fn contract_26_a_volume_that_is_large_enough_is_left_unchanged() {
    let sim = ntfs().build();
    let node = node_on(&sim);
    let (volume, before) = (volume_on(&node, 1), sim.snapshot());
    for size in [0, 1, 2 << 20, GIB / 2] {
        node.run(&resize(volume, size)).unwrap();
    }
    assert_eq!(sim.snapshot(), before);
    refused(
        &node,
        &resize(volume, 3 * GIB),
        ErrorKind::FailedPrecondition,
    );
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_27_used_is_total_minus_free() {
    let sim = ntfs().mounted(MOUNT).build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    let stats = node.run(&GetVolumeStats { volume }).unwrap();
    let (total, free) = sim.external().df(MOUNT).unwrap();
    assert_eq!((stats.total, stats.total - stats.used), (total, free));
    assert!(total > GIB - (20 << 20) && total < GIB);
}

#[test]
fn every_operation_reports_an_unknown_volume_as_not_found() {
    let sim = os_sim::node().dir(MOUNT).build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    let volume = unknown_volume();
    refused(&node, &IsVolumeFormatted { volume }, ErrorKind::NotFound);
    refused(&node, &FormatVolume::new(volume), ErrorKind::NotFound);
    refused(&node, &resize(volume, 0), ErrorKind::NotFound);
    refused(&node, &GetVolumeStats { volume }, ErrorKind::NotFound);
    refused(
        &node,
        &GetDiskNumberFromVolumeId { volume },
        ErrorKind::NotFound,
    );
    refused(&node, &WriteVolumeCache { volume }, ErrorKind::NotFound);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_format_that_outlives_its_timeout_keeps_the_lock_and_is_not_repeated() {
    let sim = os_sim::node().disk(GIB).build();
    let config = storage_ops::Config::default()
        .with(|c| c.timeouts.format = std::time::Duration::from_millis(100));
    let node = storage_ops::Node::new(sim.process(), config);
    node.run(&PARTITION).unwrap();
    let volume = volume_on(&node, 1);
    refused(&node, &FormatVolume::new(volume), ErrorKind::StillRunning);
    assert_eq!(
        node.locked_objects(),
        1,
        "the storage provider is still formatting"
    );
    sim.advance(std::time::Duration::from_secs(10));
    assert_eq!(node.locked_objects(), 0);
    node.run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);
}

#[test]
fn contract_22_a_volume_with_a_foreign_signature_is_not_reported_as_unformatted() {
    for name in ["NTFS", "ReFS", "ext4", "XFS", "LUKS", "btrfs"] {
        let sim = os_sim::node()
            .disk(GIB)
            .partitioned()
            .formatted(name)
            .unmountable()
            .build();
        let (node, before) = (node_on(&sim), sim.snapshot());
        let volume = volume_on(&node, 1);
        refused(
            &node,
            &IsVolumeFormatted { volume },
            ErrorKind::FailedPrecondition,
        );
        refused(
            &node,
            &FormatVolume::new(volume),
            ErrorKind::FailedPrecondition,
        );
        assert_eq!(sim.snapshot(), before, "{name}");
    }
}

#[test]
fn contract_22_a_format_with_an_unknown_outcome_is_waited_for_under_the_lock() {
    let sim = os_sim::node().disk(GIB).partitioned().build();
    let lost = Fault::each(
        |call| call.primitive == "wmi call MSFT_Volume.Format",
        When::After,
        FaultAction::Fail(OsError::RPC_CALL_FAILED),
    );
    let node = probed(&sim, lost);
    let volume = volume_on(&node, 1);
    node.run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);
    let sim = os_sim::node().disk(GIB).partitioned().build();
    let broken = failing("wmi call MSFT_Volume.Format", OsError::RPC_CALL_FAILED);
    let node = probed(&sim, broken);
    let volume = volume_on(&node, 1);
    refused(&node, &FormatVolume::new(volume), ErrorKind::StillRunning);
    assert_eq!(node.locked_objects(), 0);
}

#[test]
fn contract_19_no_other_volume_is_returned_as_the_first() {
    let sim = os_sim::node().disk(GIB).partitioned().build();
    let unreadable = failing("control VOLUME_GET_VOLUME_DISK_EXTENTS", OsError::IO_DEVICE);
    let error = refused(
        &probed(&sim, unreadable),
        &volumes_of(1),
        ErrorKind::FailedPrecondition,
    );
    assert!(
        error.to_string().contains("first data partition"),
        "{error}"
    );
}

#[test]
fn every_code_for_a_removed_disk_means_not_found() {
    for code in [
        OsError::NO_SUCH_DEVICE,
        OsError::DEV_NOT_EXIST,
        OsError::DEVICE_NOT_CONNECTED,
    ] {
        let sim = ntfs().mounted(MOUNT).build();
        let volume = volume_on(&node_on(&sim), 1);
        let node = probed(
            &sim,
            failing_on("open", |object| object.starts_with(r"\??\Volume"), code),
        );
        assert!(!node.run(&is_link(MOUNT)).unwrap());
        refused(
            &node,
            &GetDiskNumberFromVolumeId { volume },
            ErrorKind::NotFound,
        );
        refused(&node, &GetVolumeStats { volume }, ErrorKind::NotFound);
    }
}

#[test]
fn a_volume_that_the_node_itself_uses_is_not_mounted_for_a_container() {
    let working = r"C:\data\working";
    let sim = ntfs().mounted(r"C:\data").dir(working).dir(MOUNT).build();
    let working_dirs = vec![HostPath::parse(working).unwrap()];
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.working_dirs = working_dirs),
    );
    let before = sim.snapshot();
    for used in [r"C:\Windows", r"C:\data\working"] {
        let target = HostPath::parse(used).unwrap();
        let volume = node
            .run(&GetClosestVolumeIdFromTargetPath { target })
            .unwrap();
        let error = refused(
            &node,
            &mount(volume, r"\plugins\v"),
            ErrorKind::PermissionDenied,
        );
        assert!(
            error
                .to_string()
                .ends_with("the volume is used by the node itself"),
            "{error}"
        );
    }
    assert_eq!(sim.snapshot(), before);

    // The volume of Windows is refused even if no working directory is on it.
    let kubelet_dir = path(r"D:\kubelet");
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.kubelet_dir = kubelet_dir),
    );
    let target = path(r"C:\Windows");
    let volume = node
        .run(&GetClosestVolumeIdFromTargetPath { target })
        .unwrap();
    let target = path(r"D:\kubelet\v");
    refused(
        &node,
        &MountVolume { volume, target },
        ErrorKind::PermissionDenied,
    );
}

/// A volume that is on another disk at each look.
#[derive(Default)]
struct Moving(AtomicU32);

impl Layer for Moving {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let filled = handle.control(code, input, output)?;
        if code == ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS {
            // The number of the disk of the first extent.
            let disk = 100 + self.0.fetch_add(1, Ordering::Relaxed);
            output[8..12].copy_from_slice(&disk.to_ne_bytes());
        }
        Ok(filled)
    }
}

#[test]
fn a_volume_whose_disk_changes_at_each_look_is_given_up() {
    let sim = ntfs().dir(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    let node = layered(&sim, Moving::default());
    let error = refused(&node, &mount(volume, MOUNT), ErrorKind::FailedPrecondition);
    let said = "gave up after 6 attempts, because the objects to lock changed each time";
    assert!(error.to_string().contains(said), "{error}");
    assert_eq!(node.locked_objects(), 0);
}

#[test]
fn a_volume_whose_disk_was_not_known_in_time_is_not_unmounted_without_the_lock() {
    let sim = ntfs().mounted(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    // Its disk cannot be queried at the first two looks.
    let unknown = || {
        failing_once(
            "control VOLUME_GET_VOLUME_DISK_EXTENTS",
            OsError::FILE_NOT_FOUND,
        )
    };
    let node = probed(&sim, both(unknown(), unknown()));
    let error = refused(&node, &unmount(volume, MOUNT), ErrorKind::Busy);
    let said = "the node has changed, and disk 1 would have to be locked; repeat the request";
    assert!(error.to_string().contains(said), "{error}");
    node.run(&unmount(volume, MOUNT)).unwrap();
}
