//! Paths on the node, as drivers send them.
//!
//! Only the text is checked here. Whether a path may be used is decided when its components are
//! opened, in `paths::working_directories`.

use std::fmt;

use os::{NtPath, U16Str, U16String};

use crate::error::{OperationError, OperationResult, quoted};

/// The maximum length of a path in UTF-16 code units: `MAX_PATH`, which the Go csi-proxy enforced
/// too.
const MAX_LENGTH: usize = 260;

const SEPARATOR: u16 = b'\\' as u16;

/// An absolute path on a drive, such as `C:\var\lib\kubelet`: a drive letter and checked
/// components.
///
/// No component is empty, `.` or `..`, names a stream or a device, or ends with a space or a dot,
/// which Win32 would strip silently.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HostPath {
    drive: char,
    /// The components, with a backslash between two of them.
    names: U16String,
    /// Whether the text ended with a backslash.
    asks_for_directory: bool,
}

impl HostPath {
    /// Parses a path that begins with a drive and contains no forward slashes.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let refused =
            |why: &str| OperationError::invalid(format!("the path {} {why}", quoted(text)));
        // A text has at least as many bytes as UTF-16 units.
        if text.len() > MAX_LENGTH && text.encode_utf16().count() > MAX_LENGTH {
            return Err(refused("is longer than 260 characters"));
        }
        let mut letters = text.chars();
        let (Some(drive @ ('a'..='z' | 'A'..='Z')), Some(':'), Some('\\')) =
            (letters.next(), letters.next(), letters.next())
        else {
            return Err(refused("is not an absolute path on a drive"));
        };
        let rest = letters.as_str();
        let mut names = Vec::with_capacity(rest.len());
        // Drivers join strings, so a separator may be repeated. Windows ignores that, and the
        // component `.`.
        for component in rest
            .split('\\')
            .filter(|component| !["", "."].contains(component))
        {
            check_component(component).map_err(|why| refused(&why))?;
            if !names.is_empty() {
                names.push(SEPARATOR);
            }
            // Nearly every path, and each call has one.
            if component.is_ascii() {
                names.extend(component.bytes().map(u16::from));
            } else {
                names.extend(component.encode_utf16());
            }
        }
        let names = U16String::from_vec(names);
        Ok(Self {
            drive: drive.to_ascii_uppercase(),
            names,
            asks_for_directory: rest.ends_with('\\'),
        })
    }

    /// Parses a path that may contain forward slashes and may lack a drive, as some drivers send
    /// it. A path without a drive is on the drive of `default`.
    pub fn parse_loose(text: &str, default: &Self) -> OperationResult<Self> {
        let text = text.replace('/', r"\");
        if text.starts_with('\\') && !text.starts_with(r"\\") {
            return Self::parse(&format!("{}:{text}", default.drive));
        }
        Self::parse(&text)
    }

    /// Returns the parent directory. The parent of the root of a drive is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        let names = split_last(&self.names)
            .map(|(above, _)| above.to_owned())
            .unwrap_or_default();
        Self {
            drive: self.drive,
            names,
            asks_for_directory: true,
        }
    }

    /// Returns the root of a drive.
    pub(crate) fn drive_root_of(drive: char) -> Self {
        Self {
            drive: drive.to_ascii_uppercase(),
            names: U16String::default(),
            asks_for_directory: true,
        }
    }

    /// Returns the path `below`, which is not empty, in this directory.
    pub(crate) fn join(&self, below: &U16Str) -> Self {
        let mut names = self.names.clone();
        if !names.is_empty() {
            names.push_char('\\');
        }
        names.push(below);
        Self {
            drive: self.drive,
            names,
            asks_for_directory: false,
        }
    }

    /// Returns whether the path ended with a backslash. Then it names a directory, or a link or
    /// mount point itself, and no file.
    pub(crate) fn asks_for_directory(&self) -> bool {
        self.asks_for_directory
    }

    /// Returns whether the path is the root of its drive.
    pub fn is_drive_root(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the letter of the drive, in upper case.
    pub(crate) fn drive(&self) -> char {
        self.drive
    }

    /// Returns the path below the root of the drive, which is empty for the root.
    pub(crate) fn names(&self) -> &U16Str {
        &self.names
    }

    /// Returns the root directory of the drive.
    pub(crate) fn drive_root(&self) -> NtPath {
        NtPath::drive_root(self.drive)
    }

    /// Returns whether the path is `ancestor` or in it, as far as the texts tell.
    pub fn is_in(&self, ancestor: &Self) -> bool {
        self.below(ancestor).is_some()
    }

    /// Returns whether both paths are the same, as far as the texts tell.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_in(other) && other.is_in(self)
    }

    /// Returns the path below `ancestor`, which is empty for `ancestor` itself; `None` if the path
    /// is not in `ancestor`.
    pub(crate) fn below(&self, ancestor: &Self) -> Option<&U16Str> {
        let (own, above) = (self.names.as_slice(), ancestor.names.as_slice());
        let (start, rest) = own.split_at_checked(above.len())?;
        let is_same = self.drive == ancestor.drive
            && start
                .iter()
                .zip(above)
                .all(|(unit, other)| is_same(*unit, *other));
        let below = match rest.split_first() {
            Some((&SEPARATOR, below)) if !above.is_empty() => below,
            Some(_) if !above.is_empty() => return None,
            _ => rest,
        };
        is_same.then(|| U16Str::from_slice(below))
    }

    /// Returns the path in the namespace of the NT object manager.
    pub(crate) fn to_nt(&self) -> NtPath {
        NtPath::drive_root(self.drive).join(&self.names)
    }

    /// Returns a text that is the same for all spellings of the path that differ only in case.
    pub(crate) fn key(&self) -> String {
        let separator = if self.names.is_empty() { "" } else { r"\" };
        format!(
            "{}:{separator}{}",
            self.drive,
            upper_case(&self.names).to_string_lossy()
        )
    }

    /// Returns the lock key of the path as a single entry of its directory. The lock conflicts with
    /// equal locks and with locks of [`Self::key`] for the path and the directories above it, but
    /// not with locks of paths below it. The key is a path below the entry that no file can have.
    pub(crate) fn entry_key(&self) -> String {
        format!(r"{}\", self.key())
    }
}

/// Returns the components of a path without a root.
pub(crate) fn components(path: &U16Str) -> impl Iterator<Item = &U16Str> {
    path.as_slice()
        .split(|unit| *unit == SEPARATOR)
        .map(U16Str::from_slice)
        .filter(|name| !name.is_empty())
}

/// Splits a path without a root into what is above its last component, and that component; `None`
/// if it is empty.
pub(crate) fn split_last(path: &U16Str) -> Option<(&U16Str, &U16Str)> {
    let units = path.as_slice();
    let (above, last) = match units.iter().rposition(|unit| *unit == SEPARATOR) {
        None => (&[][..], units),
        Some(at) => (&units[..at], &units[at + 1..]),
    };
    (!units.is_empty()).then(|| (U16Str::from_slice(above), U16Str::from_slice(last)))
}

/// Converts a name to upper case as NTFS does when it compares names: each UTF-16 unit alone, and
/// only letters that have exactly one other case. NTFS converts a few letters more, such as the
/// final sigma; that they count as different here makes csi-proxy refuse a path that Windows would
/// find in a working directory.
pub(crate) fn upper_case(name: &U16Str) -> U16String {
    U16String::from_vec(
        name.as_slice()
            .iter()
            .map(|unit| upper_case_unit(*unit).unwrap_or(*unit))
            .collect::<Vec<_>>(),
    )
}

/// Returns whether two units are equal except for their case.
fn is_same(unit: u16, other: u16) -> bool {
    unit == other
        || upper_case_unit(unit).unwrap_or(unit) == upper_case_unit(other).unwrap_or(other)
}

fn upper_case_unit(unit: u16) -> Option<u16> {
    let letter = char::from_u32(unit.into())?;
    let mut upper = letter.to_uppercase();
    let (Some(upper), None) = (upper.next(), upper.next()) else {
        return None;
    };
    let is_one_to_one = upper.to_lowercase().eq([letter]);
    u16::try_from(u32::from(upper))
        .ok()
        .filter(|_| is_one_to_one)
}

fn check_component(name: &str) -> Result<(), String> {
    if name == ".." {
        return Err(format!("contains the component {name:?}"));
    }
    if let Some(bad) = name.bytes().find(|byte| {
        matches!(byte, b'"' | b'/' | b':' | b'?' | b'*' | b'|' | b'<' | b'>') || *byte < b' '
    }) {
        return Err(format!(
            "contains the character {}",
            quoted(&char::from(bad).to_string())
        ));
    }
    if name.ends_with([' ', '.']) {
        return Err("contains a component that ends with a space or a dot".into());
    }
    if is_device(name) {
        return Err(format!("contains the device name {name:?}"));
    }
    Ok(())
}

/// Returns whether Win32 interprets `name` as a device, with or without an extension.
fn is_device(name: &str) -> bool {
    fn is_one_of(name: &str, devices: &[&str]) -> bool {
        devices
            .iter()
            .any(|device| device.eq_ignore_ascii_case(name))
    }

    // Bytes, because a search for a `char` costs each component of each path more.
    let end = name
        .bytes()
        .position(|byte| byte == b'.')
        .unwrap_or(name.len());
    let stem = name[..end].trim_end_matches(' ');
    if is_one_of(stem, &["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"]) {
        return true;
    }
    let Some((numbered, number)) = stem.split_at_checked(3) else {
        return false;
    };
    let mut digits = number.chars();
    is_one_of(numbered, &["COM", "LPT"])
        && matches!(
            (digits.next(), digits.next()),
            (Some('0'..='9' | '¹' | '²' | '³'), None)
        )
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\\{}", self.drive, self.names.display())
    }
}

