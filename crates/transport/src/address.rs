//! The addresses of endpoints.
//!
//! An endpoint has a name, such as `csi-proxy-disk-v1`, and a location. On Windows the location is
//! the namespace of named pipes, `\\.\pipe\csi-proxy-disk-v1`. Elsewhere it is a directory with a
//! Unix socket for each endpoint, `<directory>/csi-proxy-disk-v1.sock`. Both kinds of address can
//! be formatted and compared on every system; only opening one depends on the system.

use std::fmt;
use std::path::PathBuf;

/// The namespace of named pipes, as Windows documents it.
const PIPES: &str = r"\\.\pipe\";
const SOCKET_SUFFIX: &str = ".sock";

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
    pub fn address(&self, name: &str) -> Address {
        Address {
            location: self.clone(),
            name: name.to_owned(),
        }
    }
}

/// The address of one endpoint.
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
            Location::Directory(directory) => {
                directory.join(format!("{}{SOCKET_SUFFIX}", self.name))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_path_of_a_pipe_or_of_a_socket() {
        for (location, path) in [
            (Location::NamedPipes, r"\\.\pipe\csi-proxy-disk-v1"),
            (
                Location::Directory("/run/csi-proxy".into()),
                "/run/csi-proxy/csi-proxy-disk-v1.sock",
            ),
        ] {
            let address = location.address("csi-proxy-disk-v1");
            assert_eq!(
                (address.name(), address.path()),
                ("csi-proxy-disk-v1", path.into())
            );
        }
    }
}
