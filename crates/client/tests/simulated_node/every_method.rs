//! Every method, called with arguments with which it succeeds.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::slice;

use api::GROUP_VERSIONS;
use csi_proxy_client::{
    Authentication, Client, Credentials, DiskNumber, DiskState, ErrorKind, ServiceStatus,
    StartType, Symlink, TargetPortal, VolumeId,
};

use super::daemon::{Daemon, Sockets};
use super::node::{IQN, PORTAL, node};

/// The disk that is raw at first.
const DISK: DiskNumber = DiskNumber(1);

const KUBELET: &str = r"C:\var\lib\kubelet";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_of_every_group_succeeds() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    let client = sockets.client();
    disk(&client).await;
    volume(
        &client,
        &VolumeId::new(sim.volume_on(2).expect("disk 2 is partitioned").name()),
    )
    .await;
    filesystem(&client).await;
    iscsi(&client).await;
    smb(&client).await;
    system(&client).await;
    sim.invariants().expect("the invariants of the node hold");
    let mut known = BTreeSet::new();
    for version in &GROUP_VERSIONS {
        for rpc in version
            .rpcs
            .iter()
            .filter(|rpc| rpc.name != "GetDiskNumberByName")
        {
            // The first version that has an RPC is the preferred one.
            if known.insert((version.group, rpc.newest_name)) {
                assert!(
                    daemon.calls(version.service, rpc.name) > 0,
                    "no method of the client calls {}",
                    rpc.path
                );
            }
        }
    }
}

async fn disk(client: &Client) {
    let disks = client.disk();
    let locations = disks.list_disk_locations().await.unwrap();
    let location = &locations[&DISK];
    assert_eq!((&*location.adapter, &*location.bus), ("3", ""));
    assert_eq!((&*location.target, &*location.lun), ("0", "1"));
    let ids = disks.list_disk_ids().await.unwrap();
    assert_eq!(
        (&*ids[&DISK].page83, &*ids[&DISK].serial_number),
        ("Google  pvc-x", "vol0abc_00000001.")
    );
    assert_eq!(disks.get_disk_stats(DISK).await.unwrap(), 10 << 30);
    disks.rescan().await.unwrap();
    disks.partition_disk(DISK).await.unwrap();
    for state in [DiskState::Offline, DiskState::Online] {
        disks.set_disk_state(DISK, state).await.unwrap();
        assert_eq!(disks.get_disk_state(DISK).await.unwrap(), state);
    }

    let error = disks.get_disk_stats(DiskNumber(9)).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.rpc()),
        (ErrorKind::NotFound, "GetDiskStats")
    );
    assert!(
        error.message().contains("disk 9")
            && error.call_number().is_some()
            && !error.is_retryable(),
        "{error}"
    );
}

async fn volume(client: &Client, id: &VolumeId) {
    let volumes = client.volume();
    let target = &format!(r"{KUBELET}\plugins\mine");
    assert_eq!(
        volumes
            .list_volumes_on_disk(DiskNumber(2), None)
            .await
            .unwrap(),
        slice::from_ref(id)
    );
    let partitioned = volumes
        .list_volumes_on_disk(DiskNumber(2), Some(2))
        .await
        .unwrap();
    assert_eq!(
        partitioned,
        slice::from_ref(id),
        "partition 1 is the reserved one"
    );
    assert!(!volumes.is_volume_formatted(id).await.unwrap());
    volumes.format_volume(id).await.unwrap();
    assert!(volumes.is_volume_formatted(id).await.unwrap());
    let error = volumes
        .get_volume_id_from_target_path(target)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    volumes.mount_volume(id, target).await.unwrap();
    assert_eq!(
        volumes
            .get_volume_id_from_target_path(target)
            .await
            .unwrap(),
        *id
    );
    assert_eq!(
        volumes
            .get_closest_volume_id_from_target_path(target)
            .await
            .unwrap(),
        *id
    );
    assert_eq!(
        volumes.get_disk_number_from_volume_id(id).await.unwrap(),
        DiskNumber(2)
    );
    volumes.write_volume_cache(id).await.unwrap();
    volumes.resize_volume(id, None).await.unwrap();
    assert_eq!(
        volumes
            .resize_volume(id, Some(NonZeroU64::MAX))
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::InvalidArgument
    );
    let stats = volumes.get_volume_stats(id).await.unwrap();
    assert!(
        stats.total_bytes > 9 << 30 && stats.used_bytes < stats.total_bytes,
        "{stats:?}"
    );
    client.filesystem().rmdir_contents(target).await.unwrap();
    volumes.unmount_volume(id, target).await.unwrap();
}

