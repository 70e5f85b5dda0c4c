//! Disks, volumes, drives and servers, present and missing: `DEVICE-OPEN`.

use os::abi::{ControlCode, DEVICE_TYPE_DISK, StorageDeviceNumber};
use os::{Access, NtPath, Open, Options, OsError, U16String, Uuid};
use zerocopy::{FromZeros, IntoBytes};

use crate::fact::Fact;
use crate::node::{DiskKind, TestNode, VolumeKind, missing};

/// Opens a device with no rights.
const NO_RIGHTS: Open = Open::existing(Access::empty(), Options::empty());

/// Opens a directory to query it.
const READ_ATTRIBUTES: Open = Open::existing(Access::READ_ATTRIBUTES, Options::empty());

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "DEVICE-OPEN-01",
        "A disk opens with no rights, and then answers IOCTL_STORAGE_GET_DEVICE_NUMBER.",
        "SDK CreateFileW",
        |node| {
            let disk = node.disk(DiskKind::Raw);
            let opened = node.os().open(&NtPath::disk(disk.number), &NO_RIGHTS).expect("the disk opens");
            let mut answer = StorageDeviceNumber::new_zeroed();
            opened.control(ControlCode::STORAGE_GET_DEVICE_NUMBER, &[], answer.as_mut_bytes()).expect("the number");
            assert_eq!((answer.device_type, answer.device_number), (DEVICE_TYPE_DISK, disk.number));
        },
    ),
    Fact::published(
        "DEVICE-OPEN-02",
        "A volume opens with no rights, with a file system or without, and then answers \
         IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS.",
        "SDK CreateFileW",
        |node| {
            check_opens(node, VolumeKind::Ntfs);
            check_opens(node, VolumeKind::Raw);
        },
    ),
    Fact::assumed(
        "DEVICE-OPEN-05",
        "Opening a drive that does not exist fails with FILE_NOT_FOUND (2), and a path on it with PATH_NOT_FOUND (3).",
        "The object manager returns the first code if the last name of a path is missing, and the second if an \
         earlier name is. The operations are right if both codes are the same: the class DirectoryMissing contains \
         both.",
        |node| {
            let volumes = node.os().volumes().expect("the volumes");
            let paths: Vec<_> = volumes
                .iter()
                .flat_map(|volume| node.os().volume_paths(volume).expect("the paths of a volume"))
                .collect();
            let is_free = |letter: &char| !paths.iter().any(|path| path.to_string_lossy() == format!(r"{letter}:\"));
            let letter = ('D'..='Y').rev().find(is_free).unwrap_or_else(|| missing("a free drive letter"));
            let drive = NtPath::from_win32(&U16String::from_str(&format!(r"\\?\{letter}:")));
            assert_eq!(node.os().open(&drive, &NO_RIGHTS).err(), Some(OsError::FILE_NOT_FOUND));
            let root = NtPath::drive_root(letter);
            for path in [root.join(&U16String::from_str("directory")), root] {
                assert_eq!(node.os().open(&path, &READ_ATTRIBUTES).err(), Some(OsError::PATH_NOT_FOUND), "{path}");
            }
        },
    )
    .wine("it fails with FILE_NOT_FOUND (2) for both"),
    Fact::assumed(
        "DEVICE-OPEN-06",
        "Opening a volume that does not exist, by its GUID, fails with FILE_NOT_FOUND (2), and its root directory \
         with PATH_NOT_FOUND (3).",
        "As DEVICE-OPEN-05. The same applies to a volume that has gone, whose name the mount manager deletes. The \
         classes DeviceRemoved and TargetMissing contain both codes, and those of a device that is being removed.",
        |node| {
            let id = Uuid::from_u128(0x6d6f_756e_7420_4d61_8e61_6765_7220_6e6f);
            let opened = node.os().open(&NtPath::volume(id), &NO_RIGHTS);
            assert_eq!(opened.err(), Some(OsError::FILE_NOT_FOUND));
            let opened = node.os().open(&NtPath::volume_root(id), &READ_ATTRIBUTES);
            assert_eq!(opened.err(), Some(OsError::PATH_NOT_FOUND));
        },
    ),
    Fact::published(
        "DEVICE-OPEN-07",
        "A UNC path of a server that cannot be reached fails with BAD_NETPATH (53).",
        "kubernetes-csi/csi-driver-smb deploy/example/windows/README.md",
        |node| {
            // No name ends in `.invalid` (RFC 6761).
            let path = NtPath::from_win32(&U16String::from_str(r"\\csi-proxy.invalid\share"));
            assert_eq!(node.os().open(&path, &READ_ATTRIBUTES).err(), Some(OsError::BAD_NETPATH));
        },
    )
    .wine("it fails with PATH_NOT_FOUND (3)"),
    Fact::assumed(
        "DEVICE-OPEN-08",
        "A UNC path of a share that its server does not have fails with BAD_NET_NAME (67).",
        "The message of the code says so. The operations are right if it is BAD_NETPATH or one of not found: the \
         class TargetMissing has all of them.",
        |node| {
            let share = node.share();
            let server = share.trim_start_matches('\\').split('\\').next().expect("a server");
            let path = NtPath::from_win32(&U16String::from_str(&format!(r"\\{server}\csi-proxy-has-no-such-share")));
            assert_eq!(node.os().open(&path, &READ_ATTRIBUTES).err(), Some(OsError::BAD_NET_NAME));
        },
    ),
    Fact::assumed(
        "DEVICE-OPEN-09",
        "Opening the root directory of a volume without a file system fails with UNRECOGNIZED_VOLUME (1005).",
        "The message of the code says so, and Windows shows it for such drives. The operations are right if it is \
         another code: IsSymlink and CreateSymlink, which count a target on such a volume as present, would report \
         it, and IsVolumeFormatted would report that the file system cannot be read.",
        |node| {
            let volume = node.volume(VolumeKind::Raw);
            let opened = node.os().open(&NtPath::volume_root(volume.id), &READ_ATTRIBUTES);
            assert_eq!(opened.err(), Some(OsError::UNRECOGNIZED_VOLUME));
        },
    ),
    Fact::assumed(
        "DEVICE-OPEN-10",
        "Opening the root directory of a volume that is locked by BitLocker fails with FVE_LOCKED_VOLUME \
         (0x80310000).",
        "The message of the code says so. With another code the operations are right too: they report every code.",
        |node| {
            let volume = node.volume(VolumeKind::BitLocker);
            let opened = node.os().open(&NtPath::volume_root(volume.id), &READ_ATTRIBUTES);
            assert_eq!(opened.err(), Some(OsError::FVE_LOCKED_VOLUME));
        },
    ),
    Fact::assumed(
        "DEVICE-OPEN-11",
        "Opening a missing entry of a share fails with FILE_NOT_FOUND (2), and below a missing directory with \
         PATH_NOT_FOUND (3).",
        "The server returns what its own file system answers (FILE-OPEN-36). The operations are right if both are \
         the same: the class TargetMissing has both.",
        |node| {
            let share = node.share();
            for (name, code) in [("missing", OsError::FILE_NOT_FOUND), (r"missing\entry", OsError::PATH_NOT_FOUND)] {
                let path = NtPath::from_win32(&U16String::from_str(&format!(r"{share}\{name}")));
                assert_eq!(node.os().open(&path, &READ_ATTRIBUTES).err(), Some(code), "{name}");
            }
        },
    ),
];

/// Checks that a volume opens with no rights and tells its disk.
fn check_opens(node: &dyn TestNode, kind: VolumeKind) {
    let volume = node.volume(kind);
    let opened = node.os().open(&NtPath::volume(volume.id), &NO_RIGHTS).expect("the volume opens");
    let mut extents = [0; 256];
    opened.control(ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS, &[], &mut extents).expect("the extents");
    assert_eq!(extents[8..12], volume.disk.to_le_bytes(), "the disk of the first extent of {kind:?}");
}
