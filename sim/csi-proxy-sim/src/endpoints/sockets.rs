//! Sockets in a folder.

use std::error::Error;
use std::io::Write;
use std::os::unix::net::SocketAddr;
use std::path::{PathBuf, absolute};
use std::{env, fs, io};

use csi_proxy::flags::Flags;
use csi_proxy::serve::Endpoints;
use server::EndpointSpec;
use tempfile::TempDir;
use transport::address::Location;
use transport::listener::bind_in_any_directory;

use crate::backend::SimulatedNode;
use crate::control_api::ENDPOINT;
use crate::flags::SimFlags;
use crate::{reflection, serve};

/// Serves the node on sockets until a signal to stop.
pub fn serve(flags: &SimFlags, node: SimulatedNode, out: impl Write) -> Result<(), Box<dyn Error>> {
    let (folder, _temporary) = folder(flags).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot create a folder for the sockets: {error}"),
        )
    })?;
    let location = Location::Directory(folder.clone());
    check_lengths(&flags.daemon, &location)?;
    let endpoints = || {
        Ok(Endpoints {
            location: location.clone(),
            bind: bind_in_any_directory,
            services: reflection::services,
        })
    };
    let served = serve::serve(flags, node, endpoints, out);
    if flags.exits_with_stdin {
        // The process that made the folder may have died. Files of others keep it.
        let _ = fs::remove_dir(folder);
    }
    served
}

/// Refuses a folder in which the longest name of a socket is too long, before any socket is open.
fn check_lengths(flags: &Flags, location: &Location) -> Result<(), String> {
    let specs = EndpointSpec::of(&flags.api_groups, flags.groupless_pipes);
    let names = specs
        .iter()
        .map(EndpointSpec::name)
        .chain([ENDPOINT.to_owned()]);
    let path = location
        .address(&names.max_by_key(String::len).unwrap_or_default())
        .path();
    if SocketAddr::from_pathname(&path).is_ok() {
        return Ok(());
    }
    let most = (1..=path.as_os_str().len())
        .rev()
        .find(|length| SocketAddr::from_pathname("x".repeat(*length)).is_ok());
    Err(format!(
        "the path of the socket {} has {} bytes; the system allows at most {}: give a shorter \
         -socket-folder",
        path.display(),
        path.as_os_str().len(),
        most.unwrap_or_default()
    ))
}

/// Returns the folder that the flags name; else one in the user's runtime directory, or a temporary
/// one.
fn folder(flags: &SimFlags) -> io::Result<(PathBuf, Option<TempDir>)> {
    if let Some(folder) = &flags.socket_folder {
        // The status shows the folder, and its reader may be in another one.
        return Ok((absolute(folder)?, None));
    }
    if let Some(folder) = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|folder| folder.is_dir())
    {
        return Ok((folder.join("csi-proxy"), None));
    }
    let temporary = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
    Ok((temporary.path().join("sockets"), Some(temporary)))
}
