//! Tests of files and directories, through handles.

use std::fs;

use crate::scratch::{Scratch, directory, nt, wide};
use crate::skip::{skipped, skipped_by_wine};
use os::abi::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY, FILE_DISPOSITION_DELETE,
    FILE_DISPOSITION_IGNORE_READONLY, FILE_DISPOSITION_POSIX, FileAttributeTagInfo, FileBasicInfo, FileDispositionInfo,
    FileDispositionInfoEx, FileIdBothDirInfo, FileIdInfo,
};
use os::{Access, FileInfo, Handle, NtPath, Open, Options, Os as _, OsError, OsResult, PathForm, U16String};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Opens a link itself and not its target, as the storage operations do.
fn itself(access: Access) -> Open {
    Open::existing(access, Options::REPARSE_POINT)
}

fn query<T: FromBytes + IntoBytes + KnownLayout + Immutable>(handle: &dyn Handle, class: FileInfo) -> T {
    let mut information = T::new_zeroed();
    handle.query(class, information.as_mut_bytes()).unwrap();
    information
}

/// An entry of a directory listing.
#[derive(Debug, PartialEq)]
struct Entry {
    name: U16String,
    short_name: U16String,
    attributes: u32,
    file_id: i64,
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
                    attributes: head.attributes,
                    file_id: head.file_id,
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

fn delete(handle: &dyn Handle) -> OsResult<()> {
    handle.set(FileInfo::Disposition, FileDispositionInfo { delete_file: 1 }.as_bytes())
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
fn a_listing_has_every_entry_once_with_any_size_of_buffer() {
    let scratch = Scratch::new("listing");
    for number in 0..100 {
        fs::write(scratch.join(&format!("file number {number:03}")), "x").unwrap();
    }
    let parent = scratch.open();
    let expected: Vec<_> = (0..100).map(|number| format!("file number {number:03}")).collect();
    for size in [200, 1000, 64 * 1024] {
        let mut names: Vec<_> = list(&*parent, size).iter().map(|entry| entry.name.to_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, expected, "with {size} bytes");
    }
}

#[test]
fn a_listing_can_be_restarted() {
    let scratch = Scratch::new("restart");
    fs::write(scratch.join("one"), "x").unwrap();
    let parent = scratch.open();
    assert_eq!(names(&*parent), ["one"]);
    assert_eq!(names(&*parent), ["one"]);
    fs::write(scratch.join("two"), "x").unwrap();
    if names(&*parent) == ["one"] {
        return skipped_by_wine("a handle lists the entries of its first listing");
    }
    assert_eq!(names(&*parent), ["one", "two"]);
}

#[test]
fn an_empty_directory_has_no_entries() {
    let scratch = Scratch::new("empty");
    assert!(list(&*scratch.open(), 4096).is_empty());
}

#[test]
fn an_entry_has_the_attributes_of_its_file() {
    let scratch = Scratch::new("entries");
    fs::write(scratch.join("file"), "x").unwrap();
    fs::create_dir(scratch.join("folder")).unwrap();
    let parent = scratch.open();
    for entry in list(&*parent, 4096) {
        let opened = parent.open_child(&entry.name, &itself(Access::READ_ATTRIBUTES)).unwrap();
        let attributes = query::<FileAttributeTagInfo>(&*opened, FileInfo::AttributeTag).attributes;
        assert_eq!(entry.attributes, attributes);
        assert_eq!(attributes & FILE_ATTRIBUTE_DIRECTORY != 0, entry.name == wide("folder"));
    }
}

#[test]
fn the_file_id_identifies_a_file() {
    let scratch = Scratch::new("identity");
    for name in ["a", "b"] {
        fs::write(scratch.join(name), "x").unwrap();
    }
    let parent = scratch.open();
    let id = |name| {
        query::<FileIdInfo>(&*parent.open_child(&wide(name), &itself(Access::READ_ATTRIBUTES)).unwrap(), FileInfo::Id)
    };
    assert_eq!(id("a"), id("a"));
    assert_ne!(id("a"), id("b"));
}

#[test]
fn a_deleted_file_is_removed_when_its_handle_is_closed() {
    let scratch = Scratch::new("delete");
    fs::write(scratch.join("file"), "x").unwrap();
    let parent = scratch.open();
    let file = parent.open_child(&wide("file"), &itself(Access::DELETE)).unwrap();
    delete(&*file).unwrap();
    drop(file);
    assert!(names(&*parent).is_empty());
}

#[test]
fn opening_a_file_that_is_being_deleted_fails_with_delete_pending() {
    let scratch = Scratch::new("pending");
    fs::write(scratch.join("file"), "x").unwrap();
    let parent = scratch.open();
    let reader = parent.open_child(&wide("file"), &itself(Access::READ_ATTRIBUTES)).unwrap();
    delete(&*parent.open_child(&wide("file"), &itself(Access::DELETE)).unwrap()).unwrap();
    match parent.open_child(&wide("file"), &itself(Access::READ_ATTRIBUTES)) {
        Err(OsError::DELETE_PENDING) => {}
        Ok(_) => skipped_by_wine("a file that is being deleted is opened"),
        Err(error) => panic!("{error}"),
    }
    drop(reader);
    let again = parent.open_child(&wide("file"), &itself(Access::READ_ATTRIBUTES)).err();
    assert_eq!(again, Some(OsError::FILE_NOT_FOUND));
}

#[test]
fn a_directory_that_is_not_empty_is_not_deleted() {
    let scratch = Scratch::new("notempty");
    fs::create_dir_all(scratch.join(r"full\inner")).unwrap();
    let full = scratch.open().open_child(&wide("full"), &itself(Access::DELETE)).unwrap();
    assert_eq!(delete(&*full), Err(OsError::DIR_NOT_EMPTY));
}

#[test]
fn a_read_only_file_is_deleted_after_its_attribute_is_cleared() {
    let scratch = Scratch::new("readonly");
    fs::write(scratch.join("file"), "x").unwrap();
    let access = Access::DELETE | Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES;
    let file = scratch.open().open_child(&wide("file"), &itself(access)).unwrap();
    let attributes = |attributes| FileBasicInfo { attributes, ..FileBasicInfo::default() };
    file.set(FileInfo::Basic, attributes(FILE_ATTRIBUTE_READONLY).as_bytes()).unwrap();
    let written = query::<FileBasicInfo>(&*file, FileInfo::Basic);
    assert_eq!(written.attributes & FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_READONLY);
    assert_eq!(delete(&*file), Err(OsError::ACCESS_DENIED));
    file.set(FileInfo::Basic, attributes(FILE_ATTRIBUTE_NORMAL).as_bytes()).unwrap();
    delete(&*file).unwrap();
    drop(file);
    assert!(names(&*scratch.open()).is_empty());
}

#[test]
fn posix_deletion_removes_the_name_at_once_even_of_a_read_only_file() {
    let scratch = Scratch::new("posix");
    fs::write(scratch.join("file"), "x").unwrap();
    let access = Access::DELETE | Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES;
    let parent = scratch.open();
    let file = parent.open_child(&wide("file"), &itself(access)).unwrap();
    let read_only = FileBasicInfo { attributes: FILE_ATTRIBUTE_READONLY, ..FileBasicInfo::default() };
    file.set(FileInfo::Basic, read_only.as_bytes()).unwrap();
    let flags = FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX | FILE_DISPOSITION_IGNORE_READONLY;
    match file.set(FileInfo::DispositionEx, FileDispositionInfoEx { flags }.as_bytes()) {
        Ok(()) => {}
        Err(error @ (OsError::INVALID_PARAMETER | OsError::NOT_SUPPORTED | OsError::INVALID_FUNCTION)) => {
            let normal = FileBasicInfo { attributes: FILE_ATTRIBUTE_NORMAL, ..FileBasicInfo::default() };
            file.set(FileInfo::Basic, normal.as_bytes()).unwrap();
            return skipped_by_wine(&format!("FileDispositionInfoEx is refused: {error}"));
        }
        Err(error) => panic!("{error}"),
    }
    drop(file);
    assert!(names(&*parent).is_empty());
}

#[test]
fn a_handle_has_only_the_access_it_was_opened_with() {
    let scratch = Scratch::new("rights");
    fs::write(scratch.join("file"), "x").unwrap();
    let file = scratch.open().open_child(&wide("file"), &itself(Access::READ_ATTRIBUTES)).unwrap();
    let read_only = FileBasicInfo { attributes: FILE_ATTRIBUTE_READONLY, ..FileBasicInfo::default() };
    assert_eq!(delete(&*file), Err(OsError::ACCESS_DENIED));
    match file.set(FileInfo::Basic, read_only.as_bytes()) {
        Err(OsError::ACCESS_DENIED) => {}
        Ok(()) => skipped_by_wine("attributes are set without the access right"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_tree_may_be_deeper_than_win32_paths_allow() {
    let scratch = Scratch::new("deep");
    let name = wide(&"n".repeat(100));
    let mut path = scratch.nt("");
    let mut directory = scratch.open();
    for _ in 0..20 {
        directory =
            directory.open_child(&name, &Open::new_directory(Access::READ_DATA | Access::READ_ATTRIBUTES)).unwrap();
        path = path.join(&name);
    }
    match directory.final_path(PathForm::Dos) {
        Ok(long) => assert!(long.len() > 2000 && long.to_string().unwrap().ends_with(&name.to_string().unwrap())),
        Err(error) => skipped_by_wine(&format!("GetFinalPathNameByHandleW of a long path: {error}")),
    }
    let by_path = scratch.windows.open(&path, &self::directory()).unwrap();
    assert_eq!(query::<FileIdInfo>(&*by_path, FileInfo::Id), query::<FileIdInfo>(&*directory, FileInfo::Id));
    // Delete through handles, innermost first, as the deletion of a tree does.
    let mut chain = vec![scratch.open()];
    for _ in 0..20 {
        let access = Access::READ_DATA | Access::DELETE;
        chain.push(chain[chain.len() - 1].open_child(&name, &itself(access)).unwrap());
    }
    drop((directory, by_path));
    while chain.len() > 1 {
        delete(&*chain.pop().unwrap()).unwrap();
    }
    assert!(names(&*scratch.open()).is_empty());
}

#[test]
fn a_path_longer_than_nt_allows_is_refused() {
    let scratch = Scratch::new("toolong");
    let path = scratch.nt("").join(&wide(&"n".repeat(33_000)));
    assert_eq!(scratch.windows.open(&path, &directory()).err(), Some(OsError::FILENAME_EXCED_RANGE));
}

#[test]
fn a_handle_follows_a_directory_that_is_renamed() {
    let scratch = Scratch::new("renamed");
    fs::create_dir_all(scratch.join(r"before\child")).unwrap();
    let held = scratch.open().open_child(&wide("before"), &directory()).unwrap();
    fs::rename(scratch.join("before"), scratch.join("after")).unwrap();
    fs::create_dir_all(scratch.join(r"before\impostor")).unwrap();
    match held.open_child(&wide("impostor"), &directory()) {
        Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND) => {}
        Err(error) => panic!("{error}"),
        Ok(_) => return skipped_by_wine("a handle refers to the directory by its path"),
    }
    if let Err(error) = held.open_child(&wide("child"), &directory()) {
        skipped_by_wine(&format!("the handle no longer finds the directory: {error}"));
    }
}

#[test]
fn the_final_path_has_the_real_names() {
    let scratch = Scratch::new("final");
    fs::create_dir(scratch.join("Real Name")).unwrap();
    let opened = scratch.open().open_child(&wide("REAL name"), &directory()).unwrap();
    let path = opened.final_path(PathForm::Dos).unwrap().to_string().unwrap();
    assert_eq!(path, format!(r"\\?\{}\Real Name", scratch.path().display()));
    let path = opened.final_path(PathForm::VolumeGuid).unwrap().to_string().unwrap();
    assert!(path.starts_with(r"\\?\Volume{") && path.ends_with(r"\Real Name"), "{path}");
    // That path opens the same directory.
    let again = match scratch.windows.open(&NtPath::from_win32(&wide(&path)), &directory()) {
        Ok(again) => again,
        Err(error) => return skipped_by_wine(&format!("a path below a volume's name: {error}")),
    };
    assert_eq!(query::<FileIdInfo>(&*again, FileInfo::Id), query::<FileIdInfo>(&*opened, FileInfo::Id));
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

#[test]
fn a_buffer_may_have_any_alignment() {
    let scratch = Scratch::new("misaligned");
    fs::write(scratch.join("file"), "x").unwrap();
    let parent = scratch.open();
    let access = Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES;
    let file = parent.open_child(&wide("file"), &itself(access)).unwrap();
    let mut buffer = vec![0_u8; 4096];
    for skip in 0..8 {
        let size = size_of::<FileBasicInfo>();
        let read_only = FileBasicInfo { attributes: FILE_ATTRIBUTE_READONLY, ..FileBasicInfo::default() };
        buffer[skip..skip + size].copy_from_slice(read_only.as_bytes());
        file.set(FileInfo::Basic, &buffer[skip..skip + size]).unwrap();
        file.query(FileInfo::Basic, &mut buffer[skip..skip + size]).unwrap();
        let (read, _) = FileBasicInfo::read_from_prefix(&buffer[skip..]).unwrap();
        assert_eq!(read.attributes & FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_READONLY);
        let normal = FileBasicInfo { attributes: FILE_ATTRIBUTE_NORMAL, ..FileBasicInfo::default() };
        file.set(FileInfo::Basic, normal.as_bytes()).unwrap();
        parent.list(true, &mut buffer[skip..]).unwrap();
        let (head, _) = FileIdBothDirInfo::read_from_prefix(&buffer[skip..]).unwrap();
        assert_ne!(head.file_name_length, 0);
    }
}
