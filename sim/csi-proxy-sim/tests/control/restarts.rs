//! Restarts of the node and of the daemon.

use csi_proxy_client::{DiskNumber, ErrorKind};
use csi_proxy_sim::control_api::{
    CompareRequest, GetNodeRequest, RestartRequest, SimulationClient,
};
use tonic::Code;

use super::faults::wait_for_hit;
use super::program::Program;

const DISK: &str = "[[disk]]\nsize = \"1 GiB\"\n";
const DIRECTORY: &str = r"C:\var\lib\kubelet\plugins\csi";

#[tokio::test]
async fn a_restart_of_the_node_keeps_its_files_and_detects_its_disks() {
    let program = Program::start_on("", &[]);
    let driver = program.driver();
    driver
        .filesystem()
        .mkdir(DIRECTORY)
        .await
        .expect("a directory");
    program
        .ctl_with_input(&["add", "-", "--undetected"], DISK)
        .ok();

    assert_eq!(program.ctl(&["restart", "--daemon-only"]).ok(), "");
    assert!(
        !driver
            .disk()
            .list_disk_ids()
            .await
            .expect("a list")
            .contains_key(&DiskNumber(1)),
        "Windows has not restarted"
    );
    assert_eq!(program.ctl(&["restart"]).ok(), "");
    assert!(
        driver
            .disk()
            .list_disk_ids()
            .await
            .expect("a list")
            .contains_key(&DiskNumber(1))
    );
    assert!(
        driver
            .filesystem()
            .path_exists(DIRECTORY)
            .await
            .expect("an answer")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_cuts_off_calls_in_progress() {
    let program = Program::start_on(DISK, &[]);
    program
        .ctl(&["inject", "--primitive", "wmi call *", "--delay", "1h"])
        .ok();
    let driver = program.driver();
    let call = tokio::spawn(async move { driver.disk().partition_disk(DiskNumber(1)).await });
    wait_for_hit(&program);
    program.ctl(&["restart", "--daemon-only"]).ok();
    let cut_off = call
        .await
        .expect("no panic")
        .expect_err("the call is cut off");
    assert_eq!(cut_off.kind(), ErrorKind::Unavailable, "{cut_off}");
    program.ctl(&["clear-faults"]).ok();
    program
        .driver()
        .disk()
        .partition_disk(DiskNumber(1))
        .await
        .expect("the new daemon answers");
}

#[tokio::test]
async fn a_restart_as_another_node_leaves_nothing_of_the_first() {
    let program = Program::start_on(DISK, &["-fast"]);
    let driver = program.driver();
    let simulation = program.channel("sim-control").await;
    let mut simulation = SimulationClient::new(simulation);
    let before = simulation
        .get_node(GetNodeRequest {})
        .await
        .expect("a node");
    let files = driver.filesystem();
    files.mkdir(DIRECTORY).await.expect("a directory");
    let before = before.into_inner().node_file;
    let two_disks = format!("bios_serial = \"VMware-42\"\n{DISK}{DISK}");
    for (node_file, disks) in [(two_disks, 3), (before.clone(), 2)] {
        let request = RestartRequest {
            node_file: Some(node_file),
            ..RestartRequest::default()
        };
        simulation.restart(request).await.expect("a restart");
        let listed = driver.disk().list_disk_ids().await.expect("a list");
        assert_eq!(listed.len(), disks);
    }
    let compared = simulation.compare(CompareRequest {
        node_file: before,
        with_data: true,
    });
    let compared = compared.await.expect("two nodes").into_inner();
    assert_eq!(compared.differences, Vec::<String>::new());
    let only_at_a_restart = "another node takes the place of this one only at a restart of the \
                             node, with the disk numbers of the file";
    for (node_file, daemon_only, text) in [
        ("sise = 1", false, "unknown field `sise`"),
        ("", true, only_at_a_restart),
    ] {
        let request = RestartRequest {
            daemon_only,
            node_file: Some(node_file.to_owned()),
            ..RestartRequest::default()
        };
        let refused = simulation.restart(request).await.expect_err("refused");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains(text), "{refused}");
    }
}
