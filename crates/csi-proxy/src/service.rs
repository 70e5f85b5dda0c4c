//! The Windows service `csiproxy`: running as it, installing it, and its state.

#[cfg(windows)]
#[path = "service/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "service/unsupported.rs"]
mod imp;

pub use imp::{ServiceError, install, run, status, uninstall};

/// The name of the service. Installation scripts depend on it.
pub const NAME: &str = "csiproxy";

/// What `csi-proxy service` can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Install this program as the service, to be started with these flags.
    Install(Vec<String>),
    /// Stop and delete the service.
    Uninstall,
    /// Print the state of the service.
    Status,
}
