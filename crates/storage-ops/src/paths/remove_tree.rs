//! Removing directory trees by handle, without ever following a link.

use std::time::Duration;

use os::abi::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY,
    FILE_DISPOSITION_DELETE, FILE_DISPOSITION_IGNORE_READONLY, FILE_DISPOSITION_ON_CLOSE,
    FILE_DISPOSITION_POSIX, FileBasicInfo, FileDispositionInfo, FileDispositionInfoEx,
    FileIdBothDirInfo,
};
use os::{Access, FileInfo, Handle, Open, OsError, OsResult, Share, Time, U16Str, U16String};
use zerocopy::IntoBytes;

use crate::devices::reparse_point::is_surrogate;
use crate::devices::{Link, buffer};
use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::error_class::ErrorClass;
use crate::paths::opening::{NOFOLLOW_NOWAIT, OPEN_NO_DELETE_SHARE, win32_path};
use crate::windows::{Fallback, Windows};

/// The size of the buffer for directory entries: several hundred names at a time.
const LISTING_SIZE: usize = 64 * 1024;

/// The maximum bytes of the names of one directory that are held at once; at least one name is
/// held. A directory may have millions. One far below the directory that is removed gets a smaller
/// part.
const NAMES_SIZE: usize = 128 * 1024;

/// The bytes that a name takes beside its text.
const NAME_OVERHEAD: usize = 48;

/// The maximum number of levels that are held at once. In a deeper tree, all levels above the
/// current one except the first are closed. After the lower levels are removed, the first level is
/// listed again.
const LEVELS: usize = 1024;

/// The maximum number of times that a directory is emptied again because another process adds
/// entries at the same time.
const ROUNDS: usize = 3;

/// How often, and at what interval, an object is opened again whose oplock another process has not
/// yet given up.
const OPLOCK_TRIES: usize = 20;
const OPLOCK_INTERVAL: Duration = Duration::from_millis(100);

/// Opens an object to delete it, without following a link. Others cannot rename it while the handle
/// is open, so that a path passed to the mount manager keeps leading to the same object.
const OPEN_FOR_DELETE: Open = Open {
    share: Share::READ.union(Share::WRITE),
    ..Open::existing(
        Access::DELETE
            .union(Access::READ_DATA)
            .union(Access::READ_ATTRIBUTES)
            .union(Access::WRITE_ATTRIBUTES),
        NOFOLLOW_NOWAIT,
    )
};

/// Opens an object to delete it if its access control list does not grant the rights of
/// [`OPEN_FOR_DELETE`]. These two rights can also come from the access control list of its
/// directory. The contents of a directory cannot be listed.
///
/// csi-proxy does not enable the privileges to back up and to restore files, which would bypass
/// access control lists: they would act on more than this call, such as the paths that Windows
/// opens to rotate the log and to mount a volume.
const OPEN_ONLY_FOR_DELETE: Open = Open {
    access: Access::DELETE.union(Access::READ_ATTRIBUTES),
    ..OPEN_FOR_DELETE
};

/// An open directory whose entries are deleted.
#[derive(Clone, Copy)]
pub(crate) struct Parent<'a> {
    /// The directory.
    pub(crate) handle: &'a dyn Handle,
    /// Whether no process can rename the directory or one above it, so that its path leads to it
    /// while it is open.
    pub(crate) path_is_stable: bool,
}

/// An object that was opened to delete it.
pub(crate) struct DeleteHandle {
    pub(crate) handle: Box<dyn Handle>,
    path_is_stable: bool,
    /// Whether the handle has the right to list a directory.
    can_list: bool,
}

/// Opens `name` in `parent` to delete it. If it is a volume mount point, the volume is unmounted
/// first.
pub(crate) fn open(windows: &Windows, parent: Parent<'_>, name: &U16Str) -> OsResult<DeleteHandle> {
    let entry = open_for_delete(windows, parent, name)?;
    // The mount manager is passed a path, so it is called only if the path cannot lead to another
    // mount point by then.
    if !parent.path_is_stable || !is_mount_point(&*entry.handle) {
        return Ok(entry);
    }
    // The mount manager opens the directory too, which fails while a handle with the right to
    // delete is open.
    drop(entry);
    {
        let held = parent.handle.open_child(name, &OPEN_NO_DELETE_SHARE)?;
        if is_mount_point(&*held)
            && let Ok(path) = win32_path(parent.handle, name)
        {
            unregister(windows, &path, held);
        }
    }
    open_for_delete(windows, parent, name)
}

