//! Information about files: `FILE-INFO`.

use os::abi::{
    AccessEntry, EntryKind, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY,
    FILE_ATTRIBUTE_REPARSE_POINT, FileAttributeTagInfo, FileBasicInfo, FileIdInfo,
};
use os::{Access, FileInfo, Handle, Options, OsError};

use super::calls::{basic, query, set_attributes};
use crate::fact::Fact;
use crate::node::{Directory, TestNode, VolumeKind};

/// `FILE_ATTRIBUTE_SYSTEM`.
const SYSTEM: u32 = 0x4;
/// `FILE_ATTRIBUTE_SPARSE_FILE`.
const SPARSE_FILE: u32 = 0x200;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-INFO-01", |node| {
        let (directory, _) = file(node);
        let open = |access| directory.existing("file", access, Options::empty()).expect("the file opens");
        let reading = open(Access::READ_ATTRIBUTES);
        assert_eq!(set_attributes(&*reading, FILE_ATTRIBUTE_READONLY), Err(OsError::ACCESS_DENIED));
        assert_eq!(basic(&*reading).attributes & FILE_ATTRIBUTE_READONLY, 0);
        let writing = open(Access::WRITE_ATTRIBUTES);
        assert_eq!(query::<FileBasicInfo>(&*writing, FileInfo::Basic).err(), Some(OsError::ACCESS_DENIED));
        assert_eq!(set_attributes(&*writing, FILE_ATTRIBUTE_READONLY), Ok(()));
        assert_eq!(basic(&*reading).attributes & FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_READONLY);
    }),
    Fact::new("FILE-INFO-03", |node| {
        let (_directory, handle) = file(node);
        for (set, shown) in [
            (SYSTEM, SYSTEM),
            (FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_NORMAL),
            (FILE_ATTRIBUTE_NORMAL | FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_READONLY),
            (SYSTEM | FILE_ATTRIBUTE_REPARSE_POINT, SYSTEM),
            (FILE_ATTRIBUTE_READONLY | SPARSE_FILE, FILE_ATTRIBUTE_READONLY),
        ] {
            set_attributes(&*handle, set).expect("the attributes are set");
            assert_eq!(basic(&*handle).attributes, shown, "{set:#x}");
        }
        assert_eq!(set_attributes(&*handle, FILE_ATTRIBUTE_DIRECTORY), Err(OsError::INVALID_PARAMETER));
    }),
    Fact::new("FILE-INFO-04", |node| {
        let (_directory, handle) = file(node);
        let mut output = [0; size_of::<FileAttributeTagInfo>()];
        let end = output.len() - 1;
        assert_eq!(handle.query(FileInfo::AttributeTag, &mut output[..end]), Err(OsError(24)));
        assert_eq!(handle.query(FileInfo::AttributeTag, &mut output), Ok(()));
        assert_ne!(output, [0; 8]);
    }),
    Fact::new("FILE-INFO-06", |node| {
        let root = node.volume(VolumeKind::Fat32).open_root(node.os(), Access::GENERIC_READ).expect("it opens");
        assert_eq!(
            query::<FileAttributeTagInfo>(&*root, FileInfo::AttributeTag).err(),
            Some(OsError::INVALID_PARAMETER)
        );
        assert_eq!(query::<FileIdInfo>(&*root, FileInfo::Id).err(), Some(OsError::INVALID_PARAMETER));
        assert_eq!(basic(&*root).attributes & FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_DIRECTORY);
    }),
    Fact::new("FILE-INFO-08", |node| {
        let (_directory, handle) = file(node);
        for attributes in [FILE_ATTRIBUTE_NORMAL, SYSTEM] {
            set_attributes(&*handle, attributes).expect("the attributes are set");
            let tag: FileAttributeTagInfo = query(&*handle, FileInfo::AttributeTag).expect("the attributes");
            assert_eq!((tag.attributes, tag.reparse_tag), (attributes, 0));
            assert_eq!(basic(&*handle).attributes, attributes);
        }
    }),
    Fact::new("FILE-INFO-11", |node| {
        let (directory, without) = file(node);
        assert_eq!(without.security_descriptor(), Err(OsError::ACCESS_DENIED));
        let with = directory.existing("file", Access::READ_CONTROL, Options::empty()).expect("the file opens");
        let descriptor = with.security_descriptor().expect("the descriptor");
        assert!(descriptor.owner.is_some() && descriptor.entries.is_some(), "{descriptor:?}");
    }),
    Fact::new("FILE-INFO-13", |node| {
        let directory = node.directory();
        directory.mkdir("inner");
        let open = |access| directory.existing("inner", access, Options::DIRECTORY).expect("the directory opens");
        let changing = open(Access::READ_CONTROL | Access::WRITE_DAC);
        let mut entries = changing.security_descriptor().expect("the descriptor").entries.expect("a list");
        // Modify, for the directory and what is created in it.
        let sid = "S-1-5-93-2-2".parse().expect("a SID");
        entries.push(AccessEntry { kind: EntryKind::Allow, flags: 3, rights: 0x13_01bf, sid });
        let reading = open(Access::READ_CONTROL);
        assert_eq!(reading.set_access_list(&entries), Err(OsError::ACCESS_DENIED));
        assert_eq!(changing.set_access_list(&entries), Ok(()));
        let found = open(Access::READ_CONTROL).security_descriptor().expect("the descriptor").entries;
        assert_eq!(found, Some(entries));
    }),
];

/// Creates a file and opens it with the right to read and write its attributes.
fn file(node: &dyn TestNode) -> (Directory<'_>, Box<dyn Handle>) {
    let directory = node.directory_with_file();
    let access = Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES;
    let handle = directory.existing("file", access, Options::empty()).expect("the file opens");
    (directory, handle)
}
