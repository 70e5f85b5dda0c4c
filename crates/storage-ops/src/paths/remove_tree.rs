//! Deleting directories with all that is in them, by handle, without ever following a link.

use os::abi::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY, FILE_DISPOSITION_DELETE,
    FILE_DISPOSITION_IGNORE_READONLY, FILE_DISPOSITION_ON_CLOSE, FILE_DISPOSITION_POSIX, FileBasicInfo,
    FileDispositionInfo, FileDispositionInfoEx, FileIdBothDirInfo,
};
use os::{Access, FileInfo, Handle, Open, Options, Os, OsError, OsResult, Share, U16Str, U16String};
use zerocopy::IntoBytes;

use crate::paths::working_directories::{OPEN_NO_DELETE_SHARE, directory_path};
use crate::windows::buffer;
use crate::windows::error_class::ErrorClass;
use crate::windows::reparse_point::Link;

/// Room for some hundred names at a time.
const LISTING: usize = 64 * 1024;

/// How often a directory that somebody fills meanwhile is emptied again.
const ROUNDS: usize = 3;

/// Opening what is to be deleted, as itself. Others may not rename it meanwhile, so that the path by which the
/// mount manager is told stays the one that was walked.
const OPEN_FOR_DELETE: Open = Open {
    share: Share::READ.union(Share::WRITE),
    ..Open::existing(
        Access::DELETE.union(Access::READ_DATA).union(Access::READ_ATTRIBUTES).union(Access::WRITE_ATTRIBUTES),
        Options::REPARSE_POINT,
    )
};

/// A directory in which something is deleted.
#[derive(Clone, Copy)]
pub(crate) struct Parent<'a> {
    /// The open directory.
    pub(crate) handle: &'a dyn Handle,
    /// Whether nobody can rename it or what leads to it, so that its path leads to it for as long as it is open.
    pub(crate) pinned: bool,
}

/// Something opened for deleting it.
pub(crate) struct DeleteHandle {
    handle: Box<dyn Handle>,
    pinned: bool,
}

/// Opens `name` in `parent` for deleting it. If a volume is mounted there, it is unmounted first.
pub(crate) fn open(os: &dyn Os, parent: Parent<'_>, name: &U16Str) -> OsResult<DeleteHandle> {
    let doomed = open_for_delete(parent, name)?;
    // The mount manager is told by path, so only where the path cannot have come to lead to another mount point.
    if !parent.pinned || !is_mount_point(&*doomed.handle) {
        return Ok(doomed);
    }
    // It opens the directory too, and not beside a handle that may delete it.
    drop(doomed);
    {
        let pinned = parent.handle.open_child(name, &OPEN_NO_DELETE_SHARE)?;
        if is_mount_point(&*pinned) {
            // It forgets the path only if it is told; the directory goes either way.
            let _ = directory_path(parent.handle, name).and_then(|path| os.delete_volume_mount_point(&path));
        }
    }
    open_for_delete(parent, name)
}

fn is_mount_point(handle: &dyn Handle) -> bool {
    Link::of(handle).is_ok_and(|link| link.is_some_and(|link| link.volume().is_some()))
}

fn open_for_delete(parent: Parent<'_>, name: &U16Str) -> OsResult<DeleteHandle> {
    match parent.handle.open_child(name, &OPEN_FOR_DELETE) {
        // Somebody has it open for deleting or renaming it: then it can only be deleted along with them.
        Err(OsError::SHARING_VIOLATION) => {
            let handle = parent.handle.open_child(name, &Open { share: Share::all(), ..OPEN_FOR_DELETE })?;
            Ok(DeleteHandle { handle, pinned: false })
        }
        outcome => Ok(DeleteHandle { handle: outcome?, pinned: parent.pinned }),
    }
}

