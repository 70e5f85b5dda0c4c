//! What the example of simtest does in Go, in Rust: the calls of an example of csi-proxy-client on
//! simulated nodes.
#![cfg(unix)]

#[expect(dead_code, reason = "these tests publish nothing")]
#[path = "../../../crates/client/examples/stage_volume/calls.rs"]
mod calls;

use std::path::Path;
use std::time::Duration;

use csi_proxy_client::DiskNumber;

// The README of simtest shows what follows, up to the end of the first test.
use calls::{stage, unstage};
use csi_proxy_client::{Error, ErrorKind};
use csi_proxy_simtest::control_api::Fault;
use csi_proxy_simtest::control_api::fault::Action;
use csi_proxy_simtest::{Code, Node, rpc_fault};

const STAGING: &str = r"C:\var\lib\kubelet\plugins\globalmount";
const DISK: &str = "[[disk]]\nsize = \"1 GiB\"\nserial = \"vol-1\"\noffline = true\n";

/// Starts a node with one new, offline disk.
async fn start(flags: &[&str]) -> Node {
    let flags = [&["-fast"], flags].concat();
    Node::start_program(Path::new(env!("CARGO_BIN_EXE_csi-proxy-sim")), DISK, &flags)
        .await
        .expect("a node")
}

#[tokio::test]
async fn a_life_cycle_leaves_nothing_behind_also_after_a_failed_and_a_lost_call() {
    let node = start(&[]).await;
    let (client, before) = (node.client(), node.node_file().await.expect("the node"));
    node.fail_rpc("volume/MountVolume", Code::Aborted, 1)
        .await
        .expect("a fault");
    let error = stage(&client, "vol-1", STAGING)
        .await
        .expect_err("the fault");
    assert_eq!(
        error.downcast_ref().map(Error::kind),
        Some(ErrorKind::Aborted)
    );
    let crash = Fault {
        count: 1,
        after: true,
        ..rpc_fault("volume/MountVolume", Action::Crash(true))
    };
    node.inject(crash).await.expect("a fault");
    let error = stage(&client, "vol-1", STAGING)
        .await
        .expect_err("the answer is lost");
    assert_eq!(
        error.downcast_ref().map(Error::kind),
        Some(ErrorKind::Unavailable)
    );
    // A call on a connection that has not noticed the crash yet fails too. Kubelet repeats
    // NodeStageVolume.
    while let Err(error) = stage(&client, "vol-1", STAGING).await {
        assert_eq!(
            error.downcast_ref().map(Error::kind),
            Some(ErrorKind::Unavailable)
        );
    }
    assert_eq!(
        node.differences(before.clone())
            .await
            .expect("differences")
            .len(),
        2,
        "a disk and a mount"
    );
    for _ in 0..2 {
        unstage(&client, "vol-1", STAGING)
            .await
            .expect("it may be repeated");
    }
    client
        .filesystem()
        .rmdir(STAGING)
        .await
        .expect("kubelet removes the directory");
    assert_eq!(
        node.differences(before).await.expect("differences"),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_disk_is_unplugged_while_a_call_is_held() {
    let node = start(&[]).await;
    let missed = node
        .fail_rpc("smb/*", Code::Internal, 1)
        .await
        .expect("a fault");
    let held = node
        .inject(rpc_fault("volume/FormatVolume", Action::Hold(true)))
        .await
        .expect("a fault");
    let client = node.client();
    let staged = tokio::spawn(async move { stage(&client, "vol-1", STAGING).await });
    held.wait(1).await.expect("the call is held");
    node.advance_clock(Duration::from_secs(1))
        .await
        .expect("the clock");
    let handle = node.unplug(DiskNumber(1)).await.expect("the disk");
    assert!(!staged.is_finished());
    assert_eq!(held.clear().await.expect("it is released"), 1);
    staged
        .await
        .expect("no panic")
        .expect_err("there is no disk");
    assert_eq!(node.plug(handle).await.expect("the disk"), DiskNumber(1));
    stage(&node.client(), "vol-1", STAGING)
        .await
        .expect("kubelet repeats it");
    assert_eq!(missed.clear().await.expect("it is cleared"), 0);
}

#[tokio::test]
#[should_panic(expected = "a fault has disturbed no call")]
async fn a_fault_that_disturbs_no_call_fails_its_test() {
    let node = start(&[]).await;
    node.fail_rpc("volume/MountVolume", Code::Aborted, 1)
        .await
        .expect("a fault");
}

#[tokio::test]
async fn a_snapshot_and_a_disk_number_that_changes_are_staged() {
    let node = start(&[]).await;
    let client = node.client();
    stage(&client, "vol-1", STAGING)
        .await
        .expect("the volume is staged");
    let snapshot = "[[disk]]\nsize = \"1 GiB\"\nserial = \"snap-1\"\ncopy_of = 1\n";
    assert_eq!(
        node.add(snapshot).await.expect("a snapshot"),
        [DiskNumber(2)]
    );
    let path = r"C:\var\lib\kubelet\plugins\snapshot";
    stage(&client, "snap-1", path)
        .await
        .expect("it comes online with another signature");
    node.restart(Some(0)).await.expect("a restart");
    let disks = client.disk().list_disk_ids().await.expect("a list");
    assert_eq!(disks[&DiskNumber(2)].serial_number, "vol-1");
    unstage(&client, "vol-1", STAGING)
        .await
        .expect("the driver looks for the disk each time");
}

#[tokio::test]
async fn the_driver_works_with_each_daemon() {
    for flag in ["-like-go=false", "-like-go", "-like-go=1.3"] {
        let node = start(&[flag]).await;
        for _ in 0..2 {
            stage(&node.client(), "vol-1", STAGING)
                .await
                .expect("it is staged");
        }
        for _ in 0..2 {
            unstage(&node.client(), "vol-1", STAGING)
                .await
                .expect("it is unstaged");
        }
    }
}

#[tokio::test]
async fn a_test_changes_the_node_as_in_go() {
    let node = start(&[]).await;
    let servers = "[[smb_server]]\nhost = \"files\"\nusers = [{ name = \"user\", password = \"old\" }]\n\
                   shares = [{ name = \"share\" }]\n[[iscsi_portal]]\naddress = \"10.0.0.1\"\n";
    node.add(servers).await.expect("servers");
    let before = node.node_file().await.expect("the node");
    node.mkdir(STAGING).await.expect("a directory");
    node.grow(DiskNumber(1), 2 << 30).await.expect("it grows");
    node.set_smb_reachable("files", false)
        .await
        .expect("a server");
    node.set_portal_reachable("10.0.0.1", false)
        .await
        .expect("a portal");
    node.set_smb_password("files", "user", "new")
        .await
        .expect("a user");
    node.restart_daemon().await.expect("a restart");
    let seen = node.differences(before.clone()).await.expect("differences");
    let all = node.differences_with_data(before).await;
    let all = all.expect("differences");
    assert_eq!(
        all,
        [
            "disk 1: size: 1 GiB -> 2 GiB",
            "iscsi_portal 10.0.0.1: reachable: true -> false",
            "smb_server files: reachable: true -> false",
            "smb_server files: users user: password: changed",
            r"file C:\var\lib\kubelet\plugins\globalmount: added",
        ]
    );
    assert_eq!(seen, all[1..], "the size of a disk is data");
}

#[tokio::test]
async fn a_program_that_refuses_its_node_file_is_an_error() {
    let program = Path::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
    let error = Node::start_program(program, "sise = 1", &[])
        .await
        .expect_err("no such key");
    assert!(
        error.to_string().contains("unknown field `sise`"),
        "{error}"
    );
}
