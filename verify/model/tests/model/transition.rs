//! The steps of a sequence: calls, and what happens to a node between them.

use crate::directory_tree::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// A call, through the n-th of the versions that have it.
    Call(Call, usize),
    Event(Event),
}

/// What happens without csi-proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The disk is a GiB larger.
    Grow(u32),
    Detach(u32),
    /// The oldest of the detached disks comes back, at once or for the next rescan.
    Attach {
        noticed: bool,
    },
    /// A new disk comes.
    Another {
        noticed: bool,
    },
    Restart,
    /// The SMB server goes away, or comes back.
    Network(bool),
    /// A user's password is changed.
    Rotate(&'static str),
    /// A driver makes directories.
    Directory(String),
    /// A driver writes a file.
    File(String),
}

impl From<Event> for Transition {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

/// A volume as a caller names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Id {
    Of(Key),
    /// A name that no volume has.
    Nobody,
    /// A text that is no name.
    Text(&'static str),
}

/// An operation, by the newest name of its RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    ListDiskLocations,
    ListDiskIds,
    GetDiskNumberByName(&'static str),
    GetDiskStats(u32),
    GetDiskState(u32),
    SetDiskState(u32, bool),
    PartitionDisk(u32),
    Rescan,

    ListVolumesOnDisk(u32, u32),
    IsVolumeFormatted(Id),
    FormatVolume(Id),
    MountVolume(Id, String),
    UnmountVolume(Id, String),
    /// Azuredisk's, with the number of a disk for the volume.
    ResizeDisk(u32, i64),
    ResizeVolume(Id, i64),
    GetVolumeStats(Id),
    GetDiskNumberFromVolumeId(Id),
    GetVolumeIdFromTargetPath(String),
    GetClosestVolumeIdFromTargetPath(String),
    WriteVolumeCache(Id),

    PathExists(String),
    Mkdir(String),
    Rmdir(String, bool),
    RmdirContents(String),
    CreateSymlink {
        source: String,
        link: String,
    },
    IsSymlink(String),

    NewSmbGlobalMapping {
        remote: String,
        local: String,
        user: &'static str,
        password: String,
    },
    RemoveSmbGlobalMapping(String),

    GetBiosSerialNumber,
    GetService(&'static str),
    StartService(&'static str),
    StopService(&'static str, bool),

    ListTargetPortals,
    AddTargetPortal(&'static str),
    DiscoverTargetPortal(&'static str),
    RemoveTargetPortal(&'static str),
    ConnectTarget {
        iqn: &'static str,
        method: &'static str,
        secret: &'static str,
    },
    DisconnectTarget(&'static str),
    GetTargetDisks(&'static str),
    SetMutualChapSecret(&'static str),
}

impl Call {
    /// Whether it may change nothing.
    pub(crate) fn reads(&self) -> bool {
        matches!(
            self,
            Self::ListDiskLocations
                | Self::ListDiskIds
                | Self::GetDiskNumberByName(_)
                | Self::GetDiskStats(_)
                | Self::GetDiskState(_)
                | Self::ListVolumesOnDisk(..)
                | Self::IsVolumeFormatted(_)
                | Self::GetVolumeStats(_)
                | Self::GetDiskNumberFromVolumeId(_)
                | Self::GetVolumeIdFromTargetPath(_)
                | Self::GetClosestVolumeIdFromTargetPath(_)
                | Self::PathExists(_)
                | Self::IsSymlink(_)
                | Self::GetBiosSerialNumber
                | Self::GetService(_)
                | Self::ListTargetPortals
                | Self::GetTargetDisks(_)
        )
    }
}