impl fmt::Debug for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use os::U16Str;

    use super::{HostPath, components, split_last};

    fn path(text: &str) -> HostPath {
        HostPath::parse(text).unwrap()
    }

    #[test]
    fn contract_09_paths_are_absolute_short_and_without_special_characters() {
        for good in [
            r"C:\",
            r"c:\var\lib\kubelet",
            r"D:\a\",
            r"C:\pod~1\é\日本",
            r"C:\a.b\.c",
            r"C:\Program Files\x",
        ] {
            assert!(HostPath::parse(good).is_ok(), "{good}");
        }
        let long = format!(r"C:\{}", "x".repeat(258));
        for bad in [
            "",
            "C:",
            "C:x",
            r"\var",
            r"var\x",
            r"\\host\share",
            r"\\?\C:\x",
            r"\\.\C:",
            r"\??\C:\x",
            r"1:\x",
            r"C:\a\..\b",
            r"C:\a/b",
            r"C:\a:b",
            r"C:\a?b",
            r"C:\a*b",
            r"C:\a|b",
            "C:\\a\"b",
            r"C:\a<b",
            "C:\\a\0b",
            "C:\\a\nb",
            r"C:\a \b",
            r"C:\a.\b",
            r"C:\nul",
            r"C:\x\CON.txt",
            r"C:\com1",
            r"C:\LPT9.x",
            &long,
        ] {
            assert!(HostPath::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_name_that_only_begins_like_a_device_name_is_accepted() {
        for good in [
            r"C:\compute",
            r"C:\com",
            r"C:\LPT10",
            r"C:\comx",
            r"C:\x1",
            r"C:\abc1",
            r"C:\nulls\console",
        ] {
            assert!(HostPath::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_dot_component_is_named_in_the_error() {
        let reason = HostPath::parse(r"C:\a\..\b").unwrap_err().to_string();
        assert!(reason.contains("\"..\""), "{reason}");
        assert_eq!(format!("{:?}", path(r"c:\a")), r"C:\a");
    }

    #[test]
    fn contract_09b_repeated_separators_and_dot_components_mean_nothing() {
        for text in [
            r"C:\\a\b",
            r"C:\a\\b",
            r"C:\a\.\b",
            r"C:\.\a\\\.\b",
            r"C:\a\b\\",
            r"C:\a\b\.",
        ] {
            assert_eq!(path(text).to_string(), r"C:\a\b", "{text}");
        }
        assert!(path(r"C:\\").is_drive_root() && path(r"C:\.").is_drive_root());
    }

    #[test]
    fn spellings_of_one_path_have_the_same_key_and_other_paths_do_not() {
        assert_eq!(path(r"c:\VAR\é").key(), path(r"C:\var\É\").key());
        assert_ne!(path(r"C:\var").key(), path(r"D:\var").key());
        assert_ne!(path(r"C:\var").key(), path(r"C:\var\lib").key());
    }

    #[test]
    fn a_path_of_260_units_is_accepted_and_one_of_261_is_not() {
        assert!(HostPath::parse(&format!(r"C:\{}", "x".repeat(257))).is_ok());
        assert!(HostPath::parse(&format!(r"C:\{}", "x".repeat(258))).is_err());
    }

    #[test]
    fn contract_09_containment_is_by_component_and_without_case() {
        let root = path(r"C:\var\lib\kubelet");
        assert_eq!(
            path(r"c:\VAR\lib\Kubelet\pods\X")
                .below(&root)
                .map(U16Str::to_string_lossy)
                .as_deref(),
            Some(r"pods\X")
        );
        assert_eq!(
            path(r"C:\var\lib\kubelet")
                .below(&root)
                .map(U16Str::to_string_lossy)
                .as_deref(),
            Some("")
        );
        assert_eq!(
            path(r"C:\var\lib")
                .below(&path(r"C:\"))
                .map(U16Str::to_string_lossy)
                .as_deref(),
            Some(r"var\lib")
        );
        assert!(
            path(r"C:\")
                .below(&path(r"C:\"))
                .is_some_and(U16Str::is_empty)
        );
        assert!(path(r"C:\var\lib\kubelet-evil\x").below(&root).is_none());
        assert!(path(r"D:\var\lib\kubelet\x").below(&root).is_none());
        assert!(path(r"C:\var\lib").below(&root).is_none());
        // Unicode's upper case of these is that of other names: the dotless i becomes I, and the
        // sharp s SS.
        for other in [
            "C:\\var\\l\u{131}b\\kubelet\\x",
            "C:\\var\\lib\\kubelet\u{df}\\x",
        ] {
            assert!(path(other).below(&root).is_none(), "{other}");
            assert_ne!(path(other).key(), path(r"C:\var\lib\kubelet\x").key());
        }
        assert!(path("C:\\\u{df}\\x").below(&path(r"C:\ss")).is_none());
        assert!(path("C:\\\u{e9}\\x").below(&path("C:\\\u{c9}")).is_some());
    }

    fn text(names: &U16Str) -> String {
        names.to_string_lossy()
    }

    #[test]
    fn a_path_is_split_at_its_last_separator() {
        for (whole, above, last) in [(r"C:\a", "", "a"), (r"C:\a\b\c", r"a\b", "c")] {
            let whole = path(whole);
            assert_eq!(
                split_last(whole.names()).map(|(above, last)| (text(above), text(last))),
                Some((above.into(), last.into()))
            );
        }
        assert!(
            split_last(path(r"C:\").names()).is_none()
                && components(path(r"C:\").names()).next().is_none()
        );
        assert_eq!(
            components(path(r"C:\a\b").names())
                .map(text)
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
    }

    #[test]
    fn contract_10_paths_without_a_drive_or_with_forward_slashes_are_on_the_kubelet_drive() {
        let kubelet = path(r"D:\kubelet");
        let loose = |text| HostPath::parse_loose(text, &kubelet).map(|path| path.to_string());
        assert_eq!(loose(r"\var\lib").unwrap(), r"D:\var\lib");
        assert_eq!(loose("/var/lib/").unwrap(), r"D:\var\lib");
        assert_eq!(loose("c:/var/lib").unwrap(), r"C:\var\lib");
        assert!(loose("//host/share").is_err());
        assert!(loose("").is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_displayed_path_parses_to_the_same_path(text in r"[a-zA-Z]:\\[ -~é日]{0,40}") {
            if let Ok(path) = HostPath::parse(&text) {
                let displayed = HostPath::parse(&path.to_string()).unwrap();
                assert_eq!((displayed.drive, &displayed.names), (path.drive, &path.names));
                assert!(components(&path.names).all(|name| name.to_string_lossy() != ".."), "{path}");
            }
        }
    }
}
