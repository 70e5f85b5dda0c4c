//! Connections: endpoints, the :authority header, silent clients, and health.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::{GROUP_VERSIONS, Group, GroupVersion};
use prost::Message as _;
use server::{Endpoint, EndpointSpec, Limits, NotReady};
use storage_ops::{Config, Node};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use transport::address::{Address, Location};
use transport::listener::{Listener, bind};

use super::daemon::{Daemon, Setup, until};
use super::frames::Client;
use super::good_input;

pub(crate) const FILESYSTEM: &str = "csi-proxy-filesystem-v1";
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

/// Asks whether a path exists, on a new connection.
pub(crate) async fn ask(daemon: &Daemon, path: &str) -> Result<bool, Status> {
    let mut client = FilesystemClient::new(daemon.channel(FILESYSTEM).await);
    let answer = client.path_exists(PathExistsRequest { path: path.into() });
    answer.await.map(|answer| answer.into_inner().exists)
}

pub(crate) async fn path_exists(daemon: &Daemon) -> bool {
    ask(daemon, KUBELET).await.expect("PathExists")
}

#[tokio::test]
async fn contract_01_all_endpoints_accept_connections() {
    let daemon = Daemon::on(&good_input::node());
    for row in &GROUP_VERSIONS {
        daemon.stream(row.pipe()).await;
    }
}

/// A listener that calls `before` before it accepts.
struct Faulty<L, F> {
    listener: L,
    before: F,
}

impl<L: Listener, F: FnMut() -> io::Result<()> + Send + 'static> Listener for Faulty<L, F> {
    type Stream = L::Stream;

    async fn accept(&mut self) -> io::Result<L::Stream> {
        (self.before)()?;
        self.listener.accept().await
    }

    fn address(&self) -> &Address {
        self.listener.address()
    }
}

#[tokio::test]
async fn contract_01_an_endpoint_is_still_served_after_a_panic_of_its_listener() {
    let sim = good_input::node();
    let open = |address: &Address| {
        let mut has_panicked = false;
        let before = move || {
            // Panics without a message on the terminal.
            if !std::mem::replace(&mut has_panicked, true) {
                resume_unwind(Box::new("a deliberate defect"));
            }
            Ok(())
        };
        Ok(Faulty {
            listener: bind(address)?,
            before,
        })
    };
    let daemon = Setup::default().listening(Node::new(sim.process(), Config::default()), open);
    assert!(path_exists(&daemon).await);
}

#[tokio::test]
async fn a_server_is_not_ready_while_an_endpoint_fails_to_accept() {
    let sim = good_input::node();
    let fails = Arc::new(AtomicBool::new(true));
    let open = |address: &Address| {
        let fails = if address.name() == "csi-proxy-disk-v1" {
            Arc::clone(&fails)
        } else {
            Arc::default()
        };
        let before = move || {
            if fails.load(Ordering::Relaxed) {
                Err(io::Error::other("no handle is free"))
            } else {
                Ok(())
            }
        };
        Ok(Faulty {
            listener: bind(address)?,
            before,
        })
    };
    let daemon = Setup::default().listening(Node::new(sim.process(), Config::default()), open);
    let ready = || daemon.server.metrics().check_ready();
    let failing = NotReady::CannotAccept {
        failing: 1,
        endpoints: GROUP_VERSIONS.len(),
    };
    until(|| ready() == Err(failing)).await;
    assert!(path_exists(&daemon).await, "the other endpoints accept");
    fails.store(false, Ordering::Relaxed);
    until(|| ready() == Ok(())).await;
}

#[tokio::test]
async fn contract_01_an_endpoint_that_cannot_be_opened_fails_the_start_and_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::Directory(folder.path().join("sockets"));
    for row in [&GROUP_VERSIONS[0], &GROUP_VERSIONS[11], &GROUP_VERSIONS[22]] {
        let taken = bind(&location.address(row.pipe())).expect("it is free");
        let error = Endpoint::open(&location, EndpointSpec::of(&Group::ALL, false), bind)
            .expect_err("one is taken");
        assert_eq!(error.name(), row.pipe());
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot serve {}: ", row.pipe())),
            "{error}"
        );
        drop(taken);
    }
    let failed =
        Endpoint::open(
            &location,
            EndpointSpec::of(&Group::ALL, true),
            |address| match address.name() {
                "csi-proxy-v1" => Err(io::Error::other("no")),
                _ => bind(address),
            },
        );
    let failed = failed.expect_err("one fails");
    assert_eq!(failed.to_string(), "cannot serve csi-proxy-v1: no");
    let source = std::error::Error::source(&failed);
    assert!(source.is_none(), "a chain printer would say it twice");
    let all = Endpoint::open(&location, EndpointSpec::of(&Group::ALL, true), bind)
        .expect("none is taken");
    assert_eq!(
        all.len(),
        GROUP_VERSIONS.len() + groupless(&Group::ALL).len()
    );
}

