//! Where the daemon listens, and how it opens an endpoint there.

use server::{BoxedService, EndpointSpec};
use transport::address::Location;

#[cfg(windows)]
#[path = "endpoints/named_pipes.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "endpoints/unsupported.rs"]
mod imp;

pub use imp::named_pipes;

/// A location for endpoints. Nothing is open yet: the daemon opens all endpoints at once, shortly before it serves.
#[derive(Debug)]
pub struct Endpoints<B> {
    /// Where clients find the endpoints.
    pub location: Location,
    /// Opens the endpoint at one address, as an `FnMut(&Address) -> io::Result<impl Listener>`.
    pub bind: B,
    /// Returns what an endpoint serves besides its group-versions and their health.
    pub services: fn(&EndpointSpec) -> Vec<BoxedService>,
}
