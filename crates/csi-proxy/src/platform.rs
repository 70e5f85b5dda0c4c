//! What differs by operating system: this process's own resources and files, and the signals to
//! stop.

#[cfg(windows)]
#[path = "platform/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "platform/unix.rs"]
mod imp;

pub use imp::*;

/// The resources that this process uses, for its metrics. `None`: the system does not report the
/// value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resources {
    /// The processor time used so far, in seconds.
    pub(crate) cpu_seconds: Option<f64>,
    /// The bytes of resident memory; on Windows, of the working set.
    pub(crate) resident_memory: Option<u64>,
    /// The number of open files; on Windows, of handles.
    pub(crate) open_files: Option<u64>,
}
