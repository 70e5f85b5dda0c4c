//! Disks, volumes, drives and servers, present and missing: `DEVICE-OPEN`. What an open handle
//! stands for: `FILE-OPEN-46` and `-47`.

use os::abi::DEVICE_TYPE_DISK;
use os::{Access, NtPath, Open, Options, OsError, PathForm, U16String, Uuid};

use super::calls::id;
use super::devices::{device_number, extents, open_disk};
use crate::fact::Fact;
use crate::node::{DiskKind, VolumeKind, missing};

/// Opens a device with no rights.
const NO_RIGHTS: Open = Open::existing(Access::empty(), Options::empty());

/// Opens a directory to query it.
const READ_ATTRIBUTES: Open = Open::existing(Access::READ_ATTRIBUTES, Options::empty());

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("DEVICE-OPEN-01", |node| {
        let disk = node.disk(DiskKind::Raw);
        let number = device_number(&*open_disk(node, disk, Access::empty()));
        assert_eq!(
            (number.device_type, number.device_number),
            (DEVICE_TYPE_DISK, disk.number)
        );
    }),
    Fact::new("DEVICE-OPEN-02", |node| {
        for kind in [VolumeKind::Ntfs, VolumeKind::Raw] {
            let volume = node.volume(kind);
            let opened = volume
                .open(node.os(), Access::empty())
                .expect("the volume opens");
            assert_eq!(
                extents(&*opened).expect("the extents")[0].disk_number,
                volume.disk,
                "{kind:?}"
            );
        }
    }),
    Fact::new("DEVICE-OPEN-05", |node| {
        let volumes = node.os().volumes().expect("the volumes");
        let paths: Vec<_> = volumes
            .iter()
            .flat_map(|volume| {
                node.os()
                    .volume_paths(volume)
                    .expect("the paths of a volume")
            })
            .collect();
        let is_free = |letter: &char| {
            !paths
                .iter()
                .any(|path| path.to_string_lossy() == format!(r"{letter}:\"))
        };
        let letter = ('D'..='Y')
            .rev()
            .find(is_free)
            .unwrap_or_else(|| missing("a free drive letter"));
        let drive = NtPath::from_win32(&U16String::from_str(&format!(r"\\?\{letter}:")));
        assert_eq!(
            node.os().open(&drive, &NO_RIGHTS).err(),
            Some(OsError::FILE_NOT_FOUND)
        );
        let root = NtPath::drive_root(letter);
        for path in [root.join(&U16String::from_str("directory")), root] {
            assert_eq!(
                node.os().open(&path, &READ_ATTRIBUTES).err(),
                Some(OsError::PATH_NOT_FOUND),
                "{path}"
            );
        }
    }),
    Fact::new("DEVICE-OPEN-06", |node| {
        let id = Uuid::from_u128(0x6d6f_756e_7420_4d61_8e61_6765_7220_6e6f);
        let opened = node.os().open(&NtPath::volume(id), &NO_RIGHTS);
        assert_eq!(opened.err(), Some(OsError::FILE_NOT_FOUND));
        let opened = node.os().open(&NtPath::volume_root(id), &READ_ATTRIBUTES);
        assert_eq!(opened.err(), Some(OsError::PATH_NOT_FOUND));
    }),
    Fact::new("DEVICE-OPEN-07", |node| {
        // No name ends in `.invalid` (RFC 6761).
        let path = NtPath::from_win32(&U16String::from_str(r"\\csi-proxy.invalid\share"));
        assert_eq!(
            node.os().open(&path, &READ_ATTRIBUTES).err(),
            Some(OsError::BAD_NETPATH)
        );
    }),
    Fact::new("DEVICE-OPEN-09", |node| {
        let opened = node
            .volume(VolumeKind::Raw)
            .open_root(node.os(), Access::READ_ATTRIBUTES);
        assert_eq!(opened.err(), Some(OsError::UNRECOGNIZED_VOLUME));
    }),
    Fact::new("DEVICE-OPEN-10", |node| {
        let opened = node
            .volume(VolumeKind::BitLocker)
            .open_root(node.os(), Access::READ_ATTRIBUTES);
        assert_eq!(opened.err(), Some(OsError::FVE_LOCKED_VOLUME));
    }),
    Fact::new("DEVICE-OPEN-11", |node| {
        let share = node.share();
        for (name, code) in [
            ("missing", OsError::FILE_NOT_FOUND),
            (r"missing\entry", OsError::PATH_NOT_FOUND),
        ] {
            let path = NtPath::from_win32(&U16String::from_str(&format!(r"{share}\{name}")));
            assert_eq!(
                node.os().open(&path, &READ_ATTRIBUTES).err(),
                Some(code),
                "{name}"
            );
        }
    }),
    Fact::new("FILE-OPEN-46", |node| {
        let directory = node.directory();
        directory.mkdir("before");
        directory.mkdir(r"before\child");
        let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
        let held = directory
            .existing("before", access, Options::DIRECTORY)
            .expect("the directory opens");
        node.rename(&directory.win32("before"), &directory.win32("after"))
            .expect("the handle shares deletion");
        directory.mkdir("before");
        directory.mkdir(r"before\impostor");
        let open = |name: &str| {
            let how = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
            held.open_child(&U16String::from_str(name), &how)
        };
        let child = open("child").expect("the entry is still in the directory");
        let path = child
            .final_path(PathForm::Dos)
            .expect("the path")
            .to_string_lossy();
        assert!(path.ends_with(r"\after\child"), "{path}");
        assert_eq!(open("impostor").err(), Some(OsError::FILE_NOT_FOUND));
    }),
    Fact::new("FILE-OPEN-47", |node| {
        let directory = node.directory();
        let name = "n".repeat(100);
        let mut path = directory.nt("");
        let mut deepest = directory.handle();
        for _ in 0..5 {
            path = path.join(&U16String::from_str(&name));
            let how = Open::new_directory(Access::READ_DATA | Access::READ_ATTRIBUTES);
            deepest = node
                .os()
                .open(&path, &how)
                .expect("the directory is created");
        }
        assert!(path.as_u16str().len() > 500);
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let again = node.os().open(&path, &how).expect("the path opens");
        assert_eq!(id(&*again), id(&*deepest));
    }),
];
