//! What the example of simtest does in Go, in Rust: a driver on simulated nodes, by the crate csi-proxy-sim-client.
#![cfg(unix)]

use std::path::Path;

use csi_proxy_client::{Client, DiskNumber, DiskState, Error, ErrorKind};
use csi_proxy_sim_client::control_api::fault::Action;
use csi_proxy_sim_client::control_api::{AddRequest, AdvanceClockRequest, Fault};
use csi_proxy_sim_client::{Node, rpc_fault};
use tonic::Code;

const STAGING: &str = r"C:\var\lib\kubelet\plugins\globalmount";
const DISK: &str = "[[disk]]\nsize = \"1 GiB\"\nserial = \"vol-1\"\noffline = true\n";

/// Starts a node with one new, offline disk.
async fn start(flags: &[&str]) -> Node {
    let program = Path::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
    Node::start_program(program, DISK, &[&["-fast"], flags].concat()).await.expect("a node")
}

/// Returns the number of the one disk with a serial number.
async fn find(client: &Client, serial: &str) -> Result<DiskNumber, Error> {
    let disks = client.disk().list_disk_ids().await?;
    let mut found = disks.iter().filter(|(_, ids)| ids.serial_number == serial).map(|(number, _)| *number);
    let number = found.next().expect("a disk with the serial number");
    assert_eq!(found.next(), None, "one disk has the serial number");
    Ok(number)
}

async fn stage(client: &Client, serial: &str, path: &str) -> Result<(), Error> {
    let number = find(client, serial).await?;
    client.disk().partition_disk(number).await?;
    client.disk().set_disk_state(number, DiskState::Online).await?;
    let volumes = client.volume().list_volumes_on_disk(number, None).await?;
    if !client.volume().is_volume_formatted(&volumes[0]).await? {
        client.volume().format_volume(&volumes[0]).await?;
    }
    client.filesystem().mkdir(path).await?;
    client.volume().mount_volume(&volumes[0], path).await
}

async fn unstage(client: &Client, serial: &str, path: &str) -> Result<(), Error> {
    match client.volume().get_volume_id_from_target_path(path).await {
        Ok(volume) => client.volume().unmount_volume(&volume, path).await?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if client.filesystem().path_exists(path).await? {
        client.filesystem().rmdir(path).await?;
    }
    client.disk().set_disk_state(find(client, serial).await?, DiskState::Offline).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_cycle_leaves_nothing_behind_also_after_a_failed_and_a_lost_call() {
    let node = start(&[]).await;
    let (client, before) = (node.client(), node.node_file().await.expect("the node"));
    let fault = node.fail_rpc("volume/MountVolume", Code::Aborted, 1).await.expect("a fault");
    let error = stage(&client, "vol-1", STAGING).await.expect_err("the fault");
    assert_eq!(error.kind(), ErrorKind::Aborted);
    node.wait_for_fault(fault, 1).await.expect("it has happened");
    let crash = Fault { count: 1, after: true, ..rpc_fault("volume/MountVolume", Action::Crash(true)) };
    node.inject(crash).await.expect("a fault");
    let error = stage(&client, "vol-1", STAGING).await.expect_err("the answer is lost");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    stage(&client, "vol-1", STAGING).await.expect("the daemon has started again");
    assert_eq!(node.differences(before.clone()).await.expect("differences").len(), 2, "a disk and a mount");
    for _ in 0..2 {
        unstage(&client, "vol-1", STAGING).await.expect("it may be repeated");
    }
    assert_eq!(node.differences(before).await.expect("differences"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_waits_while_the_test_changes_the_node() {
    let node = start(&[]).await;
    let fault = node.inject(rpc_fault("volume/FormatVolume", Action::Hold(true))).await.expect("a fault");
    let client = node.client();
    let staged = tokio::spawn(async move { stage(&client, "vol-1", STAGING).await });
    node.wait_for_fault(fault, 1).await.expect("the call is held");
    node.simulation.clone().advance_clock(AdvanceClockRequest { milliseconds: 1000 }).await.expect("the clock");
    assert!(!staged.is_finished());
    node.clear_fault(fault).await.expect("it is released");
    staged.await.expect("no panic").expect("it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_and_a_disk_number_that_changes_are_staged() {
    let node = start(&[]).await;
    let client = node.client();
    stage(&client, "vol-1", STAGING).await.expect("the volume is staged");
    let node_file = "[[disk]]\nsize = \"1 GiB\"\nserial = \"snap-1\"\ncopy_of = 1\n".to_owned();
    node.simulation.clone().add(AddRequest { node_file, undetected: false }).await.expect("a snapshot");
    let snapshot = r"C:\var\lib\kubelet\plugins\snapshot";
    stage(&client, "snap-1", snapshot).await.expect("it comes online with another signature");
    let before = find(&client, "vol-1").await.expect("a number");
    node.restart(Some(0)).await.expect("a restart");
    assert_ne!(find(&client, "vol-1").await.expect("a number"), before);
    unstage(&client, "vol-1", STAGING).await.expect("the driver looks for the disk each time");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_driver_works_with_both_daemons() {
    for flags in [&[][..], &["-like-go"]] {
        let node = start(flags).await;
        for _ in 0..2 {
            stage(&node.client(), "vol-1", STAGING).await.expect("it is staged");
        }
        for _ in 0..2 {
            unstage(&node.client(), "vol-1", STAGING).await.expect("it is unstaged");
        }
    }
}

#[tokio::test]
async fn a_program_that_refuses_its_node_file_is_an_error() {
    let program = Path::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
    let error = Node::start_program(program, "sise = 1", &[]).await.expect_err("no such key");
    assert!(error.to_string().contains("ended with"), "{error}");
}
