//! Examines a Windows node for an administrator, and changes nothing.
//!
//! [`examine`] returns findings: which process serves the pipes, who may open them, whether the
//! service starts and restarts, whether ordinary users can replace what LocalSystem runs, whether
//! the working directories exist, and what the last boot left behind. [`compare`] reads disks and
//! volumes natively and through the storage provider, and lists the differences.
//!
//! Both read through the traits of `os`, the native readings of `storage-ops`, and [`System`]. A
//! reading that fails becomes a finding or a row with the code; it never ends the examination.
//!
//! Unless [`Settings::show_names`] is set, names such as `serial-1` replace serial numbers, shares,
//! targets and accounts, so that the output can be attached to an issue. Within one output, a value
//! always has the same name.

pub mod access;
mod checks;
mod finding;
pub mod fixed_system;
mod output;
mod provider_comparison;
mod redaction;
mod system;

use std::sync::Arc;

use os::{Instance, Namespace, Os, OsError, OsResult};
use storage_ops::Config;
use storage_ops::inspect::Inspector;

pub use finding::{Finding, Report, State};
pub use provider_comparison::{Agreement, ProviderComparison, Row};
pub use system::{Pipe, ServiceRegistration, System, program_of};

use redaction::Names;

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
    /// Whether names and serial numbers appear in the output.
    pub show_names: bool,
}

/// The sources of the checks, and their report.
struct Examination<'a> {
    os: &'a dyn Os,
    system: &'a dyn System,
    settings: &'a Settings,
    inspector: Inspector,
    names: Names,
    report: Report,
}

/// Examines the node and returns all findings.
pub fn examine(os: &Arc<dyn Os>, system: &dyn System, settings: &Settings) -> Report {
    let mut examination = Examination {
        os: &**os,
        system,
        settings,
        inspector: Inspector::new(Arc::clone(os), &settings.node),
        names: Names::new(settings.show_names),
        report: Report::default(),
    };
    checks::all(&mut examination);
    Report {
        has_hidden_names: examination.names.has_hidden(),
        ..examination.report
    }
}

/// Reads disks, partitions, volumes and the serial number of the machine natively and through WMI,
/// and returns both.
pub fn compare(os: &Arc<dyn Os>, node: &Config, show_names: bool) -> ProviderComparison {
    provider_comparison::compare(
        &**os,
        &Inspector::new(Arc::clone(os), node),
        node,
        &Names::new(show_names),
    )
}

/// Reads WMI objects, within the time limit of a query.
fn query(os: &dyn Os, node: &Config, namespace: Namespace, wql: &str) -> OsResult<Vec<Instance>> {
    os.wmi()
        .query(namespace, wql, os.clock().now() + node.timeouts.query)
}

/// Advice that follows from the code of a reading that failed.
fn advice_on(code: Option<OsError>) -> String {
    match code {
        Some(OsError::ACCESS_DENIED | OsError::PRIVILEGE_NOT_HELD) => {
            "run csi-proxy doctor in an elevated command prompt".to_owned()
        }
        Some(OsError::REPARSE_POINT_ENCOUNTERED) => {
            "doctor does not follow links to servers: list the links on the path (dir /al), and \
             remove those that are not needed"
                .to_owned()
        }
        _ => "repeat the check later; if it still fails, report the code".to_owned(),
    }
}
