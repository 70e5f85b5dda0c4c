//! Opening by name: `FILE-OPEN-01` to `-20`, and the names that no file has.

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FileAttributeTagInfo, FileIdInfo};
use os::{Access, Disposition, FileInfo, Handle, NtPath, Open, Options, OsError, OsResult, PathForm, U16String};

use super::calls::{fat_root, query};
use crate::fact::Fact;

/// `ERROR_BAD_PATHNAME`.
const BAD_PATHNAME: OsError = OsError(161);

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "FILE-OPEN-01",
        "A name that differs from an existing name only in case opens the existing entry, also relative to a \
         directory.",
        "WF open_file_test; GO root TestRootWindowsCaseInsensitivity",
        |node| {
            let directory = node.directory();
            directory.mkdir("Lower");
            for name in ["lower", "LOWER"] {
                let how = read_attributes(Options::empty());
                let by_path = directory.open(name, &how).expect("the path opens");
                let relative = child(&*directory.handle(), name, &how).expect("the name opens");
                for handle in [by_path, relative] {
                    assert!(is_directory(&*handle), "{name}");
                }
            }
        },
    ),
    Fact::published(
        "FILE-OPEN-02",
        "FILE_CREATE of a name that differs from an existing name only in case fails with ALREADY_EXISTS (183).",
        "BT create.cpp",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            for options in [Options::NON_DIRECTORY, Options::DIRECTORY] {
                assert_eq!(directory.open("FILE", &create(options)).err(), Some(OsError::ALREADY_EXISTS));
            }
        },
    ),
    Fact::published(
        "FILE-OPEN-03",
        "A relative name that begins with a backslash fails with INVALID_PARAMETER (87), INVALID_NAME (123) or \
         BAD_PATHNAME (161), depending on the version of Windows, and on FAT with INVALID_NAME (123).",
        "WF open_file_test; FF create.c",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            let fat = fat_root(node);
            let opened = child(&*directory.handle(), r"\file", &read_attributes(Options::empty())).err();
            let codes = [OsError::INVALID_PARAMETER, OsError::INVALID_NAME, BAD_PATHNAME];
            assert!(opened.is_some_and(|code| codes.contains(&code)), "{opened:?}");
            let opened = child(&*fat.root, r"\file", &read_attributes(Options::empty())).err();
            assert_eq!(opened, Some(OsError::INVALID_NAME));
        },
    ),
    Fact::published(
        "FILE-OPEN-04",
        "An empty relative name opens the object of the root handle, a directory or a file, as a second handle with \
         its own position.",
        "WF open_file_test",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            let how = Open::existing(Access::READ_DATA | Access::READ_ATTRIBUTES, Options::empty());
            let first = directory.handle();
            let (mut begin, mut again) = (vec![0; 4096], vec![0; 4096]);
            first.list(false, &mut begin).expect("the entries");
            let second = child(&*first, "", &how).expect("the directory opens again");
            assert_eq!(id(&*second), id(&*first));
            second.list(false, &mut again).expect("the listing of the second handle begins at the begin");
            assert_eq!(again, begin);

            let first = directory.open("file", &how).expect("the file opens");
            let second = child(&*first, "", &how).expect("the file opens again");
            assert_eq!(id(&*second), id(&*first));
            drop(first);
            let mut content = [0; 16];
            assert_eq!(second.read(0, &mut content), Ok(7));
            assert_eq!(&content[..7], b"content");
        },
    ),
    Fact::published(
        "FILE-OPEN-05",
        "A name relative to a file fails with PATH_NOT_FOUND (3).",
        "WF open_file_test",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            let file = directory.existing("file", Access::READ_ATTRIBUTES, Options::empty()).expect("the file opens");
            assert_eq!(child(&*file, "name", &read_attributes(Options::empty())).err(), Some(OsError::PATH_NOT_FOUND));
        },
    ),
    Fact::published(
        "FILE-OPEN-06",
        "On FAT, a name relative to a handle of the volume itself fails with PATH_NOT_FOUND (3).",
        "FF create.c",
        |node| {
            let fat = fat_root(node);
            node.write_file(&format!("{}file", fat.path), b"content");
            let volume = fat.volume.open(node.os(), Access::GENERIC_READ).expect("the volume opens");
            assert_eq!(
                child(&*volume, "file", &read_attributes(Options::empty())).err(),
                Some(OsError::PATH_NOT_FOUND)
            );
        },
    ),
    Fact::published(
        "FILE-OPEN-07",
        r"Opening or creating `file\name` fails with PATH_NOT_FOUND (3) if `file` is a file.",
        "BT create.cpp; WF open_file_test",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            for how in [read_attributes(Options::empty()), create(Options::NON_DIRECTORY), create(Options::DIRECTORY)] {
                assert_eq!(directory.open(r"file\name", &how).err(), Some(OsError::PATH_NOT_FOUND), "{how:?}");
            }
        },
    ),
    Fact::published(
        "FILE-OPEN-08",
        "Creating a file or directory below a missing directory fails with PATH_NOT_FOUND (3).",
        "BT create.cpp",
        |node| {
            let directory = node.directory();
            for options in [Options::NON_DIRECTORY, Options::DIRECTORY] {
                let created = directory.open(r"missing\name", &create(options));
                assert_eq!(created.err(), Some(OsError::PATH_NOT_FOUND), "{options:?}");
            }
        },
    ),
    Fact::published(
        "FILE-OPEN-09",
        "FILE_DIRECTORY_FILE on a file fails with DIRECTORY (267).",
        "WF open_file_test",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            let opened = directory.existing("file", Access::READ_ATTRIBUTES, Options::DIRECTORY);
            assert_eq!(opened.err(), Some(OsError::DIRECTORY));
        },
    ),
    Fact::published(
        "FILE-OPEN-10",
        "FILE_NON_DIRECTORY_FILE on a directory fails with ACCESS_DENIED (5).",
        "BT create.cpp",
        |node| {
            let directory = node.directory();
            directory.mkdir("directory");
            let opened = directory.existing("directory", Access::READ_ATTRIBUTES, Options::NON_DIRECTORY);
            assert_eq!(opened.err(), Some(OsError::ACCESS_DENIED));
        },
    ),
    Fact::published(
        "FILE-OPEN-11",
        "Opening `file\\`, where `file` is a file, fails with DIRECTORY (267) if FILE_DIRECTORY_FILE is set, and on \
         FAT without it with INVALID_NAME (123).",
        "WF open_file_test; FF create.c",
        |node| {
            let directory = node.directory();
            directory.write("file", b"content");
            let fat = fat_root(node);
            node.write_file(&format!("{}file", fat.path), b"content");
            let opened = directory.existing(r"file\", Access::READ_ATTRIBUTES, Options::DIRECTORY);
            assert_eq!(opened.err(), Some(OsError::DIRECTORY));
            let opened = child(&*fat.root, r"file\", &read_attributes(Options::empty()));
            assert_eq!(opened.err(), Some(OsError::INVALID_NAME));
        },
    ),
    Fact::published(
        "FILE-OPEN-12",
        "The name of a directory, also a relative one, may end with a backslash; the final path of the handle ends \
         with a backslash only for a root directory.",
        "WF test_file_name_information",
        |node| {
            let directory = node.directory();
            directory.mkdir("directory");
            let how = read_attributes(Options::empty());
            let by_path = directory.open(r"directory\", &how).expect("the path opens");
            let relative = child(&*directory.handle(), r"directory\", &how).expect("the name opens");
            for handle in [by_path, relative] {
                let path = handle.final_path(PathForm::Dos).expect("the path").to_string_lossy();
                assert!(path.ends_with(r"\directory"), "{path}");
            }
            let drive = directory.win32("").chars().next().expect("a drive");
            let root = node.os().open(&NtPath::drive_root(drive), &how).expect("the root directory opens");
            let path = root.final_path(PathForm::Dos).expect("the path").to_string_lossy();
            assert_eq!(path.to_lowercase(), format!(r"\\?\{drive}:\").to_lowercase());
        },
    ),
    Fact::published(
        "FILE-OPEN-13",
        "FILE_DIRECTORY_FILE together with FILE_NON_DIRECTORY_FILE fails with INVALID_PARAMETER (87).",
        "FF create.c; DDI NtCreateFile",
        |node| {
            let directory = node.directory();
            directory.mkdir("directory");
            directory.write("file", b"content");
            let both = Options::DIRECTORY | Options::NON_DIRECTORY;
            for name in ["directory", "file"] {
                let by_path = directory.open(name, &read_attributes(both));
                let relative = child(&*directory.handle(), name, &read_attributes(both));
                for opened in [by_path, relative] {
                    assert_eq!(opened.err(), Some(OsError::INVALID_PARAMETER), "{name}");
                }
            }
            assert_eq!(directory.open("new", &create(both)).err(), Some(OsError::INVALID_PARAMETER));
        },
    )
    .wine("it ignores one of the two options"),
    Fact::published(
        "FILE-OPEN-14",
        "FILE_CREATE of a file or directory that exists fails with ALREADY_EXISTS (183).",
        "BT create.cpp; WF create_file_test",
        |node| {
            let directory = node.directory();
            for (name, options) in [("file", Options::NON_DIRECTORY), ("directory", Options::DIRECTORY)] {
                let created = directory.open(name, &create(options)).expect("the name is free");
                assert_eq!(is_directory(&*created), options == Options::DIRECTORY);
                drop(created);
                let by_path = directory.open(name, &create(options));
                let relative = child(&*directory.handle(), name, &create(options));
                for again in [by_path, relative] {
                    assert_eq!(again.err(), Some(OsError::ALREADY_EXISTS), "{name}");
                }
            }
        },
    ),
    Fact::published(
        "FILE-OPEN-16",
        "Creating a file with one of the names `/ : < > \" | ? *` fails with INVALID_NAME (123).",
        "BT create.cpp; WF create_file_test",
        |node| {
            let directory = node.directory();
            for name in ["/", ":", "<", ">", "\"", "|", "?", "*"] {
                let created = directory.open(name, &create(Options::empty()));
                assert_eq!(created.err(), Some(OsError::INVALID_NAME), "{name}");
            }
        },
    )
    .wine("it creates the file for some of these characters"),
    Fact::published(
        "FILE-OPEN-17",
        "A component has at most 255 UTF-16 units, and creating a longer one fails with INVALID_NAME (123).",
        "BT create.cpp",
        |node| {
            let directory = node.directory();
            let parent = directory.handle();
            for options in [Options::NON_DIRECTORY, Options::DIRECTORY] {
                let long = child(&*parent, &"n".repeat(256), &create(options));
                assert_eq!(long.err(), Some(OsError::INVALID_NAME), "{options:?}");
            }
            child(&*parent, &"n".repeat(255), &create(Options::NON_DIRECTORY)).expect("255 units are accepted");
        },
    )
    .wine("it fails with FILE_NOT_FOUND (2)"),
    Fact::published("FILE-OPEN-18", "NTFS accepts unpaired surrogates in names.", "BT create.cpp", |node| {
        let directory = node.directory();
        let parent = directory.handle();
        for name in [&[0xd83d_u16][..], &[0xdd25], &[0xdd25, 0xd83d]] {
            let name = U16String::from_vec(name);
            let created = parent.open_child(&name, &create(Options::NON_DIRECTORY)).expect("the name is accepted");
            let path = created.final_path(PathForm::Dos).expect("the path");
            assert!(path.as_slice().ends_with(name.as_slice()), "{path:?}");
            parent.open_child(&name, &read_attributes(Options::NON_DIRECTORY)).expect("the name opens");
        }
    })
    .wine("it refuses such a name, or replaces the surrogate"),
    Fact::published(
        "FILE-OPEN-19",
        "NtCreateFile creates a file of the name `CON`, which only Win32 paths reserve.",
        "BT create.cpp",
        |node| {
            let directory = node.directory();
            let created = directory.open("CON", &create(Options::NON_DIRECTORY)).expect("the name is accepted");
            assert!(!is_directory(&*created));
            let opened = directory.open("CON", &read_attributes(Options::empty())).expect("the name opens");
            assert_eq!(id(&*opened), id(&*created));
        },
    ),
    Fact::published(
        "FILE-OPEN-20",
        r"The path `\??\` alone fails with INVALID_NAME (123).",
        "WF create_file_test",
        |node| {
            let prefix = NtPath::from_win32(&U16String::from_str(r"\\?\"));
            assert_eq!(prefix.to_string(), r"\??\");
            let opened = node.os().open(&prefix, &read_attributes(Options::empty()));
            assert_eq!(opened.err(), Some(OsError::INVALID_NAME));
        },
    ),
    Fact::published(
        "FILE-OPEN-36",
        "Opening a missing entry fails with FILE_NOT_FOUND (2), and below a missing directory with PATH_NOT_FOUND \
         (3).",
        "DDI ZwDeleteFile",
        |node| {
            let directory = node.directory();
            let how = read_attributes(Options::empty());
            assert_eq!(directory.open("missing", &how).err(), Some(OsError::FILE_NOT_FOUND));
            assert_eq!(child(&*directory.handle(), "missing", &how).err(), Some(OsError::FILE_NOT_FOUND));
            assert_eq!(directory.open(r"missing\entry", &how).err(), Some(OsError::PATH_NOT_FOUND));
        },
    ),
    Fact::assumed(
        "FILE-OPEN-37",
        "The relative names `.` and `..` fail with INVALID_NAME (123).",
        "Only that they fail is published (FILE-OPEN-33); MS-FSCC 2.1.5.1 reserves the names and gives no code, and \
         Wine fails with this one. The operations are right if the code is another one: they open no such name, \
         because HostPath refuses these components and a listing skips them.",
        |node| {
            let directory = node.directory();
            for name in [".", ".."] {
                let opened = child(&*directory.handle(), name, &read_attributes(Options::empty()));
                assert_eq!(opened.err(), Some(OsError::INVALID_NAME), "{name}");
            }
        },
    ),
];

fn read_attributes(options: Options) -> Open {
    Open::existing(Access::READ_ATTRIBUTES, options)
}

fn create(options: Options) -> Open {
    Open { disposition: Disposition::Create, ..read_attributes(options) }
}

fn child(parent: &dyn Handle, name: &str, how: &Open) -> OsResult<Box<dyn Handle>> {
    parent.open_child(&U16String::from_str(name), how)
}

fn is_directory(handle: &dyn Handle) -> bool {
    let found: FileAttributeTagInfo = query(handle, FileInfo::AttributeTag).expect("the attributes");
    found.attributes & FILE_ATTRIBUTE_DIRECTORY != 0
}

fn id(handle: &dyn Handle) -> FileIdInfo {
    query(handle, FileInfo::Id).expect("the id")
}
