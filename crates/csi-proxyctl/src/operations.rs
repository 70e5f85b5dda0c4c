//! The operations: one command for each, with its help. Their flags come from the descriptors of the request messages.

use api::Group;

/// An operation of csi-proxy: an RPC, under the names that it has in the versions of its group.
pub(crate) struct Operation {
    pub(crate) group: Group,
    /// The name of the command: the RPC without the noun of its group.
    pub(crate) command: &'static str,
    /// The names of the RPC, the newest first.
    pub(crate) rpcs: &'static [&'static str],
    /// The line in the list of commands.
    pub(crate) about: &'static str,
    /// What the help adds to that line.
    pub(crate) more: &'static str,
    /// What may be lost. Empty if nothing is.
    pub(crate) warning: &'static str,
}

impl Operation {
    const fn more(self, more: &'static str) -> Self {
        Self { more, ..self }
    }

    const fn warning(self, warning: &'static str) -> Self {
        Self { warning, ..self }
    }
}

const fn operation(
    group: Group,
    command: &'static str,
    rpcs: &'static [&'static str],
    about: &'static str,
) -> Operation {
    Operation { group, command, rpcs, about, more: "", warning: "" }
}

/// Describes a group in the list of commands.
pub(crate) const fn group_about(group: Group) -> &'static str {
    match group {
        Group::Disk => "Disks: identifiers, locations, state, partition",
        Group::Filesystem => "Directories and links below the working directories",
        Group::Iscsi => "The iSCSI initiator: target portals and sessions",
        Group::Smb => "SMB global mappings",
        Group::System => "The serial number of the node, and Windows services",
        Group::Volume => "Volumes: find, format, mount, grow",
    }
}

