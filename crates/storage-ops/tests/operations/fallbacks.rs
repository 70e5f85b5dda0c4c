//! Tests of the fallbacks that operations take if Windows answers a first call with a code that
//! nobody has seen.

use std::sync::Arc;

use crate::setup::{
    GIB, MOUNT, ONE, PARTITION, failing, has_code, layered, mount, mounted_at, node_on,
    partitioned_disk, path, probed, raw_disk, refused, refused_saying, says, set_online, traced,
    unmount, volume_on, volumes_of,
};
use faults::{Fault, FaultAction, Layer, Layered, Probed, When};
use os::{CallStatus, Instance, MethodCall, Os, OsError, OsResult, Time, Value, Wmi};
use os_sim::Sim;
use storage_ops::{
    Config,
    ErrorKind::{FailedPrecondition, Internal, NotFound},
    FormatVolume, GetBiosSerialNumber, GetDiskNumberFromVolumeId, GetDiskState, GetDiskStats,
    GetVolumeStats, IsVolumeFormatted, ListDiskIds, ListVolumesOnDisk, MountVolume, Node, Rescan,
    VolumeId, WriteVolumeCache,
};

/// A code that no document names.
const UNSEEN: OsError = OsError(0xe000_0abc);

const EXTENTS: &str = "control VOLUME_GET_VOLUME_DISK_EXTENTS";
const LAYOUT: &str = "control DISK_GET_DRIVE_LAYOUT_EX";
const ATTRIBUTES: &str = "control DISK_GET_DISK_ATTRIBUTES";

fn ntfs() -> os_sim::Builder {
    os_sim::node()
        .dir(MOUNT)
        .disk(GIB)
        .serial("vol-1")
        .partitioned()
        .formatted("NTFS")
}

fn volume(sim: &Sim) -> VolumeId {
    volume_on(&node_on(sim), 1)
}

/// Returns a node on which each call of `primitives` fails with [`UNSEEN`].
fn unseen(sim: &Sim, primitives: &'static [&'static str]) -> Node {
    probed(
        sim,
        Fault::each(
            |call| primitives.contains(&&*call.primitive),
            When::Before,
            FaultAction::Fail(UNSEEN),
        ),
    )
}

#[track_caller]
fn assert_counted(node: &Node, call: &str, code: OsError) {
    let counts = node.fallbacks();
    assert!(
        counts
            .iter()
            .any(|count| count.call == call && count.code == Some(code.0)),
        "{counts:?}"
    );
}

#[test]
fn a_disk_that_does_not_answer_is_read_through_the_storage_provider() {
    for offline in [false, true] {
        let sim = if offline {
            ntfs().offline().build()
        } else {
            ntfs().build()
        };
        let node = unseen(&sim, &[ATTRIBUTES]);
        assert_eq!(node.run(&GetDiskState { disk: ONE }), Ok(!offline));
        assert_counted(&node, "disk_state", UNSEEN);
    }
    let sim = ntfs().build();
    let node = unseen(
        &sim,
        &[
            "control DISK_GET_LENGTH_INFO",
            "control DISK_GET_DRIVE_GEOMETRY_EX",
        ],
    );
    assert_eq!(node.run(&GetDiskStats { disk: ONE }), Ok(GIB));
    assert_counted(&node, "disk_size", UNSEEN);
    let node = unseen(&sim, &["control STORAGE_QUERY_PROPERTY"]);
    assert_eq!(node.run(&ListDiskIds).unwrap()[&ONE].serial, "vol-1");
    assert_counted(&node, "serial_number", UNSEEN);
    let node = unseen(&sim, &["device_interfaces"]);
    assert_eq!(node.run(&ListDiskIds), node_on(&sim).run(&ListDiskIds));
    assert_counted(&node, "disk_list", UNSEEN);
}

#[test]
fn a_disk_is_brought_online_and_taken_offline_without_its_own_attributes() {
    let sim = ntfs().offline().build();
    let node = unseen(&sim, &[ATTRIBUTES]);
    node.run(&set_online(1, true)).unwrap();
    assert!(!sim.disk(1).unwrap().offline);
    node.run(&set_online(1, false)).unwrap();
    assert!(sim.disk(1).unwrap().offline);
}

