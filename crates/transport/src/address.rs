//! Addresses: where an endpoint lives.
//!
//! An endpoint has a name, such as `csi-proxy-disk-v1`, and a place. On Windows the place is the namespace of named
//! pipes, `\\.\pipe\csi-proxy-disk-v1`; elsewhere it is a folder with a Unix socket for each endpoint,
//! `<folder>/csi-proxy-disk-v1.sock`. Both kinds can be written, read and compared on either system; only opening one
//! depends on where the program runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The namespace of named pipes, in the spelling that Windows documents.
const PIPES: &str = r"\\.\pipe\";
const SOCKET_SUFFIX: &str = ".sock";
/// Windows allows a pipe's whole path 256 characters.
const LONGEST_NAME: usize = 256 - PIPES.len();

/// Where endpoints live together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The namespace of named pipes of this machine.
    NamedPipes,
    /// A folder of Unix sockets.
    Directory(PathBuf),
}

impl Location {
    /// The address of the endpoint called `name` in this place.
    pub fn address(&self, name: &str) -> Result<Address, BadAddress> {
        let fault = if name.is_empty() {
            "the endpoint has no name"
        } else if name.len() > LONGEST_NAME {
            "the endpoint's name is too long"
        } else if name.contains(['\\', '/', '\0']) {
            "an endpoint's name has no separators"
        } else {
            return Ok(Address { location: self.clone(), name: name.to_owned() });
        };
        Err(BadAddress { text: name.to_owned(), fault })
    }
}

/// Where one endpoint lives.
///
/// Reads both spellings of a pipe's path: `\\.\pipe\name`, and `\\.\\pipe\\name` as Go clients have it in a raw string.
/// Anything else is a socket's path and ends in `.sock`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    location: Location,
    name: String,
}

impl Address {
    /// The endpoint's name, the same on every system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pipes or the folder in which the endpoint is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The path that opens the endpoint.
    pub fn path(&self) -> PathBuf {
        match &self.location {
            Location::NamedPipes => PathBuf::from(format!("{PIPES}{}", self.name)),
            Location::Directory(folder) => folder.join(format!("{}{SOCKET_SUFFIX}", self.name)),
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
        let bad = |fault| BadAddress { text: text.to_owned(), fault };
        if let Some(name) = pipe_name(text) {
            return Location::NamedPipes.address(name).map_err(|error| bad(error.fault));
        }
        let path = Path::new(text);
        let name = path.file_name().and_then(|file| file.to_str()).and_then(|file| file.strip_suffix(SOCKET_SUFFIX));
        let (Some(name), Some(folder)) = (name, path.parent()) else {
            return Err(bad("an address is a pipe's path or a socket's path that ends in .sock"));
        };
        Location::Directory(folder.to_owned()).address(name).map_err(|error| bad(error.fault))
    }
}

/// What follows the namespace of pipes in `text`, either separator after the dot being single or doubled.
fn pipe_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(r"\\.\")?;
    let rest = rest.strip_prefix('\\').unwrap_or(rest);
    let (pipe, rest) = rest.split_once('\\')?;
    pipe.eq_ignore_ascii_case("pipe").then(|| rest.strip_prefix('\\').unwrap_or(rest))
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAddress {
    text: String,
    fault: &'static str,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not the address of an endpoint: {}", self.text, self.fault)
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
    fn a_socket_lies_in_its_folder_and_reads_back() {
        let address = Location::Directory("/run/csi-proxy".into()).address("csi-proxy-disk-v1").unwrap();
        assert_eq!(address.path(), Path::new("/run/csi-proxy/csi-proxy-disk-v1.sock"));
        assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
    }

    #[test]
    fn what_names_no_endpoint_is_refused_with_its_text() {
        let not_sockets = ["", "/", "/run/csi-proxy", "/run/.sock", "\0.sock"];
        let not_pipes =
            [r"\\.\pipe", r"\\.\pipe\", r"\\.\\pipe\\", r"\\.\pipe\a\b", r"\\host\pipe\x", r"C:\pipe\x", r"\.\pipe\x"];
        for text in not_sockets.into_iter().chain(not_pipes) {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("'{text}'")), "{error}");
        }
        assert!(Location::NamedPipes.address(&"x".repeat(LONGEST_NAME)).is_ok());
        assert!(Location::NamedPipes.address(&"x".repeat(LONGEST_NAME + 1)).is_err());
    }
}
