//! The kinds of work that have their own threads.

/// The pools of worker threads. A dead server or a lost disk can block only the threads of its own pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PoolKind {
    /// Files and directories on local disks.
    Files,
    /// Paths on a server.
    Remote,
    /// Disks and volumes, as devices.
    Disks,
    /// WMI.
    Wmi,
    /// Services and firmware.
    System,
}

impl PoolKind {
    /// Returns the purpose of the threads, for error texts.
    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Files => "local files",
            Self::Remote => "remote paths",
            Self::Disks => "disks",
            Self::Wmi => "WMI",
            Self::System => "services",
        }
    }
}
