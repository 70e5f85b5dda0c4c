//! The addresses of endpoints.
//!
//! An endpoint has a name, such as `csi-proxy-disk-v1`, and a location. On Windows the location is the namespace of
//! named pipes, `\\.\pipe\csi-proxy-disk-v1`. Elsewhere it is a directory with a Unix socket for each endpoint,
//! `<directory>/csi-proxy-disk-v1.sock`. Both kinds of address can be formatted, parsed and compared on every system;
//! only opening one depends on the system.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The namespace of named pipes, as Windows documents it.
const PIPES: &str = r"\\.\pipe\";
const SOCKET_SUFFIX: &str = ".sock";
/// Windows limits the whole path of a pipe to 256 characters.
const MAX_NAME: usize = 256 - PIPES.len();

/// The common location of endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The named pipes of this machine.
    NamedPipes,
    /// A directory of Unix sockets.
    Directory(PathBuf),
}

impl Location {
    /// Returns the address of the endpoint `name` in this location.
    pub fn address(&self, name: &str) -> Result<Address, BadAddress> {
        let reason = if name.is_empty() {
            "the name of the endpoint is missing"
        } else if name.len() > MAX_NAME {
            "the name of the endpoint is too long"
        } else if name.contains(['\\', '/', '\0']) {
            "the name of the endpoint contains a separator or a NUL character"
        } else {
            return Ok(Address { location: self.clone(), name: name.to_owned() });
        };
        Err(BadAddress { text: name.to_owned(), reason })
    }
}

/// The address of one endpoint.
///
/// Parses the path of a pipe in both spellings, `\\.\pipe\name` and `\\.\\pipe\\name`; Go clients use the second one in
/// raw strings. Any other text must be the path of a socket, which ends in `.sock`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    location: Location,
    name: String,
}

impl Address {
    /// The name of the endpoint, which is the same on every system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The location of the endpoint.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the path that opens the endpoint.
    pub fn path(&self) -> PathBuf {
        match &self.location {
            Location::NamedPipes => PathBuf::from(format!("{PIPES}{}", self.name)),
            Location::Directory(directory) => directory.join(format!("{}{SOCKET_SUFFIX}", self.name)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = |reason| BadAddress { text: text.to_owned(), reason };
        if let Some(name) = pipe_name(text) {
            return Location::NamedPipes.address(name).map_err(|error| bad(error.reason));
        }
        let path = Path::new(text);
        let name = path.file_name().and_then(|file| file.to_str()).and_then(|file| file.strip_suffix(SOCKET_SUFFIX));
        let (Some(name), Some(directory)) = (name, path.parent()) else {
            return Err(bad(r"use \\.\pipe\<name> for a named pipe, or <directory>/<name>.sock for a Unix socket"));
        };
        Location::Directory(directory.to_owned()).address(name).map_err(|error| bad(error.reason))
    }
}

/// Returns the name of a pipe in `text`, which follows the namespace of pipes. The separators after the dot may be
/// doubled.
fn pipe_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(r"\\.\")?;
    let rest = rest.strip_prefix('\\').unwrap_or(rest);
    let (pipe, rest) = rest.split_once('\\')?;
    pipe.eq_ignore_ascii_case("pipe").then(|| rest.strip_prefix('\\').unwrap_or(rest))
}

/// The error for a text that is not the address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress {
    text: String,
    reason: &'static str,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not the address of an endpoint: {}", self.text, self.reason)
    }
}

impl std::error::Error for BadAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_pipe_are_one_address() {
        let documented: Address = r"\\.\pipe\csi-proxy-disk-v1".parse().unwrap();
        for spelling in [r"\\.\\pipe\\csi-proxy-disk-v1", r"\\.\PIPE\csi-proxy-disk-v1"] {
            assert_eq!(spelling.parse::<Address>().unwrap(), documented);
        }
        assert_eq!(documented.name(), "csi-proxy-disk-v1");
        assert_eq!(documented.to_string(), r"\\.\pipe\csi-proxy-disk-v1");
    }

    #[test]
    fn the_address_of_a_socket_is_a_path_in_its_directory_and_parses_back() {
        let address = Location::Directory("/run/csi-proxy".into()).address("csi-proxy-disk-v1").unwrap();
        assert_eq!(address.path(), Path::new("/run/csi-proxy/csi-proxy-disk-v1.sock"));
        assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
    }

    #[test]
    fn a_text_that_is_not_an_address_is_refused_and_quoted() {
        let not_sockets = ["", "/", "/run/csi-proxy", "/run/.sock", "\0.sock"];
        let not_pipes =
            [r"\\.\pipe", r"\\.\pipe\", r"\\.\\pipe\\", r"\\.\pipe\a\b", r"\\host\pipe\x", r"C:\pipe\x", r"\.\pipe\x"];
        for text in not_sockets.into_iter().chain(not_pipes) {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("'{text}'")), "{error}");
        }
        assert!(Location::NamedPipes.address(&"x".repeat(MAX_NAME)).is_ok());
        assert!(Location::NamedPipes.address(&"x".repeat(MAX_NAME + 1)).is_err());
    }
}
