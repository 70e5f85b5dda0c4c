//! Names of files: WTF-16, case preserved, compared without regard to case.

use std::cmp::Ordering;
use std::fmt;

use os::{OsError, OsResult, U16Str};

const MAX_LENGTH: usize = 255;

/// One component of a path.
#[derive(Clone)]
pub(crate) struct Name(Vec<u16>);

impl Name {
    /// Checks that NTFS accepts the name.
    pub(crate) fn new(units: &[u16]) -> OsResult<Self> {
        let dots = units.len() <= 2 && units.iter().all(|unit| *unit == u16::from(b'.'));
        if dots || units.len() > MAX_LENGTH || units.iter().any(|unit| is_forbidden(*unit)) {
            return Err(OsError::INVALID_NAME);
        }
        Ok(Self(units.to_vec()))
    }

    /// Returns the empty name, which is the name of a root directory.
    pub(crate) fn root() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn units(&self) -> &[u16] {
        &self.0
    }

    fn folded(&self) -> impl Iterator<Item = u16> {
        self.0.iter().copied().map(fold)
    }
}

/// Splits a path relative to a root directory into names. One final separator is allowed.
pub(crate) fn split(path: &[u16]) -> OsResult<Vec<Name>> {
    let path = path.strip_suffix(&[SEPARATOR]).unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    path.split(|unit| *unit == SEPARATOR)
        .map(Name::new)
        .collect()
}

/// The backslash.
pub(crate) const SEPARATOR: u16 = 0x5c;

fn is_forbidden(unit: u16) -> bool {
    unit < 32 || u8::try_from(unit).is_ok_and(|byte| br#""*/:<>?\|"#.contains(&byte))
}

fn fold(unit: u16) -> u16 {
    if let Ok(byte) = u8::try_from(unit)
        && byte.is_ascii()
    {
        return byte.to_ascii_uppercase().into();
    }
    let Some(mut upper) = char::from_u32(unit.into()).map(char::to_uppercase) else {
        return unit;
    };
    match (upper.next(), upper.next()) {
        // Windows has no ASCII letter as the upper case of another one, such as of the dotless i.
        (Some(one), None) if !one.is_ascii() => u16::try_from(u32::from(one)).unwrap_or(unit),
        _ => unit,
    }
}

/// Returns the upper case of a text, by which Windows compares names.
pub(crate) fn upper_case(text: &str) -> String {
    let units: Vec<u16> = text.encode_utf16().map(fold).collect();
    String::from_utf16_lossy(&units)
}

/// Returns whether two texts are equal when case is ignored.
pub(crate) fn same(left: &[u16], right: &str) -> bool {
    left.iter()
        .copied()
        .map(fold)
        .eq(right.encode_utf16().map(fold))
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.folded().cmp(other.folded())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Name {}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&U16Str::from_slice(&self.0).to_string_lossy())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{Name, split};
    use os::OsError;

    fn name(text: &str) -> Name {
        Name::new(&text.encode_utf16().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn names_preserve_case_and_compare_without_it() {
        assert_eq!(name("Größe"), name("GRÖßE"));
        assert_eq!(name("οδος"), name("ΟΔΟΣ"));
        for (one, other) in [
            ("ß", "SS"),
            ("ı", "I"),
            ("ſ", "S"),
            ("\u{212a}", "k"),
            ("İ", "i"),
        ] {
            assert_ne!(name(one), name(other));
        }
        assert_ne!(name("a"), name("b"));
        assert_eq!(name("Kubelet").to_string(), "Kubelet");
    }

    #[test]
    fn a_name_that_ntfs_rejects_is_rejected() {
        for bad in ["", ".", "..", "a:b", "a*", "a/b", "a\\b", "\0"] {
            let units: Vec<u16> = bad.encode_utf16().collect();
            assert_eq!(
                Name::new(&units).unwrap_err(),
                OsError::INVALID_NAME,
                "{bad:?}"
            );
        }
        assert!(
            Name::new(&[0xd800]).is_ok(),
            "NTFS accepts an unpaired surrogate"
        );
    }

    #[test]
    fn a_path_may_end_with_one_separator() {
        let units = |text: &str| text.encode_utf16().collect::<Vec<_>>();
        assert_eq!(split(&units(r"var\lib\")).unwrap().len(), 2);
        assert_eq!(split(&units(r"")).unwrap().len(), 0);
        assert_eq!(
            split(&units(r"var\\lib")).unwrap_err(),
            OsError::INVALID_NAME
        );
    }
}
