//! Deleting: `FILE-DEL`.

use os::abi::{
    FILE_ATTRIBUTE_READONLY, FILE_DISPOSITION_DELETE, FILE_DISPOSITION_IGNORE_READONLY,
    FILE_DISPOSITION_ON_CLOSE, FILE_DISPOSITION_POSIX, FileBasicInfo, FileDispositionInfo,
    FileDispositionInfoEx,
};
use os::{Access, FileInfo, Handle, NtPath, Open, Options, OsError, OsResult, PathForm, U16String};
use zerocopy::IntoBytes;

use super::calls::{assert_fails, query, set_attributes};
use crate::fact::Fact;
use crate::node::{Directory, TestNode, VolumeKind};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-DEL-01", |node| {
        let directory = node.directory_with_file();
        let file = open(
            &directory,
            "file",
            Access::GENERIC_READ | Access::GENERIC_WRITE,
        );
        assert_eq!(marked(&*file, true), Err(OsError::ACCESS_DENIED));
        drop(file);
        assert!(directory.has("file"));
    }),
    Fact::new("FILE-DEL-25", |node| {
        let directory = node.directory_with_file();
        let file = open(
            &directory,
            "file",
            Access::GENERIC_READ | Access::GENERIC_WRITE,
        );
        for flags in [
            FILE_DISPOSITION_DELETE,
            FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX,
        ] {
            assert_eq!(
                flagged(&*file, flags),
                Err(OsError::ACCESS_DENIED),
                "{flags:#x}"
            );
        }
        drop(file);
        assert!(directory.has("file"));
    }),
    Fact::new("FILE-DEL-02", |node| {
        let directory = node.directory_with_file();
        directory.mkdir("folder");
        for name in ["file", "folder"] {
            let other = open(&directory, name, Access::READ_ATTRIBUTES);
            let deleting = open(&directory, name, Access::DELETE);
            marked(&*deleting, true).expect("the entry is marked");
            assert!(directory.has(name));
            drop(deleting);
            assert!(directory.has(name), "another handle is open");
            drop(other);
            assert!(!directory.has(name));
        }
    }),
    Fact::new("FILE-DEL-03", |node| {
        let directory = node.directory_with_file();
        let deleting = open(&directory, "file", Access::DELETE);
        marked(&*deleting, true).expect("the file is marked");
        for opened in directory.open_both_ways(
            "file",
            &Open::existing(Access::READ_ATTRIBUTES, Options::empty()),
        ) {
            assert_eq!(opened.err(), Some(OsError::DELETE_PENDING));
        }
    }),
    Fact::new("FILE-DEL-04", |node| {
        let directory = node.directory_with_file();
        for closed_first in [false, true] {
            let other = open(&directory, "file", Access::DELETE);
            let mut deleting = Some(open(&directory, "file", Access::DELETE));
            marked(deleting.as_deref().expect("it is open"), true).expect("the file is marked");
            if closed_first {
                deleting = None;
            }
            marked(&*other, false).expect("the deletion is taken back");
            assert_eq!(open_error(&directory, "file"), None);
            drop((deleting, other));
            assert!(directory.has("file"));
        }
    }),
    Fact::new("FILE-DEL-05", |node| {
        let directory = node.directory();
        directory.mkdir("full");
        directory.write(r"full\file", b"content");
        let full = open(&directory, "full", Access::DELETE);
        assert_eq!(marked(&*full, true), Err(OsError::DIR_NOT_EMPTY));
        assert_eq!(
            flagged(&*full, FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX),
            Err(OsError::DIR_NOT_EMPTY)
        );
        let file = open(&directory, r"full\file", Access::DELETE);
        marked(&*file, true).expect("the file is marked");
        assert_eq!(
            marked(&*full, true),
            Err(OsError::DIR_NOT_EMPTY),
            "its entry is pending"
        );
        drop(file);
        assert_eq!(marked(&*full, true), Ok(()));
    }),
    Fact::new("FILE-DEL-26", |node| {
        let directory = node.directory();
        let file = read_only_file(&directory);
        assert_eq!(
            flagged(&*file, FILE_DISPOSITION_DELETE),
            Err(OsError::ACCESS_DENIED)
        );
        flagged(
            &*file,
            FILE_DISPOSITION_DELETE | FILE_DISPOSITION_IGNORE_READONLY,
        )
        .expect("the flag ignores the attribute");
        drop(file);
        assert!(!directory.has("file"));
    }),
    Fact::new("FILE-DEL-07", |node| {
        let directory = node.directory_with_file();
        directory.mkdir("folder");
        for name in ["file", "folder"] {
            let other = deleted_while_open(&directory, name);
            assert!(!directory.has(name));
            drop(other);
        }
    }),
    Fact::new("FILE-DEL-08", |node| {
        let directory = node.directory_with_file();
        let other = deleted_while_open(&directory, "file");
        let parent = directory.handle();
        for form in [PathForm::Dos, PathForm::VolumeGuid] {
            let path = other
                .final_path(form)
                .expect("a path")
                .to_string_lossy()
                .to_lowercase();
            let before = parent
                .final_path(form)
                .expect("a path")
                .to_string_lossy()
                .to_lowercase();
            assert!(!path.starts_with(&before), "{path}");
        }
    }),
    Fact::new("FILE-DEL-09", |node| {
        let directory = node.directory_with_file();
        let other = deleted_while_open(&directory, "file");
        assert_eq!(
            open_error(&directory, "file"),
            Some(OsError::FILE_NOT_FOUND)
        );
        query::<FileBasicInfo>(&*other, FileInfo::Basic).expect("the other handle works");
        directory.write("file", b"other");
        drop(other);
        assert!(directory.has("file"));
    }),
    Fact::new("FILE-DEL-10", |node| {
        let directory = node.directory();
        let deleting = created_to_delete(&directory, "file", Options::NON_DIRECTORY);
        let other = open(&directory, "file", Access::DELETE);
        drop(deleting);
        assert_eq!(
            open_error(&directory, "file"),
            Some(OsError::DELETE_PENDING)
        );
        marked(&*other, false).expect("the deletion is taken back");
        assert_eq!(open_error(&directory, "file"), None);
        drop(other);
        assert!(directory.has("file"));
    }),
    Fact::new("FILE-DEL-11", |node| {
        let directory = node.directory();
        let file = created_to_delete(&directory, "file", Options::NON_DIRECTORY);
        marked(&*file, false).expect("the request is accepted");
        drop(file);
        assert!(!directory.has("file"));
    }),
    Fact::new("FILE-DEL-12", |node| {
        let directory = node.directory();
        for (name, kind) in [
            ("file", Options::NON_DIRECTORY),
            ("folder", Options::DIRECTORY),
        ] {
            let created = created_to_delete(&directory, name, kind);
            flagged(&*created, FILE_DISPOSITION_ON_CLOSE).expect("the flag is cleared");
            drop(created);
            assert!(directory.has(name));
        }
    }),
    Fact::new("FILE-DEL-14", |node| {
        let directory = node.directory();
        directory.mkdir("full");
        directory.write(r"full\file", b"content");
        drop(
            directory
                .existing("full", Access::DELETE, Options::DELETE_ON_CLOSE)
                .expect("the directory opens"),
        );
        assert!(directory.has("full"));
        assert_eq!(open_error(&directory, r"full\file"), None);
    }),
    Fact::new("FILE-DEL-17", |node| {
        let root = node
            .volume(VolumeKind::Fat32)
            .open_root(node.os(), Access::DELETE)
            .expect("the root opens");
        assert_eq!(marked(&*root, true), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("FILE-DEL-18", |node| {
        let (path, file) = file_on_fat(node);
        for flags in [
            FILE_DISPOSITION_DELETE,
            FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX | FILE_DISPOSITION_IGNORE_READONLY,
            FILE_DISPOSITION_ON_CLOSE,
        ] {
            assert_eq!(
                flagged(&*file, flags),
                Err(OsError::INVALID_PARAMETER),
                "{flags:#x}"
            );
        }
        drop(file);
        let how = Open::existing(Access::DELETE, Options::DELETE_ON_CLOSE);
        let file = node
            .os()
            .open(&path, &how)
            .expect("the file is still there");
        assert_eq!(
            flagged(&*file, FILE_DISPOSITION_ON_CLOSE),
            Err(OsError::INVALID_PARAMETER)
        );
        drop(file);
        assert_eq!(
            node.os().open(&path, &how).err(),
            Some(OsError::FILE_NOT_FOUND),
            "the flag was not cleared"
        );
    }),
    Fact::new("FILE-DEL-19", |node| {
        let (path, file) = file_on_fat(node);
        let refused = flagged(&*file, FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX);
        assert_fails(
            refused,
            &[
                OsError::INVALID_FUNCTION,
                OsError::NOT_SUPPORTED,
                OsError::INVALID_PARAMETER,
            ],
        );
        marked(&*file, true).expect("the file is marked");
        drop(file);
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        assert_eq!(
            node.os().open(&path, &how).err(),
            Some(OsError::FILE_NOT_FOUND)
        );
    }),
    Fact::new("FILE-DEL-20", |node| {
        let directory = node.directory();
        directory.mkdir("folder");
        let other = open(
            &directory,
            "folder",
            Access::READ_DATA | Access::READ_ATTRIBUTES,
        );
        node.remove_directory(&directory.win32("folder"));
        let found = directory.existing("folder", Access::READ_ATTRIBUTES, Options::empty());
        assert_fails(found, &[OsError::FILE_NOT_FOUND, OsError::DELETE_PENDING]);
        drop(other);
        assert_eq!(
            open_error(&directory, "folder"),
            Some(OsError::FILE_NOT_FOUND)
        );
    }),
];

fn marked(handle: &dyn Handle, delete: bool) -> OsResult<()> {
    handle.set(
        FileInfo::Disposition,
        FileDispositionInfo {
            delete_file: delete.into(),
        }
        .as_bytes(),
    )
}

fn flagged(handle: &dyn Handle, flags: u32) -> OsResult<()> {
    handle.set(
        FileInfo::DispositionEx,
        FileDispositionInfoEx { flags }.as_bytes(),
    )
}

/// Opens an entry with these rights, sharing everything.
fn open(directory: &Directory<'_>, name: &str, access: Access) -> Box<dyn Handle> {
    directory
        .existing(name, access, Options::empty())
        .expect("the entry opens")
}

fn open_error(directory: &Directory<'_>, name: &str) -> Option<OsError> {
    directory
        .existing(name, Access::READ_ATTRIBUTES, Options::empty())
        .err()
}

/// Creates an entry, a directory or a file, that is deleted on close.
fn created_to_delete(directory: &Directory<'_>, name: &str, kind: Options) -> Box<dyn Handle> {
    let how = Open::new(
        Access::DELETE | Access::READ_ATTRIBUTES,
        kind | Options::DELETE_ON_CLOSE,
    );
    directory.open(name, &how).expect("the entry is created")
}

/// Creates a read-only file and opens it.
fn read_only_file(directory: &Directory<'_>) -> Box<dyn Handle> {
    directory.write("file", b"content");
    let file = open(
        directory,
        "file",
        Access::DELETE | Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES,
    );
    set_attributes(&*file, FILE_ATTRIBUTE_READONLY).expect("the file becomes read-only");
    file
}

/// Deletes `name` with POSIX semantics, while another handle is open, and returns that handle.
fn deleted_while_open(directory: &Directory<'_>, name: &str) -> Box<dyn Handle> {
    let other = open(directory, name, Access::READ_ATTRIBUTES);
    let deleting = open(directory, name, Access::DELETE);
    flagged(&*deleting, FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX)
        .expect("the file is deleted");
    assert!(directory.has(name), "the deleting handle is open");
    other
}

/// Creates a file on a FAT volume and returns its path with a handle that may delete it.
fn file_on_fat(node: &dyn TestNode) -> (NtPath, Box<dyn Handle>) {
    let volume = node.volume(VolumeKind::Fat32);
    let path = NtPath::volume_root(volume.id).join(&U16String::from_str("facts-file"));
    let file = node
        .os()
        .open(&path, &Open::new(Access::DELETE, Options::NON_DIRECTORY))
        .expect("the file is created");
    (path, file)
}