const AUTHORITIES: [&[u8]; 9] = [
    br"\\.\\pipe\\csi-proxy-disk-v1",
    br"\\.\pipe\csi-proxy-disk-v1",
    b"%5C%5C.%5C%5Cpipe%5C%5Ccsi-proxy-disk-v1",
    b"localhost",
    b"a:b:c",
    b"user@",
    b"[::1",
    b"a/b?c#d",
    b"\xff\x01",
];

#[tokio::test]
async fn contract_02_any_authority_is_answered() {
    let daemon = Daemon::on(&good_input::node());
    let mut client = Client::at(&daemon, "csi-proxy-disk-v1").await;
    for authority in AUTHORITIES {
        let outcome = client.call("/v1.Disk/ListDiskIDs", authority).await;
        assert_eq!(outcome, Ok(()), "{}", authority.escape_ascii());
    }
    let text = daemon.server.metrics().render();
    let labels =
        r#"grpc_code="OK",grpc_method="ListDiskIDs",grpc_service="v1.Disk",grpc_type="unary""#;
    assert!(
        text.contains(&format!("grpc_server_handled_total{{{labels}}} 9\n")),
        "all calls succeeded"
    );
}

#[tokio::test]
async fn contract_03_silent_connections_do_not_delay_calls() {
    let daemon = Daemon::on(&good_input::node());
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(daemon.stream(FILESYSTEM).await);
        if silent.len().is_multiple_of(50) {
            assert!(path_exists(&daemon).await);
        }
    }
    until(|| daemon.server.connections().counts().silent == 500).await;
    assert!(path_exists(&daemon).await);
}

#[tokio::test]
async fn contract_03_a_connection_without_a_preface_is_closed_and_one_with_a_preface_is_not() {
    let limits = Limits {
        silence: Duration::from_millis(50),
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &good_input::node());
    let mut client = Client::at(&daemon, "csi-proxy-disk-v1").await;
    assert_eq!(client.call("/v1.Disk/ListDiskIDs", b"x").await, Ok(()));
    let (mut silent, mut half) = (
        daemon.stream(FILESYSTEM).await,
        daemon.stream(FILESYSTEM).await,
    );
    half.write_all(b"PRI * HTTP/2.0\r\n")
        .await
        .expect("half a preface");
    for stream in [&mut silent, &mut half] {
        assert_eq!(stream.read(&mut [0]).await.expect("closed in order"), 0);
    }
    assert_eq!(client.call("/v1.Disk/ListDiskIDs", b"x").await, Ok(()));
}

/// Returns the endpoints without a group in their names.
fn groupless(groups: &[Group]) -> Vec<EndpointSpec> {
    EndpointSpec::of(groups, true).split_off(EndpointSpec::of(groups, false).len())
}

#[tokio::test]
async fn contract_05a_a_groupless_pipe_serves_every_group_of_its_version() {
    let sim = good_input::node();
    let daemon = Daemon::groupless(&sim);
    for spec in groupless(&Group::ALL) {
        let channel = daemon.channel(&spec.name()).await;
        for row in spec.group_versions() {
            let case = good_input::cases(row, &sim)
                .into_iter()
                .find(|case| case.rpc.starts_with("Get"));
            let case = case.unwrap_or_else(|| good_input::cases(row, &sim).swap_remove(0));
            let rpc = &dynamic_client::rpcs(row)[case.rpc];
            let answer = rpc.call(&channel, &rpc.request(&case.request)).await;
            let code = answer.as_ref().err().map_or(Code::Ok, tonic::Status::code);
            assert_ne!(code, Code::Unimplemented, "{}: {answer:?}", rpc.path);
        }
    }
}

