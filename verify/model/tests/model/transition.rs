//! The transitions of a sequence: calls, and events that change the node from outside.

use crate::directory_tree::DiskKey;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    /// A call through the n-th of the versions that have it.
    Call(Call, usize),
    Event(Event),
}

/// A change of the node that csi-proxy does not make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The disk grows by 1 GiB.
    Grow(u32),
    Detach(u32),
    /// The first of the detached disks is attached again; Windows enumerates it at once or at the
    /// next rescan.
    Attach {
        enumerated: bool,
    },
    /// A new disk is attached.
    AttachNew {
        enumerated: bool,
    },
    RestartDaemon,
    /// The SMB server becomes reachable or unreachable.
    SmbReachable(bool),
    /// The password of a user changes.
    ChangePassword(&'static str),
    /// A driver creates a directory.
    MakeDirectory(String),
    /// A driver writes a file.
    WriteFile(String),
}

impl From<Event> for Transition {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

/// A volume id in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeName {
    /// The volume of a disk.
    Known(DiskKey),
    /// A valid name that no volume has.
    Unknown,
    /// A text that is not the name of a volume.
    Malformed(&'static str),
}

/// A call, by the newest name of its RPC.
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
    IsVolumeFormatted(VolumeName),
    FormatVolume(VolumeName),
    MountVolume(VolumeName, String),
    UnmountVolume(VolumeName, String),
    /// ResizeVolume with the number of a disk as volume id, as azuredisk sends it.
    ResizeDisk(u32, i64),
    ResizeVolume(VolumeName, i64),
    GetVolumeStats(VolumeName),
    GetDiskNumberFromVolumeId(VolumeName),
    GetVolumeIdFromTargetPath(String),
    GetClosestVolumeIdFromTargetPath(String),
    WriteVolumeCache(VolumeName),

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
}

impl Call {
    /// Whether the call must not change any state: its RPC says so by its name.
    pub(crate) fn reads(&self) -> bool {
        let name = format!("{self:?}");
        ["List", "Get", "Is", "PathExists"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    }
}
