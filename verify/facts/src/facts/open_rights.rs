//! Attributes and rights that an open call meets: `FILE-OPEN-21` to `-24`, `-29` to `-31`, `-34`,
//! `-35`, `-38` and `-39`.

use os::abi::{FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY};
use os::{Access, Open, Options, OsError, U16String};

use super::calls::{basic, delete, set_attributes, set_junction};
use crate::fact::Fact;
use crate::node::Directory;

/// `FILE_ATTRIBUTE_ARCHIVE`.
const FILE_ATTRIBUTE_ARCHIVE: u32 = 0x20;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-OPEN-22", |node| {
        let directory = node.directory();
        write_read_only(&directory);
        let written = directory.existing("file", Access::GENERIC_WRITE, Options::empty());
        assert_eq!(written.err(), Some(OsError::ACCESS_DENIED));
        directory
            .existing("file", Access::DELETE, Options::empty())
            .expect("the file opens for deletion");
    }),
    Fact::new("FILE-OPEN-24", |node| {
        let directory = node.directory_with_file();
        let access = Access::GENERIC_READ | Access::GENERIC_WRITE;
        let opened = directory.existing("file", access, Options::DELETE_ON_CLOSE);
        assert_eq!(opened.err(), Some(OsError::INVALID_PARAMETER));
        assert!(directory.has("file"));
        directory
            .existing("file", Access::DELETE, Options::DELETE_ON_CLOSE)
            .expect("DELETE is the right that was missing");
        assert!(!directory.has("file"));
    }),
    Fact::new("FILE-OPEN-31", |node| {
        let directory = node.directory_with_file();
        node.revoke_all_rights(&directory.win32("file"));
        let how = Open::existing(Access::DELETE, Options::REPARSE_POINT);
        let file = directory
            .handle()
            .open_child(&U16String::from_str("file"), &how)
            .expect("the file opens");
        delete(&*file).expect("the file is deleted");
        drop(file);
        assert!(!directory.has("file"));
    }),
    Fact::new("FILE-OPEN-34", |node| {
        let directory = node.directory();
        write_read_only(&directory);
        let access = Access::DELETE | Access::WRITE_ATTRIBUTES;
        let file = directory
            .existing("file", access, Options::empty())
            .expect("the file opens");
        assert_eq!(delete(&*file), Err(OsError::ACCESS_DENIED));
        set_attributes(&*file, FILE_ATTRIBUTE_NORMAL).expect("the attribute is cleared");
        delete(&*file).expect("the file is deleted");
        drop(file);
        assert!(!directory.has("file"));
    }),
    Fact::new("FILE-OPEN-35", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        let link = directory
            .open("link", &Open::new_directory(Access::WRITE_ATTRIBUTES))
            .expect("the name is free");
        set_junction(&*link, &directory.nt("target")).expect("the link is set");
        drop(link);
        let options = Options::REPARSE_POINT | Options::NON_DIRECTORY;
        let opened = directory.existing("link", Access::READ_ATTRIBUTES, options);
        assert_eq!(opened.err(), Some(OsError::ACCESS_DENIED));
    }),
    Fact::new("FILE-OPEN-38", |node| {
        let directory = node.directory_with_file();
        node.revoke_all_rights(&directory.win32("file"));
        let file = directory
            .existing("file", Access::READ_ATTRIBUTES, Options::empty())
            .expect("the file opens");
        assert_eq!(basic(&*file).attributes, FILE_ATTRIBUTE_ARCHIVE);
        for access in [
            Access::READ_DATA,
            Access::WRITE_DATA,
            Access::WRITE_ATTRIBUTES,
        ] {
            let opened =
                directory.existing("file", access | Access::READ_ATTRIBUTES, Options::empty());
            assert_eq!(opened.err(), Some(OsError::ACCESS_DENIED), "{access:?}");
        }
    }),
    Fact::new("FILE-OPEN-39", |node| {
        let directory = node.directory();
        directory.mkdir("closed");
        directory.mkdir(r"closed\inner");
        node.revoke_all_rights(&directory.win32("closed"));
        let created = directory.open(r"closed\new", &Open::new_directory(Access::READ_ATTRIBUTES));
        assert_eq!(created.err(), Some(OsError::ACCESS_DENIED));
        directory
            .existing(r"closed\inner", Access::READ_ATTRIBUTES, Options::empty())
            .expect("the directory opens");
    }),
];

/// Creates the read-only file `file`.
fn write_read_only(directory: &Directory<'_>) {
    directory.write("file", b"content");
    let file = directory
        .existing("file", Access::WRITE_ATTRIBUTES, Options::empty())
        .expect("the file opens");
    set_attributes(&*file, FILE_ATTRIBUTE_READONLY).expect("the attribute is set");
}
