//! SMB servers that an administrator names.

use crate::error::{OperationError, OperationResult, quoted};
use crate::types::{UncPath, is_mistyped_address, lower_case};

/// An SMB server whose shares may be mapped, by the name or address that drivers use for it.
///
/// The name is compared, without case, with the part of a remote path between `\\` and the share,
/// including a `@port`. Names are not resolved: a short name, a full name, an alias and an address
/// of one server count as four servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbServer {
    /// In lower case.
    name: String,
}

impl SmbServer {
    /// Parses a server by the rules of a remote path.
    pub fn parse(text: &str) -> OperationResult<Self> {
        if text.contains(':') {
            let reason = format!(
                "{} has a colon; write an IPv6 address as fd00--1.ipv6-literal.net",
                quoted(text)
            );
            return Err(OperationError::invalid(reason));
        }
        let name = lower_case(text);
        if is_mistyped_address(text)
            || !UncPath::parse(&format!(r"\\{text}\share")).is_ok_and(|path| path.server() == name)
        {
            return Err(OperationError::invalid(format!(
                "{} is not the name of an SMB server",
                quoted(text)
            )));
        }
        Ok(Self { name })
    }

    /// Returns whether `path` is on this server.
    pub(crate) fn is_that_of(&self, path: &UncPath) -> bool {
        path.server() == self.name
    }
}

#[cfg(test)]
mod tests {
    use super::SmbServer;
    use crate::types::UncPath;

    fn is_listed(server: &str, path: &str) -> bool {
        SmbServer::parse(server)
            .unwrap()
            .is_that_of(&UncPath::parse(path).unwrap())
    }

    #[test]
    fn a_server_is_compared_without_case() {
        for (server, path) in [
            ("FILES", r"\\files\share"),
            ("Files.Example.com", "//files.example.COM/share/sub"),
            ("10.0.0.5", r"\\10.0.0.5\share"),
            ("files@8443", r"\\Files@8443\share"),
            (
                "fd00--1.ipv6-literal.net",
                r"\\FD00--1.IPv6-Literal.Net\share",
            ),
            ("N\u{e4}s", "\\\\n\u{c4}S\\share"),
        ] {
            assert!(is_listed(server, path), "{server} {path}");
        }
    }

    #[test]
    fn another_spelling_of_a_server_is_another_server() {
        for (server, path) in [
            ("files", r"\\files.example.com\share"),
            ("files", r"\\files.\share"),
            ("files", r"\\files@8443\share"),
            ("files", r"\\files@SSL\share"),
            ("files@8443", r"\\files\share"),
            ("10.0.0.5", r"\\10.0.5\share"),
            ("10.0.0.5", r"\\167772165\share"),
            ("10.0.0.5", r"\\010.0.0.5\share"),
            (
                "fd00--1.ipv6-literal.net",
                r"\\fd00-0--1.ipv6-literal.net\share",
            ),
            ("k", "\\\\\u{212a}\\share"),
            ("share", r"\\files\share"),
        ] {
            assert!(!is_listed(server, path), "{server} {path}");
        }
    }

    #[test]
    fn what_no_remote_path_can_have_as_its_server_is_refused() {
        for text in [
            "",
            ".",
            "..",
            "?",
            "10.0.0.300",
            "10.5",
            r"\\files",
            r"files\share",
            "files/share",
            "a b",
            "*",
            "files:445",
            "fd00::1",
        ] {
            assert!(SmbServer::parse(text).is_err(), "{text:?}");
        }
        let reason = SmbServer::parse("fd00::1").unwrap_err().to_string();
        assert_eq!(
            reason,
            r#""fd00::1" has a colon; write an IPv6 address as fd00--1.ipv6-literal.net"#
        );
    }
}
