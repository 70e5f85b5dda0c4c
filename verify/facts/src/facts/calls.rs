//! Calls that the checks of several subjects make.

use os::abi::{FileBasicInfo, FileDispositionInfo, FileIdBothDirInfo, FileIdInfo};
use os::{Access, FileInfo, Handle, NtPath, OsError, OsResult};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::reparse;
use crate::node::{Directory, TestNode, TestVolume, VolumeKind};

/// Reads information of a fixed size about a file.
pub(crate) fn query<T>(handle: &dyn Handle, class: FileInfo) -> OsResult<T>
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable,
{
    let mut information = T::new_zeroed();
    handle
        .query(class, information.as_mut_bytes())
        .map(|()| information)
}

/// Reads the times and attributes of a file.
pub(crate) fn basic(handle: &dyn Handle) -> FileBasicInfo {
    query(handle, FileInfo::Basic).expect("the information")
}

/// Returns what identifies a file.
pub(crate) fn id(handle: &dyn Handle) -> FileIdInfo {
    query(handle, FileInfo::Id).expect("the id")
}

/// `FILE_APPEND_DATA`.
pub(crate) const APPEND_DATA: Access = Access::from_bits_retain(0x0004);

/// Checks that a call fails with one of these codes.
#[track_caller]
pub(crate) fn assert_fails<T>(outcome: OsResult<T>, codes: &[OsError]) {
    let code = outcome.err().expect("the call fails");
    assert!(codes.contains(&code), "{code:?}");
}

/// A FAT volume and its open root directory.
pub(crate) struct FatRoot {
    /// The volume.
    pub(crate) volume: TestVolume,
    /// The GUID path of the root directory, with a final backslash.
    pub(crate) path: String,
    /// The root directory.
    pub(crate) root: Box<dyn Handle>,
}

/// Opens the root directory of a FAT volume for listing and for opening its entries.
pub(crate) fn fat_root(node: &dyn TestNode) -> FatRoot {
    let volume = node.volume(VolumeKind::Fat32);
    let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
    let root = volume
        .open_root(node.os(), access)
        .expect("the root directory opens");
    FatRoot {
        volume,
        path: volume.guid_path().to_string_lossy(),
        root,
    }
}

/// Deletes the file when its last handle is closed.
pub(crate) fn delete(handle: &dyn Handle) -> OsResult<()> {
    handle.set(
        FileInfo::Disposition,
        FileDispositionInfo { delete_file: 1 }.as_bytes(),
    )
}

/// Sets the attributes of a file.
pub(crate) fn set_attributes(handle: &dyn Handle, attributes: u32) -> OsResult<()> {
    handle.set(
        FileInfo::Basic,
        FileBasicInfo {
            attributes,
            ..FileBasicInfo::default()
        }
        .as_bytes(),
    )
}

/// Makes an empty directory a junction to an NT path.
pub(crate) fn set_junction(directory: &dyn Handle, target: &NtPath) -> OsResult<()> {
    reparse::set(directory, &reparse::mount_point(&target.to_string(), ""))
}

impl Directory<'_> {
    /// Returns whether the listing of the directory has the entry `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        names(&*self.handle()).contains(&name.to_owned())
    }
}

/// Lists all names in a directory, with `.` and `..`.
pub(crate) fn names(directory: &dyn Handle) -> Vec<String> {
    names_through(directory, 4096)
}

/// Lists all names in a directory through a buffer of `length` bytes.
pub(crate) fn names_through(directory: &dyn Handle, length: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut restart = true;
    loop {
        let mut buffer = vec![0; length];
        match directory.list(restart, &mut buffer) {
            Ok(()) => found.extend(entries(&buffer).0),
            Err(OsError::NO_MORE_FILES) => return found,
            Err(code) => panic!("the listing fails: {code}"),
        }
        restart = false;
    }
}

/// Returns the names in a buffer of directory entries, and the offset after the last one.
pub(crate) fn entries(buffer: &[u8]) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let (head, _) = FileIdBothDirInfo::read_from_prefix(&buffer[at..]).expect("an entry");
        let start = at + FileIdBothDirInfo::NAME_OFFSET;
        let end = start + head.file_name_length as usize;
        let units: Vec<u16> = buffer[start..end]
            .chunks(2)
            .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
            .collect();
        found.push(String::from_utf16(&units).expect("the names of the tests are Unicode"));
        if head.next_entry_offset == 0 {
            return (found, end);
        }
        assert_eq!(head.next_entry_offset % 8, 0, "entries are aligned");
        at += head.next_entry_offset as usize;
    }
}
