//! The root directory of a volume: what it holds besides what Windows puts there.

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT};
use os::{Access, Handle, Open, Options, Os, OsResult};

use crate::devices::{buffer, file_system, volume};
use crate::error::{OperationError, OperationResult, quoted};
use crate::paths::opening::{NOFOLLOW_NOWAIT, OPEN_NOFOLLOW};
use crate::paths::remove_tree;
use crate::types::VolumeId;

/// The directory that Windows makes on each volume, also on one that nobody has used.
const OF_WINDOWS: &str = "System Volume Information";

/// The bytes that the listed names may take; enough to tell how many entries a small directory has.
const LISTED: usize = 16 * 1024;

const OPEN_TO_LIST: Open = Open::existing(
    Access::READ_DATA.union(Access::READ_ATTRIBUTES),
    NOFOLLOW_NOWAIT.union(Options::DIRECTORY),
);

/// Returns what the root directory of a volume holds, as a text that begins with "its root
/// directory"; `None` if it holds nothing, except for the directory that Windows makes. An access
/// control list is no content.
pub(crate) fn content(os: &dyn Os, volume: VolumeId) -> OperationResult<Option<String>> {
    let root = volume::open_root(os, volume, &OPEN_TO_LIST)?;
    Ok(found_in(&*root)?)
}

fn found_in(root: &dyn Handle) -> OsResult<Option<String>> {
    let listing = remove_tree::names(root, LISTED)?;
    let is_of_windows =
        |name: &os::U16String| name.to_string_lossy().eq_ignore_ascii_case(OF_WINDOWS);
    let mut entries = Vec::new();
    for name in listing.names {
        // Its content is that of Windows; a file or link of that name is not.
        if is_of_windows(&name) {
            let attributes =
                buffer::attributes(&*root.open_child(&name, &OPEN_NOFOLLOW)?)?.attributes;
            let kind = attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT);
            if kind == FILE_ATTRIBUTE_DIRECTORY {
                continue;
            }
        }
        entries.push(name);
    }
    if let Some(first) = entries.first() {
        let (count, first) = (entries.len(), quoted(&first.to_string_lossy()));
        return Ok(Some(match (count, listing.is_complete) {
            (1, true) => format!("its root directory has the entry {first}"),
            (_, true) => format!("its root directory has {count} entries, such as {first}"),
            (_, false) => {
                format!("its root directory has more than {count} entries, such as {first}")
            }
        }));
    }
    let stream = file_system::named_stream(root)?;
    Ok(stream.map(|name| {
        let name = quoted(&name);
        format!("its root directory has the alternate data stream {name}")
    }))
}

/// Returns the serial number of the file system of a volume, which each format changes.
pub(crate) fn serial(os: &dyn Os, volume: VolumeId) -> OperationResult<u64> {
    let root = volume::open_root(os, volume, &OPEN_NOFOLLOW)?;
    file_system::serial(&*root).map_err(|code| {
        OperationError::of(code, "the serial number of the file system cannot be read")
    })
}