/// Removes the mount point at `path`, which is open as `held`, from the database of the mount
/// manager. The directory is deleted whether this succeeds or not.
fn unregister(windows: &Windows, path: &U16Str, held: Box<dyn Handle>) {
    if let Err(code @ OsError::SHARING_VIOLATION) = windows.os().delete_volume_mount_point(path)
        && is_mount_point(&*held)
    {
        // No document says how the mount manager opens the directory. Without the handle, its
        // parent can be emptied and become a link: docs/security.md states what a container could
        // reach then.
        windows.fallbacks.record(Fallback::Unmount, code);
        drop(held);
        let _ = windows.os().delete_volume_mount_point(path);
    }
}

fn is_mount_point(handle: &dyn Handle) -> bool {
    Link::of(handle).is_ok_and(|link| link.is_some_and(|link| link.volume().is_some()))
}

fn open_for_delete(windows: &Windows, parent: Parent<'_>, name: &U16Str) -> OsResult<DeleteHandle> {
    let open = || match open_with_any_share(parent, name, &OPEN_FOR_DELETE) {
        Err(OsError::ACCESS_DENIED) => open_with_any_share(parent, name, &OPEN_ONLY_FOR_DELETE),
        outcome => outcome,
    };
    // A program that reads files in the background gives up its oplock at once. A container need
    // not do so.
    for _ in 0..OPLOCK_TRIES {
        match open() {
            Err(OsError::OPLOCK_BREAK_IN_PROGRESS) => windows.clock().sleep(OPLOCK_INTERVAL),
            outcome => return outcome,
        }
    }
    open()
}

fn open_with_any_share(parent: Parent<'_>, name: &U16Str, how: &Open) -> OsResult<DeleteHandle> {
    let (handle, path_is_stable) = match parent.handle.open_child(name, how) {
        // Another process may have the object open to delete or rename it. It can then be opened
        // only with deletion shared.
        Err(OsError::SHARING_VIOLATION) => (
            parent.handle.open_child(
                name,
                &Open {
                    share: Share::all(),
                    ..*how
                },
            )?,
            false,
        ),
        outcome => (outcome?, parent.path_is_stable),
    };
    Ok(DeleteHandle {
        handle,
        path_is_stable,
        can_list: how.access.contains(Access::READ_DATA),
    })
}

/// Deletes `entry`, opened by [`open`]: a file, an empty directory, or a link, but not its target.
///
/// Errors: `DIR_NOT_EMPTY`.
pub(crate) fn delete(entry: &DeleteHandle) -> OsResult<()> {
    let handle = &*entry.handle;
    let flags = FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX | FILE_DISPOSITION_IGNORE_READONLY;
    match handle.set(
        FileInfo::DispositionEx,
        FileDispositionInfoEx { flags }.as_bytes(),
    ) {
        Err(code) if ErrorClass::UnsupportedOrInvalid.contains(code) => {}
        outcome => return outcome,
    }
    // The file system supports only the older information class, which does not delete read-only
    // files.
    if buffer::attributes(handle)?.attributes & FILE_ATTRIBUTE_READONLY != 0 {
        let writable = FileBasicInfo {
            attributes: FILE_ATTRIBUTE_NORMAL,
            ..FileBasicInfo::default()
        };
        handle.set(FileInfo::Basic, writable.as_bytes())?;
    }
    delete_on_close(handle)
}

/// Deletes an empty file or directory, or a link, when its last handle is closed.
pub(crate) fn delete_on_close(handle: &dyn Handle) -> OsResult<()> {
    handle.set(
        FileInfo::Disposition,
        FileDispositionInfo { delete_file: 1 }.as_bytes(),
    )
}

/// Keeps an object that was created with [`os::Options::DELETE_ON_CLOSE`] when its handle is
/// closed.
pub(crate) fn keep(created: &dyn Handle) -> OsResult<()> {
    created.set(
        FileInfo::DispositionEx,
        FileDispositionInfoEx {
            flags: FILE_DISPOSITION_ON_CLOSE,
        }
        .as_bytes(),
    )
}

/// Deletes `entry`, opened by [`open`], with all its contents.
///
/// Errors: [`ErrorKind::Busy`] if the time limit is exceeded. The rest is deleted when the request
/// is repeated.
pub(crate) fn delete_all(windows: &Windows, entry: DeleteHandle) -> OperationResult<()> {
    delete_tree(
        &Removal::begin(windows),
        entry,
        &mut ListingBuffer::default(),
    )
}

