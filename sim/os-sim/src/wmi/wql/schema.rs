//! The classes of the simulated node and the types of their properties.

use os::Namespace;
use os::Namespace::{CimV2, Smb, Storage};

use Type::{Bool, Number, Other, Text};

/// The type of a property. Distinguishes only the types that WQL compares in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// `string`.
    Text,
    /// Any integer. WMI passes an integer of 64 bits as text.
    Number,
    /// `boolean`.
    Bool,
    /// An array, which WQL cannot compare, or a reference, which the simulated node does not
    /// compare.
    Other,
}

/// A class and its properties.
pub(super) struct Class {
    pub(super) namespace: Namespace,
    pub(super) name: &'static str,
    properties: Properties,
}

/// Types, each with the names of its properties, separated by spaces.
type Properties = &'static [(Type, &'static str)];

impl Class {
    /// Returns the class `name` of `namespace`.
    pub(super) fn find(namespace: Namespace, name: &str) -> Option<&'static Self> {
        CLASSES.iter().find(|class| {
            class.namespace.path() == namespace.path() && class.name.eq_ignore_ascii_case(name)
        })
    }

    /// Returns the property `name`, spelled as in the schema, and its type.
    pub(super) fn property(&self, name: &str) -> Option<(&'static str, Type)> {
        self.properties
            .iter()
            .chain(SYSTEM)
            .find_map(|(kind, names)| {
                let known = names
                    .split(' ')
                    .find(|known| known.eq_ignore_ascii_case(name))?;
                Some((known, *kind))
            })
    }
}

const fn class(namespace: Namespace, name: &'static str, properties: Properties) -> Class {
    Class {
        namespace,
        name,
        properties,
    }
}

/// The system properties, which every object has.
const SYSTEM: Properties = &[(Text, "__CLASS __PATH __RELPATH")];

/// The classes, with the properties that a query may name. The instances are made in
/// `wmi.rs`, `wmi/provider_instances.rs`, `wmi/msft_storage.rs`, `smb.rs` and
/// `iscsi/wmi_classes.rs`.
const CLASSES: &[Class] = &[
    class(
        CimV2,
        "Win32_BIOS",
        &[(Text, "Manufacturer Name SerialNumber Version")],
    ),
    class(CimV2, "Win32_ComputerSystem", &[(Text, "DNSHostName Name")]),
    class(
        CimV2,
        "Win32_NetworkAdapterConfiguration",
        &[(Bool, "IPEnabled"), (Other, "IPAddress")],
    ),
    class(
        Storage,
        "MSFT_Disk",
        &[
            (
                Text,
                "FriendlyName Location Manufacturer Model ObjectId Path SerialNumber UniqueId",
            ),
            (
                Number,
                "BusType LargestFreeExtent Number OfflineReason PartitionStyle Size UniqueIdFormat",
            ),
            (Bool, "IsOffline IsReadOnly"),
            (Other, "OperationalStatus"),
        ],
    ),
    class(
        Storage,
        "MSFT_Partition",
        &[
            (Text, "GptType ObjectId UniqueId"),
            (
                Number,
                "DiskNumber MbrType Offset OperationalStatus PartitionNumber Size",
            ),
            (Bool, "IsActive IsBoot IsOffline IsReadOnly"),
            (Other, "AccessPaths"),
        ],
    ),
    class(
        Storage,
        "MSFT_Volume",
        &[
            (Text, "FileSystem ObjectId Path UniqueId"),
            (Number, "FileSystemType Size SizeRemaining"),
            (Other, "OperationalStatus"),
        ],
    ),
    class(Storage, "MSFT_StorageSetting", &[]),
    class(
        Storage,
        "MSFT_PartitionToVolume",
        &[(Other, "Partition Volume")],
    ),
    class(
        Storage,
        "MSFT_iSCSITarget",
        &[(Text, "NodeAddress"), (Bool, "IsConnected")],
    ),
    class(
        Storage,
        "MSFT_iSCSITargetPortal",
        &[
            (Text, "TargetPortalAddress"),
            (Number, "TargetPortalPortNumber"),
        ],
    ),
    class(
        Storage,
        "MSFT_iSCSISession",
        &[
            (
                Text,
                "AuthenticationType SessionIdentifier TargetNodeAddress",
            ),
            (Bool, "IsConnected IsPersistent"),
        ],
    ),
    class(
        Storage,
        "MSFT_iSCSIConnection",
        &[
            (Text, "ConnectionIdentifier TargetAddress"),
            (Number, "TargetPortNumber"),
        ],
    ),
    class(
        Storage,
        "MSFT_iSCSITargetToiSCSIConnection",
        &[(Other, "iSCSIConnection iSCSITarget")],
    ),
    class(
        Storage,
        "MSFT_iSCSISessionToiSCSIConnection",
        &[(Other, "iSCSIConnection iSCSISession")],
    ),
    class(
        Storage,
        "MSFT_iSCSITargetToiSCSITargetPortal",
        &[(Other, "iSCSITarget iSCSITargetPortal")],
    ),
    class(
        Storage,
        "MSFT_iSCSISessionToDisk",
        &[(Other, "Disk iSCSISession")],
    ),
    class(
        Storage,
        "MSFT_iSCSIConnectionToDisk",
        &[(Other, "Disk iSCSIConnection")],
    ),
    class(
        Smb,
        "MSFT_SmbGlobalMapping",
        &[(Text, "RemotePath"), (Bool, "RequirePrivacy")],
    ),
];
