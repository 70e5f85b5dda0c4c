//! `csi-proxy-sim` as a Windows program: a simulated node over named pipes.
#![cfg(windows)]

#[path = "../../../../crates/csi-proxy/tests/windows/daemon.rs"]
mod daemon;

use std::fs;

use api::disk::v1::disk_client::DiskClient;
use api::disk::v1::{GetDiskStatsRequest, ListDiskIDsRequest};
use daemon::{Daemon, Scratch, connect, spawn, turn};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_csi-proxy-sim");

#[tokio::test]
async fn the_node_of_a_file_is_served_over_named_pipes() {
    let _turn = turn().await;
    let scratch = Scratch::new("sim-node");
    let file = scratch.join("node.toml");
    fs::write(&file, "[[disk]]\nnumber = 7\nsize = \"1 GiB\"\n").expect("a file");
    let folder = scratch.join("sockets");
    let daemon = Daemon::start(&["-node", &file, "-socket-folder", &folder]);
    let announcement = daemon.announcement();
    assert!(announcement.contains(&format!("serves the simulated node of {file}")), "{announcement}");
    assert!(announcement.contains(r"pipes \\.\pipe\csi-proxy-<group>-<version>"), "{announcement}");
    assert!(!fs::exists(folder).expect("an answer"), "-socket-folder has no effect");

    let mut disks = DiskClient::new(connect("csi-proxy-disk-v1").await);
    let ids = disks.list_disk_ids(ListDiskIDsRequest {}).await.expect("a list").into_inner().disk_ids;
    assert!(ids.contains_key(&7), "{ids:?}");
    let stats = disks.get_disk_stats(GetDiskStatsRequest { disk_number: 7 }).await.expect("stats");
    assert_eq!(stats.into_inner().total_bytes, 1 << 30);
}

#[tokio::test]
async fn the_simulator_is_not_a_service() {
    let refused = spawn(&["-windows-service"]).wait_with_output().expect("an end");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&refused.stderr),
        "csi-proxy-sim: unknown flag -windows-service: only csi-proxy runs as a service (see 'csi-proxy-sim help')\n"
    );
}
