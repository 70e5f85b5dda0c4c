//! What happens where a client wants more than there is.

use std::time::Duration;

use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::smb::v1::smb_client::SmbClient;
use server::Limits;
use tokio::io::AsyncReadExt as _;
use tonic::Code;

use super::contract::{let_it_end, slow_mapping, slow_node};
use super::daemon::{Daemon, Setup, until};
use super::frames::{Client, GOAWAY, PING, RST_STREAM, SETTINGS};
use super::transport::path_exists;
use super::{dynamic, good_input};

const FILESYSTEM: &str = "csi-proxy-filesystem-v1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_too_many_is_unavailable_and_the_next_one_is_not() {
    let sim = slow_node();
    let limits = Limits { calls: 1, wait: Duration::from_millis(10), ..Limits::default() };
    let daemon = Setup { limits, ..Setup::default() }.on(&sim);
    let mut smb = SmbClient::new(daemon.channel("csi-proxy-smb-v1").await);
    let mapping = tokio::spawn(async move { smb.new_smb_global_mapping(slow_mapping()).await });
    until(|| sim.running_jobs() == 1).await;
    let mut client = FilesystemClient::new(daemon.channel(FILESYSTEM).await);
    let request = PathExistsRequest { path: r"C:\var\lib\kubelet".into() };
    let status = client.path_exists(request).await.expect_err("one runs already");
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "too many calls are running; try again later"));
    let bad = client.path_exists(PathExistsRequest::default()).await.expect_err("no path");
    assert_eq!(bad.code(), Code::InvalidArgument, "what can never succeed does not wait");
    let_it_end(&daemon, &sim).await;
    mapping.await.expect("no panic").expect("the share is mapped");
    assert!(path_exists(&daemon).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_for_its_turn_if_that_comes_soon() {
    let sim = slow_node();
    let limits = Limits { calls: 1, wait: super::daemon::HANGS, ..Limits::default() };
    let daemon = Setup { limits, ..Setup::default() }.on(&sim);
    let mut smb = SmbClient::new(daemon.channel("csi-proxy-smb-v1").await);
    let mapping = tokio::spawn(async move { smb.new_smb_global_mapping(slow_mapping()).await });
    until(|| sim.running_jobs() == 1).await;
    let (exists, ()) = tokio::join!(path_exists(&daemon), async {
        daemon.counted("grpc_server_started_total{grpc_method=\"PathExists\",grpc_service=\"v1.Filesystem\"").await;
        let_it_end(&daemon, &sim).await;
    });
    assert!(exists);
    mapping.await.expect("no panic").expect("the share is mapped");
}

#[tokio::test]
async fn a_message_of_more_than_4_mib_is_refused_and_one_of_less_is_read() {
    let sim = good_input::node();
    let daemon = Daemon::on(&sim);
    let mut client = FilesystemClient::new(daemon.channel(FILESYSTEM).await);
    for (size, code) in [((4 << 20) + 1, Code::OutOfRange), ((4 << 20) - 16, Code::InvalidArgument)] {
        let status = client.path_exists(PathExistsRequest { path: "x".repeat(size) }).await.expect_err("no path");
        assert_eq!(status.code(), code, "{}", status.message());
        assert!(status.message().len() < 400);
    }
}

#[tokio::test]
async fn clients_are_told_how_many_streams_and_how_large_headers_they_may_send() {
    let sim = good_input::node();
    let limits = Limits { streams: 7, headers: 9000, ..Limits::default() };
    let daemon = Setup { limits, ..Setup::default() }.on(&sim);
    let mut client = Client::new(daemon.stream(FILESYSTEM).await).await;
    let first = client.read().await;
    assert_eq!(first.kind, SETTINGS);
    let told: Vec<_> = first
        .payload
        .chunks(6)
        .map(|setting| (setting[1], u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]])))
        .collect();
    assert!(told.contains(&(3, 7)), "MAX_CONCURRENT_STREAMS: {told:?}");
    assert!(told.contains(&(6, 9000)), "MAX_HEADER_LIST_SIZE: {told:?}");
}

#[tokio::test]
async fn headers_too_large_end_their_call_alone() {
    let sim = good_input::node();
    let daemon = Daemon::on(&sim);
    let channel = daemon.channel(FILESYSTEM).await;
    let mut request = tonic::Request::new(PathExistsRequest { path: r"C:\var\lib\kubelet".into() });
    request.metadata_mut().insert("x", "x".repeat(20 << 10).parse().expect("plain text"));
    FilesystemClient::new(channel.clone()).path_exists(request).await.expect_err("20 KiB of headers");
    let request = b"\x0a\x12C:\\var\\lib\\kubelet".to_vec();
    dynamic::call(&channel, "/v1.Filesystem/PathExists", request).await.expect("the connection lives");
}

#[tokio::test]
async fn contract_03_where_too_many_connections_are_open_the_one_silent_longest_makes_room() {
    let sim = good_input::node();
    let limits =
        Limits { connections: pipe::connections::Limits { open: 10, ..Default::default() }, ..Limits::default() };
    let daemon = Setup { limits, ..Setup::default() }.on(&sim);
    let mut spoken = Client::new(daemon.stream("csi-proxy-disk-v1").await).await;
    assert_eq!(spoken.call("/v1.Disk/ListDiskIDs", b"x").await, Ok(()));
    let mut silent = Vec::new();
    for _ in 0..30 {
        silent.push(daemon.stream(FILESYSTEM).await);
    }
    for stream in &mut silent[..21] {
        assert_eq!(stream.read(&mut [0]).await.expect("closed in order"), 0);
    }
    assert!(path_exists(&daemon).await);
    assert_eq!(spoken.call("/v1.Disk/ListDiskIDs", b"x").await, Ok(()));
}

#[tokio::test]
async fn a_stream_too_many_is_refused_and_those_before_it_live() {
    let sim = good_input::node();
    let limits = Limits { streams: 2, ..Limits::default() };
    let daemon = Setup { limits, ..Setup::default() }.on(&sim);
    let mut client = Client::new(daemon.stream(FILESYSTEM).await).await;
    for _ in 0..2 {
        client.begin("/v1.Filesystem/PathExists").await;
    }
    let third = client.begin("/v1.Filesystem/PathExists").await;
    let refused = loop {
        let frame = client.read().await;
        assert_ne!(frame.kind, GOAWAY, "the connection lives");
        if frame.kind == RST_STREAM {
            break frame;
        }
    };
    assert_eq!((refused.stream, &refused.payload[..]), (third, &[0, 0, 0, 7][..]), "REFUSED_STREAM");
}

#[tokio::test]
async fn a_flood_of_calls_taken_back_closes_its_connection_and_no_other() {
    let sim = good_input::node();
    let daemon = Daemon::on(&sim);
    let mut client = Client::new(daemon.stream(FILESYSTEM).await).await;
    client.begin_and_reset("/v1.Filesystem/PathExists", 200).await;
    let mut frame = client.read().await;
    while frame.kind != GOAWAY {
        frame = client.read().await;
    }
    assert_eq!(frame.payload[4..8], [0, 0, 0, 11], "ENHANCE_YOUR_CALM");
    client.closed().await;
    assert!(path_exists(&daemon).await);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_quiet_is_asked_for_a_sign_of_life_and_closed_without_one() {
    let sim = good_input::node();
    let daemon = Daemon::on(&sim);
    let mut client = Client::new(daemon.stream(FILESYSTEM).await).await;
    let mut frame = client.read().await;
    while frame.kind != PING {
        frame = client.read().await;
    }
    client.closed().await;
    drop(daemon);
}
