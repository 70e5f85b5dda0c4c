//! The client, and where it looks for csi-proxy.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgMatches;
use csi_proxy_client::{Builder, Client};

use crate::cli::{ENDPOINT_DIR, TIMEOUT};

pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) endpoints: Endpoints,
}

/// Where the endpoints of csi-proxy are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoints {
    Pipes,
    Folder(PathBuf),
    /// Named pipes, on a system that has none.
    Nowhere,
}

impl Session {
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let is_windows = env::consts::OS == "windows";
        let folder = matches.get_one::<PathBuf>(ENDPOINT_DIR).cloned();
        let deadline = *matches.get_one::<Duration>(TIMEOUT).expect("it has a default");
        let builder = Client::builder().deadline(deadline);
        let client = folder.iter().fold(builder, Builder::socket_folder).build();
        // The client's own default.
        let default = env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("csi-proxy"));
        let endpoints = match folder.or(default.filter(|_| !is_windows)) {
            Some(folder) => Endpoints::Folder(folder),
            None if is_windows => Endpoints::Pipes,
            None => Endpoints::Nowhere,
        };
        Self { client, endpoints }
    }
}
