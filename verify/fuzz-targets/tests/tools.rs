//! Bytes that nobody here made, and readings that nobody here wrote: sg3-utils, dmidecode, sfdisk,
//! sgdisk, mkfs.
//!
//! Where a tool is missing its tests say so and are counted as skipped.

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
    DriveLayout, MSFT_RESERVED, PartitionEntry, PartitionStyle, StorageDescriptorHead, StorageDeviceIdDescriptor,
    StorageIdentifier,
};
use os_sim::smbios::{raw, structure, table, table_without_system};
use storage_ops::{
    Config, DiskNumber, FormatVolume, GetBiosSerialNumber, IsVolumeFormatted, Kind, ListDiskIds, Node, PartitionDisk,
    VolumeId,
};
use tempfile::TempDir;
use zerocopy::{FromZeros, IntoBytes};

const IN_WMI: &str = "the serial number in WMI";
const SECTOR: usize = 512;

/// The program `name`, or the line that says why `test` is skipped.
fn tool(name: &str, test: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        println!("skipped: {test}: there is no {name} here");
    }
    found
}

/// What a program that must succeed prints.
fn output(program: &Path, arguments: &[impl AsRef<OsStr>]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", program.display());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A node with one raw disk, that lies about one thing.
fn node_that_lies(about: Corruption, bytes: &[u8]) -> Node {
    let sim = os_sim::node().bios_serial(IN_WMI).disk(1 << 30).build();
    Node::new(Arc::new(CorruptingOs::new(sim.process(), about, bytes)), Config::default())
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A designator of vital product data page 83: code set, type, association, and its bytes.
type Designator<'a> = (u8, u8, u8, &'a [u8]);

const BINARY: u8 = 1;
const ASCII: u8 = 2;

/// The page as a SCSI device sends it, in hexadecimal.
fn vpd_page(designators: &[Designator<'_>]) -> String {
    let mut page = Vec::new();
    for (code_set, kind, association, bytes) in designators {
        page.extend([*code_set, association << 4 | kind, 0, u8::try_from(bytes.len()).expect("short")]);
        page.extend_from_slice(bytes);
    }
    let length = u16::try_from(page.len()).expect("short").to_be_bytes();
    let page = [&[0, 0x83][..], &length, &page].concat();
    page.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The page as Windows hands it on.
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
            next_offset: if last { 0 } else { u16::try_from(length).expect("short") },
            association: (*association).into(),
        };
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.resize(end, 0);
    }
    let size = size_of::<StorageDeviceIdDescriptor>() + body.len();
    let head = StorageDeviceIdDescriptor {
        head: StorageDescriptorHead { version: 16, size: u32::try_from(size).expect("short") },
        number_of_identifiers: u32::try_from(designators.len()).expect("few"),
    };
    [head.as_bytes(), &body].concat()
}