/// Deletes `doomed`, opened by [`open`]: a file, an empty directory, or a link as itself.
///
/// Errors: `DIR_NOT_EMPTY`.
pub(crate) fn delete(doomed: &DeleteHandle) -> OsResult<()> {
    let doomed = &*doomed.handle;
    let flags = FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX | FILE_DISPOSITION_IGNORE_READONLY;
    let at_once = FileDispositionInfoEx { flags };
    match doomed.set(FileInfo::DispositionEx, at_once.as_bytes()) {
        Err(code) if ErrorClass::UnsupportedOrInvalid.contains(code) => {}
        outcome => return outcome,
    }
    // A file system that knows only the older way, which does not take read-only files.
    if buffer::attributes(doomed)?.attributes & FILE_ATTRIBUTE_READONLY != 0 {
        let writable = FileBasicInfo { attributes: FILE_ATTRIBUTE_NORMAL, ..FileBasicInfo::default() };
        doomed.set(FileInfo::Basic, writable.as_bytes())?;
    }
    doomed.set(FileInfo::Disposition, FileDispositionInfo { delete_file: 1 }.as_bytes())
}

/// Keeps what was made with [`Options::DELETE_ON_CLOSE`].
pub(crate) fn keep(made: &dyn Handle) -> OsResult<()> {
    made.set(FileInfo::DispositionEx, FileDispositionInfoEx { flags: FILE_DISPOSITION_ON_CLOSE }.as_bytes())
}

/// Deletes `doomed`, opened by [`open`], with all that is in it.
pub(crate) fn delete_all(os: &dyn Os, doomed: DeleteHandle) -> OsResult<()> {
    let mut level = Level::new(doomed)?;
    // Depth is what an attacker chooses: the stack of levels is on the heap.
    let mut above: Vec<Level> = Vec::new();
    loop {
        if let Some(child) = level.next_child(os)? {
            above.push(std::mem::replace(&mut level, child));
            continue;
        }
        match delete(&level.directory) {
            Err(OsError::DIR_NOT_EMPTY) if level.is_directory && level.rounds < ROUNDS => {
                level.rounds += 1;
                level.names = names(&*level.directory.handle)?;
                continue;
            }
            outcome => outcome?,
        }
        match above.pop() {
            Some(next) => level = next,
            None => return Ok(()),
        }
    }
}

/// Deletes all that is in `directory`.
///
/// `spared` is a name that is left alone there.
pub(crate) fn delete_contents(os: &dyn Os, directory: Parent<'_>, spared: Option<&str>) -> OsResult<()> {
    for _ in 0..ROUNDS {
        let mut found_any = false;
        for name in names(directory.handle)? {
            if spared.is_some_and(|spared| name.to_string_lossy().eq_ignore_ascii_case(spared)) {
                continue;
            }
            let doomed = match open(os, directory, &name) {
                Err(code) if ErrorClass::EntryDeleted.contains(code) => continue,
                opened => opened?,
            };
            found_any = true;
            match delete_all(os, doomed) {
                // It, or only something in it: the next round tells.
                Err(code) if ErrorClass::EntryDeleted.contains(code) => {}
                outcome => outcome?,
            }
        }
        // A name may be listed and yet be gone, so what counts is what could be opened.
        if !found_any {
            return Ok(());
        }
    }
    Err(OsError::DIR_NOT_EMPTY)
}

/// A directory on the way down, or a file or link at the end of it.
struct Level {
    directory: DeleteHandle,
    is_directory: bool,
    names: Vec<U16String>,
    rounds: usize,
}

impl Level {
    fn new(directory: DeleteHandle) -> OsResult<Self> {
        let handle = &*directory.handle;
        let plain = Link::of(handle)?.is_none();
        let is_directory = plain && buffer::attributes(handle)?.attributes & FILE_ATTRIBUTE_DIRECTORY != 0;
        let names = if is_directory { names(handle)? } else { Vec::new() };
        Ok(Self { directory, is_directory, names, rounds: 0 })
    }

    fn as_parent(&self) -> Parent<'_> {
        Parent { handle: &*self.directory.handle, pinned: self.directory.pinned }
    }

    /// The next thing in here that has things in it; what has none is deleted on the way.
    fn next_child(&mut self, os: &dyn Os) -> OsResult<Option<Self>> {
        while let Some(name) = self.names.pop() {
            match Self::take(os, self.as_parent(), &name) {
                Ok(None) => {}
                Ok(child) => return Ok(child),
                // Somebody else was faster.
                Err(code) if ErrorClass::EntryDeleted.contains(code) => {}
                Err(code) => return Err(code),
            }
        }
        Ok(None)
    }

    /// Deletes `name` of `parent`, or answers it if there are things in it.
    fn take(os: &dyn Os, parent: Parent<'_>, name: &U16Str) -> OsResult<Option<Self>> {
        let child = Self::new(open(os, parent, name)?)?;
        if !child.names.is_empty() {
            return Ok(Some(child));
        }
        match delete(&child.directory) {
            Err(OsError::DIR_NOT_EMPTY) => Ok(Some(child)),
            outcome => outcome.map(|()| None),
        }
    }
}