/// All operations, in the order of the help.
pub(crate) const OPERATIONS: [Operation; 39] = [
    operation(Group::Disk, "list-ids", &["ListDiskIDs"], "List the page-83 identifier and serial number of each disk")
        .more("`get disks` shows them in a table."),
    operation(
        Group::Disk,
        "list-locations",
        &["ListDiskLocations"],
        "List the adapter, bus, target and LUN of each disk",
    )
    .more(
        "Mounted virtual disk files, and disks whose location has fewer than five parts, are left out. \
         `get disks -o wide` shows the locations in a table.",
    ),
    operation(Group::Disk, "get-stats", &["GetDiskStats", "DiskStats"], "Show the size of a disk in bytes"),
    operation(Group::Disk, "get-state", &["GetDiskState", "GetAttachState"], "Show whether a disk is online"),
    operation(
        Group::Disk,
        "set-state",
        &["SetDiskState", "SetAttachState"],
        "Bring a disk online and make it writable, or take it offline",
    )
    .more(
        "A disk that is already in this state is left unchanged. When a disk comes online, the command waits until \
         its volumes have arrived.",
    )
    .warning(
        "Taking a disk offline makes its volumes unavailable to all pods that use them, and what these pods have not \
         yet flushed may be lost.",
    ),
    operation(
        Group::Disk,
        "partition",
        &["PartitionDisk"],
        "Give an empty disk a GPT and one data partition of maximum size",
    )
    .more(
        "The partition gets no drive letter. A disk that already has a data partition is left unchanged. A disk without \
         a partition table but with the signature of a file system is refused.",
    )
    .warning(
        "Overwrites what is on a disk that has neither a partition table nor a signature that csi-proxy knows. The csi-proxy written \
         in Go overwrites any disk without a partition table.",
    ),
    operation(Group::Disk, "rescan", &["Rescan"], "Make Windows look for disks that have come, gone or grown"),
    operation(
        Group::Disk,
        "get-number-by-name",
        &["GetDiskNumberByName"],
        "Find the disk with this page-83 identifier",
    )
    .more("Only disk v1alpha1 has this RPC; `disk list-ids` serves the same purpose."),
    operation(Group::Filesystem, "path-exists", &["PathExists"], "Show whether a path exists")
        .more("A link exists even if its target does not."),
    operation(Group::Filesystem, "mkdir", &["Mkdir"], "Create a directory and the missing directories above it")
        .more("Succeeds if the directory exists."),
    operation(Group::Filesystem, "rmdir", &["Rmdir"], "Remove a directory, a link or a mount point")
        .more(
            "What a link or a mount point leads to is not touched. Without --force, a directory must be empty and the \
             path must exist.",
        )
        .warning("With --force, deletes everything in the directory for good."),
    operation(
        Group::Filesystem,
        "rmdir-contents",
        &["RmdirContents"],
        "Remove everything in a directory or on the volume mounted there",
    )
    .more("The directory itself is kept. Links in it are removed and not followed.")
    .warning("Deletes everything in the directory for good."),
    operation(Group::Filesystem, "create-symlink", &["CreateSymlink", "LinkPath"], "Create a symbolic link")
        .more("Succeeds if the same link exists. Anything else in its place is refused."),
    operation(
        Group::Filesystem,
        "is-symlink",
        &["IsSymlink", "IsMountPoint"],
        "Show whether a path is a link or mount point whose target exists",
    )
    .more("The path may be anywhere on the node."),
    operation(
        Group::Iscsi,
        "list-target-portals",
        &["ListTargetPortals"],
        "List the target portals that the initiator knows",
    )
    .more("`get iscsi` shows them in a table."),
    operation(
        Group::Iscsi,
        "add-target-portal",
        &["AddTargetPortal"],
        "Add a target portal to those that the initiator knows",
    ),
    operation(
        Group::Iscsi,
        "discover-target-portal",
        &["DiscoverTargetPortal"],
        "List the targets that a portal offers",
    )
    .more("The initiator asks the portal over the network. It must know the portal: see `iscsi add-target-portal`."),
    operation(
        Group::Iscsi,
        "remove-target-portal",
        &["RemoveTargetPortal"],
        "Make the initiator forget a target portal",
    )
    .warning("The initiator does not find the targets of the portal again after a restart of the node."),
    operation(Group::Iscsi, "connect-target", &["ConnectTarget"], "Open a session with a target")
        .more("The target must have been discovered: see `iscsi discover-target-portal`. Succeeds if it is already connected."),
    operation(Group::Iscsi, "disconnect-target", &["DisconnectTarget"], "End the session with a target")
        .more("Succeeds if the target is not connected.")
        .warning("The disks of the target disappear from the node, and what pods have not yet flushed is lost."),
    operation(Group::Iscsi, "get-target-disks", &["GetTargetDisks"], "List the disks of a connected target"),
    operation(
        Group::Iscsi,
        "set-mutual-chap-secret",
        &["SetMutualChapSecret"],
        "Set the secret with which targets authenticate in mutual CHAP",
    )
    .warning("Replaces the previous secret. The initiator has one secret for all targets."),
    operation(
        Group::Smb,
        "new-global-mapping",
        &["NewSmbGlobalMapping"],
        "Map an SMB share for the whole node, and link to it",
    )
    .more(
        "The mapping covers the whole share and every path below it. An existing mapping that can be read is reused; \
         one that cannot is replaced. No RPC lists the mappings: run Get-SmbGlobalMapping on the node.",
    ),
    operation(
        Group::Smb,
        "remove-global-mapping",
        &["RemoveSmbGlobalMapping"],
        "Remove the mapping of an SMB share",
    )
    .warning("All pods that use a path on the share lose access to it."),
    operation(
        Group::System,
        "get-bios-serial-number",
        &["GetBIOSSerialNumber"],
        "Show the serial number in the BIOS of the node",
    ),
    operation(Group::System, "get-service", &["GetService"], "Show the state of a Windows service")
        .more("`get services` shows several in a table."),
    operation(Group::System, "start-service", &["StartService"], "Start a Windows service and wait until it runs")
        .more("Waits up to 30 seconds. Succeeds if the service is already running."),
    operation(Group::System, "stop-service", &["StopService"], "Stop a Windows service and wait until it has stopped")
        .more("Waits up to 30 seconds. Without --force, a service on which a running one depends is not stopped.")
        .warning("What needs the service stops working. Stopping LanmanWorkstation or MSiSCSI takes storage from pods."),
    operation(Group::Volume, "list-on-disk", &["ListVolumesOnDisk"], "List the volumes on a disk")
        .more("The data volume is the first. `get volumes` shows the volumes of all disks in a table."),
    operation(Group::Volume, "mount", &["MountVolume"], "Mount a volume at an empty directory")
        .more(
            "Succeeds if the volume is already mounted there, and replaces a mount point whose volume no longer exists.",
        ),
    operation(
        Group::Volume,
        "unmount",
        &["UnmountVolume", "DismountVolume"],
        "Flush a volume and remove its mount point",
    )
    .more("If flushing fails, the volume stays mounted."),
    operation(
        Group::Volume,
        "is-formatted",
        &["IsVolumeFormatted"],
        "Show whether a volume has a file system",
    ),
    operation(Group::Volume, "format", &["FormatVolume"], "Format a volume with NTFS")
        .more("A volume that already has NTFS is left unchanged; one with another file system is refused.")
        .warning(
            "Overwrites what is on a volume without a file system that csi-proxy knows. The csi-proxy written in Go formats any volume \
             again, whatever is on it.",
        ),
    operation(Group::Volume, "resize", &["ResizeVolume"], "Grow a volume to a size, or as far as its disk allows")
        .more("A volume is never shrunk. A disk that has grown needs no `disk rescan` first."),
    operation(
        Group::Volume,
        "get-stats",
        &["GetVolumeStats", "VolumeStats"],
        "Show the size of a file system and how much of it is used",
    ),
    operation(
        Group::Volume,
        "get-disk-number",
        &["GetDiskNumberFromVolumeID", "GetVolumeDiskNumber"],
        "Show which disk a volume is on",
    ),
    operation(
        Group::Volume,
        "get-id",
        &["GetVolumeIDFromTargetPath", "GetVolumeIDFromMount"],
        "Find the volume that is mounted at a path",
    )
    .more("Links are followed. `get mounts` shows several paths in a table."),
    operation(
        Group::Volume,
        "get-closest-id",
        &["GetClosestVolumeIDFromTargetPath"],
        "Find the volume that contains a path",
    )
    .more("Links are followed."),
    operation(
        Group::Volume,
        "write-cache",
        &["WriteVolumeCache"],
        "Flush the cached data of a volume to its disk",
    ),
];

