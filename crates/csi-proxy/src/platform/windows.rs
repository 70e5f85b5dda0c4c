//! Windows.

use std::fs::OpenOptions;
use std::io;

use os_win32::own_process;
pub use os_win32::own_process::limit_dll_search;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

use super::Resources;

/// Changes nothing: a log file has the access list that its folder gives to new files, and a folder
/// that is created for the service has an access list of its own.
pub fn restrict_to_owner(_options: &mut OpenOptions) {}

/// Returns the time for a line of the log in the time zone of the node, as klog writes it:
/// `1124 02:12:23.812000`.
pub(crate) fn log_time() -> String {
    let [month, day, hour, minute, second, millisecond] = os_win32::system::local_time();
    format!("{month:02}{day:02} {hour:02}:{minute:02}:{second:02}.{millisecond:03}000")
}

/// Returns that there is no limit: Windows has none on handles that connections could reach.
pub(crate) fn raise_open_files(_wanted: usize) -> Option<usize> {
    None
}

/// Returns the resources that this process uses.
pub(crate) fn resources() -> Resources {
    Resources {
        cpu_seconds: own_process::cpu_time().ok().map(|time| time.as_secs_f64()),
        resident_memory: own_process::working_set().ok().map(|bytes| bytes as u64),
        open_files: own_process::handle_count().ok().map(u64::from),
    }
}

/// The events of a console that tell the program to stop. Windows ends the process as soon as the
/// handler of a close or shutdown event returns, so tokio's handler does not return, and Windows
/// waits for the process to end. A container that stops sends a shutdown event.
pub(crate) struct StopSignals {
    ctrl_c: CtrlC,
    ctrl_break: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl StopSignals {
    /// Listens to the events from now on. Must be called within a tokio runtime.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            ctrl_c: ctrl_c()?,
            ctrl_break: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for the next event.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.ctrl_c.recv() => {}
            _ = self.ctrl_break.recv() => {}
            _ = self.close.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
