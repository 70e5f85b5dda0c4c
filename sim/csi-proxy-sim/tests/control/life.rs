//! The program ends only when it is told to, and refuses to start where it could not go on.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::program::{PROGRAM, Program, folder, run};

#[tokio::test(flavor = "multi_thread")]
async fn nobody_needs_to_read_the_output_of_a_node_that_restarts() {
    let mut program = Program::start(&[]);
    program.close_output();
    for restart in [&["restart"][..], &["restart", "--daemon-only"]] {
        program.ctl(restart).ok();
    }
    program
        .ctl(&["inject", "--rpc", "disk/*", "--crash", "--count", "1"])
        .ok();
    let disks = program.driver().disk();
    while disks.list_disk_ids().await.is_err() {}
    program.signal("TERM");
    assert_eq!(program.ended().code, Some(0));
}

#[test]
fn the_program_ends_with_its_input_and_removes_its_folder() {
    let folder = folder();
    let mut command = Command::new(PROGRAM);
    command.stdin(Stdio::piped());
    let mut program = Program::start_by(command, &folder, &["-exit-with-stdin", "-drain=0"]);
    program.ctl(&["restart", "--daemon-only"]).ok();
    program.close_input();
    assert_eq!(program.ended().code, Some(0));
    assert!(!folder.path().join("sockets").exists());
}

#[test]
fn two_restarts_at_once_are_both_answered() {
    let program = Program::start(&[]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| program.ctl(&["restart", "--daemon-only"]).ok());
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_ends_leaves_every_call_without_an_answer() {
    let program = Program::start(&[]);
    for end in [
        &["restart", "--daemon-only"][..],
        &["inject", "--rpc", "disk/Rescan", "--crash", "--count", "1"],
    ] {
        program
            .ctl(&[
                "inject",
                "--rpc",
                "disk/ListDiskIDs",
                "--hold",
                "--count",
                "64",
            ])
            .ok();
        let id = program.ctl(&["faults", "-o", "json"]).json()[0]["id"].to_string();
        let mut held = Vec::new();
        for _ in 0..16 {
            let channel = program.channel("csi-proxy-disk-v1").await;
            for _ in 0..4 {
                let channel = channel.clone();
                held.push(tokio::spawn(async move {
                    dynamic_client::call(&channel, "/v1.Disk/ListDiskIDs", Vec::new()).await
                }));
            }
        }
        program.ctl(&["wait-fault", &id, "--hits", "64"]).ok();
        program.ctl(end).ok();
        // The crash.
        let _ = program.driver().disk().rescan().await;
        for call in held {
            let status = call
                .await
                .expect("no panic")
                .expect_err("the daemon has ended");
            // The connection has ended; nothing has answered the call or reset its stream.
            assert!(
                status.code() != Code::Cancelled && status.to_string().contains("transport error"),
                "{status}"
            );
        }
        program.ctl(&["clear-faults"]).ok();
    }
}

#[tokio::test]
async fn a_folder_that_others_can_enter_is_served_with_sockets_for_the_owner_alone() {
    let folder = folder();
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).expect("a folder");
    fs::set_permissions(&sockets, Permissions::from_mode(0o755)).expect("a mode");
    let program = Program::start_in(&folder, &[]);
    program
        .driver()
        .disk()
        .list_disk_ids()
        .await
        .expect("it serves");
    for socket in fs::read_dir(&sockets).expect("the folder") {
        let mode = socket
            .expect("an entry")
            .metadata()
            .expect("its mode")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_folder_in_which_one_name_is_too_long_is_refused_before_a_socket_is_open() {
    let folder = folder();
    // The control socket fits, and the longest name does not.
    let length = 107 - folder.path().as_os_str().len() - "/csi-proxy-filesystem-v1.sock".len();
    let sockets = folder.path().join("x".repeat(length));
    let refused = run(&[&format!("-socket-folder={}", sockets.display())]);
    refused.fails(
        1,
        &[
            "csi-proxy-filesystem-v",
            "at most 107",
            "give a shorter -socket-folder",
        ],
    );
    assert!(!sockets.exists());
}

#[test]
fn a_state_has_one_owner_and_can_be_written_from_the_start() {
    let folder = folder();
    let state = format!("-state={}", folder.path().join("state.toml").display());
    let first = Program::start_in(&folder, &[&state]);
    run(&[&state]).fails(
        1,
        &["another csi-proxy-sim keeps its node in", "state.toml"],
    );
    first.stop();
    Program::start_in(&folder, &[&state]).stop();
    run(&[&format!(
        "-state={}",
        folder.path().join("missing/state.toml").display()
    )])
    .fails(1, &["missing/state.toml"]);
}

async fn health(channel: &Channel) -> ServingStatus {
    let checked = HealthClient::new(channel.clone())
        .check(HealthCheckRequest::default())
        .await;
    checked.expect("an answer").into_inner().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_api_is_healthy_exactly_while_all_endpoints_are_open() {
    let program = Program::start(&[]);
    let channel = program.channel("sim-control").await;
    assert_eq!(health(&channel).await, ServingStatus::Serving);
    // The last run of the daemon waits a second for this call.
    program
        .ctl(&["inject", "--hold", "--primitive", "device_interfaces"])
        .ok();
    let held = program.driver();
    let call = tokio::spawn(async move { held.disk().list_disk_ids().await });
    program.ctl(&["wait-fault", "1"]).ok();
    let sockets = program.sockets();
    let restart =
        tokio::task::spawn_blocking(move || super::program::ctl(&sockets, &["restart"], ""));
    while health(&channel).await == ServingStatus::Serving {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    restart.await.expect("no panic").ok();
    assert_eq!(health(&channel).await, ServingStatus::Serving);
    program.ctl(&["clear-faults"]).ok();
    drop(call);
}
