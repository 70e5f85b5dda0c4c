//! What an open handle stands for: `FILE-OPEN-46` to `-49`; and opportunistic locks, `-56` and `-57`.

use os::abi::FileIdInfo;
use os::{Access, FileInfo, Open, Options, OsError, PathForm, U16String};

use super::calls::query;
use crate::fact::{Fact, Verdict};
use crate::node::TestNode;

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "FILE-OPEN-46",
        "A handle stays on its directory when the directory is renamed, and a name relative to it is looked up there, \
         whatever has the old path by then.",
        "https://pkg.go.dev/os#Root; HS internal/safefile TestOpenRelative",
        a_handle_stays_on_a_directory_that_is_renamed,
    )
    .wine("a handle can refer to a directory by its path"),
    Fact::unchecked(
        "FILE-OPEN-56",
        "An open that asks for more than FILE_READ_ATTRIBUTES, FILE_WRITE_ATTRIBUTES, READ_CONTROL and SYNCHRONIZE breaks an \
         exclusive oplock (level 1, batch, read-write, read-write-handle; a filter oplock only if it asks for writing or \
         deletion), and waits for the owner or, with FILE_COMPLETE_IF_OPLOCKED, succeeds at once with \
         STATUS_OPLOCK_BREAK_IN_PROGRESS; a directory has no exclusive oplock.",
        "DRV irp-mj-create2, granting-oplocks; DDI NtCreateFile; \
         https://learn.microsoft.com/openspecs/windows_protocols/ms-fsa/306239fb-cb60-49fe-b293-df4d1a5f757a",
        "no primitive requests an oplock, which needs an asynchronous handle",
    ),
    Fact::unchecked(
        "FILE-OPEN-57",
        "A read-handle oplock can be granted while other handles are open; an open breaks it, and waits or not as in \
         FILE-OPEN-56, only if it would otherwise be a sharing violation.",
        "DRV irp-mj-create2, granting-oplocks",
        "as FILE-OPEN-56",
    ),
    Fact::published(
        "FILE-OPEN-47",
        "A path can have more than 260 characters.",
        "W32 maximum-file-path-limitation",
        a_path_can_be_longer_than_260_characters,
    ),
    Fact::published(
        "FILE-OPEN-48",
        "Reading a file fails with ACCESS_DENIED (5) on a handle without FILE_READ_DATA.",
        "W32 file-access-rights-constants; SDK ReadFile",
        reading_needs_the_right_to_read,
    ),
    Fact::unchecked(
        "FILE-OPEN-49",
        "On NTFS, a name with a colon names a stream of a file.",
        "W32 file-streams",
        "not reachable by any operation: HostPath refuses a colon in a component, and no file system lists such a name",
    ),
];

fn a_handle_stays_on_a_directory_that_is_renamed(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
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
    Ok(())
}

fn a_path_can_be_longer_than_260_characters(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
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
    let id = |handle| query::<FileIdInfo>(handle, FileInfo::Id).expect("the id");
    assert_eq!(id(&*again), id(&*deepest));
    Ok(())
}

fn reading_needs_the_right_to_read(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
    directory.write("file", b"content");
    let read =
        |access| directory.existing("file", access, Options::empty()).expect("the file opens").read(0, &mut [0; 16]);
    assert_eq!(read(Access::READ_DATA), Ok(7));
    for access in [Access::READ_ATTRIBUTES, Access::WRITE_DATA, Access::DELETE] {
        assert_eq!(read(access), Err(OsError::ACCESS_DENIED), "{access:?}");
    }
    Ok(())
}
