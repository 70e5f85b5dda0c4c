//! Information about file systems: `FS-INFO`. What calls return after their disk was removed or
//! cannot be read: `DEVICE-LOST`.

use os::abi::{FileBasicInfo, FsAttributeInformation};
use os::{
    Access, FileInfo, FsInfo, Handle, NtPath, Open, Options, OsError, OsResult, U16String, Uuid,
};
use zerocopy::FromBytes;

use super::calls::{assert_fails, query, set_junction};
use super::devices::{full_size, length};
use crate::fact::Fact;
use crate::node::{TestDisk, TestNode, VolumeKind};

const BAD_LENGTH: OsError = OsError(24);

/// What calls on a handle return whose disk was removed.
const LOST: [OsError; 7] = [
    OsError::FILE_NOT_FOUND,
    OsError::NOT_READY,
    OsError::DEV_NOT_EXIST,
    OsError::NO_SUCH_DEVICE,
    OsError::FILE_INVALID,
    OsError::DEVICE_NOT_CONNECTED,
    OsError::DEVICE_REMOVED,
];

/// What calls return that read a medium that cannot be read.
const UNREADABLE: [OsError; 4] = [
    OsError::CRC,
    OsError::GEN_FAILURE,
    OsError::IO_DEVICE,
    OsError::FILE_CORRUPT,
];

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FS-INFO-01", |node| {
        for (kind, expected) in [
            (VolumeKind::Ntfs, "NTFS"),
            (VolumeKind::Fat32, "FAT32"),
            (VolumeKind::Refs, "ReFS"),
        ] {
            let id = node.volume(kind).id;
            for path in [NtPath::volume(id), NtPath::volume_root(id)] {
                let handle = open(node, &path, Access::GENERIC_READ).expect("it opens");
                let (filled, found) = name(&*handle, 64);
                assert_eq!(found, expected);
                assert_eq!(
                    filled,
                    Ok(FsAttributeInformation::NAME_OFFSET + 2 * expected.len())
                );
            }
        }
    }),
    Fact::new("FS-INFO-02", |node| {
        let volume = node.volume(VolumeKind::Fat32);
        let handle = open(node, &NtPath::volume_root(volume.id), Access::GENERIC_READ)
            .expect("the root opens");
        assert_eq!(
            name(&*handle, 18),
            (Err(OsError::MORE_DATA), "FAT".to_owned())
        );
    }),
    Fact::new("FS-INFO-03", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let handle = open(node, &NtPath::volume_root(volume.id), Access::GENERIC_READ)
            .expect("the root opens");
        assert_eq!(
            handle.query_fs(FsInfo::Attribute, &mut [0; 15]),
            Err(BAD_LENGTH)
        );
        assert_eq!(
            handle.query_fs(FsInfo::Attribute, &mut [0; 16]),
            Err(OsError::MORE_DATA)
        );
        assert_eq!(
            handle.query_fs(FsInfo::FullSize, &mut [0; 31]),
            Err(BAD_LENGTH)
        );
        assert_eq!(handle.query_fs(FsInfo::FullSize, &mut [0; 32]), Ok(32));
    }),
    Fact::new("FS-INFO-04", |node| {
        for kind in [VolumeKind::Ntfs, VolumeKind::Fat32] {
            let volume = node.volume(kind);
            let device = volume
                .open(node.os(), Access::GENERIC_READ)
                .expect("the volume opens");
            let length = u64::try_from(length(&*device)).expect("a length");
            let size = full_size(&*device).expect("the size");
            let total = size.total_units
                * u64::from(size.sectors_per_unit)
                * u64::from(size.bytes_per_sector);
            assert!(total <= length && total > length / 2, "{total} of {length}");
            assert!(
                size.available_units <= size.total_units
                    && size.caller_available_units <= size.available_units
            );
        }
    }),
    Fact::new("FS-INFO-05", |node| {
        for (kind, has_them) in [(VolumeKind::Ntfs, true), (VolumeKind::Fat32, false)] {
            let root = NtPath::volume_root(node.volume(kind).id);
            let handle = open(node, &root, Access::READ_ATTRIBUTES).expect("the root opens");
            let mut output = [0; 64];
            handle
                .query_fs(FsInfo::Attribute, &mut output)
                .expect("attributes");
            let (head, _) =
                FsAttributeInformation::read_from_prefix(&output).expect("the fixed part");
            assert_eq!(
                head.attributes & FsAttributeInformation::SUPPORTS_REPARSE_POINTS != 0,
                has_them
            );
            let new = root.join(&U16String::from_str("new"));
            let access = Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES;
            let directory = node
                .os()
                .open(&new, &Open::new_directory(access))
                .expect("the directory is created");
            let set = set_junction(&*directory, &root);
            assert_eq!(
                set,
                if has_them {
                    Ok(())
                } else {
                    Err(OsError::INVALID_FUNCTION)
                }
            );
        }
    }),
    Fact::new("DEVICE-LOST-01", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let paths = [NtPath::volume(volume.id), NtPath::volume_root(volume.id)];
        for path in &paths {
            open(node, path, Access::GENERIC_READ).expect("it opens");
        }
        drop(node.remove_disk(TestDisk {
            number: volume.disk,
        }));
        for path in paths
            .iter()
            .chain([&paths[1].join(&U16String::from_str("file"))])
        {
            let codes = [
                OsError::FILE_NOT_FOUND,
                OsError::PATH_NOT_FOUND,
                OsError::NO_SUCH_DEVICE,
            ];
            assert_fails(open(node, path, Access::GENERIC_READ), &codes);
        }
    }),
    Fact::new("DEVICE-LOST-02", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let folder = directory_on(node, volume.id);
        folder
            .list(true, &mut [0; 4096])
            .expect("the directory is listed");
        drop(node.remove_disk(TestDisk {
            number: volume.disk,
        }));
        assert_fails(folder.list(true, &mut [0; 4096]), &LOST);
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        assert_fails(
            folder.open_child(&U16String::from_str("entry"), &how),
            &LOST,
        );
        assert_fails(query::<FileBasicInfo>(&*folder, FileInfo::Basic), &LOST);
        assert_fails(folder.set(FileInfo::Disposition, &[1]), &LOST);
        assert_fails(
            folder.set(FileInfo::DispositionEx, &3_u32.to_le_bytes()),
            &LOST,
        );
    }),
    Fact::new("DEVICE-LOST-03", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let device = volume
            .open(node.os(), Access::GENERIC_READ)
            .expect("the volume opens");
        full_size(&*device).expect("the size");
        drop(node.remove_disk(TestDisk {
            number: volume.disk,
        }));
        assert_fails(device.query_fs(FsInfo::Attribute, &mut [0; 64]), &LOST);
        assert_fails(full_size(&*device), &LOST);
    }),
    Fact::new("DEVICE-LOST-04", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let folder = directory_on(node, volume.id);
        let path = NtPath::volume_root(volume.id).join(&U16String::from_str("facts-folder"));
        let connect_again = node.remove_disk(TestDisk {
            number: volume.disk,
        });
        connect_again();
        assert_fails(query::<FileBasicInfo>(&*folder, FileInfo::Basic), &LOST);
        let anew = open(node, &path, Access::READ_ATTRIBUTES).expect("the directory opens");
        query::<FileBasicInfo>(&*anew, FileInfo::Basic).expect("the information");
    }),
    Fact::new("DEVICE-LOST-05", |node| {
        let volume = node.volume(VolumeKind::Unreadable);
        assert_fails(
            open(
                node,
                &NtPath::volume_root(volume.id),
                Access::READ_ATTRIBUTES,
            ),
            &UNREADABLE,
        );
    }),
];

