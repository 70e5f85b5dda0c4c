//! Endpoints: which group-versions are served at which address.

use std::fmt;
use std::io;

use transport::address::{Address, Location};
use transport::listener::Listener;

use crate::rpc::boxed_service::BoxedService;
use crate::rpc::endpoint_spec::EndpointSpec;

/// An open listener and what it serves.
#[derive(Debug)]
pub struct Endpoint<L> {
    pub(crate) spec: EndpointSpec,
    pub(crate) listener: L,
    pub(crate) services: Vec<BoxedService>,
}

impl<L: Listener> Endpoint<L> {
    /// Creates an endpoint that serves `spec` on `listener`.
    pub fn new(spec: EndpointSpec, listener: L) -> Self {
        Self {
            spec,
            listener,
            services: Vec::new(),
        }
    }

    /// Also serves `services`, for simulators and tests. The server does not limit or count their
    /// calls, and a drain does not wait for them.
    #[must_use]
    pub fn with_services(self, services: Vec<BoxedService>) -> Self {
        Self { services, ..self }
    }

    /// What the endpoint serves.
    pub fn spec(&self) -> &EndpointSpec {
        &self.spec
    }

    /// Opens the endpoints of `specs` in `location`. If one of them cannot be opened, none stays
    /// open.
    ///
    /// A driver that finds one version of a group missing falls back to an older one until it
    /// restarts, or does not start.
    pub fn open(
        location: &Location,
        specs: Vec<EndpointSpec>,
        mut open: impl FnMut(&Address) -> io::Result<L>,
    ) -> Result<Vec<Self>, CannotServe> {
        let endpoint = |spec: EndpointSpec| {
            let name = spec.name();
            let opened = open(&location.address(&name));
            opened
                .map(|listener| Self::new(spec, listener))
                .map_err(|reason| CannotServe { name, reason })
        };
        specs.into_iter().map(endpoint).collect()
    }
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
    /// The reason is a part of the text already.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.reason.source()
    }
}
