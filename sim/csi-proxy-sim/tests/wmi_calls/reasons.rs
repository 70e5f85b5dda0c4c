//! Why each WMI call is made.

/// Each WMI call that a sequence causes: the RPC, the call, and why it is made.
pub(crate) const REASONS: [(&str, &str, &str); 32] = [
    (
        "Rescan",
        "`MSFT_StorageSetting.UpdateHostStorageCache`",
        "part of what the RPC is for: the provider and the cmdlets must know the disks that Windows has found",
    ),
    ("ListDiskLocations", "query of `MSFT_Disk`", "drivers compare the provider's text, which no device reports"),
    (
        "PartitionDisk",
        "query of `MSFT_Disk`",
        "the path of the object for the methods, and what the provider knows of the disk; again after a refresh",
    ),
    (
        "PartitionDisk",
        "`MSFT_StorageSetting.UpdateHostStorageCache`",
        "only if the provider reports another size, state or partition style than the device (here the disk was brought \
         online by a control code), or refuses the change as with an outdated cache: 40000, 40003 (documented as \"cache \
         out of date\"), 41000, 41002, 41003 or `WBEM_NOT_FOUND`",
    ),
    (
        "PartitionDisk",
        "`MSFT_Disk.Initialize`",
        "the change; it refuses a disk with a table, which the control code replaces",
    ),
    ("PartitionDisk", "`MSFT_Disk.CreatePartition`", "the change; it knows the alignment and tells the volume manager"),
    ("PartitionDisk", "query of `MSFT_Partition`", "the path of the object; its offset must be that of the device"),
    (
        "PartitionDisk",
        "`MSFT_Partition.Online`",
        "with automatic mounting disabled Windows leaves a new volume offline; the Go program makes this call too",
    ),
    (
        "FormatVolume",
        "query of `MSFT_Volume`",
        "the path of the object, and whether the provider knows of a file system, which is a veto; again if the provider \
         does not know the volume yet",
    ),
    ("FormatVolume", "`MSFT_Volume.Format`", "the change; no other call for it is documented"),
    ("ResizeVolume", "query of `MSFT_Disk`", "the path of the object, which must be that of the device"),
    (
        "ResizeVolume",
        "`MSFT_Disk.Refresh`",
        "the provider refuses a size that is too large according to its cache, and may not know that the disk has grown or \
         that another program has deleted the next partition",
    ),
    ("ResizeVolume", "query of `MSFT_Partition`", "the path of the object, which is found by its offset"),
    ("ResizeVolume", "`MSFT_Partition.Resize`", "the change: partition table, partition and file system"),
    ("AddTargetPortal", "query of `MSFT_iSCSITargetPortal`", "whether the portal was added already"),
    ("AddTargetPortal", "`MSFT_iSCSITargetPortal.New`", "the change"),
    ("DiscoverTargetPortal", "query of `MSFT_iSCSITargetPortal`", "the path of the object, or that it is not known"),
    ("DiscoverTargetPortal", "`MSFT_iSCSITargetPortal.Update`", "the discovery"),
    ("DiscoverTargetPortal", "query of `MSFT_iSCSITarget`", "its result"),
    ("ConnectTarget", "query of `MSFT_iSCSITargetPortal`", "whether the portal was added"),
    (
        "ConnectTarget",
        "query of `MSFT_iSCSITarget`",
        "whether the portal offers the target, and whether it is connected",
    ),
    ("ConnectTarget", "`MSFT_iSCSITarget.Connect`", "the change"),
    ("ConnectTarget", "query of `MSFT_iSCSIConnection`", "the connections that lead to the portal"),
    ("ConnectTarget", "query of `MSFT_Disk`", "whether the disks have arrived"),
    ("GetTargetDisks", "query of `MSFT_iSCSITargetPortal`", "whether the portal was added"),
    (
        "GetTargetDisks",
        "query of `MSFT_iSCSITarget`",
        "whether the portal offers the target, and whether it is connected",
    ),
    ("GetTargetDisks", "query of `MSFT_iSCSIConnection`", "the connections that lead to the portal"),
    ("GetTargetDisks", "query of `MSFT_Disk`", "their disks"),
    ("DisconnectTarget", "query of `MSFT_iSCSITarget`", "whether the target is connected"),
    ("DisconnectTarget", "query of `MSFT_iSCSISession`", "its sessions"),
    ("DisconnectTarget", "query of `MSFT_iSCSIConnection`", "whether a session leads to the portal"),
    ("DisconnectTarget", "`MSFT_iSCSITarget.Disconnect`", "the change"),
];
