//! Information about files: `FILE-INFO`; their final paths: `FINAL`; flushing: `FLUSH`.

use os::abi::{
    AccessEntry, EntryKind, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL,
    FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT, FileAttributeTagInfo, FileBasicInfo,
    FileIdInfo, FileStreamInfo, FsAttributeInformation,
};
use os::{Access, FileInfo, FsInfo, Handle, NtPath, Open, Options, OsError, PathForm, U16String};

use zerocopy::FromBytes as _;

use super::calls::{assert_fails, basic, id, query, set_attributes};
use super::devices::{FAILING, READ_WRITE};
use crate::fact::Fact;
use crate::node::{Directory, TestNode, VolumeKind, missing};

/// `FILE_ATTRIBUTE_SYSTEM`.
const SYSTEM: u32 = 0x4;
/// `FILE_ATTRIBUTE_SPARSE_FILE`.
const SPARSE_FILE: u32 = 0x200;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-INFO-01", |node| {
        let (directory, _) = file(node);
        let open = |access| {
            directory
                .existing("file", access, Options::empty())
                .expect("the file opens")
        };
        let reading = open(Access::READ_ATTRIBUTES);
        assert_eq!(
            set_attributes(&*reading, FILE_ATTRIBUTE_READONLY),
            Err(OsError::ACCESS_DENIED)
        );
        assert_eq!(basic(&*reading).attributes & FILE_ATTRIBUTE_READONLY, 0);
        let writing = open(Access::WRITE_ATTRIBUTES);
        assert_eq!(
            query::<FileBasicInfo>(&*writing, FileInfo::Basic).err(),
            Some(OsError::ACCESS_DENIED)
        );
        assert_eq!(set_attributes(&*writing, FILE_ATTRIBUTE_READONLY), Ok(()));
        assert_eq!(
            basic(&*reading).attributes & FILE_ATTRIBUTE_READONLY,
            FILE_ATTRIBUTE_READONLY
        );
    }),
    Fact::new("FILE-INFO-03", |node| {
        let (_directory, handle) = file(node);
        for (set, shown) in [
            (SYSTEM, SYSTEM),
            (FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_NORMAL),
            (
                FILE_ATTRIBUTE_NORMAL | FILE_ATTRIBUTE_READONLY,
                FILE_ATTRIBUTE_READONLY,
            ),
            (SYSTEM | FILE_ATTRIBUTE_REPARSE_POINT, SYSTEM),
            (
                FILE_ATTRIBUTE_READONLY | SPARSE_FILE,
                FILE_ATTRIBUTE_READONLY,
            ),
        ] {
            set_attributes(&*handle, set).expect("the attributes are set");
            assert_eq!(basic(&*handle).attributes, shown, "{set:#x}");
        }
        assert_eq!(
            set_attributes(&*handle, FILE_ATTRIBUTE_DIRECTORY),
            Err(OsError::INVALID_PARAMETER)
        );
    }),
    Fact::new("FILE-INFO-04", |node| {
        let (_directory, handle) = file(node);
        let mut output = [0; size_of::<FileAttributeTagInfo>()];
        let end = output.len() - 1;
        assert_eq!(
            handle.query(FileInfo::AttributeTag, &mut output[..end]),
            Err(OsError(24))
        );
        assert_eq!(handle.query(FileInfo::AttributeTag, &mut output), Ok(()));
        assert_ne!(output, [0; 8]);
    }),
    Fact::new("FILE-INFO-06", |node| {
        let root = node
            .volume(VolumeKind::Fat32)
            .open_root(node.os(), Access::GENERIC_READ)
            .expect("it opens");
        assert_eq!(
            query::<FileAttributeTagInfo>(&*root, FileInfo::AttributeTag).err(),
            Some(OsError::INVALID_PARAMETER)
        );
        assert_eq!(
            query::<FileIdInfo>(&*root, FileInfo::Id).err(),
            Some(OsError::INVALID_PARAMETER)
        );
        assert_eq!(
            basic(&*root).attributes & FILE_ATTRIBUTE_DIRECTORY,
            FILE_ATTRIBUTE_DIRECTORY
        );
    }),
    Fact::new("FILE-INFO-08", |node| {
        let (_directory, handle) = file(node);
        for attributes in [FILE_ATTRIBUTE_NORMAL, SYSTEM] {
            set_attributes(&*handle, attributes).expect("the attributes are set");
            let tag: FileAttributeTagInfo =
                query(&*handle, FileInfo::AttributeTag).expect("the attributes");
            assert_eq!((tag.attributes, tag.reparse_tag), (attributes, 0));
            assert_eq!(basic(&*handle).attributes, attributes);
        }
    }),
    Fact::new("FILE-INFO-11", |node| {
        let (directory, without) = file(node);
        assert_eq!(without.security_descriptor(), Err(OsError::ACCESS_DENIED));
        let with = directory
            .existing("file", Access::READ_CONTROL, Options::empty())
            .expect("the file opens");
        let descriptor = with.security_descriptor().expect("the descriptor");
        assert!(
            descriptor.owner.is_some() && descriptor.entries.is_some(),
            "{descriptor:?}"
        );
    }),
    Fact::new("FILE-INFO-13", |node| {
        let directory = node.directory();
        directory.mkdir("inner");
        let open = |access| {
            directory
                .existing("inner", access, Options::DIRECTORY)
                .expect("the directory opens")
        };
        let changing = open(Access::READ_CONTROL | Access::WRITE_DAC);
        let mut entries = changing
            .security_descriptor()
            .expect("the descriptor")
            .entries
            .expect("a list");
        // Modify, for the directory and what is created in it.
        let sid = "S-1-5-93-2-2".parse().expect("a SID");
        entries.push(AccessEntry {
            kind: EntryKind::Allow,
            flags: 3,
            rights: 0x13_01bf,
            sid,
        });
        let reading = open(Access::READ_CONTROL);
        assert_eq!(
            reading.set_access_list(&entries),
            Err(OsError::ACCESS_DENIED)
        );
        assert_eq!(changing.set_access_list(&entries), Ok(()));
        let found = open(Access::READ_CONTROL)
            .security_descriptor()
            .expect("the descriptor")
            .entries;
        assert_eq!(found, Some(entries));
    }),
    Fact::new("FILE-INFO-14", |node| {
        let directory = node.directory();
        directory.mkdir("plain");
        directory.mkdir("inner");
        node.write_file(&directory.win32("inner:secret"), b"content");
        let streams = |name, length| {
            let opened = directory
                .existing(name, Access::READ_ATTRIBUTES, Options::DIRECTORY)
                .expect("the directory opens");
            let mut output = vec![0; length];
            (opened.query(FileInfo::Stream, &mut output), output)
        };
        assert_eq!(streams("plain", 4096).0, Err(OsError::HANDLE_EOF));
        let (queried, output) = streams("inner", 4096);
        assert_eq!(queried, Ok(()));
        let (head, _) = FileStreamInfo::read_from_prefix(&output).expect("a structure");
        let name: Vec<u8> = ":secret:$DATA"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(
            (head.next_entry_offset, head.name_length as usize, head.size),
            (0, name.len(), 7)
        );
        assert_eq!(
            output[FileStreamInfo::NAME_OFFSET..][..name.len()],
            name[..]
        );
        let whole = FileStreamInfo::NAME_OFFSET + name.len();
        assert_eq!(streams("inner", whole - 2).0, Err(OsError::MORE_DATA));
    }),
    Fact::new("FILE-INFO-15", |node| {
        let queried = |kind| {
            let root = node
                .volume(kind)
                .open_root(node.os(), Access::GENERIC_READ)
                .expect("it opens");
            let mut answer = [0; FsAttributeInformation::NAME_OFFSET + 64];
            root.query_fs(FsInfo::Attribute, &mut answer)
                .expect("the attributes");
            let (head, _) = FsAttributeInformation::read_from_prefix(&answer).expect("a structure");
            let has_streams = head.attributes & FsAttributeInformation::NAMED_STREAMS != 0;
            (has_streams, root.query(FileInfo::Stream, &mut [0; 4096]))
        };
        assert_eq!(queried(VolumeKind::Ntfs), (true, Err(OsError::HANDLE_EOF)));
        assert_eq!(
            queried(VolumeKind::Fat32),
            (false, Err(OsError::INVALID_PARAMETER))
        );
    }),
    Fact::new("FINAL-01", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let remote = node.share();
        if !node
            .os()
            .volume_paths(&volume.guid_path())
            .expect("the paths of the volume")
            .is_empty()
        {
            missing("an NTFS volume without a drive letter");
        }
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        let root = node
            .os()
            .open(&NtPath::volume_root(volume.id), &how)
            .expect("the root directory opens");
        assert_eq!(root.final_path(PathForm::Dos), Err(OsError::PATH_NOT_FOUND));
        assert_eq!(
            root.final_path(PathForm::VolumeGuid),
            Ok(volume.guid_path())
        );

        let remote = NtPath::from_win32(&U16String::from_str(&remote));
        let remote = node.os().open(&remote, &how).expect("the share opens");
        assert_eq!(
            remote.final_path(PathForm::VolumeGuid),
            Err(OsError::PATH_NOT_FOUND)
        );
        let path = remote
            .final_path(PathForm::Dos)
            .expect("the path")
            .to_string_lossy();
        assert!(path.to_uppercase().starts_with(r"\\?\UNC\"), "{path}");
    }),
    Fact::new("FINAL-02", |node| {
        let share = node.share();
        let path =
            |name: &str| NtPath::from_win32(&U16String::from_str(&format!(r"{share}\{name}")));
        for directory in ["closed", r"closed\inner"] {
            let how = Open::new_directory(Access::READ_ATTRIBUTES);
            node.os()
                .open(&path(directory), &how)
                .expect("the directory is created");
        }
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        let inner = node
            .os()
            .open(&path(r"closed\inner"), &how)
            .expect("the directory opens");
        let before = inner
            .final_path(PathForm::Dos)
            .expect("the path")
            .to_string_lossy();
        assert!(before.ends_with(r"\closed\inner"), "{before}");
        drop(inner);
        node.revoke_all_rights(&format!(r"{share}\closed"));
        let inner = node
            .os()
            .open(&path(r"closed\inner"), &how)
            .expect("the directory opens");
        assert_eq!(inner.final_path(PathForm::Dos), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("FINAL-04", |node| {
        let directory = node.directory();
        directory.mkdir("Real Name");
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let opened = directory
            .open("REAL name", &how)
            .expect("the directory opens");
        let path = |form| opened.final_path(form).expect("the path");
        let dos = path(PathForm::Dos).to_string_lossy();
        assert_eq!(dos, format!(r"\\?\{}", directory.win32("Real Name")));
        let guid = path(PathForm::VolumeGuid);
        let text = guid.to_string_lossy();
        assert!(
            text.starts_with(r"\\?\Volume{") && text.ends_with(r"\Real Name"),
            "{text}"
        );
        let again = node
            .os()
            .open(&NtPath::from_win32(&guid), &how)
            .expect("the path opens");
        assert_eq!(id(&*again), id(&*opened));
    }),
    Fact::new("FINAL-05", |node| {
        let directory = node.directory();
        directory.mkdir("Real Name");
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let opened = directory
            .open("Real Name", &how)
            .expect("the directory opens");
        let path = opened.final_path(PathForm::Device).expect("the path");
        let text = path.to_string_lossy();
        assert!(
            text.starts_with(r"\Device\HarddiskVolume") && text.ends_with(r"\Real Name"),
            "{text}"
        );
        let again = node
            .os()
            .open(&NtPath::from_nt(path), &how)
            .expect("the path opens");
        assert_eq!(id(&*again), id(&*opened));
    }),
    Fact::new("FLUSH-02", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let flush = |access| {
            volume
                .open(node.os(), access)
                .expect("the volume opens")
                .flush()
        };
        assert_eq!(flush(READ_WRITE), Ok(()));
        assert_eq!(flush(Access::GENERIC_READ), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("FLUSH-04", |node| {
        let volume = node.volume(VolumeKind::Unreadable);
        let flushed = volume
            .open(node.os(), READ_WRITE)
            .expect("the volume opens")
            .flush();
        assert_fails(flushed, &FAILING);
    }),
];

/// Creates a file and opens it with the right to read and write its attributes.
fn file(node: &dyn TestNode) -> (Directory<'_>, Box<dyn Handle>) {
    let directory = node.directory_with_file();
    let access = Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES;
    let handle = directory
        .existing("file", access, Options::empty())
        .expect("the file opens");
    (directory, handle)
}
