//! Opening by name: `FILE-OPEN`.

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FileAttributeTagInfo};
use os::{Access, FileInfo, Open, Options, OsError, U16String};

use super::calls::query;
use crate::fact::{Fact, Verdict};
use crate::node::TestNode;

pub(crate) const FACTS: &[Fact] = &[
    Fact::published(
        "FILE-OPEN-01",
        "A name that differs from an existing one only in case opens it, also relative to a directory.",
        "WF open_file_test; GO root TestRootWindowsCaseInsensitivity",
        a_name_is_found_in_any_case,
    ),
    Fact::published(
        "FILE-OPEN-09",
        "FILE_DIRECTORY_FILE on a file fails with NOT_A_DIRECTORY (267).",
        "WF open_file_test",
        a_file_is_not_opened_as_a_directory,
    ),
];

fn a_name_is_found_in_any_case(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
    directory.mkdir("Lower");
    for name in ["lower", "LOWER"] {
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        let by_path = directory.open(name, &how).expect("the path opens");
        let relative = directory.handle().open_child(&U16String::from_str(name), &how).expect("the name opens");
        for handle in [by_path, relative] {
            let found: FileAttributeTagInfo = query(&*handle, FileInfo::AttributeTag).expect("the attributes");
            assert_eq!(found.attributes & FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_DIRECTORY);
        }
    }
    Ok(())
}

fn a_file_is_not_opened_as_a_directory(node: &dyn TestNode) -> Verdict {
    let directory = node.directory()?;
    directory.write("file", b"content");
    let opened = directory.existing("file", Access::READ_ATTRIBUTES, Options::DIRECTORY);
    assert_eq!(opened.err(), Some(OsError::DIRECTORY));
    Ok(())
}
