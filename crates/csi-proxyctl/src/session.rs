//! The client, and where it looks for csi-proxy.

use std::env;
use std::path::PathBuf;

use clap::ArgMatches;
use csi_proxy_client::{Builder, Client};

use crate::args::{self, ENDPOINT_DIR};

/// Why nothing can be called without a folder, on a system without named pipes.
pub const NO_FOLDER: &str = "the folder of the sockets of csi-proxy is not known, because XDG_RUNTIME_DIR is not set";

pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) endpoints: Endpoints,
}

/// Where the endpoints of csi-proxy are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoints {
    /// They are named pipes.
    Pipes,
    /// They are Unix sockets in this folder.
    Folder(PathBuf),
    /// They are Unix sockets, but the folder is not known.
    Nowhere,
}

impl Endpoints {
    /// Returns the endpoints that the command line gives, or the default of the client.
    pub fn new(matches: &ArgMatches) -> Self {
        let is_windows = env::consts::OS == "windows";
        let default = env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("csi-proxy"));
        match matches.get_one::<PathBuf>(ENDPOINT_DIR).cloned().or(default.filter(|_| !is_windows)) {
            Some(folder) => Self::Folder(folder),
            None if is_windows => Self::Pipes,
            None => Self::Nowhere,
        }
    }

    /// Returns what to do if nothing answers in the folder.
    pub fn hint(&self) -> String {
        match self {
            Self::Folder(folder) => format!(
                "is csi-proxy-sim running with -socket-folder {0}? --endpoint-dir selects another folder",
                folder.display()
            ),
            _ => {
                "--endpoint-dir selects the folder of the sockets, which is the -socket-folder of csi-proxy-sim".into()
            }
        }
    }
}

impl Session {
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let folder = matches.get_one::<PathBuf>(ENDPOINT_DIR);
        let builder = Client::builder().deadline(args::timeout(matches));
        let client = folder.into_iter().fold(builder, Builder::socket_folder).build();
        Self { client, endpoints: Endpoints::new(matches) }
    }
}
