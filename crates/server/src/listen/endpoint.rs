//! What is served where: a group-version on a pipe of its own, or all groups of a version on one.

use std::fmt;
use std::io;

use api::{GROUP_VERSIONS, GroupVersion, GrouplessPipe};
use transport::address::{Address, BadAddress, Location};
use transport::listener::Listener;

/// An open listener and what is served on it.
#[derive(Debug)]
pub struct Endpoint<L> {
    pub(crate) offer: EndpointSpec,
    pub(crate) listener: L,
}

/// What a pipe offers.
#[derive(Clone, Copy, Debug)]
pub enum EndpointSpec {
    /// One version of one group.
    GroupVersion(&'static GroupVersion),
    /// Every group that has the version.
    Groupless(GrouplessPipe),
}

impl EndpointSpec {
    /// One for each group-version and, where `groupless` ones are wanted, one for each version.
    pub fn all(groupless: bool) -> impl Iterator<Item = Self> {
        let versions = groupless.then(GrouplessPipe::all).into_iter().flatten();
        GROUP_VERSIONS.iter().map(Self::GroupVersion).chain(versions.map(Self::Groupless))
    }

    /// The name of the pipe.
    pub fn name(self) -> String {
        match self {
            Self::GroupVersion(row) => row.pipe().to_owned(),
            Self::Groupless(pipe) => pipe.pipe(),
        }
    }

    /// The rows of [`GROUP_VERSIONS`] that it offers, with their places in it.
    pub(crate) fn rows(self) -> impl Iterator<Item = (usize, &'static GroupVersion)> {
        GROUP_VERSIONS.iter().enumerate().filter(move |(_, row)| match self {
            Self::GroupVersion(one) => row.pipe() == one.pipe(),
            Self::Groupless(pipe) => row.version == pipe.version,
        })
    }
}

impl<L: Listener> Endpoint<L> {
    /// Serves `offer` on `listener`.
    pub fn new(offer: EndpointSpec, listener: L) -> Self {
        Self { offer, listener }
    }

    /// Opens the listeners of all offers in `place`, or none: a driver that misses one falls back to an older version
    /// for the rest of its life, or does not start at all.
    pub fn open_all(
        place: &Location,
        groupless: bool,
        mut open: impl FnMut(&Address) -> io::Result<L>,
    ) -> Result<Vec<Self>, CannotServe> {
        let endpoint = |offer: EndpointSpec| {
            let name = offer.name();
            let opened = place.address(&name).map_err(bad_address).and_then(|address| open(&address));
            opened.map(|listener| Self::new(offer, listener)).map_err(|reason| CannotServe { name, reason })
        };
        EndpointSpec::all(groupless).map(endpoint).collect()
    }
}

fn bad_address(error: BadAddress) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// A pipe that could not be opened, and so none was.
#[derive(Debug)]
pub struct CannotServe {
    name: String,
    reason: io::Error,
}

impl CannotServe {
    /// The name of the pipe, such as `csi-proxy-disk-v1`.
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
