//! Sharing: `SHARE`.

use os::{Access, Open, Options, OsError, Share};

use super::calls::{APPEND_DATA, delete, id};
use crate::fact::Fact;
use crate::node::Directory;

/// `FILE_READ_EA`.
const READ_EA: Access = Access::from_bits_retain(0x0008);
/// `FILE_WRITE_EA`.
const WRITE_EA: Access = Access::from_bits_retain(0x0010);
/// `FILE_EXECUTE`.
const EXECUTE: Access = Access::from_bits_retain(0x0020);
/// `FILE_DELETE_CHILD`.
const DELETE_CHILD: Access = Access::from_bits_retain(0x0040);

/// The rights that others must share, each with the mode that shares it.
const SHARED: [(Access, Share); 5] = [
    (Access::READ_DATA, Share::READ),
    (EXECUTE, Share::READ),
    (Access::WRITE_DATA, Share::WRITE),
    (APPEND_DATA, Share::WRITE),
    (Access::DELETE, Share::DELETE),
];

/// Rights that nobody has to share.
const NOT_SHARED: [Access; 6] = [
    Access::empty(),
    Access::READ_ATTRIBUTES,
    Access::WRITE_ATTRIBUTES,
    READ_EA,
    WRITE_EA,
    DELETE_CHILD,
];

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("SHARE-01", |node| {
        let directory = node.directory_with_file();
        let shared = SHARED
            .iter()
            .fold(Access::empty(), |all, (right, _)| all | *right);
        for right in NOT_SHARED {
            for [first, second] in [[right, shared], [shared, right]] {
                let held = open(&directory, first, Share::empty()).expect("nothing is open yet");
                open(&directory, second, Share::empty())
                    .unwrap_or_else(|code| panic!("{first:?}, {second:?}: {code}"));
                drop(held);
            }
        }
    }),
    Fact::new("SHARE-02", |node| {
        let directory = node.directory_with_file();
        for (right, needed) in SHARED {
            for (other, _) in SHARED {
                for share in modes() {
                    let expected = if share.contains(needed) {
                        None
                    } else {
                        Some(OsError::SHARING_VIOLATION)
                    };
                    for (first, second) in [
                        ((right, Share::all()), (other, share)),
                        ((other, share), (right, Share::all())),
                    ] {
                        let held = open(&directory, first.0, first.1).expect("nothing is open yet");
                        let opened = open(&directory, second.0, second.1).err();
                        assert_eq!(opened, expected, "{first:?}, then {second:?}");
                        drop(held);
                    }
                }
            }
        }
    }),
    Fact::new("SHARE-03", |node| {
        let directory = node.directory();
        directory.mkdir("directory");
        let held = directory
            .existing("directory", Access::DELETE, Options::DIRECTORY)
            .expect("nothing is open yet");
        let share = Share::READ | Share::WRITE;
        let how = Open {
            share,
            ..Open::existing(Access::READ_DATA, Options::DIRECTORY)
        };
        assert_eq!(
            directory.open("directory", &how).err(),
            Some(OsError::SHARING_VIOLATION)
        );
        drop(held);
        directory
            .open("directory", &how)
            .expect("nothing is open any more");
    }),
    Fact::new("SHARE-04", |node| {
        let directory = node.directory_with_file();
        let deleter = directory
            .existing("file", Access::DELETE, Options::empty())
            .expect("the file opens");
        delete(&*deleter).expect("it is deleted");
        let opened = open(&directory, Access::READ_DATA, Share::empty()).err();
        assert_eq!(opened, Some(OsError::DELETE_PENDING));
    }),
    Fact::new("SHARE-06", |node| {
        let directory = node.directory();
        directory.mkdir("directory");
        let rename = || node.rename(&directory.win32("directory"), &directory.win32("renamed"));
        let share = Share::READ | Share::WRITE;
        let how = Open {
            share,
            ..Open::existing(
                Access::READ_DATA | Access::READ_ATTRIBUTES,
                Options::REPARSE_POINT,
            )
        };
        let held = directory
            .open("directory", &how)
            .expect("nothing is open yet");
        assert_eq!(rename(), Err(OsError::SHARING_VIOLATION));
        let id_before = id(&*held);
        drop(held);
        assert_eq!(rename(), Ok(()));
        let renamed = directory
            .existing("renamed", Access::READ_ATTRIBUTES, Options::DIRECTORY)
            .expect("the new name opens");
        assert_eq!(id(&*renamed), id_before);
    }),
];

/// Returns all combinations of the modes.
fn modes() -> impl Iterator<Item = Share> {
    (0..8).map(Share::from_bits_truncate)
}

fn open(
    directory: &Directory<'_>,
    access: Access,
    share: Share,
) -> os::OsResult<Box<dyn os::Handle>> {
    directory.open(
        "file",
        &Open {
            share,
            ..Open::existing(access, Options::empty())
        },
    )
}