/// The names in `directory`, without `.` and `..`.
pub(crate) fn names(directory: &dyn Handle) -> OsResult<Vec<U16String>> {
    let mut found = Vec::new();
    let mut listing = vec![0; LISTING];
    let mut restart = true;
    loop {
        match directory.list(restart, &mut listing) {
            Ok(()) => entries(&listing, &mut found).ok_or(OsError::FILE_CORRUPT)?,
            Err(OsError::NO_MORE_FILES) => return Ok(found),
            Err(code) => return Err(code),
        }
        restart = false;
    }
}

/// Takes the names out of a buffer of directory entries; none if it is not such a buffer.
fn entries(listing: &[u8], found: &mut Vec<U16String>) -> Option<()> {
    let mut offset = 0;
    loop {
        let entry: FileIdBothDirInfo = buffer::at(listing, offset)?;
        let length = usize::try_from(entry.file_name_length).ok()?;
        let name = buffer::units_at(listing, offset + FileIdBothDirInfo::NAME_OFFSET, length)?;
        if name != U16String::from_str(".") && name != U16String::from_str("..") {
            found.push(component(name)?);
        }
        match usize::try_from(entry.next_entry_offset).ok()? {
            0 => return Some(()),
            // One that began within another would make more names than there is room for.
            step if step < FileIdBothDirInfo::NAME_OFFSET + length => return None,
            step => offset = offset.checked_add(step)?,
        }
    }
}

/// `name`, if it is one component: opened by an empty name, a directory is its own child, and one with a separator
/// leads past the links that are looked for. No file system should have such names.
fn component(name: U16String) -> Option<U16String> {
    let separates = |unit: &u16| [u16::from(b'\\'), u16::from(b'/'), 0].contains(unit);
    (!name.is_empty() && !name.as_slice().iter().any(separates)).then_some(name)
}

#[cfg(test)]
mod tests {
    use os::U16String;
    use os::abi::FileIdBothDirInfo;
    use zerocopy::IntoBytes;

    use super::{component, entries};

    /// The entry of a file `abcd`, which says how far it is to the next one. Where it begins within another, that
    /// one's name has no zero in it and so looks like a name.
    fn entry(next_entry_offset: u32) -> Vec<u8> {
        let change_time = i64::from_le_bytes(*b"a\0b\0c\0d\0");
        let head = FileIdBothDirInfo {
            next_entry_offset,
            file_index: u32::MAX,
            change_time,
            file_name_length: 8,
            ..FileIdBothDirInfo::default()
        };
        [&head.as_bytes()[..FileIdBothDirInfo::NAME_OFFSET], b"a\0b\0c\0d\0"].concat()
    }

    /// How many names there are in a listing with these distances between its entries.
    fn count(steps: &[usize]) -> Option<usize> {
        let (mut listing, mut at) = (Vec::new(), 0);
        for step in steps.iter().chain(&[0]) {
            listing.resize(at, 0);
            listing.extend(entry(u32::try_from(*step).unwrap()));
            at += step;
        }
        let mut found = Vec::new();
        entries(&listing, &mut found).map(|()| found.len())
    }

    #[test]
    fn an_entry_begins_behind_the_name_of_the_one_before_and_not_within_it() {
        assert_eq!(entry(0).len(), 112);
        assert_eq!(count(&[112, 120]), Some(3));
        assert_eq!(count(&[72]), None, "within its head");
        assert_eq!(count(&[105, 256]), None, "within its name");
    }

    #[test]
    fn a_name_that_is_no_component_is_not_opened() {
        for bad in ["", "a\\b", "..\\..\\Windows", "a/b", "\\", "a\0b"] {
            assert_eq!(component(U16String::from_str(bad)), None, "{bad:?}");
        }
        assert!(component(U16String::from_str("a b..c")).is_some());
    }

    proptest::proptest! {
        #[test]
        fn directory_entries_of_any_kind_are_read_without_a_panic(listing: Vec<u8>) {
            let _ = entries(&listing, &mut Vec::new());
        }
    }
}
