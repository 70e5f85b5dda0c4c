//! Draining: running calls finish at shutdown, and those that do not are reported.

use std::time::Duration;

use api::smb::v1::smb_client::SmbClient;
use prost::Message as _;
use server::{Limits, NotReady, Server, Unfinished};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::channels::channel;
use super::contract::{begin_slow_mapping, finish_operations, mapped, slow_mapping, slow_node};
use super::daemon::{Daemon, HANG_TIMEOUT, Setup, until};
use super::frames::{Client, GOAWAY};
use super::good_input;

const SMB: &str = "csi-proxy-smb-v1";

fn draining_for(drain: Duration) -> Setup {
    Setup {
        limits: Limits {
            drain,
            ..Limits::default()
        },
        ..Setup::default()
    }
}

#[tokio::test]
async fn an_idle_server_stops_at_once_and_removes_its_endpoints() {
    let daemon = Daemon::on(&good_input::node());
    let (address, mut client) = (
        daemon.address(SMB),
        Client::at(&daemon, "csi-proxy-disk-v1").await,
    );
    let _silent = daemon.stream(SMB).await;
    assert_eq!(client.call("/v1.Disk/ListDiskIDs", b"x").await, Ok(()));
    let (serving, _folder) = daemon.stop();
    while client.read().await.kind != GOAWAY {}
    drop(client);
    assert_eq!(serving.await.expect("no panic"), Unfinished::default());
    assert!(!address.path().exists());
    channel(address).await.expect_err("no daemon listens");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_call_is_answered_during_the_drain() {
    let sim = slow_node();
    let daemon = draining_for(HANG_TIMEOUT).on(&sim);
    let mapping = begin_slow_mapping(&daemon, &sim).await;
    let (address, executor, server) = (
        daemon.address(SMB),
        daemon.executor.clone(),
        daemon.server.clone(),
    );
    until(|| server.metrics().check_ready() == Ok(())).await;
    let (serving, _folder) = daemon.stop();
    until(|| !address.path().exists()).await;
    assert!(!mapping.is_finished() && !serving.is_finished());
    assert_eq!(server.metrics().check_ready(), Err(NotReady::Draining));
    finish_operations(&executor, &sim).await;
    mapped(mapping).await;
    assert_eq!(serving.await.expect("no panic"), Unfinished::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_drain_waits_for_an_operation_without_a_caller() {
    let sim = slow_node();
    let daemon = draining_for(HANG_TIMEOUT).on(&sim);
    let mut client = SmbClient::new(daemon.channel(SMB).await);
    tokio::select! {
        answer = client.new_smb_global_mapping(slow_mapping()) => {
            panic!("the clock is stopped: {answer:?}")
        }
        () = until(|| sim.running_jobs() == 1) => {}
    }
    drop(client);
    daemon
        .counted("grpc_server_handled_total{grpc_code=\"Canceled\"")
        .await;
    let (address, executor) = (daemon.address(SMB), daemon.executor.clone());
    let (serving, _folder) = daemon.stop();
    until(|| !address.path().exists()).await;
    assert!(executor.running() == 1 && !serving.is_finished());
    finish_operations(&executor, &sim).await;
    assert_eq!(serving.await.expect("no panic"), Unfinished::default());
    assert!(sim.snapshot().as_str().contains(r"mapping \\slow\share"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_outlast_the_drain_time_are_cut_off_and_counted() {
    let sim = slow_node();
    let daemon = draining_for(Duration::from_millis(20)).on(&sim);
    let mapping = begin_slow_mapping(&daemon, &sim).await;
    let (executor, server) = (daemon.executor.clone(), daemon.server.clone());
    let (serving, _folder) = daemon.stop();
    assert_eq!(
        serving.await.expect("no panic"),
        Unfinished {
            calls: 1,
            operations: 1
        }
    );
    until(|| !server.metrics().status().failures.is_empty()).await;
    assert_cut_off(&server);
    let status = mapping
        .await
        .expect("no panic")
        .expect_err("it was cut off");
    assert!(
        [
            Code::Unavailable,
            Code::Unknown,
            Code::Internal,
            Code::Cancelled
        ]
        .contains(&status.code()),
        "{status}"
    );
    finish_operations(&executor, &sim).await;
}

/// Asserts that the only failure is that of a call which the end of the server has cut off.
fn assert_cut_off(server: &Server) {
    let failures = server.metrics().status().failures;
    let [failure] = &failures[..] else {
        panic!("{failures:?}")
    };
    assert_eq!(
        (failure.code, &*failure.message),
        ("Unavailable", "csi-proxy stopped before the call ended")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_a_second_signal_cuts_off_are_not_cancelled_by_their_callers() {
    let sim = slow_node();
    let daemon = draining_for(HANG_TIMEOUT).on(&sim);
    let mapping = begin_slow_mapping(&daemon, &sim).await;
    let (executor, server) = (daemon.executor.clone(), daemon.server.clone());
    let (serving, _folder) = daemon.stop();
    serving.abort();
    mapping
        .await
        .expect("no panic")
        .expect_err("it was cut off");
    until(|| !server.metrics().status().failures.is_empty()).await;
    assert_cut_off(&server);
    finish_operations(&executor, &sim).await;
}

#[tokio::test]
async fn health_watches_report_not_serving_and_end_at_shutdown() {
    let daemon = Daemon::on(&good_input::node());
    let mut health = HealthClient::new(daemon.channel(SMB).await);
    let watch = health
        .watch(HealthCheckRequest {
            service: "v1.Smb".into(),
        })
        .await;
    let mut watch = watch.expect("the service is known").into_inner();
    let mut next = async || {
        watch
            .message()
            .await
            .expect("in order")
            .map(|answer| answer.status())
    };
    assert_eq!(next().await, Some(ServingStatus::Serving));
    let (serving, _folder) = daemon.stop();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
    assert_eq!(serving.await.expect("no panic"), Unfinished::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_drain_waits_for_a_call_that_crosses_the_goaway() {
    let sim = slow_node();
    let daemon = draining_for(HANG_TIMEOUT).on(&sim);
    let mut client = Client::at(&daemon, SMB).await;
    // Until a call has been answered, the server may close the connection without a GOAWAY frame.
    assert_eq!(
        client.call("/grpc.health.v1.Health/Check", b"x").await,
        Ok(())
    );
    let executor = daemon.executor.clone();
    let (serving, _folder) = daemon.stop();
    while client.read().await.kind != GOAWAY {}
    let stream = client
        .send(
            "/v1.Smb/NewSmbGlobalMapping",
            &slow_mapping().encode_to_vec(),
        )
        .await;
    until(|| sim.running_jobs() == 1).await;
    // Longer than a client has to read its last responses.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!serving.is_finished());
    finish_operations(&executor, &sim).await;
    client.read_to_end_of(stream).await;
    assert_eq!(serving.await.expect("no panic"), Unfinished::default());
}
