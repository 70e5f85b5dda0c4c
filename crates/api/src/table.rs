//! The table of group-versions, the only list of them.
//!
//! An entry here and its `api.proto` define a group-version: the pipe, the service, the RPCs and
//! the Rust types are derived from them, as are the daemon's endpoints, its metrics and the tests
//! that call every RPC. The build fails if an entry has no `api.proto` or an `api.proto` has no
//! entry.
//!
//! `build.rs` includes this file too, so nothing in it may need generated code.

/// A group of RPCs on one subject. Each version of a group is a separate gRPC service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Disks: their locations, identifiers, state and partition.
    Disk,
    /// Files, directories and links.
    Filesystem,
    /// The iSCSI initiator: portals, and sessions with targets.
    Iscsi,
    /// SMB global mappings.
    Smb,
    /// The serial number of the node, and its Windows services.
    System,
    /// Volumes: finding, formatting, mounting and growing them.
    Volume,
}

impl Group {
    /// Returns the name of the group in pipe names, in `proto/` and in the modules of this crate.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Filesystem => "filesystem",
            Self::Iscsi => "iscsi",
            Self::Smb => "smb",
            Self::System => "system",
            Self::Volume => "volume",
        }
    }
}

/// Every group-version that is served, with the preferred version of a group first. The order is
/// that of Kubernetes' own APIs: stable before beta before alpha, and the newest of each first.
///
/// The module of the first version that has a message defines its type; later versions of the group
/// re-export it.
pub(crate) const TABLE: [(Group, &str); 23] = [
    (Group::Disk, "v1"),
    (Group::Disk, "v1beta3"),
    (Group::Disk, "v1beta2"),
    (Group::Disk, "v1beta1"),
    (Group::Disk, "v1alpha1"),
    (Group::Filesystem, "v1"),
    (Group::Filesystem, "v1beta2"),
    (Group::Filesystem, "v1beta1"),
    (Group::Filesystem, "v2alpha1"),
    (Group::Filesystem, "v1alpha1"),
    (Group::Iscsi, "v1alpha2"),
    (Group::Iscsi, "v1alpha1"),
    (Group::Smb, "v1"),
    (Group::Smb, "v1beta2"),
    (Group::Smb, "v1beta1"),
    (Group::Smb, "v1alpha1"),
    (Group::System, "v1alpha1"),
    (Group::Volume, "v1"),
    (Group::Volume, "v1beta3"),
    (Group::Volume, "v1beta2"),
    (Group::Volume, "v1beta1"),
    (Group::Volume, "v2alpha1"),
    (Group::Volume, "v1alpha1"),
];
