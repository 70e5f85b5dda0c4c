//! Tests that no operation takes from the node a volume or disk that the node itself uses.

use std::sync::Arc;

use faults::{Fault, FaultAction, Layer, Layered, When};
use os::abi::{BASIC_DATA, ControlCode, DriveLayout, PartitionEntry, PartitionStyle};
use os::{Handle, Instance, NtPath, Open, Os, OsError, OsResult, U16String, Uuid, Value};
use os_sim::Sim;
use storage_ops::{
    Config, DiskNumber,
    ErrorKind::{FailedPrecondition, NotFound, PermissionDenied},
    FormatVolume, MountVolume, Node, RmdirContents, VolumeId,
};

use zerocopy::FromBytes as _;

use crate::links::{mount_point, relative_link, set_reparse_point};
use crate::setup::{
    GIB, add_partition, contents, failing_on, mount, node_on, ntfs, path, raw_disk, refused,
    resize, set_online, volume_on, volumes_of,
};

const DATA: &str = r"C:\data";

/// Returns settings with a working directory on the volume that is mounted at `C:\data`.
fn config() -> Config {
    Config::default().with(|c| c.working_dirs = vec![path(r"C:\data\working")])
}

#[test]
fn no_disk_of_a_volume_over_several_disks_is_taken_offline() {
    let node = raw_disk()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(DATA)
        .spanned(1, 100 << 20);
    let sim = node.dir(r"C:\data\working").build();
    let before = sim.snapshot();
    let node = Node::new(sim.process(), config());
    for disk in [1, 2] {
        refused(&node, &set_online(disk, false), PermissionDenied);
    }
    assert_eq!(sim.snapshot(), before);
}

/// Returns a node with a raw volume on disk 2 and a volume that is mounted at a path on disk 3.
fn drivers_disks() -> Sim {
    let node = ntfs().mounted(DATA).dir(r"C:\data\working");
    let node = node
        .disk(GIB)
        .partitioned()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS");
    node.mounted(r"C:\var\lib\kubelet\plugins\v")
        .dir(r"C:\var\lib\kubelet\plugins\t")
        .build()
}

