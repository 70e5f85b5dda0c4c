//! Volume ids.

use std::fmt;

use os::{NtPath, U16Str, U16String, Uuid};

use crate::error::{OperationError, OperationResult, quoted};

/// `\\?\Volume{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}\`, the permanent name of a volume. Requests
/// have no other form of a volume id, except that ResizeVolume also takes the number of a disk
/// (`ResizeTarget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(Uuid);

impl VolumeId {
    /// Parses exactly the form that [`fmt::Display`] writes, ignoring case.
    pub fn parse(text: &str) -> OperationResult<Self> {
        Self::guid_in(text, r"\\?\", r"\")
            .ok_or_else(|| OperationError::invalid(format!("{} is not a volume id", quoted(text))))
    }

    /// Parses the substitute name of a volume mount point, `\??\Volume{...}\`.
    pub(crate) fn from_substitute(name: &U16Str) -> Option<Self> {
        Self::guid_in(&name.to_string().ok()?, r"\??\", r"\")
    }

    /// Parses a path in [`os::PathForm::VolumeGuid`]: returns its volume, and whether the path is
    /// the root of the volume.
    pub(crate) fn of_final_path(path: &U16Str) -> Option<(Self, bool)> {
        let text = path.to_string_lossy();
        let end = text.find('}')? + 1;
        let rest = &text[end..];
        let id = Self::guid_in(&text[..end], r"\\?\", "")?;
        (rest.is_empty() || rest.starts_with('\\')).then_some((id, rest.len() <= 1))
    }

    /// Parses a name that [`os::Os::volumes`] returned.
    pub(crate) fn from_windows(name: &U16Str) -> Option<Self> {
        Self::guid_in(&name.to_string().ok()?, r"\\?\", r"\")
    }

    fn guid_in(text: &str, prefix: &str, suffix: &str) -> Option<Self> {
        let guid = text.strip_prefix(prefix)?.strip_suffix(suffix)?;
        let guid = guid
            .get(..7)
            .filter(|word| word.eq_ignore_ascii_case("volume{"))
            .map(|_| &guid[7..])?;
        let guid = guid.strip_suffix('}')?;
        // Uuid also parses forms without hyphens and with further braces; the GUID in a volume name
        // has 36 characters.
        (guid.len() == 36)
            .then(|| Uuid::parse_str(guid).ok())
            .flatten()
            .map(Self)
    }

    /// Returns the path of the volume as a device.
    pub(crate) fn device(self) -> NtPath {
        NtPath::volume(self.0)
    }

    /// Returns the path of the root directory of its file system.
    pub(crate) fn root(self) -> NtPath {
        NtPath::volume_root(self.0)
    }

    /// Returns the name as Win32 functions expect it.
    pub(crate) fn to_windows(self) -> U16String {
        U16String::from_str(&self.to_string())
    }
}

impl fmt::Display for VolumeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r"\\?\Volume{{{}}}\", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::VolumeId;
    use os::U16String;

    const ID: &str = r"\\?\Volume{0f2e1c3a-1111-2222-3333-444455556666}\";

    #[test]
    fn contract_21_a_volume_id_round_trips_byte_for_byte() {
        assert_eq!(VolumeId::parse(ID).unwrap().to_string(), ID);
    }

    #[test]
    fn only_the_exact_form_is_a_volume_id() {
        for bad in [
            "",
            "-1",
            "3",
            ID.strip_suffix('\\').unwrap(),
            &ID.replace(r"\\?\", r"\\.\"),
            &ID.replace('-', ""),
            &format!("{ID}x"),
            r"\\?\Volume{{0f2e1c3a-1111-2222-3333-444455556666}}\",
            r"\\?\Volumé{0f2e1c3a-1111-2222-3333-444455556666}\",
        ] {
            assert!(VolumeId::parse(bad).is_err(), "{bad}");
        }
    }

    fn of(path: &str) -> Option<(VolumeId, bool)> {
        VolumeId::of_final_path(&U16String::from_str(path))
    }

    #[test]
    fn a_final_path_is_parsed_into_its_volume_and_whether_it_is_the_root() {
        let id = VolumeId::parse(ID).unwrap();
        assert_eq!(of(ID), Some((id, true)));
        assert_eq!(of(&format!(r"{ID}pods\x")), Some((id, false)));
        assert_eq!(of(r"\\?\C:\x"), None);
    }
}
