//! Mounted folders: `MOUNT`.

use os::abi::{
    BASIC_DATA, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, REPARSE_TAG_MOUNT_POINT,
};
use os::{
    Access, Handle, NtPath, Open, Options, OsError, OsResult, PathForm, Share, U16Str, U16String,
};

use super::calls::{assert_fails, delete, id, set_attributes};
use super::devices::{extents, open_disk, partition_table};
use super::reparse::{attributes, final_path, mount_point, set};
use crate::fact::Fact;
use crate::node::{Directory, TestDisk, TestNode, TestVolume, VolumeKind};

const HIDDEN_AND_SYSTEM: u32 = 0x6;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("MOUNT-01", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let _mounted = mounted(node, &directory, "m", volume);
        assert_eq!(itself(&directory, "m"), MOUNTED);
    }),
    Fact::new("MOUNT-02", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let _mounted = mounted(node, &directory, "m", volume);
        assert_is_root(&directory, "m", volume);
        let root = attributes(&*directory.followed("m").expect("the root opens"));
        assert_eq!(root.attributes & FILE_ATTRIBUTE_REPARSE_POINT, 0);
    }),
    Fact::new("MOUNT-03", |node| {
        let (directory, ntfs) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let fat = node.volume(VolumeKind::Fat32);
        let _ntfs = mounted(node, &directory, "ntfs", ntfs);
        let _fat = mounted(node, &directory, "fat", fat);
        assert_is_root(&directory, "ntfs", ntfs);
        assert_is_root(&directory, "fat", fat);
        directory.mkdir(r"fat\m");
        let refused = mount_at(node, &with_backslash(&directory, r"fat\m"), ntfs);
        delete(&*directory.itself(r"fat\m", Access::DELETE)).expect("the directory is deleted");
        assert_fails(refused, &UNSUPPORTED);
    }),
    Fact::new("MOUNT-04", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let _outer = mounted(node, &directory, "m", volume);
        let inner = mounted(node, &directory, r"m\self", volume);
        assert_is_root(&directory, r"m\self", volume);
        assert_is_root(&directory, r"m\self\self", volume);
        drop(inner);
        delete(&*directory.itself(r"m\self", Access::DELETE)).expect("the directory is deleted");
    }),
    Fact::new("MOUNT-05", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let other = node.volume(VolumeKind::Fat32);
        let _mounted = mounted(node, &directory, "m", volume);
        for volume in [volume, other] {
            assert_eq!(
                mount_at(node, &with_backslash(&directory, "m"), volume),
                Err(OsError::DIR_NOT_EMPTY)
            );
        }
        assert_is_root(&directory, "m", volume);
    }),
    Fact::new("MOUNT-06", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        // None of the codes is documented.
        let codes = [
            OsError::INVALID_NAME,
            OsError::INVALID_PARAMETER,
            OsError::PATH_NOT_FOUND,
        ];
        directory.mkdir("plain");
        let refused = mount_at(
            node,
            &U16String::from_str(&directory.win32("plain")),
            volume,
        );
        assert_fails(refused, &codes);
        assert_eq!(itself(&directory, "plain"), PLAIN);
        let _mounted = mounted(node, &directory, "m", volume);
        let refused = node
            .os()
            .delete_volume_mount_point(&U16String::from_str(&directory.win32("m")));
        assert_fails(refused, &codes);
        assert_eq!(itself(&directory, "m"), MOUNTED);

        let _refs = mounted(node, &directory, "refs", node.volume(VolumeKind::Refs));
        directory.mkdir(r"refs\m");
        let refused = mount_at(node, &with_backslash(&directory, r"refs\m"), volume);
        delete(&*directory.itself(r"refs\m", Access::DELETE)).expect("the directory is deleted");
        assert_fails(refused, &UNSUPPORTED);
    }),
    Fact::new("MOUNT-07", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        directory.mkdir("m");
        let path = with_backslash(&directory, "m");
        assert_eq!(
            path.as_slice().get(1),
            Some(&u16::from(b':')),
            "{}",
            path.display()
        );
        assert_eq!(mount_at(node, &path, volume), Ok(()));
        assert_eq!(itself(&directory, "m"), MOUNTED);
        assert_eq!(node.os().delete_volume_mount_point(&path), Ok(()));
        assert_eq!(itself(&directory, "m"), PLAIN);
    }),
    Fact::new("MOUNT-08", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        drop(mounted(node, &directory, "m", volume));
        assert_eq!(itself(&directory, "m"), PLAIN);
        directory.mkdir(r"m\entry");
        let again = node
            .os()
            .delete_volume_mount_point(&with_backslash(&directory, "m"));
        assert!(
            matches!(again, Ok(()) | Err(OsError::NOT_A_REPARSE_POINT)),
            "{again:?}"
        );
        assert_eq!(itself(&directory, "m"), PLAIN);
        assert_eq!(itself(&directory, r"m\entry"), PLAIN);
    }),
    Fact::new("MOUNT-10", |node| {
        let known = node.volume(VolumeKind::Ntfs).guid_path().to_string_lossy();
        let unknown = r"\\?\Volume{00000000-00ff-0000-0000-000000000000}\";
        for (name, code) in [
            ("", OsError::INVALID_NAME),
            (&known[..known.len() - 1], OsError::INVALID_NAME),
            (r"\", OsError::INVALID_PARAMETER),
            (unknown, OsError::FILE_NOT_FOUND),
        ] {
            assert_eq!(
                node.os().volume_paths(&U16String::from_str(name)),
                Err(code),
                "{name:?}"
            );
        }
    }),
    Fact::new("MOUNT-11", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let paths = || {
            node.os()
                .volume_paths(&volume.guid_path())
                .expect("the paths")
        };
        let before = paths();
        let _outer = mounted(node, &directory, "m", volume);
        let outer = with_backslash(&directory, "m");
        assert_eq!(
            paths(),
            [&before[..], std::slice::from_ref(&outer)].concat()
        );
        let inner = mounted(node, &directory, r"m\self", volume);
        let listed = paths();
        drop(inner);
        delete(&*directory.itself(r"m\self", Access::DELETE)).expect("the directory is deleted");
        assert!(listed.contains(&outer), "{listed:?}");
        let through_itself = |path: &U16String| path.to_string_lossy().ends_with(r"\self\self\");
        assert!(!listed.iter().any(through_itself), "{listed:?}");
    }),
    Fact::new("MOUNT-12", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let _both = ["a", "b"].map(|name| mounted(node, &directory, name, volume));
        assert_is_root(&directory, "a", volume);
        assert_is_root(&directory, "b", volume);
        let paths = node
            .os()
            .volume_paths(&volume.guid_path())
            .expect("the paths");
        assert!(
            ["a", "b"]
                .iter()
                .all(|name| paths.contains(&with_backslash(&directory, name))),
            "{paths:?}"
        );
    }),
    Fact::new("MOUNT-13", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        directory.mkdir("m");
        mount_at(node, &with_backslash(&directory, "m"), volume).expect("the volume is mounted");
        directory.write(r"m\file", b"content");
        delete(&*directory.itself("m", Access::DELETE)).expect("the folder is deleted");
        let missing = directory.existing("m", Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
        assert_eq!(missing.err(), Some(OsError::FILE_NOT_FOUND));
        let file = NtPath::volume_root(volume.id).join(&U16String::from_str("file"));
        let how = Open::existing(Access::READ_DATA | Access::DELETE, Options::NON_DIRECTORY);
        let kept = node.os().open(&file, &how).expect("the file opens");
        let mut content = [0; 7];
        assert_eq!((kept.read(0, &mut content), &content), (Ok(7), b"content"));
        delete(&*kept).expect("the file is deleted");
    }),
    Fact::new("MOUNT-16", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let disk = open_disk(
            node,
            TestDisk {
                number: volume.disk,
            },
            Access::GENERIC_READ,
        );
        let mut entries = partition_table(&*disk).1;
        entries.retain(|entry| entry.gpt_type() == BASIC_DATA);
        let data: Vec<i64> = entries.iter().map(|entry| entry.offset).collect();
        let volumes = node.os().volumes().expect("the volumes");
        let mut offsets: Vec<i64> = volumes
            .iter()
            .filter_map(|path| offset_on(node, path, volume.disk))
            .collect();
        offsets.sort_unstable();
        assert_eq!(offsets, data);
    }),
    Fact::new("MOUNT-18", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let _mounted = mounted(node, &directory, "m", volume);
        node.restart();
        assert_is_root(&directory, "m", volume);
        let paths = node
            .os()
            .volume_paths(&volume.guid_path())
            .expect("the paths");
        assert!(
            paths.contains(&with_backslash(&directory, "m")),
            "{paths:?}"
        );
    }),
    Fact::new("MOUNT-22", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        for (name, attributes) in [("plain", 0x80), ("hidden", HIDDEN_AND_SYSTEM)] {
            directory.mkdir(name);
            directory.write(&format!(r"{name}\file"), b"");
            let file = directory.itself(&format!(r"{name}\file"), Access::WRITE_ATTRIBUTES);
            set_attributes(&*file, attributes).expect("the attributes are set");
            let mounted = mount_at(node, &with_backslash(&directory, name), volume);
            assert_eq!(mounted, Err(OsError::DIR_NOT_EMPTY), "{name}");
            assert_eq!(itself(&directory, name), PLAIN);
        }
    }),
    Fact::new("MOUNT-27", |node| {
        let directory = node.directory();
        directory.mkdir("m");
        let unknown = U16String::from_str(r"\\?\Volume{00000000-00ff-0000-0000-000000000000}\");
        let mounted = node
            .os()
            .set_volume_mount_point(&with_backslash(&directory, "m"), &unknown);
        assert_eq!(mounted, Err(OsError::FILE_NOT_FOUND));
        assert_eq!(itself(&directory, "m"), PLAIN);
    }),
    Fact::new("MOUNT-23", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        directory.mkdir("m");
        let share = Share::READ | Share::WRITE;
        let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
        let held = directory.open(
            "m",
            &Open {
                share,
                ..Open::existing(access, Options::REPARSE_POINT)
            },
        );
        let held: Box<dyn Handle> = held.expect("the directory opens");
        let path = with_backslash(&directory, "m");
        assert_eq!(mount_at(node, &path, volume), Ok(()));
        assert_eq!(attributes(&*held).reparse_tag, REPARSE_TAG_MOUNT_POINT);
        assert_eq!(node.os().delete_volume_mount_point(&path), Ok(()));
        assert_eq!(attributes(&*held).reparse_tag, 0);
    }),
    Fact::new("MOUNT-24", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        directory.mkdir("forged");
        let target = NtPath::volume_root(volume.id).to_string();
        set(
            &*directory.itself("forged", Access::WRITE_ATTRIBUTES),
            &mount_point(&target, ""),
        )
        .expect("it is set");
        assert_is_root(&directory, "forged", volume);
        let paths = node
            .os()
            .volume_paths(&volume.guid_path())
            .expect("the paths");
        assert!(
            !paths.contains(&with_backslash(&directory, "forged")),
            "{paths:?}"
        );
    }),
    Fact::new("MOUNT-25", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        directory.mkdir("m");
        let path = with_backslash(&directory, "m");
        mount_at(node, &path, volume).expect("the volume is mounted");
        drop(node.remove_disk(TestDisk {
            number: volume.disk,
        }));
        assert_eq!(node.os().delete_volume_mount_point(&path), Ok(()));
        assert_eq!(itself(&directory, "m"), PLAIN);
    }),
    Fact::new("MOUNT-26", |node| {
        let (directory, volume) = (node.directory(), node.volume(VolumeKind::Ntfs));
        let folder = mounted(node, &directory, "m", volume);
        directory.mkdir(r"m\sub");
        let sub = directory.itself(r"m\sub", Access::READ_ATTRIBUTES | Access::DELETE);
        let by_guid = NtPath::volume_root(volume.id).join(&U16String::from_str("sub"));
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
        let same = node.os().open(&by_guid, &how).expect("the directory opens");
        assert_eq!(id(&*same), id(&*sub));
        assert_eq!(
            final_path(&*same),
            format!(r"\\?\{}", directory.win32(r"m\sub"))
        );
        drop(folder);
        assert_eq!(same.final_path(PathForm::Dos), Err(OsError::PATH_NOT_FOUND));
        delete(&*sub).expect("the directory is deleted");
    }),
];

