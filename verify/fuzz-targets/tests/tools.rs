//! Compares csi-proxy with independent tools: sg3-utils, dmidecode and mkfs write or decode the
//! same bytes.
//!
//! A test whose tool is missing is skipped.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use faults::{Probed, Trace};
use fuzz_targets::{CorruptingOs, Corruption};
use os::abi::{
    DriveLayout, PartitionEntry, PartitionStyle, StorageDescriptorHead, StorageDeviceIdDescriptor,
    StorageIdentifier,
};
use os_sim::smbios::{raw, structure, table};
use storage_ops::{
    Config, DiskNumber, FormatVolume, GetBiosSerialNumber, IsVolumeFormatted, ListDiskIds, Node,
    PartitionDisk, VolumeId,
};
use tempfile::TempDir;
use zerocopy::{FromZeros, IntoBytes};

const IN_WMI: &str = "the serial number in WMI";

/// Finds the program `name`, or prints that `test` is skipped.
fn tool(name: &str, test: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        println!("skipped: {test}: {name} is not installed");
    }
    found
}

/// Runs a program, which must succeed, and returns its output.
fn output(program: &Path, arguments: &[impl AsRef<OsStr>]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("a program that starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", program.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Builds a node with one raw disk and one corrupted answer.
fn corrupted_node(corruption: Corruption, bytes: &[u8]) -> Node {
    let sim = os_sim::node().bios_serial(IN_WMI).disk(1 << 30).build();
    Node::new(
        Arc::new(CorruptingOs::new(sim.process(), corruption, bytes)),
        Config::default(),
    )
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A designator of vital product data page 83: code set, type, association and bytes.
type Designator<'a> = (u8, u8, u8, &'a [u8]);

const BINARY: u8 = 1;
const ASCII: u8 = 2;

/// Returns the page as a SCSI device sends it, in hexadecimal.
fn vpd_page(designators: &[Designator<'_>]) -> String {
    let mut page = Vec::new();
    for (code_set, kind, association, bytes) in designators {
        page.extend([
            *code_set,
            association << 4 | kind,
            0,
            u8::try_from(bytes.len()).expect("short"),
        ]);
        page.extend_from_slice(bytes);
    }
    let length = u16::try_from(page.len()).expect("short").to_be_bytes();
    let page = [&[0, 0x83][..], &length, &page].concat();
    page.iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the page as Windows returns it.
fn descriptor(designators: &[Designator<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (index, (code_set, kind, association, bytes)) in designators.iter().enumerate() {
        let length = (size_of::<StorageIdentifier>() + bytes.len()).next_multiple_of(4);
        let end = body.len() + length;
        let last = index + 1 == designators.len();
        let head = StorageIdentifier {
            code_set: (*code_set).into(),
            identifier_type: (*kind).into(),
            identifier_size: u16::try_from(bytes.len()).expect("short"),
            next_offset: if last {
                0
            } else {
                u16::try_from(length).expect("short")
            },
            association: (*association).into(),
        };
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.resize(end, 0);
    }
    let size = size_of::<StorageDeviceIdDescriptor>() + body.len();
    let head = StorageDeviceIdDescriptor {
        head: StorageDescriptorHead {
            version: 16,
            size: u32::try_from(size).expect("short"),
        },
        number_of_identifiers: u32::try_from(designators.len()).expect("few"),
    };
    [head.as_bytes(), &body].concat()
}

#[test]
fn page_83_is_read_as_sg3_utils_reads_it() {
    let Some(sg_inq) = tool("sg_inq", "page_83_is_read_as_sg3_utils_reads_it") else {
        return;
    };
    let naa_6 = b"\x60\x00\xc2\x9a\x98\xd0\x5e\x38\x4a\x43\xf0\xef\x18\x9a\xaf\x5a";
    let naa_5 = b"\x50\x01\x40\x51\x23\x45\x67\x89";
    let (google, eui) = (
        b"Google  pvc-5f0e6c7a-0b8d-4d2e-9f3c-1a2b3c4d5e6f",
        b"\x00\x17\x38\x00\x4c\xba\x03\x17",
    );
    let port = b"\x50\x01\x40\x5f\xff\xff\xff\xff";
    let pages: [&[Designator<'_>]; 6] = [
        &[(ASCII, 1, 0, google)],
        &[(BINARY, 3, 0, naa_6)],
        &[(BINARY, 3, 0, naa_5), (ASCII, 1, 0, google)],
        &[(BINARY, 2, 0, eui)],
        // The first identifier is the port's, not the device's.
        &[(BINARY, 3, 1, port), (BINARY, 3, 0, naa_6)],
        &[
            (BINARY, 4, 1, &[0, 0, 0, 1]),
            (BINARY, 3, 2, port),
            (ASCII, 1, 0, b"MSFT    Virtual"),
        ],
    ];
    let folder = folder();
    for page in pages {
        let file = folder.path().join("page");
        fs::write(&file, vpd_page(page)).expect("a file");
        let inhex = format!("--inhex={}", file.display());
        let text = output(&sg_inq, &[&inhex, "--page=di", "--export"]);
        // SCSI_IDENT_LUN_NAA_REGEXT=6000...; sg_inq replaces blanks by underscores.
        let theirs = text
            .lines()
            .find_map(|line| line.strip_prefix("SCSI_IDENT_LUN_")?.split_once('='));
        let (_, theirs) = theirs.unwrap_or_else(|| panic!("no identifier of the device in {text}"));
        let ids = corrupted_node(Corruption::Page83, &descriptor(page))
            .run(&ListDiskIds)
            .expect("disks are listed");
        let ours = ids[&DiskNumber(1)]
            .page83
            .split_whitespace()
            .collect::<Vec<_>>()
            .join("_");
        assert_eq!(ours, theirs, "{text}");
    }
}

/// Returns a dump as dmidecode writes it: an entry point of SMBIOS 3, and the table at byte 32.
fn dump(raw: &[u8]) -> Vec<u8> {
    let table = &raw[8..];
    let size = u32::try_from(table.len()).expect("short").to_le_bytes();
    let mut entry = [
        &b"_SM3_\0\x18\x03\x02\0\x01\0"[..],
        &size,
        &32_u64.to_le_bytes(),
    ]
    .concat();
    entry[5] = entry
        .iter()
        .fold(0_u8, |sum, byte| sum.wrapping_add(*byte))
        .wrapping_neg();
    entry.resize(32, 0);
    [&entry, table].concat()
}

#[test]
fn the_serial_number_is_the_one_dmidecode_reads() {
    let Some(dmidecode) = tool("dmidecode", "the_serial_number_is_the_one_dmidecode_reads") else {
        return;
    };
    let system = |fields: &[u8], strings: &[&str]| structure(1, fields, strings);
    let end = || structure(127, &[], &[]);
    let tables = [
        table(Some(
            "VMware-56 4d 4e 0e 5d 0b 9a 5a-9f 5e 7c 1d 2a 3b 4c 5d",
        )),
        table(Some("0000-0012-3456-7890-1234-5678-90")),
        table(Some("x")),
        table(Some("")),
        table(None),
        raw(&[structure(0, &[1], &["Simulated"]), structure(127, &[], &[])]),
        raw(&[
            system(&[1, 2, 0, 3], &["Maker", "Product", "Serial  with blanks "]),
            end(),
        ]),
        raw(&[system(&[0, 0, 0, 1], &["Alone"]), end()]),
        raw(&[
            structure(3, &[1, 1], &["Not this"]),
            structure(2, &[], &[]),
            system(&[2, 2, 2, 1], &["A", "B"]),
            end(),
        ]),
        raw(&[system(&[1, 2, 0, 9], &["No ninth"]), end()]),
    ];
    let folder = folder();
    for (number, table) in tables.iter().enumerate() {
        let file = folder.path().join("dump");
        fs::write(&file, dump(table)).expect("a file");
        let text = output(
            &dmidecode,
            &[
                "--from-dump".as_ref(),
                file.as_os_str(),
                "-s".as_ref(),
                "system-serial-number".as_ref(),
            ],
        );
        let line = text
            .lines()
            .find(|line| !line.starts_with('#'))
            .unwrap_or_default();
        let theirs = Some(line).filter(|line| !["", "Not Specified", "<BAD INDEX>"].contains(line));
        let ours = corrupted_node(Corruption::Smbios, table)
            .run(&GetBiosSerialNumber)
            .expect("a serial number");
        assert_eq!(
            Some(ours.as_str()).filter(|ours| *ours != IN_WMI),
            theirs,
            "table {number}: {text}"
        );
    }
}

/// Returns whether a volume on which `program` has created a file system is reported as
/// unformatted.
fn taken_for_raw(program: &Path, arguments: &[&str]) -> bool {
    let folder = folder();
    let image = folder.path().join("image");
    fs::File::create(&image)
        .and_then(|file| file.set_len(512 << 20))
        .expect("a sparse file");
    output(
        program,
        &[arguments, &[image.to_str().expect("a path")]].concat(),
    );
    let mut content = vec![0; 1 << 17];
    fs::File::open(&image)
        .and_then(|mut file| file.read_exact(&mut content))
        .expect("the image");
    let sim = os_sim::node().disk(1 << 30).partitioned().build();
    let volume = VolumeId::parse(&sim.volume_on(1).expect("a volume").name()).expect("its name");
    let node = Node::new(
        Arc::new(CorruptingOs::new(
            sim.process(),
            Corruption::Content,
            &content,
        )),
        Config::default(),
    );
    let unformatted = node
        .run(&IsVolumeFormatted { volume })
        .is_ok_and(|formatted| !formatted);
    assert_eq!(
        node.run(&FormatVolume::new(volume)).is_ok(),
        unformatted,
        "the operations disagree"
    );
    unformatted
}

macro_rules! file_systems {
    ($($test:ident: $program:literal $arguments:expr;)+) => {
        $(#[test]
        fn $test() {
            let Some(program) = tool($program, stringify!($test)) else { return };
            assert!(!taken_for_raw(&program, &$arguments), "a volume with data would be formatted");
        })+
    };
}

file_systems! {
    an_ext4_volume_is_not_taken_for_raw: "mkfs.ext4" ["-q", "-F"];
    a_fat_volume_is_not_taken_for_raw: "mkfs.vfat" [];
    an_xfs_volume_is_not_taken_for_raw: "mkfs.xfs" ["-q", "-f"];
    a_btrfs_volume_is_not_taken_for_raw: "mkfs.btrfs" ["-q", "-f"];
    an_ntfs_volume_is_not_taken_for_raw: "mkfs.ntfs" ["-q", "-F", "-f"];
    swap_space_is_not_taken_for_raw: "mkswap" [];
}

/// Returns whether PartitionDisk creates a partition on a disk with a GPT that has partitions of
/// these types, as they are on the disk.
fn is_partitioned_anew(types: &[[u8; 16]]) -> bool {
    let sim = os_sim::node().disk(1 << 30).build();
    let trace = Arc::new(Trace::counting());
    let watched = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
    let count = u32::try_from(types.len()).expect("few");
    let head = DriveLayout {
        style: PartitionStyle::GPT.0,
        partition_count: count,
        ..DriveLayout::new_zeroed()
    };
    let mut layout = head.as_bytes().to_vec();
    for (number, partition_type) in (1..).zip(types) {
        let (offset, length) = (number << 24, 1 << 20);
        let entry = PartitionEntry {
            style: PartitionStyle::GPT.0,
            offset,
            length,
            ..PartitionEntry::new_zeroed()
        };
        layout.extend(
            PartitionEntry {
                partition_type: *partition_type,
                ..entry
            }
            .as_bytes(),
        );
    }
    let node = Node::new(
        Arc::new(CorruptingOs::new(watched, Corruption::DriveLayout, &layout)),
        Config::default(),
    );
    let _ = node.run(&PartitionDisk {
        disk: DiskNumber(1),
    });
    trace.counts().of("wmi call MSFT_Disk.CreatePartition") > 0
}

#[test]
fn a_gpt_is_left_as_it_is_if_it_has_a_partition_besides_the_reserved_one() {
    // The bytes of the types as in the UEFI specification and as sgdisk writes them.
    const RESERVED: [u8; 16] = *b"\x16\xe3\xc9\xe3\x5c\x0b\xb8\x4d\x81\x7d\xf9\x2d\xf0\x02\x15\xae";
    const SYSTEM: [u8; 16] = *b"\x28\x73\x2a\xc1\x1f\xf8\xd2\x11\xba\x4b\x00\xa0\xc9\x3e\xc9\x3b";
    const LINUX: [u8; 16] = *b"\xaf\x3d\xc6\x0f\x83\x84\x72\x47\x8e\x79\x3d\x69\xd8\x47\x7d\xe4";
    assert!(is_partitioned_anew(&[]) && is_partitioned_anew(&[RESERVED]));
    assert!(!is_partitioned_anew(&[RESERVED, LINUX]) && !is_partitioned_anew(&[SYSTEM]));
}
