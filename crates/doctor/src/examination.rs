//! What an examination reads and knows.

use os::{Instance, Namespace, Os, OsResult};
use serde::Deserialize;
use storage_ops::Config;
use storage_ops::inspect::Inspector;

use crate::finding::Report;
use crate::redaction::Names;
use crate::system::System;

/// What to examine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The settings of the storage operations.
    pub node: Config,
    /// The names of the pipes that the daemon serves, without `\\.\pipe\`.
    pub pipes: Vec<String>,
    /// The groups that the daemon's flag `-api-groups` leaves out, separated by commas.
    pub excluded_groups: Option<String>,
    /// The names of their pipes, which the daemon does not create.
    pub excluded_pipes: Vec<String>,
    /// The SIDs of the accounts that may open the pipes beside LocalSystem and Administrators.
    pub accounts: Vec<String>,
    /// The name of the daemon's service.
    pub service: String,
    /// Whether this program runs in a HostProcess container, as the daemon does then.
    pub is_in_container: bool,
    /// The log file of the daemon, if it has one.
    pub log_file: Option<String>,
    /// The disks that the running daemon has last seen. One that does not answer is named by them.
    pub seen_disks: Vec<SeenDisk>,
    /// Whether names and serial numbers appear in the output.
    pub show_names: bool,
}

/// A disk that was seen.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SeenDisk {
    /// Its number.
    pub disk: u32,
    /// Its serial number.
    pub serial_number: String,
    /// How long ago it was seen.
    pub seconds_ago: f64,
}

/// The sources of the checks, and their report.
pub(crate) struct Examination<'a> {
    pub(crate) os: &'a dyn Os,
    pub(crate) system: &'a dyn System,
    pub(crate) settings: &'a Settings,
    pub(crate) inspector: Inspector,
    pub(crate) names: Names,
    pub(crate) report: Report,
}

/// Reads WMI objects, within the time limit of a query.
pub(crate) fn query(
    os: &dyn Os,
    node: &Config,
    namespace: Namespace,
    wql: &str,
) -> OsResult<Vec<Instance>> {
    os.wmi()
        .query(namespace, wql, os.clock().now() + node.timeouts.query)
}