/// A volume that is mounted at a folder until this is dropped.
struct Mounted<'a> {
    node: &'a dyn TestNode,
    path: U16String,
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Fails if the check has removed the folder.
        let _ = self.node.os().delete_volume_mount_point(&self.path);
    }
}

/// Returns the Win32 path of an entry with a final backslash.
fn with_backslash(directory: &Directory<'_>, name: &str) -> U16String {
    U16String::from_str(&format!(r"{}\", directory.win32(name)))
}

/// Mounts a volume at an existing directory.
fn mount_at(node: &dyn TestNode, path: &U16Str, volume: TestVolume) -> OsResult<()> {
    node.os().set_volume_mount_point(path, &volume.guid_path())
}

/// Creates the directory `name` and mounts a volume there.
fn mounted<'a>(
    node: &'a dyn TestNode,
    directory: &Directory<'_>,
    name: &str,
    volume: TestVolume,
) -> Mounted<'a> {
    directory.mkdir(name);
    let path = with_backslash(directory, name);
    mount_at(node, &path, volume).unwrap_or_else(|error| panic!("{name}: {error}"));
    Mounted { node, path }
}

/// Checks that the entry `name` leads to the root directory of the volume.
#[track_caller]
fn assert_is_root(directory: &Directory<'_>, name: &str, volume: TestVolume) {
    let root = directory
        .followed(name)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(
        root.final_path(PathForm::VolumeGuid),
        Ok(volume.guid_path()),
        "{name}"
    );
}

