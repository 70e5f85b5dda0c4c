//! The creation of symbolic links.

use os::abi::FILE_ATTRIBUTE_DIRECTORY;
use os::{Access, Handle, Open, Options, OsError, OsResult, U16Str};

use crate::devices::{Link, buffer, reparse_point};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::paths::remove_tree;
use crate::paths::working_directories::EntryRef;
use crate::types::upper_case;
use crate::windows::{Fallback, Windows};

/// What kind of link can be opened. Windows does not open a target of the other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    File,
    Directory,
}

impl LinkKind {
    /// Returns the kind of the file or directory behind `handle`, which may be a link.
    pub(crate) fn of(handle: &dyn Handle) -> OsResult<Self> {
        let attributes = buffer::attributes(handle)?.attributes;
        Ok(if attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
            Self::File
        } else {
            Self::Directory
        })
    }

    fn options(self) -> Options {
        match self {
            Self::File => Options::NON_DIRECTORY,
            Self::Directory => Options::DIRECTORY,
        }
    }
}

/// Makes `entry` a symbolic link to the NT path `substitute` with the print name `print`. Succeeds
/// without a change if an identical link exists; any other object of that name is an error.
pub(crate) fn create_link(
    windows: &Windows,
    entry: &EntryRef,
    substitute: &U16Str,
    print: &U16Str,
    link_kind: LinkKind,
) -> OperationResult<()> {
    let create = |options| match create_empty(entry, options) {
        Err(OsError::ALREADY_EXISTS) => check_same_link(&*entry.open()?, substitute)
            .and_then(|existing| check_kind(existing, link_kind))
            .map(|()| None),
        created => Ok(Some(created?)),
    };
    let link_options = link_kind.options();
    // The object is deleted on close until it is a link, so that a process that is killed in
    // between leaves no empty file or directory.
    let Some(link) = create(link_options | Options::DELETE_ON_CLOSE)? else {
        return Ok(());
    };
    match reparse_point::set_symlink(&*link, substitute, print)
        .and_then(|()| remove_tree::keep(&*link))
    {
        Ok(()) => {
            // No document says that a link which was created in this way stays.
            drop(link);
            if existing_link(entry, substitute)?.is_some() {
                return Ok(());
            }
            windows
                .fallbacks
                .record(Fallback::CreateLink, OsError::FILE_NOT_FOUND);
        }
        Err(code) if is_refusal(code) => return Err(explained(code)),
        Err(code) => {
            windows.fallbacks.record(Fallback::CreateLink, code);
            drop(link);
        }
    }
    // No known program makes a link in the way above. Go's standard library makes all of its links
    // in the following one.
    let Some(link) = create(link_options)? else {
        return Ok(());
    };
    reparse_point::set_symlink(&*link, substitute, print).map_err(|code| {
        let _ = remove_tree::delete_on_close(&*link);
        explained(code)
    })
}

/// Returns whether the code says why there can be no link, whichever way it is created.
fn is_refusal(code: OsError) -> bool {
    let refused = [
        OsError::PRIVILEGE_NOT_HELD,
        OsError::DISK_FULL,
        OsError::WRITE_PROTECT,
        OsError::FILENAME_EXCED_RANGE,
    ];
    refused.contains(&code)
}

/// Creates the empty file or directory that becomes a link. Links are not followed: if a dangling
/// link appeared at this moment, its target would be created.
fn create_empty(entry: &EntryRef, options: Options) -> OsResult<Box<dyn Handle>> {
    let access = Access::WRITE_ATTRIBUTES | Access::DELETE | Access::READ_ATTRIBUTES;
    entry.parent().open_child(
        entry.leaf(),
        &Open::new(access, options | Options::REPARSE_POINT),
    )
}

/// Returns the error of a link that could not be created.
fn explained(code: OsError) -> OperationError {
    match code {
        OsError::PRIVILEGE_NOT_HELD => {
            let advice = "grant the account of csi-proxy the right to create symbolic links \
                          (SeCreateSymbolicLinkPrivilege)";
            OperationError::of(code, advice)
        }
        code if ErrorClass::Unsupported.contains(code) => {
            OperationError::of(code, "the file system does not support symbolic links")
                .with_kind(ErrorKind::FailedPrecondition)
        }
        code => code.into(),
    }
}

/// Returns the kind of the link to `substitute` that `entry` is, or `None` if nothing has that name.
/// Any other object of that name is an error.
pub(crate) fn existing_link(
    entry: &EntryRef,
    substitute: &U16Str,
) -> OperationResult<Option<LinkKind>> {
    match entry.open() {
        Err(OsError::FILE_NOT_FOUND) => Ok(None),
        Err(code) => Err(code.into()),
        Ok(existing) => check_same_link(&*existing, substitute).map(Some),
    }
}

/// Returns a name as it is compared: without case and without a final backslash.
fn compared(name: &U16Str) -> String {
    let name = upper_case(name).to_string_lossy();
    name.trim_end_matches('\\').to_owned()
}

fn check_same_link(existing: &dyn Handle, substitute: &U16Str) -> OperationResult<LinkKind> {
    match Link::of(existing)? {
        Some(Link::Symlink(target)) if compared(&target) == compared(substitute) => {
            Ok(LinkKind::of(existing)?)
        }
        Some(Link::Symlink(target)) => {
            let target = reparse_point::win32_name(&target);
            let reason = format!("a link to {target} already exists at that path");
            Err(OperationError::new(ErrorKind::AlreadyExists, reason))
        }
        _ => Err(OperationError::new(
            ErrorKind::AlreadyExists,
            "a file or directory already exists at that path",
        )),
    }
}

/// Refuses an existing link that Windows does not open, because its kind is not that of its target.
pub(crate) fn check_kind(link: LinkKind, target: LinkKind) -> OperationResult<()> {
    let reason = match link {
        _ if link == target => return Ok(()),
        LinkKind::File => {
            "the link at that path is a link for a file, and its target is a directory; remove the \
             link"
        }
        LinkKind::Directory => {
            "the link at that path is a link for a directory, and its target is a file; remove the \
             link"
        }
    };
    Err(OperationError::new(ErrorKind::AlreadyExists, reason))
}
