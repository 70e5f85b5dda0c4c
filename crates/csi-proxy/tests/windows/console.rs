//! The daemon in a console.

use std::io::Read;

use api::GROUP_VERSIONS;
use api::system::v1alpha1::GetServiceRequest;
use api::system::v1alpha1::system_client::SystemClient;

use crate::daemon::{Daemon, connect, spawn, turn};
use crate::skip::skipped_by_wine;

async fn answers() {
    let mut system = SystemClient::new(connect("csi-proxy-system-v1alpha1").await);
    let refused = system
        .get_service(GetServiceRequest {
            name: "no such service".into(),
        })
        .await;
    assert_eq!(
        refused.expect_err("no such service").code(),
        tonic::Code::NotFound
    );
}

#[tokio::test]
async fn the_daemon_serves_the_node_that_it_runs_on_and_can_be_started_again_after_it_is_killed() {
    let _turn = turn().await;
    for _ in 0..2 {
        let daemon = Daemon::start(&[]);
        assert!(
            daemon.announcement().contains("serves this Windows node"),
            "{}",
            daemon.announcement()
        );
        let endpoints = format!(" RPCs, on {} endpoints", GROUP_VERSIONS.len());
        assert!(
            daemon.announcement().contains(&endpoints),
            "{}",
            daemon.announcement()
        );
        answers().await;
    }
}

#[tokio::test]
async fn a_second_daemon_names_the_pipe_that_is_taken_and_the_process_that_serves_it() {
    let _turn = turn().await;
    let first = Daemon::start(&[]);
    let mut second = spawn(&[]);
    let mut message = String::new();
    // It writes either to standard output that it serves, or to standard error why it does not.
    let mut byte = [0];
    if second
        .stdout
        .take()
        .expect("a pipe")
        .read(&mut byte)
        .expect("a pipe")
        > 0
    {
        second.kill().expect("a process");
        second.wait().expect("an end");
        return skipped_by_wine(
            "FILE_FLAG_FIRST_PIPE_INSTANCE is not enforced, so two daemons share their pipes",
        );
    }
    second
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut message)
        .expect("text");
    assert_eq!(second.wait().expect("an end").code(), Some(1));
    let sentence = format!(
        r"cannot serve csi-proxy-disk-v1: \\.\pipe\csi-proxy-disk-v1 is already served by process {}",
        first.process.id()
    );
    assert!(message.contains(&sentence), "{message}");
    answers().await;
}

#[tokio::test]
async fn an_invalid_sid_is_refused() {
    let _turn = turn().await;
    let refused = spawn(&["-pipe-sid=Everyone"])
        .wait_with_output()
        .expect("an end");
    assert_eq!(refused.status.code(), Some(1));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(
        message,
        "csi-proxy: cannot open the pipes to an account: not a SID: Everyone\n"
    );
    drop(Daemon::start(&["-pipe-sid=S-1-5-93-2-1"]));
}

#[tokio::test]
async fn only_the_service_control_manager_can_start_the_service() {
    let refused = spawn(&["-windows-service"])
        .wait_with_output()
        .expect("an end");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    if message.is_empty() && refused.status.success() {
        return skipped_by_wine(
            "the service control manager accepts a program in a console as a service",
        );
    }
    assert!(
        message
            .contains("only the service control manager can start csi-proxy with -windows-service"),
        "{message}"
    );
}
