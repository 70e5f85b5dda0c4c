//! The Windows service: running as the service, installing it, and its times.

mod folders;
mod install;
mod registered;
mod run;

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use crate::service::Task;
pub(super) use run::run;

/// How often a stopping service reports that it still makes progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The time within which the service promises its next report. After it, the service control
/// manager may consider the service hung.
const WAIT_HINT: Duration = Duration::from_secs(10);
/// The time that a stop takes beyond the drain (`-drain`): closing connections and ending the
/// process.
const STOP_MARGIN: Duration = Duration::from_secs(15);
/// The time between a failure and the restart of the service.
const RESTART_DELAY: Duration = Duration::from_secs(10);
/// The time without a failure after which Windows resets its count of failures.
const FAILURE_RESET: Duration = Duration::from_hours(24);

/// Runs a task of the command `service`.
pub fn manage_service(task: Task, out: impl Write) -> Result<(), Box<dyn Error>> {
    match task {
        Task::Install(installation) => install::install(&installation, out),
        Task::Flags(flags) => install::flags(&flags, out),
        Task::Uninstall => install::uninstall(out),
        Task::Status => install::status(out),
        Task::Find => install::print_found(out),
    }
}

/// Returns an error that says what failed and what Windows answered.
fn failed(what: &str, error: &windows_service::Error) -> Box<dyn Error> {
    match error {
        windows_service::Error::Winapi(error) => format!("{what}: {error}"),
        error => format!("{what}: {error}"),
    }
    .into()
}

/// Returns the code of an error that Windows returned.
fn code(error: &windows_service::Error) -> Option<i32> {
    match error {
        windows_service::Error::Winapi(error) => error.raw_os_error(),
        _ => None,
    }
}
