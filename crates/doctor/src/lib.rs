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

// The modules, from the lowest: `access`, `words`, `finding`, `redaction`, `system`,
// `examination`, `checks`, `provider_comparison`, `output`.

pub mod access;
mod checks;
mod examination;
mod finding;
mod output;
mod provider_comparison;
mod redaction;
mod system;
mod words;

use std::sync::Arc;

use os::Os;
use storage_ops::Config;
use storage_ops::inspect::Inspector;

pub use examination::{SeenDisk, Settings};
pub use finding::{Finding, Report, State};
pub use provider_comparison::{Agreement, ProviderComparison, Row};
pub use system::{Pipe, ServiceRegistration, System, program_of};

use examination::Examination;
use redaction::Names;

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
