//! Tests of answers of disks and volumes that differ between versions of Windows and drivers, or
//! that no document names.

use faults::{Fault, FaultAction, Layer, Outcome, When};
use os::abi::{ControlCode, DiskAttributes, DriveLayout, PartitionEntry, PartitionStyle};
use os::{FsInfo, Handle, NtPath, Open, Os, OsError, OsResult};
use os_sim::{DiskDescription, Sim};
use storage_ops::{
    Error,
    ErrorKind::{FailedPrecondition, NotFound},
    FormatVolume, GetDiskNumberByName, GetDiskState, GetDiskStats, GetVolumeStats,
    IsVolumeFormatted, ListDiskIds, Rescan,
};

use zerocopy::{FromZeros, IntoBytes};

use crate::setup::{
    GIB, NoProbe, ONE, PARTITION, both, failing, failing_once, has_code, layered, node_on, ntfs,
    partitioned_disk, probed, raw_disk, refused, refused_saying, set_online, traced, volume_on,
    volumes_of,
};

const LAYOUT: &str = "control DISK_GET_DRIVE_LAYOUT_EX";
const SET: &str = "control DISK_SET_DISK_ATTRIBUTES";
const PROPERTY: &str = "control STORAGE_QUERY_PROPERTY";
const RECOGNITION: &str = "control FSCTL_QUERY_FILE_SYSTEM_RECOGNITION";

#[test]
fn a_blank_volume_is_formatted_whatever_code_says_that_no_file_system_is_recognized() {
    for code in [1, 50, 87, 1005, 4711].map(OsError) {
        let sim = partitioned_disk().build();
        let node = probed(&sim, failing(RECOGNITION, code));
        let volume = volume_on(&node, 1);
        assert_eq!(
            node.run(&IsVolumeFormatted { volume }),
            Ok(false),
            "{code:?}"
        );
        node.run(&FormatVolume::new(volume)).unwrap();
        assert_eq!(sim.volume_on(1).unwrap().formats, 1);
    }
}

/// Answers the question whether Windows recognizes a file system with success and this name.
struct Recognizing(&'static [u8]);

impl Layer for Recognizing {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        if code != ControlCode::FSCTL_QUERY_FILE_SYSTEM_RECOGNITION {
            return handle.control(code, input, output);
        }
        output[..self.0.len()].copy_from_slice(self.0);
        Ok(self.0.len())
    }
}

#[test]
fn a_volume_that_is_recognized_without_a_name_is_searched_for_signatures() {
    for (file_system, answer, expected) in [
        (None, &[0; 9][..], Ok(false)),
        (None, b"", Ok(false)),
        (None, b"FutureFS\0", Err(())),
        (Some("ext4"), &[0; 9], Err(())),
        (Some("FutureFS"), &[0; 9], Err(())),
    ] {
        let disk = partitioned_disk();
        let sim = match file_system {
            None => disk.build(),
            Some(name) => disk.formatted(name).unmountable().build(),
        };
        let volume = volume_on(&node_on(&sim), 1);
        let node = layered(&sim, Recognizing(answer));
        let is_formatted = node.run(&IsVolumeFormatted { volume });
        assert_eq!(
            is_formatted.map_err(drop),
            expected,
            "{file_system:?} {answer:?}"
        );
        let formatted = node.run(&FormatVolume::new(volume)).map_err(drop);
        assert_eq!(formatted, expected.map(drop), "{file_system:?} {answer:?}");
        assert_eq!(
            sim.volume_on(1).unwrap().formats,
            u32::from(expected.is_ok())
        );
    }
}

/// Does not name file systems. Opening the root directory of a volume fails with a code, if there
/// is one.
struct Nameless {
    code: OsError,
    root: Option<OsError>,
}

impl Layer for Nameless {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let text = path.to_string();
        match self.root {
            Some(code) if text.contains("Volume{") && text.ends_with('\\') => Err(code),
            _ => node.open(path, how),
        }
    }

    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        if class == FsInfo::Attribute {
            Err(self.code)
        } else {
            handle.query_fs(class, output)
        }
    }
}