#[test]
fn page_83_is_read_as_sg3_utils_reads_it() {
    let Some(sg_inq) = tool("sg_inq", "page_83_is_read_as_sg3_utils_reads_it") else { return };
    let naa_6 = b"\x60\x00\xc2\x9a\x98\xd0\x5e\x38\x4a\x43\xf0\xef\x18\x9a\xaf\x5a";
    let naa_5 = b"\x50\x01\x40\x51\x23\x45\x67\x89";
    let (google, eui) = (b"Google  pvc-5f0e6c7a-0b8d-4d2e-9f3c-1a2b3c4d5e6f", b"\x00\x17\x38\x00\x4c\xba\x03\x17");
    let port = b"\x50\x01\x40\x5f\xff\xff\xff\xff";
    let pages: [&[Designator<'_>]; 6] = [
        &[(ASCII, 1, 0, google)],
        &[(BINARY, 3, 0, naa_6)],
        &[(BINARY, 3, 0, naa_5), (ASCII, 1, 0, google)],
        &[(BINARY, 2, 0, eui)],
        // That of the port comes first and is not the device's.
        &[(BINARY, 3, 1, port), (BINARY, 3, 0, naa_6)],
        &[(BINARY, 4, 1, &[0, 0, 0, 1]), (BINARY, 3, 2, port), (ASCII, 1, 0, b"MSFT    Virtual")],
    ];
    let folder = folder();
    for page in pages {
        let file = folder.path().join("page");
        fs::write(&file, vpd_page(page)).expect("a file");
        let inhex = format!("--inhex={}", file.display());
        let text = output(&sg_inq, &[&inhex, "--page=di", "--export"]);
        // SCSI_IDENT_LUN_NAA_REGEXT=6000...; blanks come as underscores.
        let theirs = text.lines().find_map(|line| line.strip_prefix("SCSI_IDENT_LUN_")?.split_once('='));
        let (_, theirs) = theirs.unwrap_or_else(|| panic!("no identifier of the device in {text}"));
        let ids = node_that_lies(Corruption::Page83, &descriptor(page)).run(&ListDiskIds).expect("disks are listed");
        let ours = ids[&DiskNumber(1)].page83.split_whitespace().collect::<Vec<_>>().join("_");
        assert_eq!(ours, theirs, "{text}");
    }
}

/// A dump as dmidecode writes it: an entry point of SMBIOS 3, and the table at byte 32.
fn dump(raw: &[u8]) -> Vec<u8> {
    let table = &raw[8..];
    let size = u32::try_from(table.len()).expect("short").to_le_bytes();
    let mut entry = [&b"_SM3_\0\x18\x03\x02\0\x01\0"[..], &size, &32_u64.to_le_bytes()].concat();
    entry[5] = entry.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg();
    entry.resize(32, 0);
    [&entry, table].concat()
}

#[test]
fn the_serial_number_is_the_one_dmidecode_reads() {
    let Some(dmidecode) = tool("dmidecode", "the_serial_number_is_the_one_dmidecode_reads") else { return };
    let system = |fields: &[u8], strings: &[&str]| structure(1, fields, strings);
    let end = || structure(127, &[], &[]);
    let tables = [
        table(Some("VMware-56 4d 4e 0e 5d 0b 9a 5a-9f 5e 7c 1d 2a 3b 4c 5d")),
        table(Some("0000-0012-3456-7890-1234-5678-90")),
        table(Some("x")),
        table(Some("")),
        table(None),
        table_without_system(),
        raw(&[system(&[1, 2, 0, 3], &["Maker", "Product", "Serial  with blanks "]), end()]),
        raw(&[system(&[0, 0, 0, 1], &["Alone"]), end()]),
        raw(&[structure(3, &[1, 1], &["Not this"]), structure(2, &[], &[]), system(&[2, 2, 2, 1], &["A", "B"]), end()]),
        raw(&[system(&[1, 2, 0, 9], &["No ninth"]), end()]),
    ];
    let folder = folder();
    for (number, table) in tables.iter().enumerate() {
        let file = folder.path().join("dump");
        fs::write(&file, dump(table)).expect("a file");
        let text = output(
            &dmidecode,
            &["--from-dump".as_ref(), file.as_os_str(), "-s".as_ref(), "system-serial-number".as_ref()],
        );
        let said = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
        let theirs = Some(said).filter(|said| !["", "Not Specified", "<BAD INDEX>"].contains(said));
        let ours = node_that_lies(Corruption::Smbios, table).run(&GetBiosSerialNumber).expect("a serial number");
        assert_eq!(Some(ours.as_str()).filter(|ours| *ours != IN_WMI), theirs, "table {number}: {text}");
    }
}

/// Whether a volume is unformatted on which `program` has made a file system of its own.
fn taken_for_raw(program: &Path, arguments: &[&str]) -> bool {
    let folder = folder();
    let image = image(&folder, 512 << 20);
    output(program, &[arguments, &[image.to_str().expect("a path")]].concat());
    let mut content = vec![0; 1 << 17];
    fs::File::open(&image).and_then(|mut file| file.read_exact(&mut content)).expect("the image");
    let sim = os_sim::node().disk(1 << 30).partitioned().build();
    let volume = VolumeId::parse(&sim.volume_on(1).expect("a volume").name()).expect("its name");
    let node = Node::new(Arc::new(CorruptingOs::new(sim.process(), Corruption::Content, &content)), Config::default());
    let unformatted = node.run(&IsVolumeFormatted { volume }).is_ok_and(|formatted| !formatted);
    assert_eq!(node.run(&FormatVolume { volume }).is_ok(), unformatted, "only what is unformatted is formatted");
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

/// What sfdisk lists: start, length and type of each partition, in bytes.
fn listed(sfdisk: &Path, image: &Path) -> Vec<(i64, i64, String)> {
    let text = output(sfdisk, &["--json".as_ref(), image.as_os_str()]);
    let after = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
        Some(rest.trim().trim_matches([',', '"']).to_owned())
    };
    let all = |key: &str| text.lines().filter_map(|line| after(line, key)).collect::<Vec<_>>();
    let bytes = |sectors: &String| sectors.parse::<i64>().expect("sectors") * 512;
    let places = all("start").iter().map(bytes).zip(all("size").iter().map(bytes)).collect::<Vec<_>>();
    places.into_iter().zip(all("type")).map(|((start, size), kind)| (start, size, kind)).collect()
}

/// The layout that Windows would answer for a GPT: what stands in the table, entry for entry.
fn gpt_of(image: &[u8]) -> (DriveLayout, Vec<PartitionEntry>) {
    let number = |at: usize| i64::from_le_bytes(image[at..at + 8].try_into().expect("eight bytes"));
    let header = SECTOR;
    assert_eq!(&image[header..header + 8], b"EFI PART");
    let table = usize::try_from(number(header + 72)).expect("a sector") * SECTOR;
    let mut entries = Vec::new();
    for index in 0..128 {
        let at = table + index * 128;
        let mut entry = PartitionEntry { style: PartitionStyle::GPT.0, ..PartitionEntry::new_zeroed() };
        entry.partition_type.copy_from_slice(&image[at..at + 16]);
        entry.id.copy_from_slice(&image[at + 16..at + 32]);
        if entry.partition_type == [0; 16] {
            continue;
        }
        entry.number = u32::try_from(entries.len() + 1).expect("few");
        entry.offset = number(at + 32) * 512;
        entry.length = (number(at + 40) + 1) * 512 - entry.offset;
        entries.push(entry);
    }
    (layout(PartitionStyle::GPT, entries.len()), entries)
}

/// The same for a master boot record, of which there are always four entries.
fn mbr_of(image: &[u8]) -> (DriveLayout, Vec<PartitionEntry>) {
    assert_eq!(image[510..512], [0x55, 0xaa]);
    let entry = |index: usize| {
        let at = 446 + index * 16;
        let number = |at: usize| i64::from(u32::from_le_bytes(image[at..at + 4].try_into().expect("four bytes")));
        let mut entry = PartitionEntry { style: PartitionStyle::MBR.0, ..PartitionEntry::new_zeroed() };
        entry.partition_type[0] = image[at + 4];
        (entry.offset, entry.length) = (number(at + 8) * 512, number(at + 12) * 512);
        entry
    };
    (layout(PartitionStyle::MBR, 4), (0..4).map(entry).collect())
}

fn layout(style: PartitionStyle, count: usize) -> DriveLayout {
    DriveLayout { style: style.0, partition_count: u32::try_from(count).expect("few"), ..DriveLayout::new_zeroed() }
}

fn image(folder: &TempDir, bytes: u64) -> PathBuf {
    let path = folder.path().join("image");
    let file = fs::File::create(&path).expect("a file");
    file.set_len(bytes).expect("a sparse file");
    path
}

/// What PartitionDisk does about a disk that has this layout: whether it asks for a partition to be made, and whether
/// it refuses the disk.
fn partition_disk(head: &DriveLayout, entries: &[PartitionEntry]) -> (bool, bool) {
    let sim = os_sim::node().disk(1 << 30).build();
    let trace = Arc::new(Trace::counting());
    let watched = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
    let layout = [head.as_bytes(), entries.as_bytes()].concat();
    let node = Node::new(Arc::new(CorruptingOs::new(watched, Corruption::DriveLayout, &layout)), Config::default());
    let outcome = node.run(&PartitionDisk { disk: DiskNumber(1) });
    let refused = outcome.is_err_and(|error| error.kind() == Kind::FailedPrecondition);
    (trace.counts().of("wmi call MSFT_Disk.CreatePartition") > 0, refused)
}

#[test]
fn a_gpt_is_read_as_sfdisk_lists_it() {
    const TEST: &str = "a_gpt_is_read_as_sfdisk_lists_it";
    let (Some(sfdisk), Some(maker)) = (tool("sfdisk", TEST), tool("sgdisk", TEST)) else { return };
    let reserved = "--new=1:0:+16M --typecode=1:0C01";
    for (commands, partitioned) in [
        (String::new(), false),
        (reserved.to_owned(), false),
        (format!("{reserved} --new=2:0:0 --typecode=2:0700"), true),
        ("--new=3:40960:+8M --typecode=3:8300 --new=1:0:+1M --typecode=1:EF00".to_owned(), true),
    ] {
        let folder = folder();
        let image = image(&folder, 64 << 20);
        let arguments: Vec<_> = ["--clear"].into_iter().chain(commands.split_whitespace()).collect();
        output(&maker, &[&arguments[..], &[image.to_str().expect("a path")]].concat());
        let (head, entries) = gpt_of(&fs::read(&image).expect("the image"));
        let read = |entry: &PartitionEntry| (entry.offset, entry.length, entry.gpt_type().to_string().to_uppercase());
        assert_eq!(entries.iter().map(read).collect::<Vec<_>>(), listed(&sfdisk, &image), "{commands}");
        let other = entries.iter().any(|entry| entry.gpt_type() != MSFT_RESERVED);
        assert_eq!(other, partitioned, "{commands}");
        assert_eq!(partition_disk(&head, &entries).0, !partitioned, "{commands}");
    }
}

#[test]
fn an_mbr_is_read_as_sfdisk_lists_it() {
    let Some(sfdisk) = tool("sfdisk", "an_mbr_is_read_as_sfdisk_lists_it") else { return };
    let shell = tool("sh", "an_mbr_is_read_as_sfdisk_lists_it");
    let Some(shell) = shell else { return };
    for (script, refused) in [
        (r"label: dos\n", true),
        (r"label: dos\nsize=8M, type=7\ntype=c\n", false),
        (r"label: dos\nstart=40960, type=83\n", false),
    ] {
        let folder = folder();
        let image = image(&folder, 64 << 20);
        let command = format!("printf '{script}' | '{}' --quiet '{}'", sfdisk.display(), image.display());
        output(&shell, &["-c", &command]);
        let (head, entries) = mbr_of(&fs::read(&image).expect("the image"));
        let used = entries.iter().filter(|entry| entry.mbr_type() != 0);
        let read = |entry: &PartitionEntry| (entry.offset, entry.length, format!("{:x}", entry.mbr_type()));
        assert_eq!(used.map(read).collect::<Vec<_>>(), listed(&sfdisk, &image), "{script}");
        assert_eq!(partition_disk(&head, &entries), (false, refused), "{script}");
    }
}