#[test]
fn a_volume_that_does_not_answer_is_read_through_the_storage_provider() {
    let sim = ntfs().build();
    let volume = volume(&sim);
    for primitives in [
        &[EXTENTS][..],
        &["volumes"],
        &[LAYOUT],
        &[EXTENTS, "volumes", LAYOUT],
    ] {
        let primitives: &'static [&'static str] = Vec::leak(primitives.to_vec());
        let node = unseen(&sim, primitives);
        let before = sim.now();
        assert_eq!(node.run(&volumes_of(1)), Ok(vec![volume]), "{primitives:?}");
        assert_eq!(
            node.run(&ListVolumesOnDisk {
                disk: ONE,
                partition: 2
            }),
            Ok(vec![volume]),
            "{primitives:?}"
        );
        assert_eq!(sim.now(), before, "{primitives:?}");
    }
    let node = unseen(&sim, &[EXTENTS]);
    assert_eq!(node.run(&GetDiskNumberFromVolumeId { volume }), Ok(ONE));
    assert_counted(&node, "volume_disk", UNSEEN);
    let expected = node_on(&sim).run(&GetVolumeStats { volume });
    for primitives in [&["query_fs FullSize"][..], &["query_fs Attribute"]] {
        let node = unseen(&sim, Vec::leak(primitives.to_vec()));
        assert_eq!(
            node.run(&GetVolumeStats { volume }),
            expected,
            "{primitives:?}"
        );
        assert_counted(&node, "volume_size", UNSEEN);
    }
}

#[test]
fn a_cache_that_the_device_does_not_write_is_written_by_the_storage_provider() {
    const FLUSH: &str = "wmi call MSFT_Volume.Flush";
    let sim = ntfs().mounted(MOUNT).build();
    let volume = volume(&sim);
    let (node, trace) = traced(&sim, failing("flush", UNSEEN));
    let written = || {
        trace
            .take()
            .iter()
            .filter(|record| record.call.primitive == FLUSH)
            .count()
    };
    node.run(&WriteVolumeCache { volume }).unwrap();
    assert_eq!(written(), 1);
    assert_counted(&node, "flush", UNSEEN);
    node.run(&unmount(volume, MOUNT)).unwrap();
    assert_eq!(written(), 1);
    node.run(&set_online(1, false)).unwrap();
    assert_eq!(written(), 1);

    let sim = ntfs().build();
    let node = unseen(&sim, &["flush", FLUSH]);
    let error = refused(
        &node,
        &WriteVolumeCache {
            volume: volume_on(&node, 1),
        },
        Internal,
    );
    has_code(&error, UNSEEN);
    node.run(&set_online(1, false)).unwrap();
    assert!(sim.disk(1).unwrap().offline);
}

#[test]
fn that_the_provider_reports_no_file_system_is_no_evidence() {
    let sim = ntfs().build();
    let node = unseen(&sim, &["query_fs Attribute"]);
    assert_eq!(
        node.run(&IsVolumeFormatted {
            volume: volume(&sim)
        }),
        Ok(true)
    );
    assert_counted(&node, "file_system", UNSEEN);
    node.run(&FormatVolume::new(volume(&sim))).unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 0);
    // The root directory of a formatted volume is read from the file system alone.
    sim.external()
        .write(&format!("{}data", sim.volume_on(1).unwrap().name()), b"x")
        .unwrap();
    let format = FormatVolume::new(volume(&sim));
    refused(&node, &format, FailedPrecondition);

    let raw = partitioned_disk().build();
    let node = unseen(&raw, &["query_fs Attribute"]);
    let volume = volume(&raw);
    let error = refused(&node, &IsVolumeFormatted { volume }, Internal);
    has_code(&error, UNSEEN);
    let error = refused(&node, &FormatVolume::new(volume), Internal);
    assert_eq!(
        (error.code(), raw.volume_on(1).unwrap().formats),
        (Some(UNSEEN), 0),
        "{error}"
    );
}

/// Reports NTFS on all volumes.
struct ReportsNtfs;

impl Layer for ReportsNtfs {
    fn change_instances(&self, _: &str, rows: &mut Vec<Instance>) {
        for row in rows
            .iter_mut()
            .filter(|row| row.path.starts_with("MSFT_Volume"))
        {
            row.properties
                .insert("FileSystemType".into(), Value::U32(14));
            row.properties
                .insert("FileSystem".into(), Value::Text("NTFS".into()));
        }
    }
}