fn run(sim: &Sim, code: OsError, root: Option<OsError>) -> Result<bool, Error> {
    let volume = volume_on(&node_on(sim), 1);
    let node = layered(sim, Nameless { code, root });
    node.run(&IsVolumeFormatted { volume })
}

#[test]
fn a_volume_without_a_root_directory_is_raw_if_the_name_of_its_file_system_cannot_be_asked_for() {
    let blank = partitioned_disk().build();
    let ext4 = partitioned_disk().formatted("ext4").unmountable().build();
    let ntfs = ntfs().build();
    for code in [1, 50, 87].map(OsError) {
        assert_eq!(run(&blank, code, None), Ok(false), "{code:?}");
        run(&ext4, code, None).unwrap_err();
        // The storage provider knows the file system.
        assert_eq!(run(&ntfs, code, None), Ok(true), "{code:?}");
        for root in [2, 5, 21, 1117, 4711, 0x8031_0000].map(OsError) {
            assert_eq!(
                run(&blank, code, Some(root)).unwrap_err().code(),
                Some(code),
                "{root:?}"
            );
        }
    }
    // These codes say something about the volume.
    for code in [5, 21, 31, 4711].map(OsError) {
        assert_eq!(run(&blank, code, None).unwrap_err().code(), Some(code));
    }
}

#[test]
fn a_volume_that_cannot_be_read_is_not_formatted() {
    for primitive in [RECOGNITION, "read", "query_fs Attribute"] {
        for code in [
            5,
            21,
            23,
            30,
            31,
            32,
            55,
            121,
            433,
            1117,
            1167,
            1392,
            1393,
            0x8031_0000,
        ]
        .map(OsError)
        {
            let sim = partitioned_disk().build();
            let volume = volume_on(&node_on(&sim), 1);
            let node = probed(&sim, failing(primitive, code));
            let error = node.run(&IsVolumeFormatted { volume }).unwrap_err();
            assert_eq!(error.code(), Some(code), "{primitive}");
            node.run(&FormatVolume::new(volume)).unwrap_err();
            assert_eq!(sim.volume_on(1).unwrap().formats, 0);
        }
    }
}

#[test]
fn a_file_system_that_identifies_itself_is_found_without_an_answer_of_windows() {
    for code in [1, 87, 1005].map(OsError) {
        let sim = partitioned_disk()
            .formatted("FutureFS")
            .unmountable()
            .build();
        let volume = volume_on(&node_on(&sim), 1);
        let node = probed(&sim, failing(RECOGNITION, code));
        refused(&node, &IsVolumeFormatted { volume }, FailedPrecondition);
        refused(&node, &FormatVolume::new(volume), FailedPrecondition);
        assert_eq!(sim.volume_on(1).unwrap().formats, 0);
    }
}

#[test]
fn a_raw_disk_with_a_foreign_file_system_is_not_initialized() {
    // The unit test of the signatures has all of them.
    for (name, sector, size) in [
        ("ext4", 512, GIB),
        ("GPT of 4096-byte sectors", 512, GIB),
        ("Linux RAID", 512, GIB),
        ("backup GPT of 512-byte sectors", 512, GIB),
        ("Linux RAID 0.90", 512, GIB),
        ("ZFS without its first labels", 512, GIB),
        ("backup GPT of 512-byte sectors", 512, GIB + 1536),
        ("backup GPT of 4096-byte sectors", 512, GIB + 1536),
        ("backup GPT of 4096-byte sectors", 4096, GIB + 4096),
        ("Linux RAID 1.0", 512, GIB + 512),
        ("Linux RAID 0.90", 4096, GIB + 12 * 4096),
    ] {
        for offline in [false, true] {
            let disk = os_sim::node()
                .disk(size)
                .sector_size(sector)
                .formatted(name);
            let sim = if offline { disk.offline() } else { disk }.build();
            let error = refused(&node_on(&sim), &PARTITION, FailedPrecondition);
            assert!(
                error.to_string().contains("does not overwrite"),
                "{name}: {error}"
            );
            assert_eq!(sim.disk(1).unwrap().layout, "raw", "{name}");
        }
    }
}

