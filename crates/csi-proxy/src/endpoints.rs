//! Where the daemon listens.

use std::path::PathBuf;
use std::{env, io};

use pipe::address::{Address, Place};
use pipe::listener::UnixEndpoint;
use server::{CannotServe, Endpoint};
use tempfile::TempDir;

use crate::flags::Flags;

/// What this system has for an endpoint.
pub type Listener = UnixEndpoint;

/// All endpoints, open.
#[derive(Debug)]
pub struct Endpoints {
    /// What to serve on.
    pub open: Vec<Endpoint<Listener>>,
    /// Where they are.
    pub place: Place,
    /// What goes when the endpoints do.
    pub temporary: Option<TempDir>,
}

/// Opens one endpoint.
pub fn bind(address: &Address) -> io::Result<Listener> {
    pipe::listener::bind(address)
}

/// Opens all, or none.
pub fn open(flags: &Flags) -> Result<Endpoints, OpenError> {
    let (folder, temporary) = folder(flags).map_err(OpenError::Folder)?;
    let place = Place::Folder(folder);
    let open = Endpoint::open_all(&place, flags.groupless_pipes, bind).map_err(OpenError::Endpoint)?;
    Ok(Endpoints { open, place, temporary })
}

/// The folder that the flags name; else one of this user's own for as long as they are logged in, or a fresh one.
fn folder(flags: &Flags) -> io::Result<(PathBuf, Option<TempDir>)> {
    if let Some(folder) = &flags.socket_folder {
        return Ok((folder.clone(), None));
    }
    if let Some(folder) = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir()) {
        return Ok((folder.join("csi-proxy"), None));
    }
    let temporary = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
    // The endpoints make their folder themselves, so that it is open to nobody else.
    Ok((temporary.path().join("sockets"), Some(temporary)))
}

/// Why nothing is served.
#[derive(Debug)]
pub enum OpenError {
    /// No folder could be made.
    Folder(io::Error),
    /// One of the endpoints could not be opened.
    Endpoint(CannotServe),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "cannot make a folder for the sockets: {error}"),
            Self::Endpoint(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