#[test]
fn nothing_is_taken_from_the_node_if_its_own_volumes_cannot_be_determined() {
    const CODES: [OsError; 2] = [OsError::IO_DEVICE, OsError::DEVICE_NOT_CONNECTED];
    let calls = [
        ("open", r"\??\C:\"),
        ("open_child", r"\??\C:\data"),
        ("final_path", r"\??\C:\"),
    ];
    for ((primitive, object), code) in calls
        .into_iter()
        .flat_map(|call| CODES.map(|code| (call, code)))
    {
        let sim = drivers_disks();
        let node = node_on(&sim);
        let (raw, mounted): (VolumeId, VolumeId) = (volume_on(&node, 2), volume_on(&node, 3));
        let before = sim.snapshot();
        let fault = failing_on(primitive, move |found| found == object, code);
        let probed = faults::Probed::new(sim.process(), fault);
        let node = Node::new(Arc::new(probed), config());
        let what = format!("{primitive} {object} {code:?}");
        let reason = "it cannot be determined what the node itself uses";
        for error in [
            node.run(&set_online(2, false)).expect_err(&what),
            node.run(&FormatVolume::new(raw)).expect_err(&what),
            node.run(&mount(mounted, r"\plugins\t")).expect_err(&what),
            node.run(&contents(r"\plugins\v")).expect_err(&what),
        ] {
            assert!(error.to_string().contains(reason), "{what}: {error}");
            // A driver may take that for the disk or volume of its request.
            assert_ne!(error.kind(), NotFound, "{what}");
        }
        assert_eq!(sim.snapshot(), before, "{what}");
    }
}

/// Reports each disk with partitions as one with an MBR, whose first data partition is active if
/// `is_active`. Only the storage provider reports the partitions if `is_read` is false.
struct Mbr {
    is_active: bool,
    is_read: bool,
}

impl Layer for Mbr {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let is_layout = code == ControlCode::DISK_GET_DRIVE_LAYOUT_EX;
        if is_layout && !self.is_read {
            return Err(OsError::GEN_FAILURE);
        }
        let length = handle.control(code, input, output)?;
        if is_layout && length > size_of::<DriveLayout>() {
            output[..4].copy_from_slice(&PartitionStyle::MBR.0.to_le_bytes());
            let mut may_be_active = self.is_active;
            for entry in output[size_of::<DriveLayout>()..length]
                .chunks_exact_mut(size_of::<PartitionEntry>())
            {
                let entry = PartitionEntry::mut_from_bytes(entry).unwrap();
                let is_data = entry.gpt_type() == BASIC_DATA;
                entry.partition_type = [0; 16];
                if is_data {
                    entry.partition_type[..3].copy_from_slice(&[0x07, u8::from(may_be_active), 1]);
                    may_be_active = false;
                }
            }
        }
        Ok(length)
    }

    fn change_instances(&self, _: &str, found: &mut Vec<Instance>) {
        let mut may_be_active = self.is_active;
        for instance in found.iter_mut() {
            let properties = &mut instance.properties;
            if properties.contains_key("PartitionStyle") {
                properties.insert("PartitionStyle".into(), Value::U32(1));
            }
            if properties.contains_key("IsActive") {
                let is_data = properties.insert("GptType".into(), Value::Null)
                    == Some(Value::Text(format!("{{{BASIC_DATA}}}")));
                properties.insert("MbrType".into(), Value::U32(if is_data { 7 } else { 1 }));
                properties.insert("IsActive".into(), Value::Bool(is_data && may_be_active));
                may_be_active &= !is_data;
            }
        }
    }
}

#[test]
fn the_system_partition_of_a_node_that_starts_from_a_bios_is_not_mounted_or_emptied() {
    const SYSTEM_RESERVED: &str = r"C:\var\lib\kubelet\plugins\v";
    let sim = raw_disk()
        .gpt()
        .dir(DATA)
        .dir(SYSTEM_RESERVED)
        .dir(r"C:\var\lib\kubelet\plugins\t")
        .build();
    for at in [16, 216] {
        add_partition(&sim, Some(at << 20), 200 << 20);
    }
    let unlike_mbr = node_on(&sim);
    let list = volumes_of(1);
    let [first, second] = unlike_mbr.run(&list).unwrap()[..] else {
        panic!("two volumes")
    };
    for (volume, at) in [
        (first, SYSTEM_RESERVED),
        (second, r"C:\var\lib\kubelet\plugins\t"),
    ] {
        unlike_mbr.run(&FormatVolume::new(volume)).unwrap();
        unlike_mbr.run(&mount(volume, at)).unwrap();
    }
    sim.external()
        .write(&format!(r"{SYSTEM_RESERVED}\bootmgr"), b"the boot manager")
        .unwrap();
    sim.external()
        .mkdir(r"C:\var\lib\kubelet\plugins\t\working")
        .unwrap();

    // A volume of the node is on the same disk.
    let own = Config::default()
        .with(|c| c.node_paths = vec![path(r"C:\var\lib\kubelet\plugins\t\working")]);
    let by = |is_read, is_active, config| {
        let mbr = Mbr { is_active, is_read };
        Node::new(Arc::new(Layered::around(sim.process(), mbr)), config)
    };
    let on = |is_active, config| by(true, is_active, config);
    let before = sim.snapshot();
    let target = path(r"\plugins\m");
    sim.external()
        .mkdir(r"C:\var\lib\kubelet\plugins\m")
        .unwrap();
    let (mount, empty) = (
        MountVolume {
            volume: first,
            target,
        },
        contents(SYSTEM_RESERVED),
    );
    for is_read in [true, false] {
        let node = by(is_read, true, own.clone());
        refused(&node, &mount, PermissionDenied);
    }
    refused(&on(true, own.clone()), &empty, PermissionDenied);
    sim.external()
        .remove_all(r"C:\var\lib\kubelet\plugins\m")
        .unwrap();
    assert_eq!(sim.snapshot(), before);
    // A partition that is not active, and the active one of a disk of a driver.
    on(false, own.clone()).run(&empty).unwrap();
    assert!(sim.external().read_dir(SYSTEM_RESERVED).unwrap().is_empty());
    on(true, Config::default()).run(&empty).unwrap();
    sim.external()
        .mkdir(r"C:\var\lib\kubelet\plugins\m")
        .unwrap();
    by(false, false, own).run(&mount).unwrap();
}

/// The way to kubelet's directory leads over the volume of disk 1, from which a link leads to that
/// of disk 2.
fn moved_twice(link: impl Fn(&Sim)) -> (Sim, Config) {
    let node = ntfs().mounted(r"C:\mnt1");
    let node = node
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\mnt2")
        .dir(r"C:\mnt2\kubelet\pods\x");
    let sim = node.disk(GIB).partitioned().formatted("NTFS").build();
    link(&sim);
    (
        sim,
        Config::default().with(|c| c.kubelet_dir = path(r"C:\mnt1\k")),
    )
}

#[test]
fn the_volumes_on_the_way_to_a_working_directory_belong_to_the_node() {
    let by_path: fn(&Sim) = |sim| {
        sim.external()
            .junction(r"C:\mnt1\k", r"C:\mnt2\kubelet")
            .unwrap();
    };
    let relative: fn(&Sim) = |sim| {
        sim.external().mkdir(r"C:\mnt1\k").unwrap();
        set_reparse_point(sim, r"C:\mnt1\k", &relative_link(r".\l"));
        sim.external()
            .symlink(r"C:\mnt1\l", r"C:\mnt2\kubelet")
            .unwrap();
    };
    let by_volume: fn(&Sim) = |sim| {
        let target = format!(r"{}kubelet", sim.volume_on(2).unwrap().name());
        sim.external().symlink(r"C:\mnt1\k", &target).unwrap();
    };
    for link in [by_path, by_volume, relative] {
        let (sim, config) = moved_twice(link);
        let before = sim.snapshot();
        for starts in [false, true] {
            let node = Node::new(sim.process(), config.clone());
            if starts {
                node.test_path_lookup();
            }
            let [first, second, third] = [1, 2, 3].map(|disk| volume_on(&node, disk));
            let mount = |volume| MountVolume {
                volume,
                target: path(r"C:\mnt1\k\pods\x"),
            };
            for (disk, volume) in [(1, first), (2, second)] {
                refused(&node, &set_online(disk, false), PermissionDenied);
                refused(&node, &mount(volume), PermissionDenied);
            }
            assert_eq!(sim.snapshot(), before);
            node.run(&mount(third)).unwrap();
            sim.external()
                .remove_all(r"C:\mnt2\kubelet\pods\x")
                .unwrap();
            sim.external().mkdir(r"C:\mnt2\kubelet\pods\x").unwrap();
        }
    }
}

#[test]
fn nothing_is_taken_from_the_node_if_a_link_on_the_way_to_a_working_directory_cannot_be_read() {
    let (sim, config) = moved_twice(|sim| {
        sim.external()
            .junction(r"C:\mnt1\k", r"C:\mnt2\kubelet")
            .unwrap();
    });
    let before = sim.snapshot();
    for (primitive, object) in [
        ("open_child", r"\mnt1"),
        ("open_child", r"\k"),
        ("query AttributeTag", r"\k"),
        ("control FSCTL_GET_REPARSE_POINT", r"\k"),
        ("open_child", r"\mnt2"),
    ] {
        let fault = failing_on(
            primitive,
            move |found| found.ends_with(object),
            OsError::IO_DEVICE,
        );
        let node = Node::new(
            Arc::new(faults::Probed::new(sim.process(), fault)),
            config.clone(),
        );
        let error = node
            .run(&set_online(3, false))
            .expect_err(object)
            .to_string();
        assert!(
            error.contains("it cannot be determined what the node itself uses"),
            "{object}: {error}"
        );
        assert_eq!(sim.snapshot(), before, "{object}");
    }
    // A link that leads nowhere is no reason, and one that only Windows can resolve is.
    for (target, is_refused) in [
        (r"\??\C:\gone\k", false),
        (r"\??\UNC\files\one", false),
        (r"\??\GLOBALROOT\x", true),
    ] {
        let (sim, config) = moved_twice(|sim| {
            sim.external().mkdir(r"C:\mnt1\k").unwrap();
            set_reparse_point(sim, r"C:\mnt1\k", &mount_point(target));
        });
        let node = Node::new(sim.process(), config);
        refused(
            &node,
            &set_online(1, false),
            if is_refused {
                FailedPrecondition
            } else {
                PermissionDenied
            },
        );
        assert_eq!(
            node.run(&set_online(3, false)).is_err(),
            is_refused,
            "{target}"
        );
    }
}

#[test]
fn what_a_driver_makes_of_a_working_directory_in_another_one_takes_nothing_from_other_drivers() {
    let sim = drivers_disks();
    let node = node_on(&sim);
    let volume = volume_on(&node, 3);
    let inner = r"C:\var\lib\kubelet\pods";
    for target in [r"C:\var\lib\kubelet\plugins\v", r"\\?\GLOBALROOT\x"] {
        sim.external().remove_all(inner).unwrap();
        sim.external().symlink(inner, target).unwrap();
        let pod_dir = Some(path(inner));
        let node = Node::new(
            sim.process(),
            Config::default().with(|c| c.pod_dir = pod_dir),
        );
        node.run(&mount(volume, r"\plugins\t")).unwrap();
        node.run(&set_online(2, false)).unwrap();
    }
}

#[test]
fn a_link_on_the_way_that_is_missing_for_a_moment_is_looked_for_again() {
    let (sim, config) = moved_twice(|sim| {
        sim.external()
            .junction(r"C:\mnt1\k", r"C:\mnt2\kubelet")
            .unwrap();
    });
    let before = sim.snapshot();
    for code in [
        OsError::FILE_NOT_FOUND,
        OsError::PATH_NOT_FOUND,
        OsError::NOT_READY,
        OsError::UNRECOGNIZED_VOLUME,
    ] {
        for nth in 0..20 {
            let fault = Fault::at(nth, When::Before, FaultAction::Fail(code));
            let fault = fault.among(|call| call.primitive.starts_with("open"));
            let node = Node::new(
                Arc::new(faults::Probed::new(sim.process(), fault)),
                config.clone(),
            );
            node.run(&set_online(2, false)).unwrap_err();
            assert_eq!(sim.snapshot(), before, "{code:?} {nth}");
        }
    }
}

#[test]
fn a_volume_that_is_mounted_at_another_path_of_a_moved_working_directory_is_not_emptied() {
    let mount = r"C:\real\pods\a\mount";
    let node = os_sim::node()
        .dir(r"C:\real\pods\b\mount")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(mount);
    let sim = node
        .file(r"C:\real\pods\a\mount\data.db", b"1")
        .junction(r"C:\k", r"C:\real")
        .build();
    let kubelet_dir = path(r"C:\k");
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.kubelet_dir = kubelet_dir),
    );
    let other = path(r"C:\k\pods\b\mount");
    node.run(&MountVolume {
        volume: volume_on(&node, 1),
        target: other.clone(),
    })
    .unwrap();
    let error = refused(&node, &RmdirContents { path: other }, FailedPrecondition).to_string();
    assert!(error.contains(mount), "{error}");
    assert!(sim.external().exists(r"C:\real\pods\a\mount\data.db"));
}

