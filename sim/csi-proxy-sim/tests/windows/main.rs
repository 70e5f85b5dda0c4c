//! `csi-proxy-sim` as a Windows program: a simulated node over named pipes.
#![cfg(windows)]

#[path = "../../../../crates/csi-proxy/tests/windows/daemon.rs"]
mod daemon;

use std::fs;

use api::disk::v1::disk_client::DiskClient;
use api::disk::v1::{GetDiskStatsRequest, ListDiskIDsRequest, RescanRequest};
use csi_proxy_simtest::control_api::fault::Action;
use csi_proxy_simtest::control_api::{Fault, InjectFaultRequest, RpcStatus, SimulationClient};
use csi_proxy_simtest::rpc_fault;
use daemon::{Daemon, Scratch, connect, spawn, turn};
use tonic::Code;
use tonic::transport::Endpoint;

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
    assert!(
        announcement.contains(&format!("serves the simulated node of {file}")),
        "{announcement}"
    );
    assert!(
        announcement.contains(r"pipes \\.\pipe\csi-proxy-<group>-<version>"),
        "{announcement}"
    );
    assert!(
        !fs::exists(folder).expect("an answer"),
        "-socket-folder has no effect"
    );

    let mut disks = DiskClient::new(connect("csi-proxy-disk-v1").await);
    let ids = disks
        .list_disk_ids(ListDiskIDsRequest {})
        .await
        .expect("a list")
        .into_inner()
        .disk_ids;
    assert!(ids.contains_key(&7), "{ids:?}");
    let stats = disks
        .get_disk_stats(GetDiskStatsRequest { disk_number: 7 })
        .await
        .expect("stats");
    assert_eq!(stats.into_inner().total_bytes, 1 << 30);
}

#[tokio::test]
async fn the_simulator_is_not_a_service() {
    let refused = spawn(&["-windows-service"])
        .wait_with_output()
        .expect("an end");
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&refused.stderr),
        "csi-proxy-sim: unknown flag -windows-service: only csi-proxy runs as a service (see \
         'csi-proxy-sim help')\n"
    );
}

#[tokio::test]
async fn a_fault_that_is_injected_over_tcp_happens_over_a_pipe_and_over_tcp() {
    let _turn = turn().await;
    let daemon = Daemon::start(&["-listen", "127.0.0.1:0"]);
    let announcement = daemon.announcement();
    let words = "all endpoints and the control API at ";
    let address = announcement
        .lines()
        .find_map(|line| line.trim().strip_prefix(words))
        .expect("an address");
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    let channel = endpoint.connect().await.expect("a connection");
    let status = RpcStatus {
        code: Code::Aborted as u32,
        message: String::new(),
    };
    let fault = Fault {
        count: 2,
        ..rpc_fault("disk/v1/Rescan", Action::Status(status))
    };
    let request = InjectFaultRequest { fault: Some(fault) };
    SimulationClient::new(channel.clone())
        .inject_fault(request)
        .await
        .expect("a fault");
    for channel in [connect("csi-proxy-disk-v1").await, channel] {
        let mut disks = DiskClient::new(channel);
        assert_eq!(
            disks
                .rescan(RescanRequest {})
                .await
                .expect_err("the fault")
                .code(),
            Code::Aborted
        );
    }
    let mut disks = DiskClient::new(connect("csi-proxy-disk-v1").await);
    disks
        .rescan(RescanRequest {})
        .await
        .expect("no more calls fail");
}