/// The removal of a tree. When its time is over, it ends between two entries, even if other
/// processes keep adding entries.
struct Removal<'a> {
    windows: &'a Windows,
    deadline: Time,
}

impl<'a> Removal<'a> {
    fn begin(windows: &'a Windows) -> Self {
        Self {
            windows,
            deadline: windows.clock().now() + windows.timeouts.removal,
        }
    }

    fn check_time(&self) -> OperationResult<()> {
        if self.windows.clock().now() < self.deadline {
            return Ok(());
        }
        let limit = self.windows.timeouts.removal;
        let reason = format!(
            "the removal was stopped after {limit:?} and is not complete; repeat the request to go \
             on"
        );
        Err(OperationError::new(ErrorKind::Busy, reason))
    }
}

fn delete_tree(
    removal: &Removal<'_>,
    entry: DeleteHandle,
    buffer: &mut ListingBuffer,
) -> OperationResult<()> {
    let mut level = Level::new(entry, 0, buffer)?;
    // An attacker can choose the depth of the tree, so the levels are on the heap and not on the
    // stack.
    let mut above: Vec<Level> = Vec::new();
    loop {
        if let Some(child) = level.next_child(removal, buffer)? {
            above.push(std::mem::replace(&mut level, child));
            if above.len() == LEVELS {
                above.truncate(1);
                above[0].listing.is_complete = false;
                level.depth = 1;
                // The levels between are closed, so another process can rename them.
                level.entry.path_is_stable = false;
            }
            continue;
        }
        match delete(&level.entry) {
            Err(OsError::DIR_NOT_EMPTY) if level.is_directory && level.may_list_again() => {
                level.list_again(buffer)?;
                continue;
            }
            outcome => outcome?,
        }
        match above.pop() {
            Some(parent) => level = parent,
            None => return Ok(()),
        }
        level.listing.has_removed = true;
    }
}

/// Deletes the contents of `directory`, except the entry `excluded`.
///
/// Errors: as [`delete_all`].
pub(crate) fn delete_contents(
    windows: &Windows,
    directory: Parent<'_>,
    excluded: Option<&str>,
) -> OperationResult<()> {
    let (removal, mut rounds, mut buffer) = (Removal::begin(windows), 0, ListingBuffer::default());
    while rounds < ROUNDS {
        let (mut found_any, mut skipped_any) = (false, false);
        let mut listing = buffer.names(directory.handle, NAMES_SIZE)?;
        for name in std::mem::take(&mut listing.names) {
            if excluded
                .is_some_and(|excluded| name.to_string_lossy().eq_ignore_ascii_case(excluded))
            {
                continue;
            }
            removal.check_time()?;
            let entry = match open(windows, directory, &name) {
                Err(code) if ErrorClass::EntryDeleted.contains(code) => {
                    skipped_any = true;
                    continue;
                }
                opened => opened?,
            };
            found_any = true;
            match delete_tree(&removal, entry, &mut buffer) {
                // Either the entry or one below it was deleted by another process; the next round
                // shows which.
                Err(error) if error.is_of(ErrorClass::EntryDeleted) => {}
                outcome => {
                    outcome?;
                    listing.has_removed = true;
                }
            }
        }
        // A listed name may belong to a deleted entry, so only entries that could be opened count.
        // But opening an entry fails in the same way if the disk was removed, which listing the
        // directory once more tells apart.
        if !found_any {
            if skipped_any {
                buffer.names(directory.handle, 1)?;
            }
            return Ok(());
        }
        rounds += usize::from(!listing.has_advanced());
    }
    Err(OsError::DIR_NOT_EMPTY.into())
}

/// A directory of the tree whose contents are being deleted, or a file or link.
struct Level {
    entry: DeleteHandle,
    is_directory: bool,
    /// How many levels are above.
    depth: usize,
    listing: Listing,
    rounds: usize,
}

/// The names of some entries of a directory.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) names: Vec<U16String>,
    /// Whether the directory had no others.
    pub(crate) is_complete: bool,
    /// Whether an entry of the directory was removed since it was listed.
    has_removed: bool,
}