#[test]
fn the_volumes_of_further_paths_of_the_node_belong_to_it() {
    let sim = drivers_disks();
    let volume = volume_on(&node_on(&sim), 3);
    let node_paths = vec![path(r"\plugins\v\containerd"), path(r"Q:\missing")];
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.node_paths = node_paths),
    );
    refused(&node, &set_online(3, false), PermissionDenied);
    refused(&node, &mount(volume, r"\plugins\t"), PermissionDenied);
    node.run(&set_online(1, false)).unwrap();
}

/// Gives the volume the drive letter D.
struct DriveD(VolumeId);

impl Layer for DriveD {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        if *path == NtPath::drive_root('D') {
            return node.open(
                &NtPath::from_win32(&U16String::from_str(&self.0.to_string())),
                how,
            );
        }
        node.open(path, how)
    }
}

#[test]
fn the_volume_of_windows_belongs_to_the_node_on_any_drive() {
    let sim = drivers_disks();
    let node = node_on(&sim);
    let volume = volume_on(&node, 3);
    let before = sim.snapshot();
    let on_d = Layered::around(sim.process(), DriveD(volume));
    let node = Node::new(Arc::new(on_d), config().with(|c| c.system_drive = 'D'));
    refused(&node, &set_online(3, false), PermissionDenied);
    refused(&node, &mount(volume, r"\plugins\t"), PermissionDenied);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_working_directory_on_a_share_or_on_a_drive_without_a_medium_is_on_no_volume() {
    let sim = drivers_disks();
    let fault = failing_on(
        "open",
        |object| object.starts_with(r"\??\E:"),
        OsError::NOT_READY,
    );
    let working_dirs = vec![path(r"E:\working")];
    let config = Config::default().with(|c| c.working_dirs = working_dirs);
    let node = Node::new(Arc::new(faults::Probed::new(sim.process(), fault)), config);
    node.run(&set_online(2, false)).unwrap();
}

/// Gives each basic data partition another type.
struct PartitionType(Uuid);

impl Layer for PartitionType {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let length = handle.control(code, input, output)?;
        if code == ControlCode::DISK_GET_DRIVE_LAYOUT_EX {
            for at in 0..length.saturating_sub(15) {
                if output[at..at + 16] == BASIC_DATA.to_bytes_le() {
                    output[at..at + 16].copy_from_slice(&self.0.to_bytes_le());
                }
            }
        }
        Ok(length)
    }
}