fn open(node: &dyn TestNode, path: &NtPath, access: Access) -> OsResult<Box<dyn Handle>> {
    node.os()
        .open(path, &Open::existing(access, Options::empty()))
}

/// Returns the name of a file system as read into `size` bytes, and how many bytes were written.
fn name(handle: &dyn Handle, size: usize) -> (OsResult<usize>, String) {
    let mut output = vec![0; size];
    let filled = handle.query_fs(FsInfo::Attribute, &mut output);
    let (head, _) = FsAttributeInformation::read_from_prefix(&output).expect("the fixed part");
    let bytes = &output[FsAttributeInformation::NAME_OFFSET..];
    let bytes = &bytes[..(head.name_length as usize).min(bytes.len())];
    let units: Vec<u16> = bytes
        .chunks(2)
        .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
        .collect();
    (filled, String::from_utf16_lossy(&units))
}

/// Creates a directory on a new volume and opens it, to list and to delete it.
fn directory_on(node: &dyn TestNode, volume: Uuid) -> Box<dyn Handle> {
    let path = NtPath::volume_root(volume).join(&U16String::from_str("facts-folder"));
    let access = Access::DELETE | Access::READ_DATA | Access::READ_ATTRIBUTES;
    node.os()
        .open(&path, &Open::new_directory(access))
        .expect("the directory is created")
}
