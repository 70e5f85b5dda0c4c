//! The table of group-versions. A row here and its `api.proto` are all that a group-version is made of: the pipe, the
//! service, the RPCs and the Rust types follow from them.
//!
//! `build.rs` reads this file too, so it holds nothing that needs generated code.

/// What a family of RPCs is about. A group has a service of its own in each of its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Disks: where they sit, how they are known, their state, their partition.
    Disk,
    /// Files, directories and links.
    Filesystem,
    /// The iSCSI initiator: portals, and sessions with targets.
    Iscsi,
    /// SMB global mappings.
    Smb,
    /// The node's serial number and its Windows services.
    System,
    /// Volumes: finding, formatting, mounting and growing them.
    Volume,
}

impl Group {
    /// The name as it stands in pipe names, in `proto/` and in the modules of this crate.
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

/// Every group-version served. Within a group the version to prefer comes first, by the rule that Kubernetes has for its
/// own APIs: stable before beta before alpha, and the newest of each first.
///
/// The order also decides where a message lives that several versions of a group share: in the first that has it.
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
