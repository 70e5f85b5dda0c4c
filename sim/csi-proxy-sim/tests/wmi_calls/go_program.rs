//! The WMI calls of the csi-proxy written in Go, counted by reading it: version 1.3.0 (commit
//! 832fe147320a53fb52126d88dc73ffb5b4b4ef2b), which calls WMI, and version 1.2.1 (commit
//! 6facd548d6e0d8adb4745317b9380819a6ba8165), which runs PowerShell.

use std::fmt::Write as _;

use csi_proxy_sim::demo::CalledRpc;

/// What the Go program does for an RPC in a situation: the WMI calls of version 1.3.0 and the cmdlets of version 1.2.1.
struct Row {
    rpc: &'static str,
    situation: &'static str,
    calls: &'static [&'static str],
    cmdlets: &'static [&'static str],
}

const fn row(
    rpc: &'static str,
    situation: &'static str,
    calls: &'static [&'static str],
    cmdlets: &'static [&'static str],
) -> Row {
    Row { rpc, situation, calls, cmdlets }
}

/// The RPCs that call WMI in one of the versions. All others in the sequences call it in none.
const ROWS: [Row; 26] = [
    row("Rescan", "", &["UpdateHostStorageCache"], &["Update-HostStorageCache"]),
    row("ListDiskLocations", "", &["query disks"], &["Get-Disk"]),
    row("ListDiskIDs", "", &["query disks"], &["Get-Disk"]),
    row("GetDiskStats", "", &["query disk"], &["Get-Disk"]),
    row(
        "PartitionDisk",
        "new disk",
        &[
            "query disk",
            "query disk",
            "Initialize",
            "query partitions",
            "query disk",
            "CreatePartition",
            "Refresh",
            "query partitions",
            "Online",
        ],
        &["Get-Disk", "Initialize-Disk", "Get-Partition", "New-Partition"],
    ),
    row("PartitionDisk", "partitioned disk", &["query disk", "query partitions"], &["Get-Disk", "Get-Partition"]),
    row("SetDiskState", "changed", &["query disk", "Online or Offline"], &["Get-Disk", "Set-Disk"]),
    row("SetDiskState", "unchanged", &["query disk"], &["Get-Disk", "Set-Disk"]),
    row(
        "ListVolumesOnDisk",
        "",
        &["query partitions", "volumes of the first partition", "volumes of the second partition"],
        &["Get-Disk", "Get-Partition", "Get-Volume"],
    ),
    row("IsVolumeFormatted", "", &["query volumes"], &["Get-Volume"]),
    row("FormatVolume", "", &["query volumes", "Format"], &["Get-Volume", "Format-Volume"]),
    row("MountVolume", "", &[], &["Get-Volume", "Get-Partition", "Add-PartitionAccessPath"]),
    row(
        "UnmountVolume",
        "",
        &["query volumes", "Flush"],
        &["Get-Volume", "Write-VolumeCache", "Get-Volume", "Get-Partition", "Remove-PartitionAccessPath"],
    ),
    row("WriteVolumeCache", "", &["query volumes", "Flush"], &["Get-Volume", "Write-VolumeCache"]),
    row("GetVolumeStats", "", &["query volumes"], &["Get-Volume"]),
    row(
        "GetDiskNumberFromVolumeID",
        "",
        &["query volumes", "partition of the volume"],
        &["Get-Volume", "Get-Partition"],
    ),
    row(
        "ResizeVolume",
        "grown disk",
        &["query volumes", "partition of the volume", "GetSupportedSize", "Resize", "query disk", "Refresh"],
        &[
            "Get-Volume",
            "Get-Partition",
            "Get-PartitionSupportedSize",
            "Get-Volume",
            "Get-Partition",
            "Get-Volume",
            "Get-Partition",
            "Resize-Partition",
        ],
    ),
    row(
        "ResizeVolume",
        "no space to grow",
        &["query volumes", "partition of the volume", "GetSupportedSize"],
        &["Get-Volume", "Get-Partition", "Get-PartitionSupportedSize", "Get-Volume", "Get-Partition"],
    ),
    row("ResizeVolume", "disk number as volume: fails", &["query volumes"], &["Get-Volume"]),
    row("GetBIOSSerialNumber", "", &["query BIOS"], &["wmic bios"]),
    row(
        "DiscoverTargetPortal",
        "known portal",
        &["query portals", "targets of the portal"],
        &["Get-IscsiTargetPortal", "Get-IscsiTarget"],
    ),
    row("DiscoverTargetPortal", "unknown portal: fails", &["query portals"], &["Get-IscsiTargetPortal"]),
    row("AddTargetPortal", "", &["New", "query portals"], &["New-IscsiTargetPortal"]),
    row("ConnectTarget", "", &["query portals", "targets of the portal", "Connect"], &["Connect-IscsiTarget"]),
    row(
        "GetTargetDisks",
        "",
        &["query portals", "targets of the portal", "connections of the target", "disks of the connection"],
        &["Get-IscsiTargetPortal", "Get-IscsiTarget", "Get-IscsiConnection", "Get-Disk"],
    ),
    row(
        "DisconnectTarget",
        "",
        &["query portals", "targets of the portal", "session of the target", "Disconnect"],
        &["Get-IscsiTargetPortal", "Get-IscsiTarget", "Disconnect-IscsiTarget"],
    ),
];

