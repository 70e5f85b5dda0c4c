//! Tests of files and directories, through handles.

use std::fs;

use crate::scratch::{Scratch, directory, wide};
use crate::skip::skipped;
use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FileIdBothDirInfo};
use os::{Access, Handle, NtPath, Open, Options, Os as _, OsError, PathForm, U16String};
use zerocopy::FromBytes;

/// Opens a link itself and not its target, as the storage operations do.
fn itself(access: Access) -> Open {
    Open::existing(access, Options::REPARSE_POINT)
}

/// An entry of a directory listing.
#[derive(Debug, PartialEq)]
struct Entry {
    name: U16String,
    short_name: U16String,
}

/// Lists all entries except `.` and `..`, with a buffer of `size` bytes.
fn list(directory: &dyn Handle, size: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut restart = true;
    loop {
        let mut buffer = vec![0; size];
        match directory.list(restart, &mut buffer) {
            Ok(()) => {}
            Err(OsError::NO_MORE_FILES) => return entries,
            Err(error) => panic!("{error}"),
        }
        restart = false;
        let mut offset = 0;
        loop {
            let (head, _) = FileIdBothDirInfo::read_from_prefix(&buffer[offset..]).unwrap();
            let start = offset + FileIdBothDirInfo::NAME_OFFSET;
            let bytes = &buffer[start..start + head.file_name_length as usize];
            let name: Vec<u16> = bytes.chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
            if name != [46] && name != [46, 46] {
                entries.push(Entry {
                    name: U16String::from_vec(name),
                    short_name: U16String::from_vec(&head.short_name[..usize::from(head.short_name_length) / 2]),
                });
            }
            if head.next_entry_offset == 0 {
                break;
            }
            offset += head.next_entry_offset as usize;
        }
    }
}

fn names(directory: &dyn Handle) -> Vec<String> {
    let mut names: Vec<_> = list(directory, 4096).iter().map(|entry| entry.name.to_string_lossy()).collect();
    names.sort();
    names
}

#[test]
fn names_may_have_any_characters() {
    let scratch = Scratch::new("names");
    let parent = scratch.open();
    let mut expected = ["Größe", "数据", "🦀 crab", "with  blanks", "semi;colon&percent%"].map(str::to_owned);
    for name in &expected {
        parent.open_child(&wide(name), &Open::new_directory(Access::READ_ATTRIBUTES)).unwrap();
        parent.open_child(&wide(name), &itself(Access::READ_ATTRIBUTES)).unwrap();
    }
    expected.sort();
    assert_eq!(names(&*parent), expected);
    let opened = parent.open_child(&wide("🦀 crab"), &itself(Access::READ_ATTRIBUTES)).unwrap();
    assert!(opened.final_path(PathForm::Dos).unwrap().to_string().unwrap().ends_with(r"\🦀 crab"));
}

#[test]
fn a_path_longer_than_nt_allows_is_refused() {
    let scratch = Scratch::new("toolong");
    let path = scratch.nt("").join(&wide(&"n".repeat(33_000)));
    assert_eq!(scratch.windows.open(&path, &directory()).err(), Some(OsError::FILENAME_EXCED_RANGE));
    assert_eq!(scratch.windows.attributes(&path).err(), Some(OsError::FILENAME_EXCED_RANGE));
}

#[test]
fn the_attributes_of_a_path_are_queried_without_a_handle() {
    let scratch = Scratch::new("attributes");
    fs::create_dir(scratch.join("directory")).unwrap();
    fs::write(scratch.join("file"), "content").unwrap();
    // Wine queries no path of a device. Windows takes a drive letter for a link.
    let device = NtPath::from_nt(scratch.open().final_path(PathForm::Device).unwrap());
    let answers = |path: &NtPath| scratch.windows.attributes(path).is_ok();
    let path = [device, scratch.nt("")].into_iter().find(answers).expect("one of the paths answers");
    let is_directory = |name: &str| {
        let attributes = scratch.windows.attributes(&path.join(&wide(name)))?;
        Ok(attributes & FILE_ATTRIBUTE_DIRECTORY != 0)
    };
    assert_eq!((is_directory("DIRECTORY"), is_directory("file")), (Ok(true), Ok(false)));
    assert_eq!(is_directory("missing"), Err(OsError::FILE_NOT_FOUND));
    assert_eq!(is_directory(r"missing\x"), Err(OsError::PATH_NOT_FOUND));
}

#[test]
fn a_short_name_opens_the_file_with_the_long_name() {
    let scratch = Scratch::new("short");
    fs::create_dir(scratch.join("A rather long name.directory")).unwrap();
    let parent = scratch.open();
    let short = list(&*parent, 4096)[0].short_name.clone();
    if short.is_empty() {
        return skipped("this volume has no short names");
    }
    let opened = parent.open_child(&short, &directory()).unwrap();
    let path = opened.final_path(PathForm::Dos).unwrap().to_string().unwrap();
    assert!(path.ends_with(r"\A rather long name.directory"), "{path}");
}
