//! Querying the attributes of a path without a handle, with `OBJ_DONT_REPARSE`: `FILE-OPEN-58` to `-61`.

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT};
use os::{Access, NtPath, OsError, OsResult, PathForm, U16String};

use super::calls::basic;
use super::reparse::{UNHANDLED_TAG, absolute, tagged};
use crate::fact::Fact;
use crate::node::{Directory, TestNode};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FILE-OPEN-58", |node| {
        let directory = node.directory();
        tree(&directory);
        for path in ["real", r"REAL\Inner", r"real\inner\file", "junction", "link", "dangling", "other"] {
            let itself = directory.itself(path, Access::READ_ATTRIBUTES);
            let expected = basic(&*itself).attributes;
            assert_eq!(attributes(node, &directory, path), Ok(expected), "{path}");
            let is_link = !path.to_lowercase().starts_with("real");
            assert_eq!(expected & FILE_ATTRIBUTE_REPARSE_POINT != 0, is_link, "{path}");
        }
        let root = attributes(node, &directory, "").expect("the directory");
        assert_eq!(root & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT), FILE_ATTRIBUTE_DIRECTORY);
    }),
    Fact::new("FILE-OPEN-59", |node| {
        let directory = node.directory();
        tree(&directory);
        for path in
            [r"junction\inner", r"link\file", r"junction\missing", r"junction\missing\x", r"dangling\x", r"other\x"]
        {
            let met = attributes(node, &directory, path);
            assert_eq!(met, Err(OsError::REPARSE_POINT_ENCOUNTERED), "{path}");
        }
    }),
    Fact::new("FILE-OPEN-60", |node| {
        let directory = node.directory();
        tree(&directory);
        for (path, code) in [
            ("missing", OsError::FILE_NOT_FOUND),
            (r"real\missing", OsError::FILE_NOT_FOUND),
            (r"real\missing\x\y", OsError::PATH_NOT_FOUND),
            (r"real\inner\file\x", OsError::PATH_NOT_FOUND),
        ] {
            assert_eq!(attributes(node, &directory, path), Err(code), "{path}");
        }
    }),
    Fact::new("FILE-OPEN-61", |node| {
        let directory = node.directory();
        for path in [directory.nt(""), NtPath::drive_root('C')] {
            assert_eq!(node.os().attributes(&path), Err(OsError::REPARSE_POINT_ENCOUNTERED), "{path}");
        }
    }),
];

/// Creates the tree, and the links `dangling` and `other`, whose reparse point nothing handles.
fn tree(directory: &Directory<'_>) {
    directory.tree();
    directory.link("dangling", &absolute(&directory.nt_text("missing")));
    directory.link("other", &tagged(UNHANDLED_TAG, b"any data"));
}

/// Queries the attributes of the entry `path`, whose path begins with the name of the device.
fn attributes(node: &dyn TestNode, directory: &Directory<'_>, path: &str) -> OsResult<u32> {
    let name = NtPath::from_nt(directory.handle().final_path(PathForm::Device).expect("the path"));
    let name = if path.is_empty() { name } else { name.join(&U16String::from_str(path)) };
    node.os().attributes(&name)
}
