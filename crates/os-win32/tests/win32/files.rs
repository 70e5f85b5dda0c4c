//! Tests of paths and of the attributes of files.

use std::fs;

use crate::scratch::{Scratch, directory, wide};
use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{NtPath, Os as _, OsError, PathForm};

#[test]
fn a_path_longer_than_nt_allows_is_refused() {
    let scratch = Scratch::new("toolong");
    let path = scratch.nt("").join(&wide(&"n".repeat(33_000)));
    assert_eq!(
        scratch.windows.open(&path, &directory()).err(),
        Some(OsError::FILENAME_EXCED_RANGE)
    );
    assert_eq!(
        scratch.windows.attributes(&path).err(),
        Some(OsError::FILENAME_EXCED_RANGE)
    );
}

#[test]
fn the_attributes_of_a_path_are_queried_without_a_handle() {
    let scratch = Scratch::new("attributes");
    fs::create_dir(scratch.join("directory")).unwrap();
    fs::write(scratch.join("file"), "content").unwrap();
    // Wine queries no path of a device. Windows takes a drive letter for a link.
    let device = NtPath::from_nt(scratch.open().final_path(PathForm::Device).unwrap());
    let answers = |path: &NtPath| scratch.windows.attributes(path).is_ok();
    let path = [device, scratch.nt("")]
        .into_iter()
        .find(answers)
        .expect("one of the paths answers");
    let is_directory = |name: &str| {
        let attributes = scratch.windows.attributes(&path.join(&wide(name)))?;
        Ok(attributes & FILE_ATTRIBUTE_DIRECTORY != 0)
    };
    assert_eq!(
        (is_directory("DIRECTORY"), is_directory("file")),
        (Ok(true), Ok(false))
    );
    assert_eq!(is_directory("missing"), Err(OsError::FILE_NOT_FOUND));
    assert_eq!(is_directory(r"missing\x"), Err(OsError::PATH_NOT_FOUND));
}