#[test]
fn a_volume_on_which_the_provider_reports_a_file_system_is_not_formatted() {
    let sim = partitioned_disk().build();
    let node = layered(&sim, ReportsNtfs);
    refused_saying(
        &node,
        &FormatVolume::new(volume(&sim)),
        FailedPrecondition,
        "the storage provider reports NTFS",
    );
    assert_eq!(sim.volume_on(1).unwrap().formats, 0);
}

#[test]
fn only_devices_decide_which_disk_a_volume_to_format_is_on() {
    let sim = partitioned_disk().build();
    let volume = volume(&sim);
    for primitives in [&[EXTENTS][..], &[LAYOUT]] {
        let node = unseen(&sim, Vec::leak(primitives.to_vec()));
        let error = refused(&node, &FormatVolume::new(volume), Internal);
        assert_eq!(
            (error.code(), sim.volume_on(1).unwrap().formats),
            (Some(UNSEEN), 0),
            "{error}"
        );
    }
}

#[test]
fn that_the_provider_reports_no_partition_is_no_evidence() {
    let sim = ntfs().build();
    unseen(&sim, &[LAYOUT]).run(&PARTITION).unwrap();
    for sim in [raw_disk().build(), raw_disk().gpt().build()] {
        let before = sim.snapshot();
        let error = refused(&unseen(&sim, &[LAYOUT]), &PARTITION, Internal);
        assert_eq!(
            (error.code(), sim.snapshot()),
            (Some(UNSEEN), before),
            "{error}"
        );
    }
}

#[test]
fn a_volume_is_mounted_and_unmounted_through_the_storage_provider() {
    for code in [
        OsError::SHARING_VIOLATION,
        OsError::INVALID_NAME,
        OsError::ACCESS_DENIED,
        UNSEEN,
    ] {
        let sim = ntfs().build();
        let volume = volume(&sim);
        let failing_for_driver = |primitive: &'static str| {
            Fault::each(
                move |call| call.primitive == primitive && call.object.contains("kubelet"),
                When::Before,
                FaultAction::Fail(code),
            )
        };
        // One for the driver, and one for the test of a held directory.
        let calls = 1 + u64::from(code == OsError::SHARING_VIOLATION);
        let (node, trace) = traced(&sim, failing_for_driver("set_volume_mount_point"));
        node.run(&mount(volume, MOUNT)).unwrap();
        assert_eq!(
            sim.volume_on(1).unwrap().paths,
            [format!(r"{MOUNT}\")],
            "{code}"
        );
        assert_eq!(trace.counts().of("set_volume_mount_point"), calls, "{code}");
        assert_counted(&node, "mount", code);
        let (node, trace) = traced(&sim, failing_for_driver("delete_volume_mount_point"));
        node.run(&unmount(volume, MOUNT)).unwrap();
        assert!(
            sim.volume_on(1).unwrap().paths.is_empty() && !sim.external().is_link(MOUNT),
            "{code}"
        );
        assert_eq!(
            trace.counts().of("delete_volume_mount_point"),
            calls,
            "{code}"
        );
        assert_counted(&node, "unmount", code);
    }
}

#[test]
fn a_mount_that_both_ways_refuse_is_an_error_with_the_first_code() {
    let sim = ntfs().build();
    let (volume, before) = (volume(&sim), sim.snapshot());
    let both = [
        "set_volume_mount_point",
        "wmi call MSFT_Partition.AddAccessPath",
    ];
    let fault = Fault::each(
        move |call| both.contains(&&*call.primitive),
        When::Before,
        FaultAction::Fail(UNSEEN),
    );
    let error = refused(&probed(&sim, fault), &mount(volume, MOUNT), Internal);
    assert_eq!(
        (error.code(), sim.snapshot()),
        (Some(UNSEEN), before),
        "{error}"
    );
    says(&error, "the fallback failed too");
}

#[test]
fn a_directory_that_cannot_be_mounted_is_not_tried_a_second_way() {
    for code in [
        OsError::DIR_NOT_EMPTY,
        OsError::FILE_NOT_FOUND,
        OsError::WRITE_PROTECT,
        OsError::IO_DEVICE,
    ] {
        let sim = ntfs().build();
        let volume = volume(&sim);
        let (node, trace) = traced(&sim, failing("set_volume_mount_point", code));
        let error = node.run(&mount(volume, MOUNT)).unwrap_err();
        assert_eq!(
            (error.code(), trace.counts().of("wmi query")),
            (Some(code), 0),
            "{error}"
        );
    }
}

#[test]
fn the_volume_of_a_path_is_found_by_its_reparse_point() {
    let sim = ntfs()
        .mounted(MOUNT)
        .symlink(r"C:\var\lib\kubelet\pods\p", MOUNT)
        .build();
    let node = unseen(&sim, &["final_path"]);
    for target in [MOUNT, r"C:\var\lib\kubelet\pods\p"] {
        assert_eq!(node.run(&mounted_at(target)), Ok(volume(&sim)), "{target}");
    }
    assert_counted(&node, "target_volume", UNSEEN);
}

/// Fails each query of a volume's file system after the volume has been formatted.
#[derive(Default)]
struct UnreadableOnceFormatted(std::sync::atomic::AtomicBool);

impl Layer for UnreadableOnceFormatted {
    fn query_fs(
        &self,
        handle: &dyn os::Handle,
        class: os::FsInfo,
        output: &mut [u8],
    ) -> OsResult<usize> {
        if self.0.load(std::sync::atomic::Ordering::SeqCst) {
            Err(UNSEEN)
        } else {
            handle.query_fs(class, output)
        }
    }

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let status = wmi.call(call, deadline);
        self.0
            .fetch_or(call.method == "Format", std::sync::atomic::Ordering::SeqCst);
        status
    }
}