#[tokio::test]
async fn an_endpoint_serves_only_its_own_group_version() {
    let daemon = Daemon::on(&good_input::node());
    let channel = daemon.channel(FILESYSTEM).await;
    for (path, message) in [
        (
            "/v1.Disk/ListDiskIDs",
            "this endpoint serves only v1.Filesystem",
        ),
        (
            "/v1beta2.Filesystem/PathExists",
            "this endpoint serves only v1.Filesystem",
        ),
        ("/v1.Filesystem/LinkPath", "v1.Filesystem has no such RPC"),
        ("/v1.Filesystem", "v1.Filesystem has no such RPC"),
        ("/", "this endpoint serves only v1.Filesystem"),
        // Only the simulator adds it.
        (
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
            "this endpoint serves only v1.Filesystem",
        ),
    ] {
        let status = dynamic_client::call(&channel, path, Vec::new())
            .await
            .expect_err(path);
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unimplemented, message)
        );
    }
}

#[tokio::test]
async fn a_response_has_only_the_headers_that_grpc_defines() {
    let daemon = Daemon::on(&good_input::node());
    let mut client = FilesystemClient::new(daemon.channel(FILESYSTEM).await);
    let request = |path: &str| PathExistsRequest { path: path.into() };
    let names = |metadata: &tonic::metadata::MetadataMap| {
        let mut names: Vec<_> = metadata
            .clone()
            .into_headers()
            .keys()
            .map(ToString::to_string)
            .collect();
        names.sort();
        names
    };
    let response = client
        .path_exists(request(r"C:\var\lib\kubelet"))
        .await
        .expect("the path is valid");
    assert_eq!(names(response.metadata()), ["content-type", "grpc-status"]);
    let status = client
        .path_exists(request(""))
        .await
        .expect_err("the path is empty");
    assert_eq!(
        names(status.metadata()),
        ["content-type", "csi-proxy-request-id"]
    );
}

#[tokio::test]
async fn a_request_that_breaks_the_rules_of_grpc_over_http2_is_refused() {
    let daemon = Daemon::on(&good_input::node());
    let stream = daemon.stream(FILESYSTEM).await;
    let (mut client, connection) = h2::client::handshake(stream).await.expect("a handshake");
    tokio::spawn(connection);
    let message = PathExistsRequest {
        path: r"C:\var\lib\kubelet".into(),
    }
    .encode_to_vec();
    let body = [
        &[0, 0, 0, 0, u8::try_from(message.len()).expect("short")][..],
        &message,
    ]
    .concat();
    for (method, name, value, http, grpc) in [
        ("POST", "content-type", "application/grpc+proto", 200, None),
        ("POST", "grpc-timeout", "1H", 200, None),
        ("GET", "content-type", "application/grpc", 405, Some("3")),
        ("post", "content-type", "application/grpc", 405, Some("3")),
        ("POST", "content-type", "application/json", 415, Some("3")),
        ("POST", "content-type", "", 415, Some("3")),
        ("POST", "grpc-timeout", "5s", 200, Some("3")),
        ("POST", "grpc-timeout", "-1S", 200, Some("3")),
        ("POST", "grpc-timeout", "", 200, Some("3")),
        ("POST", "grpc-timeout", "0S", 200, Some("4")),
        ("POST", "grpc-timeout", "1n", 200, Some("4")),
    ] {
        for service in ["v1.Filesystem/PathExists", "grpc.health.v1.Health/Check"] {
            let is_health = service.starts_with("grpc");
            if is_health && (name == "grpc-timeout" || http == 200) {
                continue;
            }
            let request = http::Request::builder()
                .method(method)
                .uri(format!("http://x/{service}"))
                .header(name, value)
                .body(())
                .expect("a request");
            let (response, mut sending) = client.send_request(request, false).expect("it is sent");
            let _ = sending.send_data(body.clone().into(), true);
            let response = response.await.expect("a response");
            assert_eq!(response.status(), http, "{method} {name}: {value}");
            let status = response.headers().get("grpc-status");
            let status = status.map(|status| status.to_str().expect("a number"));
            assert_eq!(status, grpc, "{method} {name}: {value}");
        }
    }
}

/// Returns the health of a service that an endpoint reports.
async fn health(daemon: &Daemon, pipe: &str, service: &str) -> Result<ServingStatus, Code> {
    let mut health = HealthClient::new(daemon.channel(pipe).await);
    let service = service.to_owned();
    let answer = health.check(HealthCheckRequest { service }).await;
    answer
        .map(|answer| answer.into_inner().status())
        .map_err(|status| status.code())
}

