//! Volumes, their root directories, and volumes that are locked or dismounted: `FILE-OPEN-27` and
//! `FILE-OPEN-40` to `-45`.

use os::abi::ControlCode;
use os::{Access, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16String};

use super::calls::{delete, fat_root};
use super::devices::{FSCTL_DISMOUNT_VOLUME, READ_WRITE, extents, while_read_only};
use crate::fact::Fact;
use crate::node::{TestNode, TestVolume, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-OPEN-27", |node| {
        a_locked_volume_refuses_all_opens(node, VolumeKind::Fat32);
    }),
    Fact::new("FILE-OPEN-40", |node| {
        let fat = fat_root(node);
        let path = NtPath::volume_root(fat.volume.id).join(&U16String::from_str("directory"));
        check_entries_while_it_is_deleted(node.os(), &path);
    }),
    Fact::new("FILE-OPEN-41", |node| {
        let directory = node.directory();
        check_entries_while_it_is_deleted(node.os(), &directory.nt("directory"));
    }),
    Fact::new("FILE-OPEN-42", |node| {
        a_locked_volume_refuses_all_opens(node, VolumeKind::Ntfs);
    }),
    Fact::new("FILE-OPEN-43", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let holder = volume
            .open(node.os(), READ_WRITE)
            .expect("the volume opens");
        holder
            .control(ControlCode::FSCTL_LOCK_VOLUME, &[], &mut [])
            .expect("the volume is locked");
        let opened = volume
            .open(node.os(), Access::empty())
            .expect("the volume opens without rights");
        assert_eq!(
            extents(&*opened).expect("the extents")[0].disk_number,
            volume.disk
        );
    }),
    Fact::new("FILE-OPEN-44", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
        let how = Open::existing(Access::READ_DATA, Options::empty());
        let root = volume
            .open_root(node.os(), Access::READ_DATA)
            .expect("the root directory opens");
        let file = U16String::from_str("file");
        root.open_child(&file, &how).expect("the file opens");
        let device = volume
            .open(node.os(), READ_WRITE)
            .expect("the volume opens");
        device
            .control(FSCTL_DISMOUNT_VOLUME, &[], &mut [])
            .expect("the volume is dismounted");
        assert_eq!(root.open_child(&file, &how).err(), Some(OsError::NOT_READY));
        let again = volume
            .open_root(node.os(), Access::READ_DATA)
            .expect("the volume is mounted again");
        again.open_child(&file, &how).expect("the file opens");
    }),
    Fact::new("FILE-OPEN-45", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
        let root = NtPath::volume_root(volume.id);
        let open = |name: &str, how: &Open| {
            node.os()
                .open(&root.join(&U16String::from_str(name)), how)
                .err()
        };
        let file = |access| open("file", &Open::existing(access, Options::empty()));
        let (changed, created, read) = while_read_only(node, volume, || {
            let changed = [Access::WRITE_DATA, Access::WRITE_ATTRIBUTES, Access::DELETE].map(file);
            (
                changed,
                open("new", &Open::new_directory(Access::READ_ATTRIBUTES)),
                file(Access::READ_DATA),
            )
        });
        let refused = Some(OsError::WRITE_PROTECT);
        assert_eq!((changed, created, read), ([refused; 3], refused, None));
    }),
];

/// Opens a directory, and each object of a volume that an operation opens: the volume and its root
/// directory.
fn open_all(node: &dyn TestNode, volume: TestVolume) -> [OsResult<Box<dyn Handle>>; 3] {
    let entry = NtPath::volume_root(volume.id).join(&U16String::from_str("file"));
    let file = node
        .os()
        .open(&entry, &Open::existing(Access::READ_DATA, Options::empty()));
    [
        volume.open(node.os(), Access::GENERIC_READ),
        volume.open_root(node.os(), Access::READ_DATA),
        file,
    ]
}

fn a_locked_volume_refuses_all_opens(node: &dyn TestNode, kind: VolumeKind) {
    let volume = node.volume(kind);
    node.write_file(&format!("{}file", volume.guid_path().display()), b"content");
    let holder = volume
        .open(node.os(), READ_WRITE)
        .expect("the volume opens");
    holder
        .control(ControlCode::FSCTL_LOCK_VOLUME, &[], &mut [])
        .expect("the volume is locked");
    for opened in open_all(node, volume) {
        assert_eq!(opened.err(), Some(OsError::ACCESS_DENIED));
    }
    holder
        .control(FSCTL_DISMOUNT_VOLUME, &[], &mut [])
        .expect("the volume is dismounted");
    for opened in open_all(node, volume) {
        assert_eq!(opened.err(), Some(OsError::NOT_READY));
    }
    drop(holder);
    for opened in open_all(node, volume) {
        opened.expect("the lock ends with its handle");
    }
}

fn check_entries_while_it_is_deleted(os: &dyn Os, path: &NtPath) {
    let directory = os
        .open(path, &Open::new_directory(Access::DELETE))
        .expect("the directory is created");
    delete(&*directory).expect("the directory is empty");
    let entry = U16String::from_str("entry");
    for how in [
        Open::existing(Access::READ_ATTRIBUTES, Options::empty()),
        Open::new_directory(Access::READ_ATTRIBUTES),
    ] {
        for opened in [
            os.open(&path.join(&entry), &how),
            directory.open_child(&entry, &how),
        ] {
            assert_eq!(opened.err(), Some(OsError::DELETE_PENDING), "{how:?}");
        }
    }
}
