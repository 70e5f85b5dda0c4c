//! Calls on a handle of a file or directory: information, listing, paths and reparse points.

use os::abi::{
    AccessEntry, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_DISPOSITION_DELETE,
    FILE_DISPOSITION_ON_CLOSE, FileAttributeTagInfo, FileBasicInfo, FileDispositionInfo,
    FileDispositionInfoEx, FileIdBothDirInfo, FileIdInfo, FileStreamInfo, REPARSE_TAG_SYMLINK,
    SecurityDescriptor,
};
use os::{Access, FileInfo, OsError, OsResult, PathForm, U16String};
use zerocopy::{FromBytes, IntoBytes};

use crate::files::file_name::Name;
use crate::files::file_system::{FileRecord, FileSystem, administrators_only};
use crate::files::handles::Cursor;
use crate::files::reparse_point;
use crate::state::{FsId, State};

pub(crate) const BAD_LENGTH: OsError = OsError(24);
/// The smallest buffer for a listing: the offset of the second unit of the name, rounded up to 8.
const SMALLEST_LISTING: usize = (FileIdBothDirInfo::NAME_OFFSET + 2).next_multiple_of(8);
/// The attributes that can be set: read-only, hidden, system, archive, not content indexed.
const SETTABLE: u32 = 0x1 | 0x2 | 0x4 | 0x20 | 0x2000;

impl State {
    pub(crate) fn query_file(
        &self,
        handle: u64,
        class: FileInfo,
        output: &mut [u8],
    ) -> OsResult<()> {
        let (fs, id) = self.file(handle)?;
        let file_system = self.file_system(fs)?;
        let file = file_system.record(id)?;
        match class {
            FileInfo::Basic => {
                self.check_access(handle, Access::READ_ATTRIBUTES)?;
                let info = FileBasicInfo {
                    attributes: file.file_attributes(),
                    ..FileBasicInfo::default()
                };
                fill(output, info.as_bytes())
            }
            FileInfo::AttributeTag | FileInfo::Id | FileInfo::Stream if file_system.is_fat() => {
                Err(OsError::INVALID_PARAMETER)
            }
            FileInfo::Stream => streams(file, output),
            FileInfo::AttributeTag => {
                self.check_access(handle, Access::READ_ATTRIBUTES)?;
                let info = FileAttributeTagInfo {
                    attributes: file.file_attributes(),
                    reparse_tag: file.reparse_tag(),
                };
                fill(output, info.as_bytes())
            }
            FileInfo::Id => {
                let info = FileIdInfo {
                    volume_serial_number: file_system.serial,
                    file_id: u128::from(id).to_le_bytes(),
                };
                fill(output, info.as_bytes())
            }
            FileInfo::Disposition | FileInfo::DispositionEx => Err(OsError::INVALID_PARAMETER),
        }
    }

    pub(crate) fn set_file(&mut self, handle: u64, class: FileInfo, input: &[u8]) -> OsResult<()> {
        match class {
            FileInfo::Basic => self.set_basic(handle, &read(input)?),
            FileInfo::Disposition => {
                let info: FileDispositionInfo = read(input)?;
                self.set_disposition(handle, info.delete_file != 0, 0)
            }
            FileInfo::DispositionEx => {
                let info: FileDispositionInfoEx = read(input)?;
                self.set_disposition_ex(handle, info.flags)
            }
            FileInfo::AttributeTag | FileInfo::Id | FileInfo::Stream => {
                Err(OsError::INVALID_PARAMETER)
            }
        }
    }

    fn set_disposition_ex(&mut self, handle: u64, flags: u32) -> OsResult<()> {
        let fs = self.file(handle)?.0;
        // Remote shares and FAT do not have this class.
        let has_class = matches!(fs, FsId::Volume(_)) && !self.file_system(fs)?.is_fat();
        if !has_class || flags & !0x1f != 0 {
            return Err(OsError::INVALID_PARAMETER);
        }
        let delete = flags & FILE_DISPOSITION_DELETE != 0;
        if flags & FILE_DISPOSITION_ON_CLOSE == 0 {
            return self.set_disposition(handle, delete, flags);
        }
        // csi-proxy only takes back the deletion.
        if delete {
            return Err(OsError::NOT_SUPPORTED);
        }
        self.check_access(handle, Access::DELETE)?;
        self.opened_mut(handle)?.deletes_on_close = false;
        Ok(())
    }

    fn set_basic(&mut self, handle: u64, info: &FileBasicInfo) -> OsResult<()> {
        self.check_access(handle, Access::WRITE_ATTRIBUTES)?;
        let (fs, id) = self.file(handle)?;
        self.check_writable(fs)?;
        let file = self.file_system_mut(fs)?.record_mut(id)?;
        if info.attributes & FILE_ATTRIBUTE_DIRECTORY != 0 && !file.is_directory() {
            return Err(OsError::INVALID_PARAMETER);
        }
        if info.attributes != 0 {
            file.attributes = info.attributes & !FILE_ATTRIBUTE_NORMAL & SETTABLE;
        }
        Ok(())
    }