impl Listing {
    /// Returns whether the removal advances although the directory is not empty: only a part of the
    /// entries was listed, and one of them was removed. Otherwise another process has added entries,
    /// and the listing counts as one of [`ROUNDS`].
    fn has_advanced(&self) -> bool {
        self.has_removed && !self.is_complete
    }
}

impl Level {
    fn new(entry: DeleteHandle, depth: usize, buffer: &mut ListingBuffer) -> OsResult<Self> {
        let handle = &*entry.handle;
        let info = buffer::attributes(handle)?;
        let is_directory = info.attributes & FILE_ATTRIBUTE_DIRECTORY != 0 && !is_surrogate(info);
        // A directory that cannot be listed may be empty.
        let can_list = is_directory && entry.can_list;
        let listing = if can_list {
            buffer.names(handle, limit(depth))?
        } else {
            Listing::default()
        };
        Ok(Self {
            entry,
            is_directory,
            depth,
            listing,
            rounds: 0,
        })
    }

    /// Returns whether the directory may be listed once more.
    fn may_list_again(&self) -> bool {
        self.rounds < ROUNDS || self.listing.has_advanced()
    }

    fn list_again(&mut self, buffer: &mut ListingBuffer) -> OsResult<()> {
        self.rounds += usize::from(!self.listing.has_advanced());
        self.listing = buffer.names(&*self.entry.handle, limit(self.depth))?;
        Ok(())
    }

    fn as_parent(&self) -> Parent<'_> {
        Parent {
            handle: &*self.entry.handle,
            path_is_stable: self.entry.path_is_stable,
        }
    }

    /// Deletes entries of the directory until one is not empty, and returns that one.
    fn next_child(
        &mut self,
        removal: &Removal<'_>,
        buffer: &mut ListingBuffer,
    ) -> OperationResult<Option<Self>> {
        while let Some(name) = self.listing.names.pop() {
            removal.check_time()?;
            match Self::delete_if_empty(
                removal.windows,
                self.as_parent(),
                &name,
                self.depth + 1,
                buffer,
            ) {
                Ok(None) => self.listing.has_removed = true,
                Ok(child) => return Ok(child),
                // Another process has deleted it.
                Err(code) if ErrorClass::EntryDeleted.contains(code) => {}
                Err(code) => return Err(code.into()),
            }
        }
        Ok(None)
    }

    /// Deletes `name` in `parent`, or returns it if it is a directory that is not empty.
    fn delete_if_empty(
        windows: &Windows,
        parent: Parent<'_>,
        name: &U16Str,
        depth: usize,
        buffer: &mut ListingBuffer,
    ) -> OsResult<Option<Self>> {
        let child = Self::new(open(windows, parent, name)?, depth, buffer)?;
        if !child.listing.names.is_empty() {
            return Ok(Some(child));
        }
        match delete(&child.entry) {
            Err(OsError::DIR_NOT_EMPTY) => Ok(Some(child)),
            outcome => outcome.map(|()| None),
        }
    }
}

/// Returns how many bytes the names of a directory with that many levels above it may take.
fn limit(depth: usize) -> usize {
    NAMES_SIZE / (depth + 1)
}

/// Lists names in `directory`, without `.` and `..`, until they take `limit` bytes; at least one
/// name.
pub(crate) fn names(directory: &dyn Handle, limit: usize) -> OsResult<Listing> {
    ListingBuffer::default().names(directory, limit)
}

/// The buffer for directory entries, which is allocated when it is first used.
#[derive(Default)]
struct ListingBuffer(Vec<u8>);

impl ListingBuffer {
    /// See [`names`].
    fn names(&mut self, directory: &dyn Handle, limit: usize) -> OsResult<Listing> {
        let Self(listing) = self;
        listing.resize(LISTING_SIZE, 0);
        let mut found = Names::default();
        let mut restart = true;
        while found.size < limit {
            // A file system may report success without writing an entry.
            listing[..FileIdBothDirInfo::NAME_OFFSET].fill(0);
            match directory.list(restart, listing) {
                Ok(()) => entries(listing, limit, &mut found).ok_or(OsError::FILE_CORRUPT)?,
                Err(OsError::NO_MORE_FILES) => {
                    return Ok(Listing {
                        names: found.names,
                        is_complete: true,
                        has_removed: false,
                    });
                }
                Err(code) => return Err(code),
            }
            restart = false;
        }
        found.names.shrink_to_fit();
        Ok(Listing {
            names: found.names,
            ..Listing::default()
        })
    }
}

