//! Listing directories: `LIST`.

use os::abi::{FileBasicInfo, FileIdBothDirInfo};
use os::{Access, FileInfo, Handle, Options, OsError, OsResult};
use zerocopy::FromBytes;

use super::calls::{entries, names, names_through, query};
use crate::fact::Fact;
use crate::node::{Directory, TestNode, VolumeKind};

/// The smallest buffer for a listing.
const SMALLEST: usize = 112;

/// A byte that no entry begins with.
const FILLER: u8 = 0xaa;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("LIST-02", |node| {
        let directory = node.directory();
        for length in [1, FileIdBothDirInfo::NAME_OFFSET, SMALLEST - 1] {
            let (listed, buffer) = list(&*directory.handle(), true, length);
            assert_eq!(listed, Err(OsError(24)), "{length}");
            assert!(buffer.iter().all(|byte| *byte == FILLER));
        }
        assert_eq!(list(&*directory.handle(), true, SMALLEST).0, Ok(()));
    }),
    Fact::new("LIST-04", |node| {
        let directory = three_entries(node);
        let handle = directory.handle();
        // Room for `.`, `..` and half of the next entry.
        let (listed, buffer) = list(&*handle, true, 2 * SMALLEST + SMALLEST / 2);
        assert_eq!(listed, Ok(()));
        let (found, end) = entries(&buffer);
        assert_eq!(found, [".", ".."]);
        // Padding may follow the last entry.
        assert!(
            buffer[end.next_multiple_of(8)..]
                .iter()
                .all(|byte| *byte == FILLER)
        );
        let (_, buffer) = list(&*handle, false, 4096);
        assert_eq!(entries(&buffer).0, ["Aaaaaaaa", "bbbbbbbb", "cccccccc"]);
    }),
    Fact::new("LIST-06", |node| {
        let directory = three_entries(node);
        for restart in [false, true] {
            let (listed, buffer) = list(&*directory.handle(), restart, 4096);
            assert_eq!(listed, Ok(()));
            assert_eq!(entries(&buffer).0[..3], [".", "..", "Aaaaaaaa"]);
        }
    }),
    Fact::new("LIST-07", |node| {
        let directory = three_entries(node);
        let handle = directory.handle();
        assert_eq!(list(&*handle, true, 4096).0, Ok(()));
        assert_eq!(list(&*handle, false, 4096).0, Err(OsError::NO_MORE_FILES));
        assert_eq!(
            list(&*handle, false, 4096).0,
            Err(OsError::NO_MORE_FILES),
            "it stays so"
        );
        let root = node
            .volume(VolumeKind::Fat32)
            .open_root(node.os(), Access::READ_DATA)
            .expect("the root opens");
        // Windows may have made its own directory in the root.
        let found = names(&*root);
        assert!(
            found.is_empty() || found == ["System Volume Information"],
            "{found:?}"
        );
        assert_eq!(list(&*root, false, 4096).0, Err(OsError::NO_MORE_FILES));
    }),
    Fact::new("LIST-08", |node| {
        let directory = three_entries(node);
        let handle = directory.handle();
        assert_eq!(names(&*handle).len(), 5);
        directory.write("added", b"content");
        assert_eq!(
            names(&*handle),
            [".", "..", "Aaaaaaaa", "added", "bbbbbbbb", "cccccccc"]
        );
    }),
    Fact::new("LIST-09", |node| {
        let directory = node.directory();
        let mut expected = vec![".".to_owned(), "..".to_owned()];
        for number in 100..140 {
            // Names of different lengths need different padding.
            let name = format!("{number}{}", "x".repeat(number % 7));
            directory.write(&name, b"content");
            expected.push(name);
        }
        for length in [130, 300, 1000, 64 * 1024] {
            assert_eq!(
                names_through(&*directory.handle(), length),
                expected,
                "{length}"
            );
        }
    }),
    Fact::new("LIST-10", |node| {
        let directory = node.directory();
        let access = Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES | Access::DELETE;
        let handle = directory
            .existing("", access, Options::DIRECTORY)
            .expect("the directory opens");
        assert_eq!(list(&*handle, true, 4096).0, Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("LIST-13", |node| {
        let directory = node.directory_with_file();
        directory.mkdir("folder");
        let (listed, buffer) = list(&*directory.handle(), true, 4096);
        assert_eq!(listed, Ok(()));
        let mut at = 0;
        for name in [".", "..", "file", "folder"] {
            let (entry, _) = FileIdBothDirInfo::read_from_prefix(&buffer[at..]).expect("an entry");
            at += entry.next_entry_offset as usize;
            // The other two have names that no call opens.
            if name.starts_with('.') {
                continue;
            }
            let opened = directory
                .existing(name, Access::READ_ATTRIBUTES, Options::empty())
                .expect("the entry opens");
            let basic: FileBasicInfo = query(&*opened, FileInfo::Basic).expect("the information");
            assert_eq!(entry.attributes, basic.attributes, "{name}");
        }
    }),
    Fact::new("LIST-12", |node| {
        let directory = three_entries(node);
        let handle = directory.handle();
        let (listed, buffer) = list(&*handle, true, 3 * SMALLEST + 16);
        assert_eq!(
            (listed, entries(&buffer).0),
            (
                Ok(()),
                vec![".".to_owned(), "..".to_owned(), "Aaaaaaaa".to_owned()]
            )
        );
        drop(
            directory
                .existing("Aaaaaaaa", Access::DELETE, Options::DELETE_ON_CLOSE)
                .expect("the file opens"),
        );
        let (_, buffer) = list(&*handle, false, 4096);
        assert_eq!(entries(&buffer).0, ["bbbbbbbb", "cccccccc"]);
    }),
];

/// A directory with three entries, whose names have eight units.
fn three_entries(node: &dyn TestNode) -> Directory<'_> {
    let directory = node.directory();
    for name in ["bbbbbbbb", "Aaaaaaaa", "cccccccc"] {
        directory.write(name, b"content");
    }
    directory
}

/// Lists into a buffer of `length` bytes.
fn list(handle: &dyn Handle, restart: bool, length: usize) -> (OsResult<()>, Vec<u8>) {
    let mut buffer = vec![FILLER; length];
    (handle.list(restart, &mut buffer), buffer)
}
