//! Who has access to files and folders.

use std::io;
use std::path::Path;

use csi_proxy_os_win32::file_security::{account, create_folder, security_descriptor};
use os::abi::{EntryKind, FILE_WRITE_DATA};

use crate::scratch::Scratch;
use crate::skip::skipped_by_wine;

const ADMINISTRATORS_ONLY: &str = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";
const EVERYONE_TOO: &str = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;WD)";

/// Returns the SIDs of the accounts that may write to the object.
fn writers(path: &Path) -> Vec<String> {
    let descriptor = security_descriptor(path).unwrap();
    assert!(descriptor.owner.is_some());
    let entries = descriptor.entries.unwrap().into_iter();
    let writing = entries
        .filter(|entry| entry.kind == EntryKind::Allow && entry.rights & FILE_WRITE_DATA != 0);
    writing.map(|entry| entry.sid.to_string()).collect()
}

#[test]
fn a_folder_has_the_access_that_it_was_created_with() {
    let scratch = Scratch::new("file-security");
    let (closed, open) = (scratch.join("closed"), scratch.join("open"));
    create_folder(&closed, ADMINISTRATORS_ONLY).unwrap();
    create_folder(&open, EVERYONE_TOO).unwrap();
    let (closed, open) = (writers(&closed), writers(&open));
    assert!(!closed.contains(&"S-1-1-0".to_owned()), "{closed:?}");
    // Of a user of Unix.
    if closed
        .get(1)
        .is_some_and(|owner| owner.starts_with("S-1-5-21-"))
    {
        return skipped_by_wine(
            "a folder has the access that its Unix mode expresses, within the umask",
        );
    }
    assert_eq!(closed, ["S-1-5-18", "S-1-5-32-544"]);
    assert_eq!(open, ["S-1-5-18", "S-1-5-32-544", "S-1-1-0"]);
}

#[test]
fn a_folder_is_not_created_twice_or_with_an_invalid_description() {
    let scratch = Scratch::new("file-security-twice");
    create_folder(&scratch.join("folder"), ADMINISTRATORS_ONLY).unwrap();
    let twice = create_folder(&scratch.join("folder"), ADMINISTRATORS_ONLY).unwrap_err();
    assert_eq!(twice.kind(), io::ErrorKind::AlreadyExists);
    create_folder(&scratch.join("other"), "D:P(A;OICI;FA;;;nobody)").unwrap_err();
    assert!(!scratch.join("other").exists());
    assert_eq!(
        security_descriptor(&scratch.join("other"))
            .unwrap_err()
            .kind(),
        io::ErrorKind::NotFound
    );
}

#[test]
fn an_account_is_named_by_its_sid() {
    assert!(!account("S-1-5-11").unwrap().is_empty());
    assert_eq!(
        account("Users").unwrap_err().kind(),
        io::ErrorKind::InvalidInput
    );
}
