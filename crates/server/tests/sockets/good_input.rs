//! For each RPC of each group-version, a request that must succeed, and fields that its response
//! must have.
//!
//! The requests of a group-version are sent in order to one node, so that later ones depend on
//! earlier ones.

use api::{Group, GroupVersion};
use os_sim::Sim;
use serde_json::{Value, json};

pub(crate) use super::node::node;
use super::node::{IQN, PORTAL};

/// One call.
pub(crate) struct Case {
    pub(crate) rpc: &'static str,
    pub(crate) request: Value,
    pub(crate) response: Value,
}

/// Returns the calls to one group-version.
pub(crate) fn cases(row: &GroupVersion, node: &Sim) -> Vec<Case> {
    let all = match row.group {
        Group::Disk => disk(row.version),
        Group::Filesystem => filesystem(row.version),
        Group::Iscsi => iscsi(),
        Group::Smb => smb(),
        Group::System => system(),
        Group::Volume => volume(
            row.version,
            &node.volume_on(2).expect("disk 2 is partitioned").name(),
        ),
    };
    let all = all.into_iter().map(|(rpc, request, response)| Case {
        rpc,
        request,
        response,
    });
    all.filter(|case| row.rpcs.iter().any(|rpc| rpc.name == case.rpc))
        .collect()
}