#[tokio::test]
async fn health_is_reported_for_the_services_of_the_endpoint() {
    let daemon = Daemon::groupless(&good_input::node());
    let check = |pipe, service| health(&daemon, pipe, service);
    for row in &GROUP_VERSIONS {
        for service in ["", row.service] {
            assert_eq!(
                check(row.pipe(), service).await,
                Ok(ServingStatus::Serving),
                "{row:?}"
            );
        }
    }
    assert_eq!(check(FILESYSTEM, "v1.Disk").await, Err(Code::NotFound));
    assert_eq!(
        check("csi-proxy-v1", "v1.Disk").await,
        Ok(ServingStatus::Serving)
    );
    for path in [
        "/grpc.health.v1.Health/x/Check",
        "/grpc.health.v1.Health",
        "/grpc.health.v1.Health/check",
    ] {
        let refused =
            dynamic_client::call(&daemon.channel(FILESYSTEM).await, path, Vec::new()).await;
        assert_eq!(refused.expect_err(path).code(), Code::Unimplemented);
    }
}

#[tokio::test]
async fn a_group_that_is_left_out_has_no_endpoint_and_is_in_no_other_one() {
    let left_out = [Group::Disk, Group::Iscsi, Group::System];
    let daemon = Setup {
        groupless: true,
        left_out: left_out.to_vec(),
        ..Setup::default()
    }
    .on(&good_input::node());
    for row in &GROUP_VERSIONS {
        assert_eq!(
            daemon.address(row.pipe()).path().exists(),
            !left_out.contains(&row.group),
            "{row:?}"
        );
    }
    let served: Vec<_> = Group::ALL
        .into_iter()
        .filter(|group| !left_out.contains(group))
        .collect();
    let served: Vec<_> = groupless(&served).iter().map(EndpointSpec::name).collect();
    for spec in groupless(&Group::ALL) {
        assert_eq!(
            daemon.address(&spec.name()).path().exists(),
            served.contains(&spec.name()),
            "{spec:?}"
        );
    }
    assert!(
        served.len() < groupless(&Group::ALL).len(),
        "a version that only iSCSI has is not served"
    );

    let check = |service| health(&daemon, "csi-proxy-v1", service);
    assert_eq!(check("").await, Ok(ServingStatus::Serving));
    assert_eq!(check("v1.Filesystem").await, Ok(ServingStatus::Serving));
    assert_eq!(check("v1.Disk").await, Err(Code::NotFound));
    let channel = daemon.channel("csi-proxy-v1").await;
    let refused = dynamic_client::call(&channel, "/v1.Disk/ListDiskIDs", Vec::new()).await;
    let refused = refused.expect_err("it is not served");
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(path_exists(&daemon).await);
}

/// Calls the server 200 times through Python's gRPC, which has another HTTP/2 implementation than
/// Go and this server.
async fn python_calls(python: &str, socket: PathBuf, authority: &[u8], path: &str) -> String {
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../verify/python-client/calls.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .arg(socket)
        .arg(OsStr::from_bytes(authority))
        .args([path, "200"]);
    let output = command.output().await.expect("Python runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("plain text")
}

#[tokio::test]
async fn contract_02_a_python_client_that_names_a_pipe_is_answered() {
    let Ok(python) = env::var("CSI_PROXY_PYTHON") else {
        println!(
            "skipped: contract_02_a_python_client_that_names_a_pipe_is_answered: CSI_PROXY_PYTHON \
             is not set"
        );
        return;
    };
    let daemon = Daemon::on(&good_input::node());
    let disk = GroupVersion::find(Group::Disk, "v1").expect("it is in the table");
    let socket = daemon.address(disk.pipe()).path();
    let long = br"\\.\pipe\".repeat(400);
    for authority in AUTHORITIES.into_iter().chain([&long[..]]) {
        let outcomes =
            python_calls(&python, socket.clone(), authority, "/v1.Disk/ListDiskIDs").await;
        assert_eq!(outcomes, "OK 200\n", "{}", authority.escape_ascii());
    }
    let refused = python_calls(&python, socket, b"x", "/v1.Disk/GetDiskStats").await;
    assert_eq!(refused, "OK 200\n", "disk 0 exists");
}
