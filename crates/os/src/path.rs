//! NT paths: absolute names in the object namespace of Windows NT.

use std::fmt;

use uuid::Uuid;
use widestring::{U16Str, U16String};

/// An absolute NT path such as `\??\C:\var\lib`, `\??\Volume{...}` or `\??\PhysicalDrive2`.
///
/// Windows uses an NT path literally: it does not resolve `.` or `..`, does not convert slashes,
/// and does not limit the length to 260 characters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NtPath(U16String);

impl NtPath {
    /// Returns the root directory of the drive `letter`: `\??\C:\`.
    pub fn drive_root(letter: char) -> Self {
        let mut root = U16String::with_capacity(r"\??\C:\".len());
        root.push_str(r"\??\");
        root.push_char(letter);
        root.push_str(r":\");
        Self(root)
    }

    /// Returns the path of a disk by its number: `\??\PhysicalDrive2`.
    pub fn disk(number: u32) -> Self {
        Self::from_text(&format!(r"\??\PhysicalDrive{number}"))
    }

    /// Returns the path of a volume as a device, which has no final backslash: `\??\Volume{...}`.
    pub fn volume(id: Uuid) -> Self {
        Self::of_volume(id, "}")
    }

    /// Returns the root directory of a volume's file system: `\??\Volume{...}\`.
    pub fn volume_root(id: Uuid) -> Self {
        Self::of_volume(id, r"}\")
    }

    /// Converts a Win32 path that begins with `\\?\`, `\\.\`, `\\` (a UNC path) or a drive.
    pub fn from_win32(path: &U16Str) -> Self {
        let text = path.as_slice();
        let starts = |prefix: &str| {
            text.iter()
                .copied()
                .take(prefix.len())
                .eq(prefix.encode_utf16())
        };
        let mut nt = U16String::with_capacity(r"\??\UNC\".len() + path.len());
        nt.push_str(r"\??\");
        let rest = if starts(r"\\?\") || starts(r"\\.\") || starts(r"\??\") {
            &text[4..]
        } else if starts(r"\\") {
            nt.push_str(r"UNC\");
            &text[2..]
        } else {
            text
        };
        nt.push_slice(rest);
        Self(nt)
    }

    /// Returns a path that Windows has returned as an NT path, such as `\Device\HarddiskVolume3\`.
    pub fn from_nt(path: U16String) -> Self {
        Self(path)
    }

    /// Returns this path with one more component.
    #[must_use]
    pub fn join(&self, component: &U16Str) -> Self {
        let mut joined = U16String::with_capacity(self.0.len() + 1 + component.len());
        joined.push(&self.0);
        if joined.as_slice().last() != Some(&u16::from(b'\\')) {
            joined.push_char('\\');
        }
        joined.push(component);
        Self(joined)
    }

    /// Returns the path in the form that Windows expects.
    pub fn as_u16str(&self) -> &U16Str {
        &self.0
    }

    fn of_volume(id: Uuid, end: &str) -> Self {
        const BEGIN: &str = r"\??\Volume{";
        let mut digits = Uuid::encode_buffer();
        let digits = id.hyphenated().encode_lower(&mut digits);
        let mut path = U16String::with_capacity(BEGIN.len() + digits.len() + end.len());
        path.push_str(BEGIN);
        path.push_str(digits);
        path.push_str(end);
        Self(path)
    }

    fn from_text(text: &str) -> Self {
        Self(U16String::from_str(text))
    }
}

impl fmt::Display for NtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string_lossy())
    }
}

impl fmt::Debug for NtPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::NtPath;
    use widestring::U16String;

    #[test]
    fn win32_paths_become_nt_paths() {
        for (win32, nt) in [
            (r"\\?\Volume{1}\", r"\??\Volume{1}\"),
            (r"\\.\PhysicalDrive1", r"\??\PhysicalDrive1"),
            (r"\\host\share", r"\??\UNC\host\share"),
            (r"C:\var", r"\??\C:\var"),
            (r"\??\UNC\host\share\", r"\??\UNC\host\share\"),
        ] {
            assert_eq!(
                NtPath::from_win32(&U16String::from_str(win32)).to_string(),
                nt
            );
        }
    }

    #[test]
    fn joining_adds_one_backslash() {
        let name = U16String::from_str("var");
        assert_eq!(
            NtPath::drive_root('C').join(&name).to_string(),
            r"\??\C:\var"
        );
        assert_eq!(
            NtPath::drive_root('C').join(&name).join(&name).to_string(),
            r"\??\C:\var\var"
        );
    }
}