/// Names, and the bytes that they take.
#[derive(Default)]
struct Names {
    names: Vec<U16String>,
    size: usize,
}

/// Adds the names in a buffer of directory entries to `found`, until they take `limit` bytes.
/// Returns `None` if the buffer is malformed.
fn entries(listing: &[u8], limit: usize, found: &mut Names) -> Option<()> {
    let mut offset = 0;
    while found.size < limit {
        let entry: FileIdBothDirInfo = buffer::at(listing, offset)?;
        let length = usize::try_from(entry.file_name_length).ok()?;
        let start = offset + FileIdBothDirInfo::NAME_OFFSET;
        if !matches!(
            listing.get(start..start.checked_add(length)?)?,
            b".\0" | b".\0.\0"
        ) {
            let name = component(buffer::units_at(listing, start, length)?)?;
            found.size += length + NAME_OVERHEAD;
            found.names.push(name);
        }
        match usize::try_from(entry.next_entry_offset).ok()? {
            0 => return Some(()),
            // Overlapping entries would yield more names than the buffer can hold.
            step if step < FileIdBothDirInfo::NAME_OFFSET + length => return None,
            step => offset = offset.checked_add(step)?,
        }
    }
    Some(())
}

/// Returns `name` if it is a single component. An empty name would open the directory itself, and a
/// name with a separator would bypass the check for links. No correct file system returns such
/// names.
fn component(name: U16String) -> Option<U16String> {
    (!name.is_empty()
        && !name
            .as_slice()
            .iter()
            .any(|unit| [u16::from(b'\\'), u16::from(b'/'), 0].contains(unit)))
    .then_some(name)
}

#[cfg(test)]
mod tests {
    use os::U16String;
    use os::abi::FileIdBothDirInfo;
    use zerocopy::IntoBytes;

    use super::{
        LEVELS, LISTING_SIZE, Level, NAME_OVERHEAD, NAMES_SIZE, Names, component, entries, limit,
    };
    use crate::PoolKind;

    /// Returns the entry of a file `abcd` with this offset to the next entry. Its change time can
    /// be read as a name, so that an entry that begins within another one is well formed.
    fn entry(next_entry_offset: u32) -> Vec<u8> {
        let change_time = i64::from_le_bytes(*b"a\0b\0c\0d\0");
        let head = FileIdBothDirInfo {
            next_entry_offset,
            file_index: u32::MAX,
            change_time,
            file_name_length: 8,
            ..FileIdBothDirInfo::default()
        };
        [
            &head.as_bytes()[..FileIdBothDirInfo::NAME_OFFSET],
            b"a\0b\0c\0d\0",
        ]
        .concat()
    }

    /// Returns the number of names in a listing with these distances between its entries.
    fn count(steps: &[usize]) -> Option<usize> {
        let (mut listing, mut at) = (Vec::new(), 0);
        for step in steps.iter().chain(&[0]) {
            listing.resize(at, 0);
            listing.extend(entry(u32::try_from(*step).unwrap()));
            at += step;
        }
        let mut found = Names::default();
        entries(&listing, usize::MAX, &mut found).map(|()| found.names.len())
    }

    #[test]
    fn an_entry_that_begins_within_another_makes_the_listing_malformed() {
        assert_eq!(entry(0).len(), 112);
        assert_eq!(count(&[112, 120]), Some(3));
        assert_eq!(count(&[72]), None, "within the fixed part");
        assert_eq!(count(&[105, 256]), None, "within the name");
    }

    #[test]
    fn a_removal_holds_less_than_the_memory_of_an_operation() {
        // A name has at most 255 units. The limit may be exceeded by the last name.
        let name = 2 * 255 + NAME_OVERHEAD;
        let levels: usize = (0..=LEVELS)
            .map(|depth| size_of::<Level>() + 64 + limit(depth) + name)
            .sum();
        // The vector of levels has room for twice as many.
        let most = levels + LEVELS * size_of::<Level>() + LISTING_SIZE;
        assert!(
            most > NAMES_SIZE && most <= PoolKind::Files.operation_memory(),
            "{most}"
        );
    }

    #[test]
    fn a_name_that_is_not_a_single_component_is_not_opened() {
        for bad in ["", "a\\b", "..\\..\\Windows", "a/b", "\\", "a\0b"] {
            assert_eq!(component(U16String::from_str(bad)), None, "{bad:?}");
        }
        assert!(component(U16String::from_str("a b..c")).is_some());
    }
}