type Row = (&'static str, Value, Value);

fn disk(version: &str) -> Vec<Row> {
    let location =
        json!({"disk_locations": {"1": {"Adapter": "3", "Bus": "", "Target": "0", "LUNID": "1"}}});
    let (id, ids) = match version {
        "v1" | "v1beta3" => (
            "disk_number",
            json!({"page83": "Google  pvc-x", "serial_number": "vol0abc_00000001."}),
        ),
        _ => (
            "diskID",
            json!({"identifiers": {"page83": "Google  pvc-x", "serialNumber": "vol0abc_00000001."}}),
        ),
    };
    vec![
        ("ListDiskLocations", json!({}), location),
        ("ListDiskIDs", json!({}), json!({"diskIDs": {"1": ids}})),
        (
            "GetDiskNumberByName",
            json!({"disk_name": "pvc-x"}),
            json!({"disk_number": "1"}),
        ),
        (
            "GetDiskStats",
            json!({id: "1"}),
            json!({"total_bytes": "10737418240"}),
        ),
        (
            "DiskStats",
            json!({id: "1"}),
            json!({"diskSize": "10737418240"}),
        ),
        ("Rescan", json!({}), json!({})),
        ("PartitionDisk", json!({id: "1"}), json!({})),
        (
            "SetDiskState",
            json!({id: "1", "is_online": false}),
            json!({}),
        ),
        (
            "GetDiskState",
            json!({id: "1"}),
            json!({"is_online": false}),
        ),
        (
            "SetDiskState",
            json!({id: "1", "is_online": true}),
            json!({}),
        ),
        ("GetDiskState", json!({id: "1"}), json!({"is_online": true})),
        (
            "SetAttachState",
            json!({id: "1", "isOnline": false}),
            json!({}),
        ),
        (
            "GetAttachState",
            json!({id: "1"}),
            json!({"isOnline": false}),
        ),
        (
            "SetAttachState",
            json!({id: "1", "isOnline": true}),
            json!({}),
        ),
        (
            "GetAttachState",
            json!({id: "1"}),
            json!({"isOnline": true}),
        ),
    ]
}

fn filesystem(version: &str) -> Vec<Row> {
    let (directory, link) = (
        r"C:\var\lib\kubelet\plugins\a",
        r"C:\var\lib\kubelet\pods\b",
    );
    let both = json!({"source_path": directory, "target_path": link});
    let mut rows = vec![
        (
            "PathExists",
            json!({"path": directory}),
            json!({"exists": false}),
        ),
        ("Mkdir", json!({"path": directory}), json!({})),
        (
            "PathExists",
            json!({"path": directory}),
            json!({"exists": true}),
        ),
        ("CreateSymlink", both.clone(), json!({})),
        ("LinkPath", both, json!({"error": ""})),
        (
            "IsSymlink",
            json!({"path": "/var/lib/kubelet/pods/b"}),
            json!({"is_symlink": true}),
        ),
        (
            "IsMountPoint",
            json!({"path": r"\var\lib\kubelet\pods\b"}),
            json!({"error": "", "is_mount_point": true}),
        ),
        ("RmdirContents", json!({"path": directory}), json!({})),
        ("Rmdir", json!({"path": link, "force": false}), json!({})),
        (
            "PathExists",
            json!({"path": link}),
            json!({"exists": false}),
        ),
    ];
    if ["v1alpha1", "v1beta1"].contains(&version) {
        for (rpc, request, response) in &mut rows {
            if ["PathExists", "Mkdir", "Rmdir"].contains(rpc) {
                request["context"] = json!("POD");
                response["error"] = json!("");
            }
        }
    }
    rows
}

fn iscsi() -> Vec<Row> {
    let portal = json!({"target_address": PORTAL, "target_port": 0});
    let target = json!({"target_portal": portal, "iqn": IQN});
    let mut login = target.clone();
    login["auth_type"] = json!("ONE_WAY_CHAP");
    login["chap_username"] = json!("initiator");
    login["chap_secret"] = json!("initiator-12");
    let portals = json!({"target_portals": [{"target_address": PORTAL, "target_port": 3260}]});
    vec![
        (
            "AddTargetPortal",
            json!({"target_portal": portal}),
            json!({}),
        ),
        ("ListTargetPortals", json!({}), portals),
        (
            "DiscoverTargetPortal",
            json!({"target_portal": portal}),
            json!({"iqns": [IQN]}),
        ),
        ("GetTargetDisks", target.clone(), json!({"diskIDs": []})),
        ("ConnectTarget", login, json!({})),
        ("GetTargetDisks", target.clone(), json!({"diskIDs": ["3"]})),
        ("DisconnectTarget", target, json!({})),
        (
            "RemoveTargetPortal",
            json!({"target_portal": portal}),
            json!({}),
        ),
        (
            "ListTargetPortals",
            json!({}),
            json!({"target_portals": []}),
        ),
        (
            "SetMutualChapSecret",
            json!({"MutualChapSecret": "the-target-1"}),
            json!({}),
        ),
    ]
}

fn smb() -> Vec<Row> {
    let mapping = json!({
        "remote_path": r"\\fileserver\share",
        "local_path": r"C:\var\lib\kubelet\pods\smb",
        "username": r"FILESERVER\anna",
        "password": "hunter2",
    });
    vec![
        ("NewSmbGlobalMapping", mapping, json!({})),
        (
            "RemoveSmbGlobalMapping",
            json!({"remote_path": r"\\fileserver\share"}),
            json!({}),
        ),
    ]
}

fn system() -> Vec<Row> {
    let info = |status: &str| json!({"display_name": "Virtual Disk", "start_type": "MANUAL", "status": status});
    vec![
        (
            "GetBIOSSerialNumber",
            json!({}),
            json!({"serial_number": "VMware-56 4d 4e 0e"}),
        ),
        ("GetService", json!({"name": "vds"}), info("STOPPED")),
        ("StartService", json!({"name": "vds"}), json!({})),
        ("GetService", json!({"name": "vds"}), info("RUNNING")),
        (
            "StopService",
            json!({"name": "vds", "force": true}),
            json!({}),
        ),
    ]
}

fn volume(version: &str, id: &str) -> Vec<Row> {
    let old = ["v1alpha1", "v1beta1", "v1beta2"].contains(&version);
    let (path, size) = if old {
        ("path", "size")
    } else {
        ("target_path", "size_bytes")
    };
    let (bare, directory) = (
        r"\var\lib\kubelet\plugins\mine",
        r"C:\var\lib\kubelet\plugins\mine",
    );
    let disk = if old {
        json!({"disk_id": "2"})
    } else {
        json!({"disk_number": 2, "partition_number": 0})
    };
    let number = if old {
        json!({"diskNumber": "2"})
    } else {
        json!({"disk_number": 2})
    };
    let at = |directory: &str| json!({"volume_id": id, path: directory});
    let volume = json!({"volume_id": id});
    vec![
        ("ListVolumesOnDisk", disk, json!({"volume_ids": [id]})),
        (
            "IsVolumeFormatted",
            volume.clone(),
            json!({"formatted": false}),
        ),
        ("FormatVolume", volume.clone(), json!({})),
        (
            "IsVolumeFormatted",
            volume.clone(),
            json!({"formatted": true}),
        ),
        ("MountVolume", at(bare), json!({})),
        (
            "GetVolumeIDFromTargetPath",
            json!({"target_path": bare}),
            volume.clone(),
        ),
        (
            "GetVolumeIDFromMount",
            json!({"mount": directory}),
            volume.clone(),
        ),
        (
            "GetClosestVolumeIDFromTargetPath",
            json!({"target_path": "c:/var/lib/kubelet/plugins/mine"}),
            volume.clone(),
        ),
        ("GetDiskNumberFromVolumeID", volume.clone(), number.clone()),
        ("GetVolumeDiskNumber", volume.clone(), number),
        ("WriteVolumeCache", volume.clone(), json!({})),
        (
            "ResizeVolume",
            json!({"volume_id": id, size: "0"}),
            json!({}),
        ),
        (
            "ResizeVolume",
            json!({"volume_id": "2", size: "0"}),
            json!({}),
        ),
        ("GetVolumeStats", volume.clone(), json!({})),
        ("VolumeStats", volume, json!({})),
        ("UnmountVolume", at(bare), json!({})),
        ("DismountVolume", at(directory), json!({})),
    ]
}