/// Returns the attributes and the tag of the entry `name` itself.
fn itself(directory: &Directory<'_>, name: &str) -> (u32, u32) {
    let found = attributes(&*directory.itself(name, Access::READ_ATTRIBUTES));
    (
        found.attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT),
        found.reparse_tag,
    )
}

const PLAIN: (u32, u32) = (FILE_ATTRIBUTE_DIRECTORY, 0);
const MOUNTED: (u32, u32) = (
    FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT,
    REPARSE_TAG_MOUNT_POINT,
);

/// The codes of a directory on a file system without mounted folders; none is documented.
const UNSUPPORTED: [OsError; 3] = [
    OsError::INVALID_FUNCTION,
    OsError::NOT_SUPPORTED,
    OsError::INVALID_PARAMETER,
];

/// Returns where a volume begins on a disk, if its first extent is there.
fn offset_on(node: &dyn TestNode, guid_path: &U16Str, disk: u32) -> Option<i64> {
    let name = &guid_path.as_slice()[..guid_path.len() - 1];
    let path = NtPath::from_win32(U16Str::from_slice(name));
    let volume = node
        .os()
        .open(&path, &Open::existing(Access::empty(), Options::empty()))
        .expect("the volume opens");
    let first = extents(&*volume).ok()?.remove(0);
    (first.disk_number == disk).then_some(first.offset)
}