#[test]
fn that_a_volume_has_been_formatted_may_be_known_from_the_provider() {
    let sim = partitioned_disk().build();
    let layered = Layered::around(sim.process(), UnreadableOnceFormatted::default());
    Node::new(Arc::new(layered), Config::default())
        .run(&FormatVolume::new(volume(&sim)))
        .unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);
}

/// Does not list volumes.
struct EmptyVolumeList;

impl Layer for EmptyVolumeList {
    fn volumes(&self, _node: &dyn Os) -> OsResult<Vec<os::U16String>> {
        Ok(Vec::new())
    }
}

#[test]
fn a_mount_point_is_stale_only_if_its_volume_cannot_be_opened() {
    let sim = ntfs()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\var\lib\kubelet\plugins\w")
        .build();
    let (volume, before) = (volume(&sim), sim.snapshot());
    let node = layered(&sim, EmptyVolumeList);
    let target = path(r"\plugins\w");
    refused(
        &node,
        &MountVolume {
            volume,
            target: target.clone(),
        },
        FailedPrecondition,
    );
    assert_eq!(sim.snapshot(), before);
    // Whether it exists is not known.
    let unknown = Fault::each(
        |call| {
            call.primitive == "open"
                && call.object.contains("Volume{")
                && !call.object.ends_with('\\')
        },
        When::Before,
        FaultAction::Fail(UNSEEN),
    );
    sim.unplug_disk(2).unwrap();
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), unknown)),
        Config::default(),
    );
    let before = sim.snapshot();
    assert_eq!(
        node.run(&MountVolume { volume, target })
            .unwrap_err()
            .code(),
        Some(UNSEEN)
    );
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_rescan_that_has_scanned_no_port_is_an_error() {
    for primitive in ["device_interfaces", "reenumerate"] {
        let sim = os_sim::node().build();
        sim.attach_disk(&os_sim::DiskDescription::new(GIB), false)
            .unwrap();
        let error = refused(&probed(&sim, failing(primitive, UNSEEN)), &Rescan, Internal);
        has_code(&error, UNSEEN);
    }
}

#[test]
fn the_serial_number_of_the_machine_has_a_second_way() {
    let sim = os_sim::node().bios_serial("VMware-1").build();
    let node = unseen(&sim, &["firmware_table"]);
    assert_eq!(
        node.run(&GetBiosSerialNumber),
        node_on(&sim).run(&GetBiosSerialNumber)
    );
    assert_counted(&node, "bios_serial_number", UNSEEN);
}

#[test]
fn nothing_is_counted_while_windows_answers_as_expected() {
    let sim = os_sim::node().dir(MOUNT).disk(GIB).build();
    let node = node_on(&sim);
    node.run(&PARTITION).unwrap();
    let volume = volume_on(&node, 1);
    node.run(&FormatVolume::new(volume)).unwrap();
    node.run(&mount(volume, MOUNT)).unwrap();
    node.run(&GetVolumeStats { volume }).unwrap();
    node.run(&ListDiskIds).unwrap();
    sim.unplug_disk(1);
    refused(&node, &GetVolumeStats { volume }, NotFound);
    assert_eq!(node.fallbacks(), []);
}
