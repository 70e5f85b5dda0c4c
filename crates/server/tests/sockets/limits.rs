//! Limits: what happens when clients exceed them.

use std::time::Duration;

use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::iscsi::v1alpha2::iscsi_client::IscsiClient;
use api::iscsi::v1alpha2::{AddTargetPortalRequest, DiscoverTargetPortalRequest, TargetPortal};
use prost::Message as _;
use server::Limits;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use super::contract::{begin_slow_mapping, finish_operations, mapped, slow_node};
use super::daemon::{Daemon, HANG_TIMEOUT, until};
use super::frames::{Client, DATA, GOAWAY, HEADERS, RST_STREAM, SETTINGS, frame};
use super::good_input;
use super::transport::{FILESYSTEM, KUBELET, ask, path_exists};
use super::unusual_calls::{PING, WINDOW_UPDATE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_above_the_limit_is_unavailable_and_a_later_one_succeeds() {
    let sim = slow_node();
    let limits = Limits {
        calls: 1,
        queue_timeout: Duration::from_millis(10),
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &sim);
    let mapping = begin_slow_mapping(&daemon, &sim).await;
    let status = ask(&daemon, KUBELET)
        .await
        .expect_err("one call runs already");
    assert_eq!(
        (status.code(), status.message()),
        (
            Code::Unavailable,
            "too many calls are running; try again later"
        )
    );
    refused(&daemon, "running", 1).await;
    let bad = ask(&daemon, "").await.expect_err("the path is invalid");
    assert_eq!(
        bad.code(),
        Code::InvalidArgument,
        "an invalid request does not wait for a slot"
    );
    finish_operations(&daemon.executor, &sim).await;
    mapped(mapping).await;
    assert!(path_exists(&daemon).await);
}

#[tokio::test]
async fn a_request_above_the_limit_is_refused_before_it_is_complete() {
    const LIMIT: usize = 16 << 10;
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    for (declared, sent) in [(16_385, 1), (0, LIMIT + 1)] {
        let stream = client.begin_message(PATH_EXISTS, declared, sent).await;
        client.read_to_end_of(stream).await;
    }
    // The tag and the length of the path are three bytes.
    for (length, text) in [
        (LIMIT - 3, "260 characters"),
        (LIMIT - 2, "is 16384; send"),
        (4 << 20, "is 16384; send"),
    ] {
        let status = ask(&daemon, &"x".repeat(length))
            .await
            .expect_err("too long");
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert!(status.message().contains(text), "{status}");
    }
}

#[tokio::test]
async fn the_settings_frame_announces_the_limits_on_streams_and_headers() {
    let limits = Limits {
        streams: 7,
        header_bytes: 9000,
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    let first = client.read().await;
    assert_eq!(first.kind, SETTINGS);
    let settings: Vec<_> = first
        .payload
        .chunks(6)
        .map(|setting| {
            (
                setting[1],
                u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]),
            )
        })
        .collect();
    assert!(
        settings.contains(&(3, 7)),
        "MAX_CONCURRENT_STREAMS: {settings:?}"
    );
    assert!(
        settings.contains(&(6, 9000)),
        "MAX_HEADER_LIST_SIZE: {settings:?}"
    );
    assert!(
        settings.contains(&(4, 64 << 10)),
        "INITIAL_WINDOW_SIZE: {settings:?}"
    );
}

#[tokio::test]
async fn headers_above_the_limit_end_only_their_call() {
    let daemon = Daemon::on(&good_input::node());
    let channel = daemon.channel(FILESYSTEM).await;
    let mut request = tonic::Request::new(PathExistsRequest {
        path: KUBELET.into(),
    });
    request
        .metadata_mut()
        .insert("x", "x".repeat(20 << 10).parse().expect("plain text"));
    FilesystemClient::new(channel.clone())
        .path_exists(request)
        .await
        .expect_err("20 KiB of headers");
    let request = b"\x0a\x12C:\\var\\lib\\kubelet".to_vec();
    dynamic_client::call(&channel, "/v1.Filesystem/PathExists", request)
        .await
        .expect("the connection stays open");
}

