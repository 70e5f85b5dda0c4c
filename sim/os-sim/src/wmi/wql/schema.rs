//! The classes of the simulated node and the types of their properties.

use os::Namespace;

use Type::{Array, Bool, Number, Reference, Text};

/// The type of a property, as far as WQL distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// `string`.
    Text,
    /// Any integer. WMI passes those of 64 bits as text.
    Number,
    /// `boolean`.
    Bool,
    /// An array, which WQL cannot compare.
    Array,
    /// A reference to another object, whose comparison is not simulated.
    Reference,
}

/// A class and its properties.
pub(super) struct Class {
    pub(super) namespace: Namespace,
    pub(super) name: &'static str,
    properties: &'static [(&'static str, Type)],
}

impl Class {
    /// Returns the class `name` of `namespace`.
    pub(super) fn find(namespace: Namespace, name: &str) -> Option<&'static Self> {
        CLASSES.iter().find(|class| class.namespace.path() == namespace.path() && class.name.eq_ignore_ascii_case(name))
    }

    /// Returns the property `name`, spelled as in the schema, and its type.
    pub(super) fn property(&self, name: &str) -> Option<(&'static str, Type)> {
        self.properties.iter().chain(SYSTEM).find(|(known, _)| known.eq_ignore_ascii_case(name)).copied()
    }
}

/// The system properties, which every object has.
const SYSTEM: &[(&str, Type)] = &[("__CLASS", Text), ("__PATH", Text), ("__RELPATH", Text)];

