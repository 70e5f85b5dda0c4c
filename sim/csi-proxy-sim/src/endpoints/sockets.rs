//! Sockets in a folder.

use std::error::Error;
use std::io::Write;
use std::path::{PathBuf, absolute};
use std::{env, io};

use csi_proxy::serve::Endpoints;
use tempfile::TempDir;
use transport::address::Location;
use transport::listener::bind;

use crate::backend::SimulatedNode;
use crate::flags::SimFlags;
use crate::{reflection, serve};

/// Serves the node on sockets until a signal to stop.
pub fn serve(flags: &SimFlags, node: SimulatedNode, out: impl Write) -> Result<(), Box<dyn Error>> {
    let (folder, _temporary) = folder(flags)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot create a folder for the sockets: {error}")))?;
    let endpoints =
        || Ok(Endpoints { location: Location::Directory(folder.clone()), bind, services: reflection::services });
    serve::serve(&flags.daemon, node, endpoints, out)
}

/// Returns the folder that the flags name; else one in the user's runtime directory, or a temporary one.
fn folder(flags: &SimFlags) -> io::Result<(PathBuf, Option<TempDir>)> {
    if let Some(folder) = &flags.socket_folder {
        // The status shows the folder, and its reader may be in another one.
        return Ok((absolute(folder)?, None));
    }
    if let Some(folder) = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir()) {
        return Ok((folder.join("csi-proxy"), None));
    }
    let temporary = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
    // Opening an endpoint creates its folder so that only its owner may enter it.
    Ok((temporary.path().join("sockets"), Some(temporary)))
}