/// The RPCs that call WMI in neither version.
const WITHOUT_WMI: [&str; 6] =
    ["PathExists", "IsSymlink", "Mkdir", "Rmdir", "CreateSymlink", "GetVolumeIDFromTargetPath"];

/// Returns the situation in which an RPC was called, from what our daemon did.
fn situation(rpc: &CalledRpc) -> &'static str {
    let calls = |primitive: &str| rpc.node_calls.iter().any(|record| record.call.primitive == primitive);
    match rpc.name {
        "PartitionDisk" if calls("wmi call MSFT_Disk.Initialize") => "new disk",
        "PartitionDisk" => "partitioned disk",
        "SetDiskState" if calls("control DISK_SET_DISK_ATTRIBUTES") => "changed",
        "SetDiskState" => "unchanged",
        "ResizeVolume" if rpc.request["volumeId"].as_str().is_some_and(|id| id.parse::<u32>().is_ok()) => {
            "disk number as volume: fails"
        }
        "ResizeVolume" if calls("wmi call MSFT_Partition.Resize") => "grown disk",
        "ResizeVolume" => "no space to grow",
        "DiscoverTargetPortal" if calls("wmi call MSFT_iSCSITargetPortal.Update") => "known portal",
        "DiscoverTargetPortal" => "unknown portal: fails",
        _ => "",
    }
}

/// Returns the WMI calls of the versions 1.3.0 and 1.2.1 for the same RPCs.
pub(crate) fn counts(rpcs: &[&CalledRpc]) -> [u32; 2] {
    let count = |list: &[&str]| u32::try_from(list.len()).expect("few calls");
    rpcs.iter().filter(|rpc| !WITHOUT_WMI.contains(&rpc.name)).fold([0; 2], |[newer, older], rpc| {
        let situation = situation(rpc);
        let row = ROWS.iter().find(|row| row.rpc == rpc.name && row.situation == situation);
        let row = row.unwrap_or_else(|| panic!("{} {situation:?} was not counted", rpc.name));
        [newer + count(row.calls), older + count(row.cmdlets)]
    })
}

/// Returns the rows of a table of these counts, in Markdown.
pub(crate) fn table() -> String {
    ROWS.iter().fold(String::new(), |mut table, Row { rpc, situation, calls, cmdlets }| {
        let cell = |list: &[&str]| {
            if list.is_empty() { "0".to_owned() } else { format!("{}: {}", list.len(), list.join(", ")) }
        };
        let _ = writeln!(table, "| {rpc} | {situation} | {} | {} |", cell(calls), cell(cmdlets));
        table
    })
}