/// Fails reads beyond the first gibibyte.
struct Ends(OsError);

impl Layer for Ends {
    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        if offset >= GIB {
            Err(self.0)
        } else {
            handle.read(offset, output)
        }
    }
}

#[test]
fn a_disk_whose_last_sectors_cannot_be_read_is_not_initialized() {
    for code in [5, 27, 38, 87, 1117, 1167].map(OsError) {
        let sim = os_sim::node().disk(2 * GIB).build();
        let node = layered(&sim, Ends(code));
        let error = node.run(&PARTITION).unwrap_err();
        assert_eq!(
            (error.code(), sim.disk(1).unwrap().layout),
            (Some(code), "raw")
        );
    }
}

#[test]
fn a_raw_disk_whose_size_only_the_provider_states_is_searched_and_initialized() {
    let run = |sim: &Sim| {
        let [length, geometry] = [
            "control DISK_GET_LENGTH_INFO",
            "control DISK_GET_DRIVE_GEOMETRY_EX",
        ]
        .map(|primitive| failing(primitive, OsError::NOT_SUPPORTED));
        probed(sim, both(length, geometry)).run(&PARTITION)
    };
    let sim = raw_disk().build();
    run(&sim).unwrap();
    assert_eq!(sim.disk(1).unwrap().layout, "gpt");
    let sim = raw_disk()
        .formatted("backup GPT of 512-byte sectors")
        .build();
    run(&sim).unwrap_err();
    assert_eq!(sim.disk(1).unwrap().layout, "raw");
}

#[test]
fn a_raw_disk_that_cannot_be_read_is_not_initialized() {
    let sim = raw_disk().build();
    let error = refused(
        &probed(&sim, failing("read", OsError::IO_DEVICE)),
        &PARTITION,
        FailedPrecondition,
    );
    has_code(&error, OsError::IO_DEVICE);
    assert_eq!(sim.disk(1).unwrap().layout, "raw");
}

/// Fails reading the partition table of disk 1 while it is offline.
fn unreadable_while_offline(sim: &Sim) -> Fault {
    let seen = sim.clone();
    Fault::each(
        move |call| call.primitive == LAYOUT && seen.disk(1).is_some_and(|disk| disk.offline),
        When::Before,
        FaultAction::Fail(OsError::NOT_READY),
    )
}

#[test]
fn a_disk_whose_partition_table_cannot_be_read_while_it_is_offline_is_partitioned() {
    let raw = raw_disk().offline().build();
    let node = probed(&raw, unreadable_while_offline(&raw));
    node.run(&PARTITION).unwrap();
    assert!(!raw.disk(1).unwrap().offline);
    volume_on(&node, 1);
    // The storage provider reports the partition, so nothing is initialized.
    let partitioned = ntfs().offline().build();
    let node = probed(&partitioned, unreadable_while_offline(&partitioned));
    node.run(&PARTITION).unwrap();
    volume_on(&node, 1);
    assert_eq!(
        partitioned.volume_on(1).unwrap().file_system.as_deref(),
        Some("NTFS")
    );
    // The disk may be a second path to a partitioned one.
    let second_path = raw_disk()
        .page83_ascii("lun")
        .offline()
        .disk(GIB)
        .page83_ascii("lun")
        .build();
    let node = probed(&second_path, unreadable_while_offline(&second_path));
    refused(&node, &PARTITION, FailedPrecondition);
    assert!(second_path.disk(1).unwrap().offline);
}

#[test]
fn a_single_error_of_an_offline_disk_does_not_bring_it_online() {
    let sim = ntfs().offline_because(0).build();
    probed(&sim, failing_once(LAYOUT, OsError::IO_DEVICE))
        .run(&PARTITION)
        .unwrap();
    assert!(sim.disk(1).unwrap().offline);
}

