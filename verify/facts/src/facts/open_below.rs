//! Opening a path of several components below a directory, and querying its attributes without a
//! handle, both with `OBJ_DONT_REPARSE`: `FILE-OPEN-28`, `-32`, `-50` to `-55`, and `-58` to `-61`.

use os::abi::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, REPARSE_TAG_MOUNT_POINT,
    REPARSE_TAG_SYMLINK,
};
use os::{Access, Handle, NtPath, Open, Options, OsError, OsResult, PathForm, U16String};

use super::calls::{basic, delete, id};
use super::reparse::{UNHANDLED_TAG, absolute, attributes, relative, tagged};
use crate::fact::Fact;
use crate::node::{Directory, TestNode};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-OPEN-28", |node| {
        let directory = node.directory();
        tree(&directory);
        for path in [
            r"junction\inner",
            r"junction\inner\file",
            r"link\file",
            r"real\link\file",
            r"junction\link\file",
        ] {
            assert_met(&directory, path);
            let created = below(
                &*directory.handle(),
                &format!("{path}.new"),
                &Open::new(READ, Options::empty()),
            );
            assert_eq!(
                created.err(),
                Some(OsError::REPARSE_POINT_ENCOUNTERED),
                "{path}"
            );
        }
        for path in ["junction", r"real\link"] {
            let followed = below(
                &*directory.handle(),
                path,
                &Open::existing(READ, Options::empty()),
            );
            assert_eq!(
                followed.err(),
                Some(OsError::REPARSE_POINT_ENCOUNTERED),
                "{path}"
            );
        }
    }),
    Fact::new("FILE-OPEN-32", |node| {
        let directory = node.directory();
        tree(&directory);
        let how = Open::existing(READ | Access::DELETE, Options::REPARSE_POINT);
        for (path, tag) in [
            ("junction", REPARSE_TAG_MOUNT_POINT),
            (r"real\link", REPARSE_TAG_SYMLINK),
        ] {
            let link = below(&*directory.handle(), path, &how).expect("the link opens");
            assert_eq!(attributes(&*link).reparse_tag, tag, "{path}");
            delete(&*link).expect("the link is deleted");
            drop(link);
            assert_eq!(
                below(&*directory.handle(), path, &how).err(),
                Some(OsError::FILE_NOT_FOUND),
                "{path}"
            );
        }
        directory
            .existing(r"real\inner\file", READ, Options::empty())
            .expect("the target stays");
    }),
    Fact::new("FILE-OPEN-50", |node| {
        let directory = node.directory();
        directory.mkdir("real");
        directory.mkdir(r"real\inner");
        directory.write(r"real\inner\file", b"content");
        let parent = directory.handle();
        for path in ["real", r"real\inner", r"REAL\Inner\FILE"] {
            let by_path = directory
                .existing(path, READ, Options::empty())
                .expect("the path opens");
            for opened in both(&*parent, path) {
                assert_eq!(
                    id(&*opened.expect("the path opens")),
                    id(&*by_path),
                    "{path}"
                );
            }
        }
        let created = below(&*parent, r"real\inner\new", &Open::new_directory(READ))
            .expect("the directory is created");
        let by_path = directory
            .existing(r"real\inner\new", READ, Options::DIRECTORY)
            .expect("the path opens");
        assert_eq!(id(&*created), id(&*by_path));
    }),
    Fact::new("FILE-OPEN-51", |node| {
        let directory = node.directory();
        directory.mkdir("real");
        directory.write("file", b"content");
        for (path, code) in [
            ("missing", OsError::FILE_NOT_FOUND),
            (r"real\missing", OsError::FILE_NOT_FOUND),
            (r"missing\x", OsError::PATH_NOT_FOUND),
            (r"real\missing\x\y", OsError::PATH_NOT_FOUND),
            (r"file\x", OsError::PATH_NOT_FOUND),
            (r"file\x\y", OsError::PATH_NOT_FOUND),
        ] {
            for opened in both(&*directory.handle(), path) {
                assert_eq!(opened.err(), Some(code), "{path}");
            }
        }
    }),
    Fact::new("FILE-OPEN-52", |node| {
        let directory = node.directory();
        directory.mkdir("real");
        directory.junction("junction", &directory.nt_text("real"));
        directory.link("dangling", &absolute(&directory.nt_text("missing")));
        for path in [r"junction\missing", r"junction\missing\x", r"dangling\x"] {
            assert_met(&directory, path);
        }
    }),
    Fact::new("FILE-OPEN-53", |node| {
        let directory = node.directory();
        directory.link("other", &tagged(UNHANDLED_TAG, b"any data"));
        assert_met(&directory, r"other\x");
    }),
    Fact::new("FILE-OPEN-54", |node| {
        let directory = node.directory();
        tree(&directory);
        let itself = directory.itself("junction", READ);
        for opened in both(&*itself, "inner") {
            assert_eq!(opened.err(), Some(OsError::REPARSE_POINT_ENCOUNTERED));
        }
    }),
    Fact::new("FILE-OPEN-55", |node| {
        let root = node.os().open(
            &NtPath::drive_root('C'),
            &Open::existing(READ, Options::DIRECTORY),
        );
        let root = root.expect("the root directory opens");
        for (path, tag) in [
            ("Documents and Settings", REPARSE_TAG_MOUNT_POINT),
            (r"Users\All Users", REPARSE_TAG_SYMLINK),
        ] {
            let link = below(&*root, path, &Open::existing(READ, Options::REPARSE_POINT))
                .expect("the link opens");
            assert_eq!(attributes(&*link).reparse_tag, tag, "{path}");
        }
    }),
    Fact::new("FILE-OPEN-58", |node| {
        let directory = node.directory();
        tree_with_dead_links(&directory);
        for path in [
            "real",
            r"REAL\Inner",
            r"real\inner\file",
            "junction",
            "link",
            "dangling",
            "other",
        ] {
            let itself = directory.itself(path, Access::READ_ATTRIBUTES);
            let expected = basic(&*itself).attributes;
            assert_eq!(queried(node, &directory, path), Ok(expected), "{path}");
            let is_link = !path.to_lowercase().starts_with("real");
            assert_eq!(
                expected & FILE_ATTRIBUTE_REPARSE_POINT != 0,
                is_link,
                "{path}"
            );
        }
        let root = queried(node, &directory, "").expect("the directory");
        assert_eq!(
            root & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT),
            FILE_ATTRIBUTE_DIRECTORY
        );
    }),
    Fact::new("FILE-OPEN-59", |node| {
        let directory = node.directory();
        tree_with_dead_links(&directory);
        for path in [
            r"junction\inner",
            r"link\file",
            r"junction\missing",
            r"junction\missing\x",
            r"dangling\x",
            r"other\x",
        ] {
            let met = queried(node, &directory, path);
            assert_eq!(met, Err(OsError::REPARSE_POINT_ENCOUNTERED), "{path}");
        }
    }),
    Fact::new("FILE-OPEN-60", |node| {
        let directory = node.directory();
        tree_with_dead_links(&directory);
        for (path, code) in [
            ("missing", OsError::FILE_NOT_FOUND),
            (r"real\missing", OsError::FILE_NOT_FOUND),
            (r"real\missing\x\y", OsError::PATH_NOT_FOUND),
            (r"real\inner\file\x", OsError::PATH_NOT_FOUND),
        ] {
            assert_eq!(queried(node, &directory, path), Err(code), "{path}");
        }
    }),
    Fact::new("FILE-OPEN-61", |node| {
        let directory = node.directory();
        for path in [directory.nt(""), NtPath::drive_root('C')] {
            assert_eq!(
                node.os().attributes(&path),
                Err(OsError::REPARSE_POINT_ENCOUNTERED),
                "{path}"
            );
        }
    }),
];