#[test]
fn a_volume_on_a_system_partition_is_not_formatted_mounted_or_emptied() {
    for kind in [
        "c12a7328-f81f-11d2-ba4b-00a0c93ec93b", // EFI system
        "de94bba4-06d1-4d40-a16a-bfd50179d6ac", // recovery
        "e3c9e316-0b5c-4db8-817d-f92df00215ae", // Microsoft reserved
    ] {
        let sim = drivers_disks();
        let node = node_on(&sim);
        let (raw, mounted) = (volume_on(&node, 2), volume_on(&node, 3));
        let before = sim.snapshot();
        let layered = Layered::around(sim.process(), PartitionType(kind.parse().unwrap()));
        let node = Node::new(Arc::new(layered), config());
        refused(&node, &FormatVolume::new(raw), PermissionDenied);
        refused(&node, &mount(mounted, r"\plugins\t"), PermissionDenied);
        refused(&node, &contents(r"\plugins\v"), PermissionDenied);
        assert_eq!(sim.snapshot(), before, "{kind}");
    }
}

#[test]
fn a_volume_that_is_mounted_at_another_path_of_a_driver_is_not_emptied() {
    let (one, other) = (
        r"C:\var\lib\kubelet\plugins\v",
        r"C:\var\lib\kubelet\pods\p",
    );
    let sim = os_sim::node()
        .dir(other)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(one)
        .mounted(r"C:\admin")
        .build();
    sim.external().write(&format!(r"{one}\data"), b"1").unwrap();
    let node = node_on(&sim);
    sim.external()
        .set_mount_point(other, sim.volume_on(1).unwrap().id)
        .unwrap();
    let before = sim.snapshot();
    for path in [one, other] {
        refused(&node, &contents(path), FailedPrecondition);
    }
    assert_eq!(sim.snapshot(), before);
    sim.process()
        .delete_volume_mount_point(&os::U16String::from_str(&format!(r"{other}\")))
        .unwrap();
    node.run(&contents(one)).unwrap();
}

#[test]
fn no_volume_of_the_node_is_resized() {
    let sim = drivers_disks();
    assert!(sim.grow_disk(0, 512 * GIB) && sim.grow_disk(1, 2 * GIB) && sim.grow_disk(3, 2 * GIB));
    let node = Node::new(sim.process(), config());
    let [system, working, other] = [0, 1, 3].map(|disk| volume_on(&node, disk));
    let before = sim.snapshot();
    for volume in [system, working] {
        refused(&node, &resize(volume, 0), PermissionDenied);
        let larger = node
            .run(&storage_ops::GetVolumeStats { volume })
            .unwrap()
            .total
            + GIB / 2;
        refused(&node, &resize(volume, larger), PermissionDenied);
        node.run(&resize(volume, 1)).unwrap();
    }
    let first = storage_ops::ResizeTarget::FirstVolumeOfDisk(DiskNumber(0));
    refused(
        &node,
        &storage_ops::ResizeVolume::new(first, 0),
        PermissionDenied,
    );
    assert_eq!(sim.snapshot(), before);
    node.run(&resize(other, 0)).unwrap();
    // A file system smaller than its partition.
    let node = ntfs().file_system_of(GIB / 2).mounted(DATA);
    let sim = node.dir(r"C:\data\working").build();
    let (node, before) = (Node::new(sim.process(), config()), sim.snapshot());
    refused(&node, &resize(volume_on(&node, 1), 0), PermissionDenied);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_working_directory_that_does_not_exist_keeps_no_volume_from_being_emptied() {
    let mount = r"C:\var\lib\kubelet\pods\a";
    let node = ntfs().mounted(mount).dir(r"C:\elsewhere\m");
    let sim = node.build();
    let working_dirs = [r"C:\elsewhere", r"Q:\missing", r"C:\missing"].map(path);
    let all = Node::new(
        sim.process(),
        Config::default().with(|c| c.working_dirs = working_dirs.to_vec()),
    );
    let other = path(r"C:\elsewhere\m");
    all.run(&MountVolume {
        volume: volume_on(&all, 1),
        target: other,
    })
    .unwrap();
    let working_dirs = working_dirs[1..].to_vec();
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.working_dirs = working_dirs),
    );
    node.run(&RmdirContents { path: path(mount) }).unwrap();
}