    /// Fills `output` with the next entries of a directory.
    pub(crate) fn list_directory(
        &mut self,
        handle: u64,
        restart: bool,
        output: &mut [u8],
    ) -> OsResult<()> {
        self.check_access(handle, Access::READ_DATA)?;
        let (fs, id) = self.file(handle)?;
        let file_system = self.file_system(fs)?;
        let directory = file_system.record(id)?;
        if output.len() < SMALLEST_LISTING {
            return Err(BAD_LENGTH);
        }
        let begin = if restart {
            Cursor::Begin
        } else {
            self.opened(handle)?.cursor.clone()
        };
        let mut entries = EntryBuffer {
            output,
            last: 0,
            end: 0,
        };
        let mut cursor = begin;
        while let Some(next) = entry_after(file_system, directory, &cursor)? {
            if entries.push(&next) {
                cursor = next.cursor;
                continue;
            }
            if entries.end > 0 {
                break;
            }
            // Windows also writes a part of the entry. The buffer of csi-proxy has room for any
            // entry.
            return Err(OsError::MORE_DATA);
        }
        let none = entries.end == 0;
        self.opened_mut(handle)?.cursor = cursor;
        if none {
            Err(OsError::NO_MORE_FILES)
        } else {
            Ok(())
        }
    }

    pub(crate) fn security_descriptor(&self, handle: u64) -> OsResult<SecurityDescriptor> {
        self.check_access(handle, Access::READ_CONTROL)?;
        Ok(self
            .file_of(handle)?
            .access
            .clone()
            .unwrap_or_else(administrators_only))
    }

    pub(crate) fn set_access_list(&mut self, handle: u64, entries: &[AccessEntry]) -> OsResult<()> {
        self.check_access(handle, Access::WRITE_DAC)?;
        let (fs, id) = self.file(handle)?;
        self.check_writable(fs)?;
        let file = self.file_system_mut(fs)?.record_mut(id)?;
        let owner = file.access.take().unwrap_or_else(administrators_only).owner;
        file.access = Some(SecurityDescriptor {
            owner,
            entries: Some(entries.to_vec()),
        });
        Ok(())
    }

    pub(crate) fn final_path(&self, handle: u64, form: PathForm) -> OsResult<U16String> {
        let (fs, id) = self.file(handle)?;
        let file_system = self.file_system(fs)?;
        let names = file_system.path(id);
        // The SMB client asks the server for the name of each component.
        if matches!(fs, FsId::Share(..)) && file_system.any_above_grants_nothing(id) {
            return Err(OsError::ACCESS_DENIED);
        }
        let prefix = match (fs, form) {
            (FsId::Volume(volume), PathForm::VolumeGuid) => format!(r"\\?\Volume{{{volume}}}"),
            (FsId::Volume(volume), PathForm::Dos) => {
                format!(
                    r"\\?\{}",
                    self.dos_prefix(volume).ok_or(OsError::PATH_NOT_FOUND)?
                )
            }
            (FsId::Volume(volume), PathForm::Device) => Self::device_of(volume),
            (FsId::Share(tree), PathForm::Dos | PathForm::Device) => {
                let redirector = if form == PathForm::Dos {
                    r"\\?\UNC"
                } else {
                    r"\Device\Mup"
                };
                format!(
                    r"{redirector}\{}",
                    self.smb.name_of(tree).ok_or(OsError::PATH_NOT_FOUND)?
                )
            }
            (FsId::Share(..), PathForm::VolumeGuid) => return Err(OsError::PATH_NOT_FOUND),
        };
        let mut path = U16String::from_str(&prefix);
        let Some(names) = names else {
            // NTFS keeps deleted files that are open in a directory of its own.
            path.push_str(format!(r"\$Extend\$Deleted\{id:020X}"));
            return Ok(path);
        };
        if names.is_empty() {
            path.push_char('\\');
        }
        for name in names {
            path.push_char('\\');
            path.push_slice(name.units());
        }
        Ok(path)
    }

    pub(crate) fn set_reparse_point(&mut self, handle: u64, input: &[u8]) -> OsResult<usize> {
        self.check_access(handle, Access::WRITE_DATA | Access::WRITE_ATTRIBUTES)?;
        let tag = reparse_point::check(input)?;
        if tag == REPARSE_TAG_SYMLINK
            && self
                .without_symlink_privilege
                .contains(&self.opened(handle)?.process)
        {
            return Err(OsError::PRIVILEGE_NOT_HELD);
        }
        let (fs, id) = self.file(handle)?;
        self.check_writable(fs)?;
        let file_system = self.file_system(fs)?;
        if file_system.is_fat() {
            return Err(OsError::INVALID_FUNCTION);
        }
        let file = file_system.record(id)?;
        if !reparse_point::is_directory_tag(tag)
            && file.is_directory()
            && !file.is_empty_directory()
        {
            return Err(OsError::DIR_NOT_EMPTY);
        }
        self.file_system_mut(fs)?.record_mut(id)?.reparse = Some(input.to_vec());
        Ok(0)
    }
}