/// The flag for a field of a request. The fields are known by their names in snake case, which all versions share.
pub(crate) struct FieldText {
    pub(crate) field: &'static str,
    /// The name of the flag; of a secret, without the suffix that says where it is read from.
    pub(crate) flag: &'static str,
    pub(crate) value: &'static str,
    pub(crate) is_required: bool,
    pub(crate) help: &'static str,
}

const fn required(field: &'static str, flag: &'static str, value: &'static str, help: &'static str) -> FieldText {
    FieldText { field, flag, value, is_required: true, help }
}

const fn optional(field: &'static str, flag: &'static str, value: &'static str, help: &'static str) -> FieldText {
    FieldText { is_required: false, ..required(field, flag, value, help) }
}

/// All fields of requests.
pub(crate) const FIELDS: [FieldText; 26] = [
    required("disk_number", "disk", "NUMBER", "Number of the disk, as `get disks` shows it"),
    required("disk_id", "disk", "NUMBER", "Number of the disk, as `get disks` shows it"),
    required("disk_name", "disk-name", "NAME", "Page-83 identifier, or its last word"),
    required("is_online", "online", "true|false", "true to bring the disk online, false to take it offline"),
    optional("partition_number", "partition", "NUMBER", "Only the volumes on this partition"),
    required(
        "volume_id",
        "volume",
        "VOLUME",
        r"Volume, as `get volumes` shows it; of \\?\Volume{GUID}\, the GUID alone is enough",
    ),
    required("path", "path", "PATH", "Path on the node"),
    required("source_path", "source-path", "PATH", "Path that the link leads to"),
    required("target_path", "target-path", "PATH", "Path of the mount point"),
    required("mount", "mount", "PATH", "Path of the mount point"),
    optional(
        "context",
        "context",
        "CONTEXT",
        "Whose path it is: plugin or pod; matters only if csi-proxy has different directories for the two [default: plugin]",
    ),
    optional("force", "force", "", "Force it"),
    optional(
        "size_bytes",
        "size",
        "SIZE",
        "Size in bytes, or with a unit such as 20Gi [default: as large as possible]",
    ),
    optional("size", "size", "SIZE", "Size in bytes, or with a unit such as 20Gi [default: as large as possible]"),
    required("target_address", "target-address", "HOST", "Address of the target portal"),
    optional("target_port", "target-port", "PORT", "TCP port of the target portal [default: 3260]"),
    required("iqn", "iqn", "IQN", "Qualified name of the target"),
    optional(
        "auth_type",
        "auth-type",
        "TYPE",
        "How the two sides authenticate: none, one-way-chap or mutual-chap [default: none]",
    ),
    optional("chap_username", "chap-username", "NAME", "User name for CHAP"),
    optional("chap_secret", "chap-secret", "", "the CHAP secret"),
    required("mutual_chap_secret", "mutual-chap-secret", "", "the secret"),
    required("remote_path", "remote-path", "UNC", r"\\SERVER\SHARE, or a path below it"),
    optional("local_path", "local-path", "PATH", "Create a link to the remote path here"),
    optional(
        "username",
        "username",
        "NAME",
        r"DOMAIN\USER, or SERVER\USER for a server without a domain [default: the account of the node]",
    ),
    optional("password", "password", "", "the password"),
    required("name", "name", "SERVICE", "Name of the service, not its display name"),
];

