//! How objects are opened: the access and options, and the Win32 path of an open object.

use os::abi::{FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT};
use os::{
    Access, Handle, NtPath, Open, Options, Os, OsError, OsResult, PathForm, Share, U16Str,
    U16String,
};

use crate::devices::buffer;
use crate::types::HostPath;

/// The maximum number of links that Windows follows in one path.
pub(crate) const MAX_LINKS: usize = 63;

/// `MAX_PATH`: the length of the longest Win32 path, with the zero at its end.
const MAX_PATH: usize = 260;

/// Opens an existing object to query it, without following a link.
pub(crate) const OPEN_NOFOLLOW: Open =
    Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);

/// Opens the directory at `path`, below which objects are opened. Links are followed.
pub(crate) fn open_directory(os: &dyn Os, path: &NtPath) -> OsResult<Box<dyn Handle>> {
    os.open(
        path,
        &Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY),
    )
}

/// The options of an open that asks for more than attributes: no link is followed, and the owner of
/// an oplock is not waited for.
pub(crate) const NOFOLLOW_NOWAIT: Options =
    Options::REPARSE_POINT.union(Options::COMPLETE_IF_OPLOCKED);

/// Opens an existing object so that no process can rename or delete it while the handle is open.
/// Windows checks the share mode only for handles with a right to the data.
pub(crate) const OPEN_NO_DELETE_SHARE: Open = Open {
    share: Share::READ.union(Share::WRITE),
    ..Open::existing(
        Access::READ_DATA.union(Access::READ_ATTRIBUTES),
        NOFOLLOW_NOWAIT,
    )
};

/// Returns the Win32 path of `name` in `parent`, with a final backslash.
///
/// The path begins with a drive, as those in the documentation of the mount manager's functions do.
/// It begins with `\\?\` only if it would mean something else without: if it is long, or if a name
/// in it ends with a dot.
pub(crate) fn win32_path(parent: &dyn Handle, name: &U16Str) -> OsResult<U16String> {
    let mut path = parent.final_path(PathForm::Dos)?;
    if path.as_slice().last() != Some(&u16::from(b'\\')) {
        path.push_char('\\');
    }
    path.push(name);
    path.push_char('\\');
    Ok(without_prefix(&path).unwrap_or(path))
}

/// Returns `path` without `\\?\`, or `None` if that would change its meaning.
fn without_prefix(path: &U16Str) -> Option<U16String> {
    let text = path.to_string().ok()?;
    let plain = text.strip_prefix(r"\\?\")?;
    // `HostPath` refuses the names that Win32 changes or interprets.
    let is_same = HostPath::parse(plain).is_ok() && plain.encode_utf16().count() < MAX_PATH;
    is_same.then(|| U16String::from_str(plain))
}

/// Fails unless the object is a directory or a link. A path with a final backslash asks for one.
pub(crate) fn ensure_directory(object: &dyn Handle) -> OsResult<()> {
    let is_directory = buffer::attributes(object)?.attributes
        & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT);
    if is_directory == 0 {
        Err(OsError::DIRECTORY)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use os::U16String;

    use super::without_prefix;

    fn plain(text: &str) -> Option<String> {
        without_prefix(&U16String::from_str(text)).map(|path| path.to_string_lossy())
    }

    fn of_length(length: usize) -> String {
        format!(r"\\?\C:\{}\", "x".repeat(length - 4))
    }

    #[test]
    fn a_path_keeps_its_prefix_if_win32_would_change_it() {
        assert_eq!(plain(r"\\?\C:\a\b c\").as_deref(), Some(r"C:\a\b c\"));
        assert_eq!(plain(&of_length(259)).map(|path| path.len()), Some(259));
        for bad in [
            &of_length(260),
            r"C:\a\",
            r"\\?\C:\a.\b\",
            r"\\?\C:\a \",
            r"\\?\C:\nul\",
            r"\\?\UNC\host\share\",
            r"\\?\Volume{7d2b3c4e-0000-0000-0000-100000000000}\a\",
        ] {
            assert_eq!(plain(bad), None, "{bad}");
        }
    }
}
