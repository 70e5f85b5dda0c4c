//! The resources that this process uses, for its metrics.

#[cfg(unix)]
#[path = "own_process/unix.rs"]
mod imp;

#[cfg(not(unix))]
#[path = "own_process/windows.rs"]
mod imp;

pub(crate) use imp::figures;

/// The resources of a process. What the system does not tell is `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// The processor time that it has used, in seconds.
    pub(crate) cpu_seconds: Option<f64>,
    /// The bytes of its resident memory; on Windows, its working set.
    pub(crate) resident_memory: Option<u64>,
    /// Its open files; on Windows, its handles.
    pub(crate) open_files: Option<u64>,
}