#[test]
fn a_storage_port_is_scanned_again_after_an_error() {
    let sim = os_sim::node().build();
    sim.attach_disk(&DiskDescription::new(GIB), false).unwrap();
    refused(&node_on(&sim), &GetDiskStats { disk: ONE }, NotFound);
    probed(&sim, failing_once("reenumerate", OsError::GEN_FAILURE))
        .run(&Rescan)
        .unwrap();
    assert_eq!(node_on(&sim).run(&GetDiskStats { disk: ONE }), Ok(GIB));
}

#[test]
fn a_name_that_is_not_found_while_a_disk_is_removed_is_reported_with_the_code_of_the_removal() {
    let sim = raw_disk().page83_ascii("Google  pvc-x").build();
    let node = probed(&sim, failing(PROPERTY, OsError::DEVICE_NOT_CONNECTED));
    let error = refused(
        &node,
        &GetDiskNumberByName {
            name: "pvc-x".into(),
        },
        NotFound,
    );
    has_code(&error, OsError::DEVICE_NOT_CONNECTED);
}

#[test]
fn a_device_that_is_not_ready_is_not_reported_as_not_found() {
    let sim = partitioned_disk().build();
    let volume = volume_on(&node_on(&sim), 1);
    let node = probed(&sim, failing("open", OsError::NOT_READY));
    assert_eq!(node.run(&GetDiskState { disk: ONE }), Ok(true));
    for error in [
        node.run(&IsVolumeFormatted { volume }).unwrap_err(),
        node.run(&GetVolumeStats { volume }).unwrap_err(),
    ] {
        assert_eq!(
            (error.kind(), error.code()),
            (FailedPrecondition, Some(OsError::NOT_READY)),
            "{error}"
        );
    }
}

#[test]
fn the_size_of_a_disk_that_grew_is_returned_without_a_rescan() {
    let sim = partitioned_disk().build();
    let (node, trace) = traced(&sim, NoProbe);
    assert_eq!(node.run(&GetDiskStats { disk: ONE }).unwrap(), GIB);
    sim.grow_disk(1, 2 * GIB);
    assert_eq!(node.run(&GetDiskStats { disk: ONE }).unwrap(), 2 * GIB);
    assert_eq!(trace.counts().of("control DISK_UPDATE_PROPERTIES"), 0);
    // Without the query of the length the size is known only after the update.
    sim.grow_disk(1, 3 * GIB);
    let node = probed(
        &sim,
        failing("control DISK_GET_LENGTH_INFO", OsError::NOT_SUPPORTED),
    );
    assert_eq!(node.run(&GetDiskStats { disk: ONE }).unwrap(), 3 * GIB);
}

#[test]
fn a_partition_table_that_does_not_fit_is_read_again_whatever_code_says_so() {
    for code in [24, 122, 234].map(OsError) {
        let sim = partitioned_disk().build();
        let node = probed(&sim, failing_once(LAYOUT, code));
        assert_eq!(node.run(&volumes_of(1)).unwrap().len(), 1, "{code:?}");
    }
}

#[test]
fn the_attributes_of_a_disk_are_set_with_the_other_version_if_one_is_refused() {
    let sim = raw_disk().offline().build();
    let (node, trace) = traced(&sim, failing_once(SET, OsError::INVALID_PARAMETER));
    node.run(&set_online(1, true)).unwrap();
    assert!(!sim.disk(1).unwrap().offline);
    assert_eq!((trace.counts().of(SET), trace.counts().wmi), (2, 0));
}

#[test]
fn a_disk_is_listed_with_the_identifier_that_can_be_read() {
    let sim = || {
        raw_disk()
            .page83_ascii("Google  pvc-x")
            .serial("vol0abc")
            .build()
    };
    let node = sim();
    // The queries for disk 0 come first, and for each disk that of page 83 first.
    for (call, page83, serial) in [(2, "", "vol0abc"), (3, "Google  pvc-x", "")] {
        let failing = Fault::at(call, When::Before, FaultAction::Fail(OsError::IO_DEVICE));
        let ids = probed(&node, failing.among(|call| call.primitive == PROPERTY))
            .run(&ListDiskIds)
            .unwrap();
        assert_eq!(
            (ids[&ONE].page83.as_str(), ids[&ONE].serial.as_str()),
            (page83, serial)
        );
    }
    let ids = probed(&sim(), failing(PROPERTY, OsError::IO_DEVICE))
        .run(&ListDiskIds)
        .unwrap();
    assert!(ids.is_empty(), "{ids:?}");
}