const CLASSES: &[Class] = &[
    Class {
        namespace: Namespace::CimV2,
        name: "Win32_BIOS",
        properties: &[("Manufacturer", Text), ("Name", Text), ("SerialNumber", Text), ("Version", Text)],
    },
    Class {
        namespace: Namespace::CimV2,
        name: "Win32_ComputerSystem",
        properties: &[("DNSHostName", Text), ("Domain", Text), ("Name", Text)],
    },
    Class {
        namespace: Namespace::CimV2,
        name: "Win32_NetworkAdapterConfiguration",
        properties: &[("IPAddress", Array), ("IPEnabled", Bool)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_Disk",
        properties: &[
            ("AdapterSerialNumber", Text),
            ("AllocatedSize", Number),
            ("BootFromDisk", Bool),
            ("BusType", Number),
            ("FirmwareVersion", Text),
            ("FriendlyName", Text),
            ("Guid", Text),
            ("HealthStatus", Number),
            ("IsBoot", Bool),
            ("IsClustered", Bool),
            ("IsHighlyAvailable", Bool),
            ("IsOffline", Bool),
            ("IsReadOnly", Bool),
            ("IsScaleOut", Bool),
            ("IsSystem", Bool),
            ("LargestFreeExtent", Number),
            ("Location", Text),
            ("LogicalSectorSize", Number),
            ("Manufacturer", Text),
            ("Model", Text),
            ("Number", Number),
            ("NumberOfPartitions", Number),
            ("ObjectId", Text),
            ("OfflineReason", Number),
            ("OperationalStatus", Array),
            ("PartitionStyle", Number),
            ("PassThroughClass", Text),
            ("PassThroughIds", Text),
            ("PassThroughNamespace", Text),
            ("PassThroughServer", Text),
            ("Path", Text),
            ("PhysicalSectorSize", Number),
            ("ProvisioningType", Number),
            ("SerialNumber", Text),
            ("Signature", Number),
            ("Size", Number),
            ("UniqueId", Text),
            ("UniqueIdFormat", Number),
        ],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_Partition",
        properties: &[
            ("AccessPaths", Array),
            ("DiskId", Text),
            ("DiskNumber", Number),
            ("DriveLetter", Number),
            ("GptType", Text),
            ("Guid", Text),
            ("IsActive", Bool),
            ("IsBoot", Bool),
            ("IsDAX", Bool),
            ("IsHidden", Bool),
            ("IsOffline", Bool),
            ("IsReadOnly", Bool),
            ("IsShadowCopy", Bool),
            ("IsSystem", Bool),
            ("MbrType", Number),
            ("NoDefaultDriveLetter", Bool),
            ("ObjectId", Text),
            ("Offset", Number),
            ("OperationalStatus", Number),
            ("PartitionNumber", Number),
            ("PassThroughClass", Text),
            ("PassThroughIds", Text),
            ("PassThroughNamespace", Text),
            ("PassThroughServer", Text),
            ("Size", Number),
            ("TransitionState", Number),
            ("UniqueId", Text),
        ],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_Volume",
        properties: &[
            ("AllocationUnitSize", Number),
            ("DedupMode", Number),
            ("DriveLetter", Number),
            ("DriveType", Number),
            ("FileSystem", Text),
            ("FileSystemLabel", Text),
            ("FileSystemType", Number),
            ("HealthStatus", Number),
            ("ObjectId", Text),
            ("OperationalStatus", Array),
            ("PassThroughClass", Text),
            ("PassThroughIds", Text),
            ("PassThroughNamespace", Text),
            ("PassThroughServer", Text),
            ("Path", Text),
            ("Size", Number),
            ("SizeRemaining", Number),
            ("UniqueId", Text),
        ],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_StorageSetting",
        properties: &[("NewDiskPolicy", Number), ("ScrubPolicy", Number)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_PartitionToVolume",
        properties: &[("Partition", Reference), ("Volume", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_DiskToPartition",
        properties: &[("Disk", Reference), ("Partition", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSITarget",
        properties: &[("IsConnected", Bool), ("NodeAddress", Text)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSITargetPortal",
        properties: &[
            ("InitiatorInstanceName", Text),
            ("InitiatorPortalAddress", Text),
            ("IsDataDigest", Bool),
            ("IsHeaderDigest", Bool),
            ("TargetPortalAddress", Text),
            ("TargetPortalPortNumber", Number),
        ],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSISession",
        properties: &[
            ("AuthenticationType", Text),
            ("InitiatorInstanceName", Text),
            ("InitiatorNodeAddress", Text),
            ("InitiatorPortalAddress", Text),
            ("InitiatorSideIdentifier", Text),
            ("IsConnected", Bool),
            ("IsDataDigest", Bool),
            ("IsDiscovered", Bool),
            ("IsHeaderDigest", Bool),
            ("IsPersistent", Bool),
            ("NumberOfConnections", Number),
            ("SessionIdentifier", Text),
            ("TargetNodeAddress", Text),
            ("TargetSideIdentifier", Text),
        ],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSIConnection",
        properties: &[
            ("ConnectionIdentifier", Text),
            ("InitiatorAddress", Text),
            ("InitiatorPortNumber", Number),
            ("TargetAddress", Text),
            ("TargetPortNumber", Number),
        ],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSITargetToiSCSISession",
        properties: &[("iSCSISession", Reference), ("iSCSITarget", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSITargetToiSCSIConnection",
        properties: &[("iSCSIConnection", Reference), ("iSCSITarget", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSISessionToiSCSIConnection",
        properties: &[("iSCSIConnection", Reference), ("iSCSISession", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSITargetToiSCSITargetPortal",
        properties: &[("iSCSITarget", Reference), ("iSCSITargetPortal", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSIConnectionToDisk",
        properties: &[("Disk", Reference), ("iSCSIConnection", Reference)],
    },
    Class {
        namespace: Namespace::Storage,
        name: "MSFT_iSCSISessionToDisk",
        properties: &[("Disk", Reference), ("iSCSISession", Reference)],
    },
    Class {
        namespace: Namespace::Smb,
        name: "MSFT_SmbGlobalMapping",
        properties: &[
            ("LocalPath", Text),
            ("RemotePath", Text),
            ("RequireIntegrity", Bool),
            ("RequirePrivacy", Bool),
            ("Status", Number),
            ("UseWriteThrough", Bool),
        ],
    },
];
