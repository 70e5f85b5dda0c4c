//! The creation of symbolic links.

use os::{Access, Handle, Open, Options, OsError, OsResult, U16Str};

use crate::devices::{Link, reparse_point};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::paths::remove_tree;
use crate::paths::working_directories::EntryRef;
use crate::scheduling::RunResult;
use crate::types::upper_case;
use crate::windows::{Fallback, Windows};

/// Makes `entry` a symbolic link to the NT path `substitute` with the print name `print`. Succeeds
/// without a change if an identical link exists; any other object of that name is an error.
///
/// `begin` returns [`Options::DIRECTORY`] or [`Options::NON_DIRECTORY`], after the operation has
/// begun to make changes. It is called only if the link does not exist yet.
pub(crate) fn create_link(
    windows: &Windows,
    entry: &EntryRef,
    substitute: &U16Str,
    print: &U16Str,
    begin: impl FnOnce() -> RunResult<Options>,
) -> RunResult<()> {
    if link_exists(entry, substitute)? {
        return Ok(());
    }
    let link_kind = begin()?;
    let create = |options| match create_empty(entry, options) {
        Err(OsError::ALREADY_EXISTS) => check_same_link(&*entry.open()?, substitute).map(|()| None),
        created => Ok(Some(created?)),
    };
    // The object is deleted on close until it is a link, so that a process that is killed in
    // between leaves no empty file or directory.
    let Some(link) = create(link_kind | Options::DELETE_ON_CLOSE)? else {
        return Ok(());
    };
    let set_target = |link: &dyn Handle| reparse_point::set_symlink(link, substitute, print);
    match set_target(&*link).and_then(|()| remove_tree::keep(&*link)) {
        Err(code) if !is_refusal(code) => windows.fallbacks.record(Fallback::CreateLink, code),
        outcome => return Ok(outcome.map_err(explained)?),
    }
    // No known program makes a link in this way. Go's standard library makes all of its links in
    // the following one.
    drop(link);
    let Some(link) = create(link_kind)? else {
        return Ok(());
    };
    Ok(set_target(&*link).map_err(|code| {
        let _ = remove_tree::delete_on_close(&*link);
        explained(code)
    })?)
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

/// Returns whether `entry` is a link to `substitute`. Any other object of that name is an error.
pub(crate) fn link_exists(entry: &EntryRef, substitute: &U16Str) -> OperationResult<bool> {
    match entry.open() {
        Err(OsError::FILE_NOT_FOUND) => Ok(false),
        Err(code) => Err(code.into()),
        Ok(existing) => check_same_link(&*existing, substitute).map(|()| true),
    }
}

fn check_same_link(existing: &dyn Handle, substitute: &U16Str) -> OperationResult<()> {
    let text = |name: &U16Str| {
        upper_case(name)
            .to_string_lossy()
            .trim_end_matches('\\')
            .to_owned()
    };
    match Link::of(existing)? {
        Some(Link::Symlink(target)) if text(&target) == text(substitute) => Ok(()),
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
