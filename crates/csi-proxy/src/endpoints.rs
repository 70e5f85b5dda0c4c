//! Where the daemon listens: named pipes on Windows, Unix sockets elsewhere.

use std::io;

use server::{CannotServe, Endpoint};
use tempfile::TempDir;
use transport::address::Location;

use crate::flags::Flags;

#[cfg(windows)]
#[path = "endpoints/pipes.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "../../../sim/csi-proxy-sim/src/endpoints/sockets.rs"]
mod imp;

pub use imp::{Listener, bind};

/// All endpoints, open.
#[derive(Debug)]
pub struct Endpoints {
    /// What to serve on.
    pub open: Vec<Endpoint<Listener>>,
    /// Where they are.
    pub place: Location,
    /// What goes when the endpoints do.
    pub temporary: Option<TempDir>,
}

/// Opens all, or none.
pub fn open(flags: &Flags) -> Result<Endpoints, OpenError> {
    imp::open(flags)
}

/// Why nothing is served.
#[derive(Debug)]
pub enum OpenError {
    /// No folder could be made.
    Folder(io::Error),
    /// What is to be let in is no account.
    Accounts(io::Error),
    /// One of the endpoints could not be opened.
    Endpoint(CannotServe),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "cannot make a folder for the sockets: {error}"),
            Self::Accounts(error) => write!(f, "the pipes cannot be opened to an account: {error}"),
            Self::Endpoint(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