/// Help texts for fields that mean something else in one request than in the others.
const HELP_IN: [(&str, &str, &str); 4] = [
    ("RmdirRequest", "force", "Delete what is in the directory too, and succeed if the path does not exist"),
    ("StopServiceRequest", "force", "Stop the services that depend on it first"),
    ("CreateSymlinkRequest", "target_path", "Path of the link"),
    ("LinkPathRequest", "target_path", "Path of the link"),
];

/// Returns the flag for a field of a request, and its help.
pub(crate) fn field_text(message: &str, field: &str) -> (&'static FieldText, &'static str) {
    let text = FIELDS.iter().find(|text| text.field == field).expect("a test checks that each field has one");
    let special = HELP_IN.iter().find(|(own, name, _)| *own == message && *name == field);
    (text, special.map_or(text.help, |(_, _, help)| help))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::GROUP_VERSIONS;

    use super::*;
    use crate::request;

    #[test]
    fn each_rpc_of_each_version_belongs_to_one_operation() {
        for version in &GROUP_VERSIONS {
            for rpc in version.rpcs {
                let of = OPERATIONS.iter().filter(|own| own.group == version.group && own.rpcs.contains(&rpc.name));
                assert_eq!(of.count(), 1, "{} {}", version.pipe(), rpc.name);
            }
        }
    }

    #[test]
    fn each_operation_has_a_command_of_its_own_and_rpcs_that_exist() {
        let commands: BTreeSet<_> = OPERATIONS.iter().map(|own| (own.group, own.command)).collect();
        assert_eq!(commands.len(), OPERATIONS.len());
        for operation in &OPERATIONS {
            for name in operation.rpcs {
                let has_it = |version: &api::GroupVersion| {
                    version.group == operation.group && version.rpcs.iter().any(|rpc| rpc.name == *name)
                };
                assert!(GROUP_VERSIONS.iter().any(has_it), "{name}");
            }
        }
    }

    #[test]
    fn each_field_of_a_request_has_a_text_and_each_text_a_field() {
        let mut found = BTreeSet::new();
        for version in &GROUP_VERSIONS {
            for rpc in dynamic_client::rpcs(version).values() {
                found.extend(request::fields(&rpc.request).into_iter().map(|field| field.text.field));
            }
        }
        assert_eq!(found, FIELDS.iter().map(|text| text.field).collect());
    }

    #[test]
    fn each_special_help_text_is_used_and_a_general_one_says_what_force_does_nowhere() {
        let mut used = BTreeSet::new();
        for version in &GROUP_VERSIONS {
            for rpc in dynamic_client::rpcs(version).values() {
                let message = rpc.request.name().to_owned();
                for field in request::fields(&rpc.request) {
                    assert_ne!(field.help, "Force it", "{message}");
                    used.insert((message.clone(), field.text.field));
                }
            }
        }
        for (message, field, _) in HELP_IN {
            assert!(used.contains(&(message.to_owned(), field)), "{message} {field}");
        }
    }
}
