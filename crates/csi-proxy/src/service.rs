//! The Windows service `csiproxy`: being one, and its entry in the list of services.

#[cfg(windows)]
#[path = "service/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "service/unsupported.rs"]
mod imp;

pub use imp::{ServiceError, install, run, status, uninstall};

/// The service's name, which installations and their scripts count on.
pub const NAME: &str = "csiproxy";

/// What `csi-proxy service` can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Enter this program into the list of services, to be started with these flags.
    Install(Vec<String>),
    /// Stop the service and remove it from the list.
    Uninstall,
    /// Tell how it is.
    Status,
}
