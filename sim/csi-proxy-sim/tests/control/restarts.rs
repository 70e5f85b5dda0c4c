//! Restarts of the node and of the daemon.

use csi_proxy_client::ErrorKind;
use csi_proxy_sim::control_api::fault::Action;
use csi_proxy_sim::control_api::{AddRequest, ClearFaultsRequest, Fault, ListFaultsRequest, RestartRequest};

use super::program::Program;

const DISK: &str = "[[disk]]\nsize = \"1 GiB\"\n";
const DIRECTORY: &str = r"C:\var\lib\kubelet\plugins\csi";

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_node_keeps_its_files_and_detects_its_disks() {
    let mut program = Program::start("").await;
    let driver = program.driver();
    driver.filesystem().mkdir(DIRECTORY).await.expect("a directory");
    let hidden = AddRequest { node_file: DISK.to_owned(), undetected: true };
    program.simulation.add(hidden).await.expect("a disk");

    program.simulation.restart(RestartRequest { daemon_only: true }).await.expect("a restart");
    assert!(!driver.disk().list_disk_ids().await.expect("a list").contains_key(&1), "Windows has not restarted");
    program.simulation.restart(RestartRequest { daemon_only: false }).await.expect("a restart");
    assert!(driver.disk().list_disk_ids().await.expect("a list").contains_key(&1));
    assert!(driver.filesystem().path_exists(DIRECTORY).await.expect("an answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_cuts_off_calls_in_progress() {
    let mut program = Program::start(DISK).await;
    let hour = Some(Action::DelayMilliseconds(3_600_000));
    program.inject(Fault { primitive: "wmi call *".to_owned(), action: hour, ..Fault::default() }).await;
    let driver = program.driver();
    let call = tokio::spawn(async move { driver.disk().partition_disk(1).await });
    loop {
        let faults = program.simulation.list_faults(ListFaultsRequest {}).await.expect("a list").into_inner().faults;
        if faults[0].hits > 0 {
            break;
        }
    }
    program.simulation.restart(RestartRequest { daemon_only: true }).await.expect("a restart");
    let cut_off = call.await.expect("no panic").expect_err("the call is cut off");
    assert_eq!(cut_off.kind(), ErrorKind::Unavailable, "{cut_off}");
    program.simulation.clear_faults(ClearFaultsRequest { id: 0 }).await.expect("cleared");
    program.driver().disk().partition_disk(1).await.expect("the new daemon answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_of_the_control_api_is_removed_at_the_end() {
    let program = Program::start("").await;
    let socket = program.sockets().join("sim-control.sock");
    assert!(socket.exists());
    let _folder = program.stop();
    assert!(!socket.exists());
}
