//! The Windows service `csiproxy`: running as it, installing it, and its state.

pub mod progress;

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
    /// Install this program as the service.
    Install(Installation),
    /// Stop and delete the service.
    Uninstall,
    /// Print the state of the service.
    Status,
}

/// How to install the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The flags that the service is started with.
    pub arguments: Vec<String>,
    /// Refuse to install if ordinary users may replace the program or its log, instead of warning.
    pub require_safe_folders: bool,
}
