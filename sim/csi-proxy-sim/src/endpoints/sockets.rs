//! Sockets in a folder.

use std::path::PathBuf;
use std::{env, io};

use server::Endpoint;
use tempfile::TempDir;
use transport::address::{Address, Location};
use transport::listener::UnixEndpoint;

use super::{Endpoints, OpenError};
use crate::flags::Flags;

/// What this system has for an endpoint.
pub type Listener = UnixEndpoint;

/// Opens one endpoint.
pub fn bind(address: &Address) -> io::Result<Listener> {
    transport::listener::bind(address)
}

pub(super) fn open(flags: &Flags) -> Result<Endpoints, OpenError> {
    let (folder, temporary) = folder(flags).map_err(OpenError::Folder)?;
    let place = Location::Directory(folder);
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
