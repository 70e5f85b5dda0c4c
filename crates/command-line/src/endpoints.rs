//! Where a command line says that csi-proxy is.

use std::env;
use std::path::PathBuf;

use clap::ArgMatches;

use crate::args::{ENDPOINT_DIR, ENDPOINT_DIR_VARIABLE};

/// Why nothing can be called without a folder, on a system without named pipes.
pub const NO_FOLDER: &str = "the folder of the sockets of csi-proxy is not known, because \
                             CSI_PROXY_ENDPOINT_DIR and XDG_RUNTIME_DIR are not set";

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

/// Returns the folder in an environment variable. An empty one counts as unset.
fn folder_in(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
}

/// Returns the folder that the command line gives, or the variable in its place.
pub fn given_folder(matches: &ArgMatches) -> Option<PathBuf> {
    matches
        .get_one::<PathBuf>(ENDPOINT_DIR)
        .cloned()
        .or_else(|| folder_in(ENDPOINT_DIR_VARIABLE))
}

impl Endpoints {
    /// Returns the endpoints that the command line gives, or the default of the client.
    pub fn new(matches: &ArgMatches) -> Self {
        let is_windows = env::consts::OS == "windows";
        let default = folder_in("XDG_RUNTIME_DIR")
            .map(|folder| folder.join("csi-proxy"))
            .filter(|_| !is_windows);
        match given_folder(matches).or(default) {
            Some(folder) => Self::Folder(folder),
            None if is_windows => Self::Pipes,
            None => Self::Nowhere,
        }
    }

    /// Returns what to do if nothing answers in the folder.
    pub fn hint(&self) -> String {
        match self {
            Self::Folder(folder) => format!(
                "is csi-proxy-sim running with -socket-folder {0}? --endpoint-dir or \
                 {ENDPOINT_DIR_VARIABLE} selects another folder",
                folder.display()
            ),
            _ => {
                "--endpoint-dir selects the folder of the sockets, which is the -socket-folder of \
                 csi-proxy-sim"
                    .into()
            }
        }
    }
}