#[tokio::test]
async fn a_stream_above_the_limit_is_refused_and_the_others_continue() {
    let limits = Limits {
        streams: 2,
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    for _ in 0..2 {
        client.begin("/v1.Filesystem/PathExists").await;
    }
    let third = client.begin("/v1.Filesystem/PathExists").await;
    let refused = loop {
        let frame = client.read().await;
        assert_ne!(frame.kind, GOAWAY, "the connection stays open");
        if frame.kind == RST_STREAM {
            break frame;
        }
    };
    assert_eq!(
        (refused.stream, &refused.payload[..]),
        (third, &[0, 0, 0, 7][..]),
        "REFUSED_STREAM"
    );
}

#[tokio::test]
async fn a_flood_of_reset_streams_closes_only_its_connection() {
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    client
        .begin_and_reset("/v1.Filesystem/PathExists", 200)
        .await;
    let mut frame = client.read().await;
    while frame.kind != GOAWAY {
        frame = client.read().await;
    }
    assert_eq!(frame.payload[4..8], [0, 0, 0, 11], "ENHANCE_YOUR_CALM");
    client.closed().await;
    assert!(path_exists(&daemon).await);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_sent_a_keepalive_ping_and_closed_without_an_answer() {
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    let mut frame = client.read().await;
    while frame.kind != PING {
        frame = client.read().await;
    }
    client.closed().await;
    drop(daemon);
}

const PATH_EXISTS: &str = "/v1.Filesystem/PathExists";

fn at_most(open: usize) -> Limits {
    Limits {
        connections: open,
        ..Limits::default()
    }
}

/// Waits until the metrics contain this line.
async fn metric(daemon: &Daemon, line: &str) {
    let all = || daemon.server.metrics().render();
    let holds = until(|| all().lines().any(|other| other == line));
    timeout(HANG_TIMEOUT / 2, holds)
        .await
        .unwrap_or_else(|_| panic!("not {line}: {}", &all()[all().find("csi_proxy").unwrap()..]));
}

/// Waits until as many calls have been refused for this reason.
async fn refused(daemon: &Daemon, reason: &str, calls: usize) {
    let line = format!(r#"csi_proxy_calls_refused_total{{reason="{reason}"}} {calls}"#);
    metric(daemon, &line).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_with_a_call_in_flight_is_never_evicted() {
    let sim = slow_node();
    let daemon = Daemon::limited(at_most(1), &sim);
    let mapping = begin_slow_mapping(&daemon, &sim).await;
    metric(&daemon, r#"csi_proxy_connections{state="busy"} 1"#).await;
    metric(&daemon, r#"csi_proxy_calls{state="running"} 1"#).await;
    metric(&daemon, "csi_proxy_operations 1").await;
    for times in 1..=5 {
        let status = ask(&daemon, KUBELET)
            .await
            .expect_err("the only connection is busy");
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(
            status.message(),
            "too many connections have calls in flight; try again later"
        );
        refused(&daemon, "connections_busy", times).await;
    }
    finish_operations(&daemon.executor, &sim).await;
    mapped(mapping).await;
    metric(&daemon, r#"csi_proxy_connections{state="busy"} 0"#).await;
    assert!(path_exists(&daemon).await);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_connection_that_its_client_keeps_open_is_closed() {
    let daemon = Daemon::limited(at_most(1), &good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    // A watch never ends by itself, and does not protect its connection from eviction.
    client.send("/grpc.health.v1.Health/Watch", b"").await;
    metric(&daemon, "csi_proxy_health_watches 1").await;
    let _other = daemon.stream(FILESYSTEM).await;
    while client.read().await.kind != GOAWAY {}
    client.closed().await;
    metric(&daemon, "csi_proxy_health_watches 0").await;
    metric(&daemon, r#"csi_proxy_connections{state="leaving"} 0"#).await;
    metric(
        &daemon,
        r#"csi_proxy_connections_closed_total{reason="idle_made_room"} 1"#,
    )
    .await;
    metric(&daemon, "csi_proxy_connections_accepted_total 2").await;
}

/// Its client does not acknowledge the PING frame of the shutdown, and always has a call in flight.
#[tokio::test(start_paused = true)]
async fn an_evicted_connection_whose_client_goes_on_calling_is_closed() {
    let daemon = Daemon::limited(at_most(1), &good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    client
        .call(PATH_EXISTS, b"x")
        .await
        .expect("it is answered");
    let _other = daemon.stream(FILESYSTEM).await;
    while client.read().await.kind != GOAWAY {}
    let mut calls = 0;
    loop {
        let (stream, head) = client.head(PATH_EXISTS, b"x", "1H");
        if client
            .stream
            .write_all(&frame(HEADERS, 0x4, stream, &head))
            .await
            .is_err()
        {
            break;
        }
        calls += 1;
        assert!(calls < 10, "the connection stays open");
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    assert!(
        calls > 3,
        "the first call, which arrived in the grace period, had its time"
    );
    metric(&daemon, r#"csi_proxy_connections{state="leaving"} 0"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_stays_incomplete_ends_only_its_call() {
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    let none = client.begin(PATH_EXISTS).await;
    let half = client.begin_message(PATH_EXISTS, 100, 50).await;
    let open_end = client.begin_message(PATH_EXISTS, 0, 0).await;
    let watch = client.begin("/grpc.health.v1.Health/Watch").await;
    for stream in [none, half, open_end, watch] {
        client.read_to_end_of(stream).await;
    }
    refused(&daemon, "message_late", 4).await;
    daemon
        .counted(
            r#"grpc_server_handled_total{grpc_code="InvalidArgument",grpc_method="PathExists""#,
        )
        .await;
    assert_eq!(client.call(PATH_EXISTS, b"x").await, Ok(()));
    metric(&daemon, r#"csi_proxy_calls{state="transferring"} 0"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_header_block_stays_incomplete_is_closed() {
    let daemon = Daemon::on(&good_input::node());
    for bytes in [1, 30_000] {
        let mut client = Client::at(&daemon, FILESYSTEM).await;
        assert_eq!(client.call(PATH_EXISTS, b"x").await, Ok(()));
        client.begin_block(bytes).await;
        let begun = tokio::time::Instant::now();
        client.closed().await;
        assert!(
            begun.elapsed() < Limits::default().keepalive,
            "before a keepalive ping could find it"
        );
    }
    assert!(path_exists(&daemon).await);
}

/// The client reads none of its responses, and the portal offers many targets.
#[tokio::test]
async fn when_the_buffer_for_large_responses_is_full_ordinary_responses_still_arrive() {
    const DISCOVER: &str = "/v1alpha2.Iscsi/DiscoverTargetPortal";
    let portal = TargetPortal {
        target_address: "10.0.0.10".into(),
        target_port: 3260,
    };
    let node = os_sim::node()
        .service("MSiSCSI", "iSCSI")
        .running()
        .iscsi_portal("10.0.0.10", 3260);
    let sim = (0..500)
        .fold(node, |node, n| {
            node.target(&format!("iqn.2026-01.test:{n:0200}"))
        })
        .build();
    let limits = Limits {
        large_response_bytes: 150_000,
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &sim);
    let mut iscsi = IscsiClient::new(daemon.channel("csi-proxy-iscsi-v1alpha2").await);
    let target_portal = Some(portal.clone());
    iscsi
        .add_target_portal(AddTargetPortalRequest { target_portal })
        .await
        .expect("the portal is added");
    let request = DiscoverTargetPortalRequest {
        target_portal: Some(portal),
    };
    let mut hog = Client::at(&daemon, "csi-proxy-iscsi-v1alpha2").await;
    hog.set_window(0).await;
    hog.send(DISCOVER, &request.encode_to_vec()).await;
    // 500 names with 217 bytes, and two bytes before each name, and the prefix.
    metric(
        &daemon,
        &format!(
            "csi_proxy_large_messages_bytes {}",
            500 * (3 + 217) + 5 - (32 << 10)
        ),
    )
    .await;
    let status = iscsi
        .discover_target_portal(request.clone())
        .await
        .expect_err("the buffer is full");
    assert_eq!(
        (status.code(), status.message()),
        (
            Code::Unavailable,
            "the buffer for large responses is full; try again later"
        )
    );
    refused(&daemon, "messages_large", 1).await;
    assert!(
        path_exists(&daemon).await,
        "an ordinary response needs no part of the buffer"
    );
    drop(hog);
    metric(&daemon, "csi_proxy_large_messages_bytes 0").await;
    let response = iscsi
        .discover_target_portal(request)
        .await
        .expect("the buffer is empty");
    assert_eq!(response.into_inner().iqns.len(), 500);
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_client_reads_no_response_is_closed_and_holds_no_slot() {
    let daemon = Daemon::on(&good_input::node());
    for window in [0, 1] {
        let mut client = Client::at(&daemon, "csi-proxy-disk-v1").await;
        client.set_window(window).await;
        client.send("/v1.Disk/ListDiskIDs", b"").await;
        // Its window lets no response through. Answers to keepalive pings would not count either.
        metric(&daemon, r#"csi_proxy_calls{state="transferring"} 1"#).await;
        assert!(path_exists(&daemon).await);
        client.closed().await;
        metric(
            &daemon,
            &format!(
                r#"csi_proxy_connections_closed_total{{reason="answer_not_taken"}} {}"#,
                window + 1
            ),
        )
        .await;
        metric(&daemon, r#"csi_proxy_calls{state="transferring"} 0"#).await;
    }
    metric(&daemon, r#"csi_proxy_calls{state="running"} 0"#).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_stays_unread_closes_its_connection_although_the_client_reads_others() {
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    client.set_window(0).await;
    let request = PathExistsRequest {
        path: KUBELET.into(),
    }
    .encode_to_vec();
    client.send(PATH_EXISTS, &request).await;
    let (unread, mut read_others) = (Instant::now(), 0);
    loop {
        let stream = client.send(PATH_EXISTS, &request).await;
        client
            .write(WINDOW_UPDATE, 0, stream, &1000_u32.to_be_bytes())
            .await;
        client.read_to_end_of(stream).await;
        read_others += 1;
        sleep(Duration::from_secs(7)).await;
        if daemon.server.connections().counts().busy == 0 {
            break;
        }
        assert!(unread.elapsed() < Duration::from_secs(70), "it stays open");
    }
    assert!(read_others > 3 && unread.elapsed() > Duration::from_secs(30));
    client.closed().await;
    let line = r#"csi_proxy_connections_closed_total{reason="answer_not_taken"} 1"#;
    metric(&daemon, line).await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_if_many_calls_were_open_at_once_on_it() {
    let daemon = Daemon::on(&good_input::node());
    for (calls, closed) in [(16, 0), (17, 1)] {
        let mut client = Client::at(&daemon, FILESYSTEM).await;
        let mut open = Vec::new();
        for _ in 0..calls {
            open.push(client.begin(PATH_EXISTS).await);
        }
        until(|| daemon.server.connections().counts().calls == calls).await;
        for stream in &open {
            client.write(DATA, 0x1, *stream, &[0; 5]).await;
        }
        until(|| daemon.server.connections().counts().calls == 0).await;
        sleep(Duration::from_secs(65)).await;
        let line = format!(r#"csi_proxy_connections_closed_total{{reason="idle_grown"}} {closed}"#);
        metric(&daemon, &line).await;
        if closed == 1 {
            while client.read().await.kind != GOAWAY {}
            client.closed().await;
        }
    }
}

#[tokio::test]
async fn a_client_that_reads_no_responses_makes_no_call_of_another_client_fail() {
    const DISK: &str = "csi-proxy-disk-v1";
    let limits = Limits::for_connections(20);
    let daemon = Daemon::limited(limits, &good_input::node());
    let mut unread = Vec::new();
    for _ in 0..2 {
        let mut client = Client::at(&daemon, DISK).await;
        client.set_window(0).await;
        for _ in 0..20 {
            client.send("/v1.Disk/ListDiskIDs", b"").await;
        }
        unread.push(client);
    }
    until(|| daemon.server.connections().counts().transferring() >= limits.calls).await;
    let client = FilesystemClient::new(daemon.channel(FILESYSTEM).await);
    let calls = (0..16).map(|_| {
        let mut client = client.clone();
        let path = KUBELET.to_owned();
        tokio::spawn(async move { client.path_exists(PathExistsRequest { path }).await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic").expect("it is not refused");
    }
    let unread = daemon.server.connections().counts().transferring();
    assert!(unread < limits.calls, "connections were closed");
}

/// Errors are responses without a message. HTTP/2 stops to read requests when it cannot write, and
/// the keepalive ends the connection.
#[tokio::test(start_paused = true)]
async fn a_connection_whose_client_reads_no_error_is_closed() {
    let daemon = Daemon::on(&good_input::node());
    for path in [PATH_EXISTS, "/v1.Filesystem/NoSuchRpc"] {
        let client = Client::at(&daemon, FILESYSTEM).await;
        client.flood(path).await;
    }
    metric(&daemon, r#"csi_proxy_calls{state="transferring"} 0"#).await;
    assert!(path_exists(&daemon).await);
}

#[tokio::test]
async fn a_connection_has_few_health_watches_and_takes_none_from_others() {
    const WATCH: &str = "/grpc.health.v1.Health/Watch";
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, FILESYSTEM).await;
    let mut last = 0;
    for _ in 0..5 {
        last = client.send(WATCH, b"").await;
    }
    client.read_to_end_of(last).await;
    refused(&daemon, "watches", 1).await;
    let mut other = Client::at(&daemon, FILESYSTEM).await;
    other.send(WATCH, b"").await;
    metric(&daemon, "csi_proxy_health_watches 5").await;
}
