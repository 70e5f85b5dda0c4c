//! Volumes, their root directories, and volumes that are locked or dismounted: `FILE-OPEN-25` to `-27` and `-40` to `-45`.

use os::abi::{ControlCode, DiskAttributes};
use os::{Access, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16String};

use super::calls::{delete, fat_root};
use super::devices::{READ_WRITE, is_listed, open_disk, set_attributes, set_offline, wait_until};
use crate::fact::Fact;
use crate::node::{TestDisk, TestNode, TestVolume, VolumeKind};

/// `FSCTL_LOCK_VOLUME`.
const FSCTL_LOCK_VOLUME: ControlCode = ControlCode(0x0009_0018);
/// `FSCTL_DISMOUNT_VOLUME`.
const FSCTL_DISMOUNT_VOLUME: ControlCode = ControlCode(0x0009_0020);

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "FILE-OPEN-25",
        "On FAT, opening the root directory fails with ACCESS_DENIED (5) with FILE_DELETE_ON_CLOSE and with \
         FILE_NON_DIRECTORY_FILE.",
        "FF create.c",
        |node| {
            let fat = fat_root(node);
            let root = NtPath::volume_root(fat.volume.id);
            let open = |access, options| node.os().open(&root, &Open::existing(access, options)).err();
            assert_eq!(open(Access::DELETE, Options::DELETE_ON_CLOSE), Some(OsError::ACCESS_DENIED));
            assert_eq!(open(Access::READ_ATTRIBUTES, Options::NON_DIRECTORY), Some(OsError::ACCESS_DENIED));
            assert_eq!(open(Access::READ_ATTRIBUTES, Options::DIRECTORY), None);
        },
    ),
    Fact::published(
        "FILE-OPEN-26",
        "On FAT, opening the volume itself, without a final backslash, fails with DIRECTORY (267) with \
         FILE_DIRECTORY_FILE.",
        "FF create.c",
        |node| {
            let volume = node.volume(VolumeKind::Fat32);
            let how = Open::existing(Access::GENERIC_READ, Options::DIRECTORY);
            assert_eq!(node.os().open(&NtPath::volume(volume.id), &how).err(), Some(OsError::DIRECTORY));
            volume.open(node.os(), Access::GENERIC_READ).expect("the volume opens");
        },
    ),
    Fact::published(
        "FILE-OPEN-27",
        "On FAT, while a volume is locked every other open fails with ACCESS_DENIED (5), and with NOT_READY (21) \
         once the holder of the lock has dismounted it.",
        "FF create.c",
        |node| a_locked_volume_refuses_all_opens(node, VolumeKind::Fat32),
    ),
    Fact::published(
        "FILE-OPEN-40",
        "On FAT, opening or creating an entry of a directory that is pending deletion fails with DELETE_PENDING \
         (303).",
        "FF create.c",
        |node| {
            let fat = fat_root(node);
            let path = NtPath::volume_root(fat.volume.id).join(&U16String::from_str("directory"));
            check_entries_while_it_is_deleted(node.os(), &path);
        },
    ),
    Fact::assumed(
        "FILE-OPEN-41",
        "On NTFS, opening or creating an entry of a directory that is pending deletion fails with DELETE_PENDING \
         (303).",
        "FASTFAT does so (FILE-OPEN-40). The operations are right if it is another code: they treat FILE_NOT_FOUND \
         and PATH_NOT_FOUND as a directory that is gone, report any other code, and for Rmdir the parent directory \
         stays open.",
        |node| {
            let directory = node.directory();
            check_entries_while_it_is_deleted(node.os(), &directory.nt("directory"));
        },
    )
    .wine("it fails with FILE_NOT_FOUND (2)"),
    Fact::assumed(
        "FILE-OPEN-42",
        "On NTFS, while a volume is locked every other open fails with ACCESS_DENIED (5), and with NOT_READY (21) \
         once the holder of the lock has dismounted it.",
        "The page on FSCTL_LOCK_VOLUME says that a locked volume can be accessed only through the handle that locked \
         it, and FASTFAT has these codes (FILE-OPEN-27). The operations are right if it is another code: they report \
         any, and FormatVolume counts only NTFS as success.",
        |node| a_locked_volume_refuses_all_opens(node, VolumeKind::Ntfs),
    ),
    Fact::assumed(
        "FILE-OPEN-43",
        "A volume that is locked opens with no rights, and then answers IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS.",
        "Such an open does not reach the file system that is locked, and the volume manager answers. The operations \
         are right if it fails: ListVolumesOnDisk leaves the volume out, as it does before the volume has arrived, \
         and an operation that looks for the disk of the volume reports the code.",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs);
            let holder = volume.open(node.os(), READ_WRITE).expect("the volume opens");
            holder.control(FSCTL_LOCK_VOLUME, &[], &mut []).expect("the volume is locked");
            let opened = volume.open(node.os(), Access::empty()).expect("the volume opens without rights");
            let mut extents = [0; 256];
            opened.control(ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS, &[], &mut extents).expect("the extents");
            assert_eq!(extents[8..12], volume.disk.to_le_bytes(), "the disk of the first extent");
        },
    ),
    Fact::assumed(
        "FILE-OPEN-44",
        "A name relative to a directory that was opened before its volume was dismounted fails with NOT_READY (21).",
        "NT has STATUS_VOLUME_DISMOUNTED for such handles. FASTFAT can also answer STATUS_FILE_INVALID, which is \
         FILE_INVALID (1006). The operations are right in both cases: they open the working directory again.",
        |node| {
            let volume = node.volume(VolumeKind::Ntfs);
            node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
            let how = Open::existing(Access::READ_DATA, Options::empty());
            let root = node.os().open(&NtPath::volume_root(volume.id), &how).expect("the root directory opens");
            let file = U16String::from_str("file");
            root.open_child(&file, &how).expect("the file opens");
            let device = volume.open(node.os(), READ_WRITE).expect("the volume opens");
            device.control(FSCTL_DISMOUNT_VOLUME, &[], &mut []).expect("the volume is dismounted");
            assert_eq!(root.open_child(&file, &how).err(), Some(OsError::NOT_READY));
            let again = node.os().open(&NtPath::volume_root(volume.id), &how).expect("the volume is mounted again");
            again.open_child(&file, &how).expect("the file opens");
        },
    ),
    Fact::assumed(
        "FILE-OPEN-45",
        "On a volume whose disk is read-only, opening a file with WRITE_DATA, WRITE_ATTRIBUTES or DELETE and \
         creating one fail with WRITE_PROTECT (19).",
        "MS-FSA has this code for changes on such a volume, and does not say which rights may be asked for. The \
         operations are right if the open succeeds: the change then fails, and they report either code.",
        |node| {
            const READ_ONLY: u64 = DiskAttributes::READ_ONLY;
            let volume = node.volume(VolumeKind::Ntfs);
            node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
            let root = NtPath::volume_root(volume.id);
            let open = |name: &str, how: &Open| node.os().open(&root.join(&U16String::from_str(name)), how).err();
            let file = |access| open("file", &Open::existing(access, Options::empty()));

            let disk = open_disk(node, TestDisk { number: volume.disk }, READ_WRITE);
            set_offline(&*disk, true);
            set_attributes(&*disk, 40, READ_ONLY, READ_ONLY | DiskAttributes::OFFLINE).expect("read-only and online");
            let arrived = wait_until(node, || is_listed(node, volume.id));
            let refused = [
                file(Access::WRITE_DATA),
                file(Access::WRITE_ATTRIBUTES),
                file(Access::DELETE),
                open("new", &Open::new_directory(Access::READ_ATTRIBUTES)),
            ];
            let read = file(Access::READ_DATA);
            set_offline(&*disk, false);
            assert!(arrived);
            assert_eq!(refused, [Some(OsError::WRITE_PROTECT); 4]);
            assert_eq!(read, None);
        },
    ),
];