async fn filesystem(client: &Client) {
    let files = client.filesystem();
    let (directory, link) = (
        &*format!(r"{KUBELET}\plugins\a"),
        &*format!(r"{KUBELET}\pods\b"),
    );
    assert!(!files.path_exists(directory).await.unwrap());
    files.mkdir(directory).await.unwrap();
    assert!(files.path_exists(directory).await.unwrap());
    assert!(!files.is_symlink(directory).await.unwrap());
    files
        .create_symlink(Symlink {
            path: link,
            leads_to: directory,
        })
        .await
        .unwrap();
    assert!(files.is_symlink(link).await.unwrap());
    files.rmdir(link).await.unwrap();
    assert!(!files.path_exists(link).await.unwrap());
    files.mkdir(&format!(r"{directory}\inner")).await.unwrap();
    assert_eq!(
        files.rmdir(directory).await.unwrap_err().kind(),
        ErrorKind::FailedPrecondition
    );
    files.rmdir_contents(directory).await.unwrap();
    files.rmdir_all(directory).await.unwrap();
    assert!(!files.path_exists(directory).await.unwrap());
}

async fn iscsi(client: &Client) {
    let iscsi = client.iscsi();
    let portal = TargetPortal::new(PORTAL);
    iscsi.add_target_portal(&portal).await.unwrap();
    assert_eq!(
        iscsi.list_target_portals().await.unwrap(),
        slice::from_ref(&portal)
    );
    assert_eq!(iscsi.discover_target_portal(&portal).await.unwrap(), [IQN]);
    let without_secret = iscsi
        .connect_target(&portal, IQN, Authentication::None)
        .await;
    assert_eq!(
        without_secret.unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    assert_eq!(iscsi.get_target_disks(&portal, IQN).await.unwrap(), []);
    let credentials = Credentials {
        username: "initiator",
        password: "initiator-12",
    };
    iscsi
        .connect_target(&portal, IQN, Authentication::OneWayChap(credentials))
        .await
        .unwrap();
    assert_eq!(
        iscsi.get_target_disks(&portal, IQN).await.unwrap(),
        [DiskNumber(3)]
    );
    iscsi.disconnect_target(&portal, IQN).await.unwrap();
    iscsi.remove_target_portal(&portal).await.unwrap();
    assert_eq!(iscsi.list_target_portals().await.unwrap(), []);
    iscsi.set_mutual_chap_secret("the-target-1").await.unwrap();
}

async fn smb(client: &Client) {
    let (smb, share, link) = (
        client.smb(),
        r"\\fileserver\share",
        format!(r"{KUBELET}\pods\smb"),
    );
    let user = Some(Credentials {
        username: r"FILESERVER\anna",
        password: "hunter2",
    });
    let refused = smb
        .new_smb_global_mapping(share, None, None)
        .await
        .unwrap_err();
    assert!(!refused.is_retryable(), "{refused}");
    smb.new_smb_global_mapping(share, None, user).await.unwrap();
    smb.new_smb_global_mapping(share, Some(&link), user)
        .await
        .unwrap();
    assert!(client.filesystem().is_symlink(&link).await.unwrap());
    smb.remove_smb_global_mapping(share).await.unwrap();
    assert_eq!(
        smb.remove_smb_global_mapping(share)
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
}

async fn system(client: &Client) {
    let system = client.system();
    assert_eq!(
        system.get_bios_serial_number().await.unwrap(),
        "VMware-56 4d 4e 0e"
    );
    let service = system.get_service("vds").await.unwrap();
    assert_eq!(
        (&*service.display_name, service.start_type),
        ("Virtual Disk", StartType::Manual)
    );
    assert_eq!(service.status, ServiceStatus::Stopped);
    system.start_service("vds").await.unwrap();
    assert_eq!(
        system.get_service("vds").await.unwrap().status,
        ServiceStatus::Running
    );
    system.stop_service_and_dependents("vds").await.unwrap();
    assert_eq!(
        system.get_service("vds").await.unwrap().status,
        ServiceStatus::Stopped
    );
}
