//! Opening by name, with most of the facts `FILE-OPEN`, and the names that no file has.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Access, Handle, NtPath, Open, Options, OsError, OsResult, PathForm, U16String};

use super::calls::{basic, fat_root, id};
use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-OPEN-01", |node| {
        let directory = node.directory();
        directory.mkdir("Lower");
        for name in ["lower", "LOWER"] {
            for opened in directory.open_both_ways(name, &read_attributes(Options::empty())) {
                assert!(is_directory(&*opened.expect("the name opens")), "{name}");
            }
        }
    }),
    Fact::new("FILE-OPEN-02", |node| {
        let directory = node.directory_with_file();
        for options in [Options::NON_DIRECTORY, Options::DIRECTORY] {
            assert_eq!(
                directory.open("FILE", &create(options)).err(),
                Some(OsError::ALREADY_EXISTS)
            );
        }
    }),
    Fact::new("FILE-OPEN-04", |node| {
        let directory = node.directory_with_file();
        let how = Open::existing(
            Access::READ_DATA | Access::READ_ATTRIBUTES,
            Options::empty(),
        );
        let first = directory.handle();
        let (mut begin, mut again) = (vec![0; 4096], vec![0; 4096]);
        first.list(false, &mut begin).expect("the entries");
        let second = child(&*first, "", &how).expect("the directory opens again");
        assert_eq!(id(&*second), id(&*first));
        second
            .list(false, &mut again)
            .expect("the listing of the second handle begins at the begin");
        assert_eq!(again, begin);

        let first = directory.open("file", &how).expect("the file opens");
        let second = child(&*first, "", &how).expect("the file opens again");
        assert_eq!(id(&*second), id(&*first));
        drop(first);
        let mut content = [0; 16];
        assert_eq!(second.read(0, &mut content), Ok(7));
        assert_eq!(&content[..7], b"content");
    }),
    Fact::new("FILE-OPEN-05", |node| {
        let directory = node.directory_with_file();
        let file = directory
            .existing("file", Access::READ_ATTRIBUTES, Options::empty())
            .expect("the file opens");
        assert_eq!(
            child(&*file, "name", &read_attributes(Options::empty())).err(),
            Some(OsError::PATH_NOT_FOUND)
        );
    }),
    Fact::new("FILE-OPEN-07", |node| {
        let directory = node.directory_with_file();
        for how in [
            read_attributes(Options::empty()),
            create(Options::NON_DIRECTORY),
            create(Options::DIRECTORY),
        ] {
            assert_eq!(
                directory.open(r"file\name", &how).err(),
                Some(OsError::PATH_NOT_FOUND),
                "{how:?}"
            );
        }
    }),
    Fact::new("FILE-OPEN-08", |node| {
        let directory = node.directory();
        for options in [Options::NON_DIRECTORY, Options::DIRECTORY] {
            let created = directory.open(r"missing\name", &create(options));
            assert_eq!(created.err(), Some(OsError::PATH_NOT_FOUND), "{options:?}");
        }
    }),
    Fact::new("FILE-OPEN-09", |node| {
        let directory = node.directory_with_file();
        let opened = directory.existing("file", Access::READ_ATTRIBUTES, Options::DIRECTORY);
        assert_eq!(opened.err(), Some(OsError::DIRECTORY));
    }),
    Fact::new("FILE-OPEN-10", |node| {
        let directory = node.directory();
        directory.mkdir("directory");
        let opened =
            directory.existing("directory", Access::READ_ATTRIBUTES, Options::NON_DIRECTORY);
        assert_eq!(opened.err(), Some(OsError::ACCESS_DENIED));
    }),
    Fact::new("FILE-OPEN-11", |node| {
        let directory = node.directory_with_file();
        let fat = fat_root(node);
        node.write_file(&format!("{}file", fat.path), b"content");
        let opened = directory.existing(r"file\", Access::READ_ATTRIBUTES, Options::DIRECTORY);
        assert_eq!(opened.err(), Some(OsError::DIRECTORY));
        let opened = child(&*fat.root, r"file\", &read_attributes(Options::empty()));
        assert_eq!(opened.err(), Some(OsError::INVALID_NAME));
    }),
    Fact::new("FILE-OPEN-12", |node| {
        let directory = node.directory();
        directory.mkdir("directory");
        let how = read_attributes(Options::empty());
        for opened in directory.open_both_ways(r"directory\", &how) {
            let path = opened
                .expect("the name opens")
                .final_path(PathForm::Dos)
                .expect("the path")
                .to_string_lossy();
            assert!(path.ends_with(r"\directory"), "{path}");
        }
        let drive = directory.win32("").chars().next().expect("a drive");
        let root = node
            .os()
            .open(&NtPath::drive_root(drive), &how)
            .expect("the root directory opens");
        let path = root
            .final_path(PathForm::Dos)
            .expect("the path")
            .to_string_lossy();
        assert_eq!(
            path.to_lowercase(),
            format!(r"\\?\{drive}:\").to_lowercase()
        );
    }),
    Fact::new("FILE-OPEN-14", |node| {
        let directory = node.directory();
        for (name, options) in [
            ("file", Options::NON_DIRECTORY),
            ("directory", Options::DIRECTORY),
        ] {
            let created = directory
                .open(name, &create(options))
                .expect("the name is free");
            assert_eq!(is_directory(&*created), options == Options::DIRECTORY);
            drop(created);
            for again in directory.open_both_ways(name, &create(options)) {
                assert_eq!(again.err(), Some(OsError::ALREADY_EXISTS), "{name}");
            }
        }
    }),
    Fact::new("FILE-OPEN-16", |node| {
        let directory = node.directory();
        for name in ["/", ":", "<", ">", "\"", "|", "?", "*"] {
            let created = directory.open(name, &create(Options::empty()));
            assert_eq!(created.err(), Some(OsError::INVALID_NAME), "{name}");
        }
    }),
    Fact::new("FILE-OPEN-17", |node| {
        let directory = node.directory();
        let parent = directory.handle();
        for options in [Options::NON_DIRECTORY, Options::DIRECTORY] {
            let long = child(&*parent, &"n".repeat(256), &create(options));
            assert_eq!(long.err(), Some(OsError::INVALID_NAME), "{options:?}");
        }
        child(&*parent, &"n".repeat(255), &create(Options::NON_DIRECTORY))
            .expect("255 units are accepted");
    }),
    Fact::new("FILE-OPEN-18", |node| {
        let directory = node.directory();
        let parent = directory.handle();
        for name in [&[0xd83d_u16][..], &[0xdd25], &[0xdd25, 0xd83d]] {
            let name = U16String::from_vec(name);
            let created = parent
                .open_child(&name, &create(Options::NON_DIRECTORY))
                .expect("the name is accepted");
            let path = created.final_path(PathForm::Dos).expect("the path");
            assert!(path.as_slice().ends_with(name.as_slice()), "{path:?}");
            parent
                .open_child(&name, &read_attributes(Options::NON_DIRECTORY))
                .expect("the name opens");
        }
    }),
    Fact::new("FILE-OPEN-36", |node| {
        let directory = node.directory();
        let how = read_attributes(Options::empty());
        for opened in directory.open_both_ways("missing", &how) {
            assert_eq!(opened.err(), Some(OsError::FILE_NOT_FOUND));
        }
        assert_eq!(
            directory.open(r"missing\entry", &how).err(),
            Some(OsError::PATH_NOT_FOUND)
        );
    }),
    Fact::new("FILE-OPEN-37", |node| {
        let directory = node.directory();
        for name in [".", ".."] {
            let opened = child(
                &*directory.handle(),
                name,
                &read_attributes(Options::empty()),
            );
            assert_eq!(opened.err(), Some(OsError::INVALID_NAME), "{name}");
        }
    }),
];

fn read_attributes(options: Options) -> Open {
    Open::existing(Access::READ_ATTRIBUTES, options)
}

fn create(options: Options) -> Open {
    Open::new(Access::READ_ATTRIBUTES, options)
}

fn child(parent: &dyn Handle, name: &str, how: &Open) -> OsResult<Box<dyn Handle>> {
    parent.open_child(&U16String::from_str(name), how)
}

fn is_directory(handle: &dyn Handle) -> bool {
    basic(handle).attributes & FILE_ATTRIBUTE_DIRECTORY != 0
}