/// Opens a directory, and each object of a volume that an operation opens: the volume and its root directory.
fn open_all(node: &dyn TestNode, volume: TestVolume) -> [OsResult<Box<dyn Handle>>; 3] {
    let root = NtPath::volume_root(volume.id);
    let entry = root.join(&U16String::from_str("file"));
    let how = Open::existing(Access::READ_DATA, Options::empty());
    [volume.open(node.os(), Access::GENERIC_READ), node.os().open(&root, &how), node.os().open(&entry, &how)]
}

fn a_locked_volume_refuses_all_opens(node: &dyn TestNode, kind: VolumeKind) {
    let volume = node.volume(kind);
    node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
    let holder = volume.open(node.os(), READ_WRITE).expect("the volume opens");
    holder.control(FSCTL_LOCK_VOLUME, &[], &mut []).expect("the volume is locked");
    for opened in open_all(node, volume) {
        assert_eq!(opened.err(), Some(OsError::ACCESS_DENIED));
    }
    holder.control(FSCTL_DISMOUNT_VOLUME, &[], &mut []).expect("the volume is dismounted");
    for opened in open_all(node, volume) {
        assert_eq!(opened.err(), Some(OsError::NOT_READY));
    }
    drop(holder);
    for opened in open_all(node, volume) {
        opened.expect("the lock ends with its handle");
    }
}

fn check_entries_while_it_is_deleted(os: &dyn Os, path: &NtPath) {
    let directory = os.open(path, &Open::new_directory(Access::DELETE)).expect("the directory is created");
    delete(&*directory).expect("the directory is empty");
    let entry = U16String::from_str("entry");
    for how in [Open::existing(Access::READ_ATTRIBUTES, Options::empty()), Open::new_directory(Access::READ_ATTRIBUTES)]
    {
        for opened in [os.open(&path.join(&entry), &how), directory.open_child(&entry, &how)] {
            assert_eq!(opened.err(), Some(OsError::DELETE_PENDING), "{how:?}");
        }
    }
}
