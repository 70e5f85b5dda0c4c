//! Paths on SMB servers.

use std::fmt;

use os::{NtPath, U16String};

use crate::error::{OperationError, OperationResult, quoted};

/// The maximum length of a path in UTF-16 code units.
const MAX_LENGTH: usize = 1024;

/// `\\host\share`, or a path on it, as a driver sent it but with backslashes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UncPath {
    /// Without a final backslash.
    path: String,
    /// The length of `\\host\share` at its beginning.
    share_length: usize,
}

impl UncPath {
    /// Parses a path that has at least a host and a share, separated by backslashes or forward
    /// slashes. Repeated separators and `.` components mean nothing, as to Windows.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let refused =
            |why: &str| OperationError::invalid(format!("the remote path {} {why}", quoted(text)));
        if text.encode_utf16().count() > MAX_LENGTH {
            return Err(refused("is longer than 1024 characters"));
        }
        let path = text.replace('/', r"\");
        let Some(rest) = path.strip_prefix(r"\\") else {
            return Err(refused(r"does not begin with \\"));
        };
        let mut parts: Vec<_> = rest.split('\\').filter(|part| !part.is_empty()).collect();
        let is_device = parts.first() == Some(&".");
        parts.retain(|part| is_device || *part != ".");
        if parts.len() < 2 {
            return Err(refused("has no share"));
        }
        for part in &parts {
            if matches!(*part, "." | "..") {
                return Err(refused(&format!("contains the component {}", quoted(part))));
            }
            if part.contains(['"', ':', '?', '*', '|', '<', '>']) || part.contains(char::is_control)
            {
                return Err(refused(&format!(
                    "contains a character in {} that is not allowed in a name",
                    quoted(part)
                )));
            }
        }
        // Windows may ignore a blank, so that the name would be that of another server.
        if parts[0].contains(char::is_whitespace) {
            return Err(refused("has a blank in the name of the server"));
        }
        // To Windows, `\\;name\host\share` is `\\host\share`. No share has the character in its
        // name.
        if parts[..2].iter().any(|part| part.contains(';')) {
            return Err(refused(
                "has a semicolon in the name of the server or share",
            ));
        }
        let share_length = 2 + parts[0].len() + 1 + parts[1].len();
        Ok(Self {
            path: format!(r"\\{}", parts.join(r"\")),
            share_length,
        })
    }

    /// Parses a path as [`Self::parse`] does, also with a single separator at its beginning:
    /// `\host\share`.
    pub fn parse_loose(text: &str) -> OperationResult<Self> {
        let rest = text.strip_prefix(['\\', '/']);
        if rest.is_some_and(|rest| !rest.starts_with(['\\', '/'])) {
            return Self::parse(&format!(r"\{text}"));
        }
        Self::parse(text)
    }

    /// Returns `\\host\share` in lower case: the name of the mapping.
    pub fn share(&self) -> String {
        lower_case(&self.path[..self.share_length])
    }

    /// Returns the name or address of the server in lower case.
    pub fn server(&self) -> String {
        let share = self.share();
        share
            .trim_start_matches('\\')
            .split('\\')
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the path, or its share, as a directory in the namespace of the NT object manager.
    pub(crate) fn to_nt(&self, share_only: bool) -> NtPath {
        let path = if share_only {
            &self.path[..self.share_length]
        } else {
            &self.path[..]
        };
        NtPath::from_win32(&U16String::from_str(&format!("{path}\\")))
    }

    /// Returns the print name of a link to the path, with a final backslash.
    pub(crate) fn print_name(&self) -> U16String {
        U16String::from_str(&format!("{}\\", self.path))
    }
}

/// Converts each letter that has exactly one other case to lower case. Windows and servers do not
/// consider the Kelvin sign and k equal, although Unicode's lower case of the one is the other.
pub(crate) fn lower_case(text: &str) -> String {
    text.chars()
        .map(|letter| {
            let mut lower = letter.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(lower), None) if lower.to_uppercase().eq([letter]) => lower,
                _ => letter,
            }
        })
        .collect()
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
    fn a_remote_path_of_1024_units_is_accepted_and_one_of_1025_is_not() {
        for unit in ["x", "\u{e9}"] {
            let longest = format!(r"\\h\{}", unit.repeat(1020));
            assert_eq!(UncPath::parse(&longest).unwrap().to_string(), longest);
            for rest in ["x", "xx"] {
                assert!(UncPath::parse(&format!("{longest}{rest}")).is_err());
            }
        }
    }

    #[test]
    fn the_print_name_of_a_link_is_the_path_as_the_driver_sent_it_with_a_final_backslash() {
        for text in [
            r"\\Host\Share\Sub",
            r"\\Host\Share\Sub\",
            "//Host/Share/Sub/",
        ] {
            let path = UncPath::parse(text).unwrap();
            assert_eq!(path.print_name().to_string_lossy(), r"\\Host\Share\Sub\");
            assert_eq!(
                format!("{path:?}"),
                r"\\Host\Share\Sub",
                "Debug shows the path"
            );
        }
    }

    #[test]
    fn contract_28_forward_slashes_become_backslashes_and_the_share_is_lower_case() {
        for (text, shown, share) in [
            (r"\\Host\Share", r"\\Host\Share", r"\\host\share"),
            (r"\\host\share\", r"\\host\share", r"\\host\share"),
            (
                r"\\\Host\\Share\.\Sub\\",
                r"\\Host\Share\Sub",
                r"\\host\share",
            ),
            (r"\\Host\Share\a;b", r"\\Host\Share\a;b", r"\\host\share"),
            (
                "//Host/Share/Sub/dir",
                r"\\Host\Share\Sub\dir",
                r"\\host\share",
            ),
        ] {
            let path = UncPath::parse(text).unwrap();
            assert_eq!(
                (path.to_string().as_str(), path.share().as_str()),
                (shown, share)
            );
            assert_eq!(path.server(), "host");
        }
    }

    #[test]
    fn contract_29_a_path_with_a_single_separator_is_understood_loosely_only() {
        for text in [
            r"\Host\Share\sub",
            "/Host/Share/sub",
            r"\\Host\Share\sub",
            r"\/Host\Share\sub",
        ] {
            let path = UncPath::parse_loose(text).unwrap();
            assert_eq!(path.to_string(), r"\\Host\Share\sub", "{text}");
            assert_eq!(path.share(), r"\\host\share", "{text}");
        }
        assert!(UncPath::parse(r"\Host\Share").is_err());
        for bad in ["", r"\", r"\Host", r"Host\Share", r"\.\pipe\x", r"\?\C:\x"] {
            assert!(UncPath::parse_loose(bad).is_err(), "{bad:?}");
        }
    }

    fn share(text: &str) -> String {
        UncPath::parse(text).unwrap().share()
    }

    #[test]
    fn contract_28_letters_that_only_a_language_considers_equal_name_different_shares() {
        // The Kelvin, Angstrom and Ohm signs, the capital I with a dot, and the capital sharp s.
        for (odd, plain) in [
            ("\u{212a}", "k"),
            ("\u{212b}", "\u{e5}"),
            ("\u{2126}", "\u{3c9}"),
            ("\u{130}", "i\u{307}"),
            ("\u{1e9e}", "\u{df}"),
        ] {
            assert_eq!(share(&format!(r"\\H\{odd}X")), format!(r"\\h\{odd}x"));
            assert_ne!(
                share(&format!(r"\\h\{odd}x")),
                share(&format!(r"\\h\{plain}x"))
            );
        }
        assert_eq!(share("\\\\H\\\u{c9}\u{3a3}"), "\\\\h\\\u{e9}\u{3c3}");
    }

    #[test]
    fn contract_28_a_remote_path_without_a_share_or_with_forbidden_components_is_refused() {
        for bad in [
            "",
            "host",
            r"\\host",
            r"\\host\",
            r"\\\share",
            r"\\host\.\",
            r"\\host\share\..\other",
            r"\\host\sh*re",
            r"\\?\C:\x",
            r"\\.\pipe\x",
            r"C:\share\x",
            "\\\\host\\sh\0are",
            r"\\host\c:\x",
            r"\\localhost \C$",
            r"\\;LanmanRedirector\localhost\C$",
            r"\\localhost;\C$",
            r"\\host\;share",
            "\\\\\u{a0}localhost\\C$",
        ] {
            assert!(UncPath::parse(bad).is_err(), "{bad:?}");
        }
    }
}