const READ: Access = Access::READ_ATTRIBUTES;

fn below(parent: &dyn Handle, path: &str, how: &Open) -> OsResult<Box<dyn Handle>> {
    parent.open_below(&U16String::from_str(path), how)
}

/// Opens an existing object, with a link in the last component followed and not followed.
fn both(parent: &dyn Handle, path: &str) -> [OsResult<Box<dyn Handle>>; 2] {
    [Options::empty(), Options::REPARSE_POINT]
        .map(|options| below(parent, path, &Open::existing(READ, options)))
}

/// Creates the tree, and `real\link` to `real\inner`.
fn tree(directory: &Directory<'_>) {
    directory.tree();
    directory.link(r"real\link", &relative("inner"));
}

#[track_caller]
fn assert_met(directory: &Directory<'_>, path: &str) {
    for opened in both(&*directory.handle(), path) {
        assert_eq!(
            opened.err(),
            Some(OsError::REPARSE_POINT_ENCOUNTERED),
            "{path}"
        );
    }
}

/// Creates the tree, and the links `dangling` and `other`, whose reparse point nothing handles.
fn tree_with_dead_links(directory: &Directory<'_>) {
    directory.tree();
    directory.link("dangling", &absolute(&directory.nt_text("missing")));
    directory.link("other", &tagged(UNHANDLED_TAG, b"any data"));
}

/// Queries the attributes of the entry `path`, whose path begins with the name of the device.
fn queried(node: &dyn TestNode, directory: &Directory<'_>, path: &str) -> OsResult<u32> {
    let name = NtPath::from_nt(
        directory
            .handle()
            .final_path(PathForm::Device)
            .expect("the path"),
    );
    let name = if path.is_empty() {
        name
    } else {
        name.join(&U16String::from_str(path))
    };
    node.os().attributes(&name)
}
