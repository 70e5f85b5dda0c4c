//! Paths on SMB servers.

use std::fmt;

use os::{NtPath, U16String};

use crate::error::{OperationError, OperationResult};

/// The longest path that is accepted, in UTF-16 units.
const LONGEST: usize = 1024;

/// `\\host\share` with what may follow, as a driver sent it but for the direction of the slashes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UncPath {
    /// Without a final backslash.
    path: String,
    /// The length of `\\host\share` in it.
    share: usize,
}

impl UncPath {
    /// Reads a path with slashes of either direction and a host and share at least.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let refused = |why: &str| OperationError::invalid(format!("the remote path {:?} {why}", crate::excerpt(text)));
        if text.encode_utf16().count() > LONGEST {
            return Err(refused("is longer than 1024 characters"));
        }
        let path = text.replace('/', r"\");
        let path = path.strip_suffix('\\').unwrap_or(&path);
        let Some(rest) = path.strip_prefix(r"\\") else { return Err(refused(r"does not begin with \\")) };
        let parts: Vec<_> = rest.split('\\').collect();
        if parts.len() < 2 {
            return Err(refused("has no share"));
        }
        for part in &parts {
            if part.is_empty() || matches!(*part, "." | "..") {
                return Err(refused(&format!("has the component {part:?}")));
            }
            if part.contains(['"', ':', '?', '*', '|', '<', '>']) || part.contains(char::is_control) {
                return Err(refused(&format!("has a character in {part:?} that no name can have")));
            }
        }
        Ok(Self { path: path.to_owned(), share: 2 + parts[0].len() + 1 + parts[1].len() })
    }

    /// `\\host\share` in lower case: what a mapping is made for.
    pub(crate) fn share(&self) -> String {
        self.path[..self.share].to_lowercase()
    }

    /// The path, or its share, as a directory of the object manager.
    pub(crate) fn to_nt(&self, share_only: bool) -> NtPath {
        let path = if share_only { &self.path[..self.share] } else { &self.path[..] };
        NtPath::from_win32(&U16String::from_str(&format!("{path}\\")))
    }

    /// How a link to it is shown, with a final backslash.
    pub(crate) fn shown(&self) -> U16String {
        U16String::from_str(&format!("{}\\", self.path))
    }
}

impl fmt::Display for UncPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl fmt::Debug for UncPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::UncPath;

    #[test]
    fn a_remote_path_of_1024_units_is_taken_and_not_one_more() {
        for unit in ["x", "\u{e9}"] {
            let longest = format!(r"\\h\{}", unit.repeat(1020));
            assert_eq!(UncPath::parse(&longest).unwrap().to_string(), longest);
            for more in ["x", "xx"] {
                assert!(UncPath::parse(&format!("{longest}{more}")).is_err());
            }
        }
    }

    #[test]
    fn a_link_to_a_remote_path_is_shown_as_the_driver_wrote_it_with_a_final_backslash() {
        for text in [r"\\Host\Share\Sub", r"\\Host\Share\Sub\", "//Host/Share/Sub/"] {
            let path = UncPath::parse(text).unwrap();
            assert_eq!(path.shown().to_string_lossy(), r"\\Host\Share\Sub\");
            assert_eq!(format!("{path:?}"), r"\\Host\Share\Sub", "a debug line says which path it is");
        }
    }

    #[test]
    fn contract_28_slashes_turn_and_the_share_is_lower_case() {
        for (text, shown, share) in [
            (r"\\Host\Share", r"\\Host\Share", r"\\host\share"),
            (r"\\host\share\", r"\\host\share", r"\\host\share"),
            ("//Host/Share/Sub/dir", r"\\Host\Share\Sub\dir", r"\\host\share"),
        ] {
            let path = UncPath::parse(text).unwrap();
            assert_eq!((path.to_string().as_str(), path.share().as_str()), (shown, share));
        }
    }

    #[test]
    fn contract_28_a_remote_path_without_a_share_or_with_tricks_is_refused() {
        for bad in [
            "",
            "host",
            r"\\host",
            r"\\host\",
            r"\\\share",
            r"\\host\\share",
            r"\\host\share\..\other",
            r"\\host\sh*re",
            r"\\?\C:\x",
            r"\\.\pipe\x",
            r"C:\share\x",
            "\\\\host\\sh\0are",
            r"\\host\c:\x",
        ] {
            assert!(UncPath::parse(bad).is_err(), "{bad:?}");
        }
    }
}