/// Copies all of `answer`, or fails if it does not fit.
pub(crate) fn fill(output: &mut [u8], answer: &[u8]) -> OsResult<()> {
    output
        .get_mut(..answer.len())
        .ok_or(BAD_LENGTH)?
        .copy_from_slice(answer);
    Ok(())
}

/// Copies the part of `answer` that fits, and fails with `MORE_DATA` if a part does not fit.
pub(crate) fn fill_part(output: &mut [u8], answer: &[u8]) -> OsResult<usize> {
    let length = answer.len().min(output.len());
    output[..length].copy_from_slice(&answer[..length]);
    if length < answer.len() {
        Err(OsError::MORE_DATA)
    } else {
        Ok(length)
    }
}

/// Writes the data streams of a file or directory.
fn streams(file: &FileRecord, output: &mut [u8]) -> OsResult<()> {
    let content = (!file.is_directory()).then(|| ("::$DATA".to_owned(), file.data().len()));
    let named = file.streams.iter();
    let named = named.map(|(name, size)| (format!(":{name}:$DATA"), *size));
    let all: Vec<_> = content.into_iter().chain(named).collect();
    // A directory has no content, which would be a stream.
    if all.is_empty() {
        return Err(OsError::HANDLE_EOF);
    }
    let mut answer = Vec::new();
    for (at, (name, size)) in all.iter().enumerate() {
        let name: Vec<u16> = name.encode_utf16().collect();
        let length = FileStreamInfo::NAME_OFFSET + size_of_val(&name[..]);
        let (is_last, aligned) = (at + 1 == all.len(), length.next_multiple_of(8));
        let count = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let size = i64::try_from(*size).unwrap_or(i64::MAX);
        let head = FileStreamInfo {
            next_entry_offset: if is_last { 0 } else { count(aligned) },
            name_length: count(size_of_val(&name[..])),
            size,
            allocation_size: size,
        };
        answer.extend_from_slice(head.as_bytes());
        answer.extend_from_slice(name.as_bytes());
        answer.resize(answer.len() + if is_last { 0 } else { aligned - length }, 0);
    }
    fill_part(output, &answer).map(drop)
}

fn read<T: FromBytes>(input: &[u8]) -> OsResult<T> {
    T::read_from_prefix(input)
        .map(|(value, _)| value)
        .map_err(|_| BAD_LENGTH)
}

/// An entry of a directory, and the cursor after it.
struct Entry<'a> {
    name: Vec<u16>,
    file: &'a FileRecord,
    cursor: Cursor,
}

/// Returns the entry after `cursor`. A root directory has no `.` and `..`.
fn entry_after<'a>(
    file_system: &'a FileSystem,
    directory: &'a FileRecord,
    cursor: &Cursor,
) -> OsResult<Option<Entry<'a>>> {
    let dots = |count: usize| vec![u16::from(b'.'); count];
    let first = match (cursor, directory.parent) {
        (Cursor::Begin, Some(_)) => {
            return Ok(Some(Entry {
                name: dots(1),
                file: directory,
                cursor: Cursor::Itself,
            }));
        }
        (Cursor::Itself, Some(parent)) => {
            let file = file_system.record(parent)?;
            return Ok(Some(Entry {
                name: dots(2),
                file,
                cursor: Cursor::Parent,
            }));
        }
        (Cursor::After(name), _) => std::ops::Bound::Excluded(name),
        _ => std::ops::Bound::Unbounded,
    };
    let children = directory.children().ok_or(OsError::DIRECTORY)?;
    let next = children
        .range::<Name, _>((first, std::ops::Bound::Unbounded))
        .next();
    next.map(|(name, id)| {
        let file = file_system.record(*id)?;
        Ok(Entry {
            name: name.units().to_vec(),
            file,
            cursor: Cursor::After(name.clone()),
        })
    })
    .transpose()
}

/// A buffer to which entries are appended.
struct EntryBuffer<'a> {
    output: &'a mut [u8],
    /// The offset of the last entry.
    last: usize,
    /// The offset after the last entry.
    end: usize,
}

impl EntryBuffer<'_> {
    /// Appends an entry. Returns false and writes nothing if the entry does not fit.
    fn push(&mut self, entry: &Entry<'_>) -> bool {
        let at = self.end.next_multiple_of(8);
        let bytes = bytes_of(entry);
        let end = at + bytes.len();
        if end > self.output.len() {
            return false;
        }
        self.output[at..end].copy_from_slice(&bytes);
        if self.end > 0 {
            let distance = u32::try_from(at - self.last).unwrap_or(u32::MAX);
            self.output[self.last..self.last + 4].copy_from_slice(&distance.to_le_bytes());
        }
        (self.last, self.end) = (at, end);
        true
    }
}

/// Returns an entry in Windows' layout, as the last entry of a buffer.
fn bytes_of(entry: &Entry<'_>) -> Vec<u8> {
    let name = entry.name.as_bytes();
    let head = FileIdBothDirInfo {
        attributes: entry.file.file_attributes(),
        file_name_length: u32::try_from(name.len()).unwrap_or(u32::MAX),
        ..FileIdBothDirInfo::default()
    };
    [&head.as_bytes()[..FileIdBothDirInfo::NAME_OFFSET], name].concat()
}
