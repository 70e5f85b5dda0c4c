//! The kinds of work that have their own threads, and the resources that operations wait for.

use std::fmt;

use crate::types::{DiskNumber, VolumeId};

/// The pools of worker threads. A dead server or a lost disk can block only threads of its own
/// pool, except that a read of local files runs on a thread of the runtime while others are free,
/// and that an operation stays in the pool for WMI after a fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PoolKind {
    /// Files and directories on local disks.
    Files,
    /// Paths on a server.
    Remote,
    /// Disks and volumes, as devices.
    Disks,
    /// Waiting for volumes that arrive.
    Arrivals,
    /// WMI, except the iSCSI initiator.
    Wmi,
    /// The iSCSI initiator.
    Iscsi,
    /// Services and firmware.
    System,
}

impl PoolKind {
    /// All pools, in their order.
    pub(crate) const ALL: [Self; 7] = [
        Self::Files,
        Self::Remote,
        Self::Disks,
        Self::Arrivals,
        Self::Wmi,
        Self::Iscsi,
        Self::System,
    ];

    /// The number of pools.
    pub(crate) const COUNT: usize = Self::ALL.len();

    /// Returns the largest memory of one of its operations in bytes: of a list of as many objects
    /// as WMI returns, of a removal, or of the response of a device.
    pub const fn operation_memory(self) -> usize {
        match self {
            Self::Wmi | Self::Iscsi => 8 << 20,
            Self::Files | Self::Remote | Self::Disks | Self::Arrivals | Self::System => 2 << 20,
        }
    }

    /// Returns the name, as metrics and the status have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Remote => "remote",
            Self::Disks => "disks",
            Self::Arrivals => "arrivals",
            Self::Wmi => "wmi",
            Self::Iscsi => "iscsi",
            Self::System => "system",
        }
    }
}

/// The resource that an operation waits for while it runs. A quota limits the threads for one
/// resource, so that a resource that no longer answers does not block operations on other
/// resources.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// An SMB server, by its name in lower case.
    Server(String),
    /// An iSCSI target portal, `address:port` in lower case.
    TargetPortal(String),
    /// A disk, by its number.
    Disk(DiskNumber),
    /// A volume.
    Volume(VolumeId),
    /// Every disk of the node.
    AllDisks,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => write!(f, "server {name}"),
            Self::TargetPortal(address) => write!(f, "target portal {address}"),
            Self::Disk(number) => write!(f, "{number}"),
            Self::Volume(volume) => write!(f, "volume {volume}"),
            Self::AllDisks => f.write_str("a query of all disks"),
        }
    }
}
