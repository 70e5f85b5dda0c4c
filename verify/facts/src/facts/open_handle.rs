//! What an open handle stands for: `FILE-OPEN-46` to `-49`; and opportunistic locks, `-56` and `-57`.

use os::{Access, Open, Options, OsError, PathForm, U16String};

use super::calls::id;
use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-OPEN-46", |node| {
        let directory = node.directory();
        directory.mkdir("before");
        directory.mkdir(r"before\child");
        let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
        let held = directory.existing("before", access, Options::DIRECTORY).expect("the directory opens");
        node.rename(&directory.win32("before"), &directory.win32("after")).expect("the handle shares deletion");
        directory.mkdir("before");
        directory.mkdir(r"before\impostor");
        let open = |name: &str| {
            let how = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
            held.open_child(&U16String::from_str(name), &how)
        };
        let child = open("child").expect("the entry is still in the directory");
        let path = child.final_path(PathForm::Dos).expect("the path").to_string_lossy();
        assert!(path.ends_with(r"\after\child"), "{path}");
        assert_eq!(open("impostor").err(), Some(OsError::FILE_NOT_FOUND));
    }),
    Fact::new("FILE-OPEN-47", |node| {
        let directory = node.directory();
        let name = "n".repeat(100);
        let mut path = directory.nt("");
        let mut deepest = directory.handle();
        for _ in 0..5 {
            path = path.join(&U16String::from_str(&name));
            let how = Open::new_directory(Access::READ_DATA | Access::READ_ATTRIBUTES);
            deepest = node.os().open(&path, &how).expect("the directory is created");
        }
        assert!(path.as_u16str().len() > 500);
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let again = node.os().open(&path, &how).expect("the path opens");
        assert_eq!(id(&*again), id(&*deepest));
    }),
];
