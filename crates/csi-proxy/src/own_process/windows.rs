//! The resources that this process uses, on Windows.

use os_win32::own_process;

use super::Figures;

/// Returns the resources that this process uses.
pub(crate) fn figures() -> Figures {
    Figures {
        cpu_seconds: own_process::cpu_time().ok().map(|time| time.as_secs_f64()),
        resident_memory: own_process::working_set().ok().map(|bytes| bytes as u64),
        open_files: own_process::handle_count().ok().map(u64::from),
    }
}
