//! Reparse points: parsing, validating and building their data.

use os::abi::{
    MountPointReparse, REPARSE_TAG_MOUNT_POINT, REPARSE_TAG_SYMLINK, ReparseHead, SYMLINK_RELATIVE,
    SymlinkReparse,
};
use os::{OsError, OsResult};
use zerocopy::{FromBytes, IntoBytes};

use crate::files::fill_part;

/// The size of the largest reparse point, with its header.
const MAX_LENGTH: usize = 16 * 1024;
/// The bit of tags that a directory with entries can have.
const DIRECTORY_TAG: u32 = 0x1000_0000;

/// The target of a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An absolute NT path.
    Absolute(Vec<u16>),
    /// A path relative to the directory that contains the link.
    Relative(Vec<u16>),
}

/// Returns the target of the reparse point `data`, which is its substitute name.
pub(crate) fn target(data: &[u8]) -> OsResult<Target> {
    let (head, body) =
        ReparseHead::read_from_prefix(data).map_err(|_| OsError::INVALID_REPARSE_DATA)?;
    match head.tag {
        REPARSE_TAG_SYMLINK => {
            let (link, names) = SymlinkReparse::read_from_prefix(body)
                .map_err(|_| OsError::INVALID_REPARSE_DATA)?;
            let substitute = slice(names, link.substitute_offset, link.substitute_length)?;
            let relative = link.flags & SYMLINK_RELATIVE != 0;
            Ok(if relative {
                Target::Relative(substitute)
            } else {
                Target::Absolute(substitute)
            })
        }
        REPARSE_TAG_MOUNT_POINT => {
            let (mount, names) = MountPointReparse::read_from_prefix(body)
                .map_err(|_| OsError::INVALID_REPARSE_DATA)?;
            slice(names, mount.substitute_offset, mount.substitute_length).map(Target::Absolute)
        }
        _ => Err(OsError::CANT_ACCESS_FILE),
    }
}

/// Returns the tag of the reparse point `data`.
pub(crate) fn tag(data: &[u8]) -> u32 {
    data.first_chunk().map_or(0, |tag| u32::from_le_bytes(*tag))
}

/// Returns whether a directory with this tag can have entries and opens like a directory without a
/// reparse point.
pub(crate) fn is_directory_tag(tag: u32) -> bool {
    tag & DIRECTORY_TAG != 0
}

/// Checks that the file system accepts `data`, and returns its tag.
pub(crate) fn check(data: &[u8]) -> OsResult<u32> {
    let (head, body) =
        ReparseHead::read_from_prefix(data).map_err(|_| OsError::INVALID_REPARSE_DATA)?;
    // Tags that Microsoft reserves.
    if head.tag <= 1 {
        return Err(OsError::REPARSE_TAG_INVALID);
    }
    if data.len() > MAX_LENGTH || body.len() != usize::from(head.data_length) {
        return Err(OsError::INVALID_REPARSE_DATA);
    }
    if head.tag == REPARSE_TAG_SYMLINK {
        check_symlink(body)?;
    }
    Ok(head.tag)
}

/// Simulates `FSCTL_GET_REPARSE_POINT` for a file with the reparse point `data`.
pub(crate) fn read(data: Option<&[u8]>, output: &mut [u8]) -> OsResult<usize> {
    fill_part(output, data.ok_or(OsError::NOT_A_REPARSE_POINT)?)
}

fn check_symlink(body: &[u8]) -> OsResult<()> {
    let (link, names) =
        SymlinkReparse::read_from_prefix(body).map_err(|_| OsError::INVALID_REPARSE_DATA)?;
    slice(names, link.print_offset, link.print_length)?;
    let substitute = slice(names, link.substitute_offset, link.substitute_length)?;
    if substitute.is_empty() || link.flags & !SYMLINK_RELATIVE != 0 {
        return Err(OsError::INVALID_REPARSE_DATA);
    }
    Ok(())
}

fn slice(names: &[u8], offset: u16, length: u16) -> OsResult<Vec<u16>> {
    let (from, length) = (usize::from(offset), usize::from(length));
    let bytes = names
        .get(from..from + length)
        .ok_or(OsError::INVALID_REPARSE_DATA)?;
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() || from % 2 != 0 {
        return Err(OsError::INVALID_REPARSE_DATA);
    }
    Ok(pairs
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect())
}

/// Returns the reparse point of a symbolic link.
pub(crate) fn symlink(substitute: &[u16], print: &[u16], relative: bool) -> OsResult<Vec<u8>> {
    let (substitute_length, print_length) = (bytes(substitute)?, bytes(print)?);
    let link = SymlinkReparse {
        substitute_offset: 0,
        substitute_length,
        print_offset: substitute_length,
        print_length,
        flags: if relative { SYMLINK_RELATIVE } else { 0 },
    };
    let names = [substitute.as_bytes(), print.as_bytes()].concat();
    with_header(REPARSE_TAG_SYMLINK, link.as_bytes(), &names)
}

/// Returns the reparse point of a mount point or junction.
pub(crate) fn mount_point(substitute: &[u16], print: &[u16]) -> OsResult<Vec<u8>> {
    let (substitute_length, print_length) = (bytes(substitute)?, bytes(print)?);
    let mount = MountPointReparse {
        substitute_offset: 0,
        substitute_length,
        print_offset: substitute_length + 2,
        print_length,
    };
    let names = [substitute.as_bytes(), &[0; 2], print.as_bytes(), &[0; 2]].concat();
    with_header(REPARSE_TAG_MOUNT_POINT, mount.as_bytes(), &names)
}

fn with_header(tag: u32, fixed: &[u8], names: &[u8]) -> OsResult<Vec<u8>> {
    let data_length =
        u16::try_from(fixed.len() + names.len()).map_err(|_| OsError::FILENAME_EXCED_RANGE)?;
    Ok([
        ReparseHead {
            tag,
            data_length,
            reserved: 0,
        }
        .as_bytes(),
        fixed,
        names,
    ]
    .concat())
}

fn bytes(units: &[u16]) -> OsResult<u16> {
    u16::try_from(units.len() * 2)
        .ok()
        .filter(|length| usize::from(*length) < MAX_LENGTH)
        .ok_or(OsError::FILENAME_EXCED_RANGE)
}

#[cfg(test)]
mod tests {
    use super::{Target, mount_point, symlink, target};

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    #[test]
    fn the_target_of_a_link_is_read_back() {
        let to = units(r"\??\C:\var");
        assert_eq!(
            target(&symlink(&to, &units(r"C:\var"), false).unwrap()).unwrap(),
            Target::Absolute(to.clone())
        );
        assert_eq!(
            target(&symlink(&units("x"), &[], true).unwrap()).unwrap(),
            Target::Relative(units("x"))
        );
        assert_eq!(
            target(&mount_point(&to, &[]).unwrap()).unwrap(),
            Target::Absolute(to)
        );
    }
}
