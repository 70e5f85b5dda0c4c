//! Endpoints: which group-versions are served at which address.

use std::fmt;
use std::io;

use api::{GROUP_VERSIONS, GroupVersion, GrouplessPipe};
use transport::address::{Address, BadAddress, Location};
use transport::listener::Listener;

/// An open listener and what it serves.
#[derive(Debug)]
pub struct Endpoint<L> {
    pub(crate) spec: EndpointSpec,
    pub(crate) listener: L,
}

/// What an endpoint serves, which decides its name.
#[derive(Clone, Copy, Debug)]
pub enum EndpointSpec {
    /// One version of one group.
    GroupVersion(&'static GroupVersion),
    /// Every group that has one version.
    Groupless(GrouplessPipe),
}

impl EndpointSpec {
    /// Returns the endpoints of all group-versions and, if `groupless`, one endpoint for each version.
    pub fn all(groupless: bool) -> impl Iterator<Item = Self> {
        let versions = groupless.then(GrouplessPipe::all).into_iter().flatten();
        GROUP_VERSIONS.iter().map(Self::GroupVersion).chain(versions.map(Self::Groupless))
    }

    /// Returns the name of the endpoint, which is the name of its pipe.
    pub fn name(self) -> String {
        match self {
            Self::GroupVersion(row) => row.pipe().to_owned(),
            Self::Groupless(pipe) => pipe.pipe(),
        }
    }

    /// Returns the rows of [`GROUP_VERSIONS`] that the endpoint serves, with their indexes.
    pub(crate) fn rows(self) -> impl Iterator<Item = (usize, &'static GroupVersion)> {
        GROUP_VERSIONS.iter().enumerate().filter(move |(_, row)| match self {
            Self::GroupVersion(one) => row.pipe() == one.pipe(),
            Self::Groupless(pipe) => row.version == pipe.version,
        })
    }
}

impl<L: Listener> Endpoint<L> {
    /// Creates an endpoint that serves `spec` on `listener`.
    pub fn new(spec: EndpointSpec, listener: L) -> Self {
        Self { spec, listener }
    }

    /// Opens all endpoints in `location`, or none of them.
    ///
    /// A driver that finds one endpoint missing falls back to an older version until it restarts, or does not start.
    pub fn open_all(
        location: &Location,
        groupless: bool,
        mut open: impl FnMut(&Address) -> io::Result<L>,
    ) -> Result<Vec<Self>, CannotServe> {
        let endpoint = |spec: EndpointSpec| {
            let name = spec.name();
            let opened = location.address(&name).map_err(invalid_address).and_then(|address| open(&address));
            opened.map(|listener| Self::new(spec, listener)).map_err(|reason| CannotServe { name, reason })
        };
        EndpointSpec::all(groupless).map(endpoint).collect()
    }
}

fn invalid_address(error: BadAddress) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The error of an endpoint that cannot be opened. No endpoint is open afterwards.
#[derive(Debug)]
pub struct CannotServe {
    name: String,
    reason: io::Error,
}

impl CannotServe {
    /// The name of the endpoint, such as `csi-proxy-disk-v1`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for CannotServe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot serve {}: {}", self.name, self.reason)
    }
}

impl std::error::Error for CannotServe {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.reason)
    }
}