#[test]
fn the_volumes_of_a_disk_that_cannot_be_opened_for_reading_are_listed() {
    let sim = partitioned_disk().build();
    let node = probed(&sim, failing_once("open", OsError::ACCESS_DENIED));
    assert_eq!(node.run(&volumes_of(1)).unwrap().len(), 1);
}

#[test]
fn the_volumes_of_a_disk_are_flushed_before_it_goes_offline() {
    // A disk that fails for good is taken offline nevertheless: it could not be detached otherwise.
    for failure in [None, Some(OsError::IO_DEVICE)] {
        let sim = ntfs().build();
        let offline = set_online(1, false);
        let (node, trace) = match failure {
            None => traced(&sim, NoProbe),
            Some(code) => traced(&sim, failing("flush", code)),
        };
        node.run(&offline).unwrap();
        let calls: Vec<_> = trace
            .take()
            .into_iter()
            .map(|record| record.call.primitive)
            .collect();
        let position = |primitive: &str| {
            calls
                .iter()
                .position(|call| *call == *primitive)
                .expect("the call was made")
        };
        assert!(position("flush") < position(SET), "{calls:?}");
        assert!(sim.disk(1).unwrap().offline);
    }
    let sim = ntfs().build();
    let (node, trace) = traced(&sim, failing_once("flush", OsError::IO_DEVICE));
    node.run(&set_online(1, false)).unwrap();
    assert!(
        trace
            .take()
            .iter()
            .any(|record| record.call.primitive == "flush" && record.outcome == Outcome::Done),
        "the flush is repeated after an error"
    );
}

/// A disk with this partition style, as the control codes number them, whose table Windows does not
/// read while the disk is offline, and then reports as raw.
struct NotReadWhileOffline(u8);

impl Layer for NotReadWhileOffline {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        const RAW: u8 = 2;
        let length = handle.control(code, input, output)?;
        if code == ControlCode::DISK_GET_DRIVE_LAYOUT_EX {
            let mut attributes = [0; 16];
            handle.control(ControlCode::DISK_GET_DISK_ATTRIBUTES, &[], &mut attributes)?;
            let is_offline = u64::from(attributes[8]) & DiskAttributes::OFFLINE != 0;
            output[0] = if is_offline { RAW } else { self.0 };
            if self.0 == MBR {
                // Its signature.
                output[8] = 1;
            }
        }
        Ok(length)
    }

    /// The header of the table is in the second sector.
    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        let length = handle.read(offset, output)?;
        if offset == 0 && self.0 == GPT {
            output[512..520].copy_from_slice(b"EFI PART");
        }
        Ok(length)
    }
}

const MBR: u8 = 0;
const GPT: u8 = 1;

#[test]
fn a_table_that_windows_reads_only_when_the_disk_is_online_is_found() {
    let sim = partitioned_disk().offline().build();
    layered(&sim, NotReadWhileOffline(GPT))
        .run(&PARTITION)
        .unwrap();
    assert_eq!(sim.disk(1).unwrap().partitions.len(), 2);
    let sim = raw_disk().offline().build();
    refused_saying(
        &layered(&sim, NotReadWhileOffline(MBR)),
        &PARTITION,
        FailedPrecondition,
        "MBR partition table without partitions",
    );
    assert_eq!(sim.disk(1).unwrap().layout, "raw");
}

#[test]
fn the_attributes_of_a_disk_are_set_although_its_properties_cannot_be_updated() {
    for code in [5, 21, 31, 87, 4711].map(OsError) {
        let sim = ntfs().offline().read_only().build();
        let (node, trace) = traced(&sim, failing("control DISK_UPDATE_PROPERTIES", code));
        node.run(&set_online(1, true)).unwrap();
        let disk = sim.disk(1).unwrap();
        assert!(!disk.offline && !disk.read_only);
        assert_eq!(trace.counts().wmi, 0, "{code:?}: no fallback");
    }
    // A disk that is removed meanwhile is not found.
    let sim = raw_disk().offline().build();
    let node = probed(
        &sim,
        failing("control DISK_UPDATE_PROPERTIES", OsError::NO_SUCH_DEVICE),
    );
    assert_eq!(node.run(&set_online(1, true)).unwrap_err().kind(), NotFound);
}

/// A disk without a partition table that answers as one with an MBR without partitions.
struct BlankMbr {
    signature: u32,
    /// A byte of its first sector.
    byte: u8,
}

impl Layer for BlankMbr {
    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        let filled = handle.control(code, input, output)?;
        if code == ControlCode::DISK_GET_DRIVE_LAYOUT_EX
            && output[..4] == PartitionStyle::RAW.0.to_le_bytes()
        {
            let empty = PartitionEntry {
                style: PartitionStyle::MBR.0,
                ..PartitionEntry::new_zeroed()
            };
            let head = DriveLayout {
                style: PartitionStyle::MBR.0,
                partition_count: 4,
                ..DriveLayout::new_zeroed()
            };
            let answer = [head.as_bytes(), [empty; 4].as_bytes()].concat();
            output[..answer.len()].copy_from_slice(&answer);
            output[8..12].copy_from_slice(&self.signature.to_le_bytes());
            return Ok(answer.len());
        }
        Ok(filled)
    }

    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        let read = handle.read(offset, output)?;
        if offset == 0 {
            output[100] |= self.byte;
        }
        Ok(read)
    }
}

#[test]
fn an_mbr_without_partitions_and_signature_on_a_blank_disk_is_no_partition_table() {
    for disk in [raw_disk(), raw_disk().offline().read_only()] {
        let sim = disk.build();
        let node = layered(
            &sim,
            BlankMbr {
                signature: 0,
                byte: 0,
            },
        );
        node.run(&PARTITION).unwrap();
        node.run(&FormatVolume::new(volume_on(&node, 1))).unwrap();
    }
    for (what, disk, layer) in [
        (
            "a signature",
            raw_disk(),
            BlankMbr {
                signature: 1,
                byte: 0,
            },
        ),
        (
            "content",
            raw_disk(),
            BlankMbr {
                signature: 0,
                byte: 1,
            },
        ),
        (
            "a file system",
            raw_disk().formatted("ext4"),
            BlankMbr {
                signature: 0,
                byte: 0,
            },
        ),
        (
            "a file system farther on",
            raw_disk().formatted("btrfs"),
            BlankMbr {
                signature: 0,
                byte: 0,
            },
        ),
    ] {
        let sim = disk.build();
        let before = sim.snapshot();
        refused(&layered(&sim, layer), &PARTITION, FailedPrecondition);
        assert_eq!(sim.snapshot(), before, "{what}");
    }
}

#[test]
fn an_mbr_without_signature_is_kept_if_the_provider_knows_of_it() {
    /// A provider that reports an MBR.
    struct Mbr;
    impl Layer for Mbr {
        fn control(
            &self,
            handle: &dyn Handle,
            code: ControlCode,
            input: &[u8],
            output: &mut [u8],
        ) -> OsResult<usize> {
            BlankMbr {
                signature: 0,
                byte: 0,
            }
            .control(handle, code, input, output)
        }

        fn change_instances(&self, _: &str, found: &mut Vec<os::Instance>) {
            for disk in found
                .iter_mut()
                .filter(|disk| disk.u32("PartitionStyle").is_some())
            {
                disk.properties
                    .insert("PartitionStyle".into(), os::Value::U32(1));
            }
        }
    }

    let sim = raw_disk().build();
    let before = sim.snapshot();
    let node = layered(&sim, Mbr);
    refused(&node, &PARTITION, FailedPrecondition);
    assert_eq!(sim.snapshot(), before);
}
