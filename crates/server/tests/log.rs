//! What is logged about calls. This is a test binary by itself because a process has only one log.
#![cfg(unix)]

use std::fs;
use std::sync::Arc;

use api::Group;
use api::smb::v1::smb_client::SmbClient;
use api::smb::v1::{NewSmbGlobalMappingRequest, RemoveSmbGlobalMappingRequest};
use hyper_util::rt::TokioIo;
use server::{Endpoint, EndpointSpec, Limits, Server};
use storage_ops::{Config, Executor, Node};
use tokio::sync::oneshot;
use transport::address::Location;
use transport::listener::{bind, connect};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_29_a_failure_is_logged_once_with_its_number_and_without_secrets() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let lines_with = |word: &str| -> Vec<String> {
        let log = fs::read_to_string(log.path()).expect("the log");
        log.lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
    };
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(Arc::new(log.reopen().expect("the file")))
        .init();

    let sim = os_sim::node().smb_server("fileserver").share("share").user("anna", "right-secret").build();
    let folder = tempfile::tempdir().expect("a folder");
    let location = Location::Directory(folder.path().join("sockets"));
    let address = location.address("csi-proxy-smb-v1");
    let endpoints = Endpoint::open(&location, EndpointSpec::of(&[Group::Smb], false), bind).expect("all endpoints");
    let executor = Arc::new(Executor::new(Arc::new(Node::new(sim.process(), Config::default()))));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let server = Server::new(executor, Limits::default());
        server.serve(endpoints, async { drop(stopped.await) }).await
    });
    let dial = tower::service_fn(move |_| {
        let address = address.clone();
        async move { connect(&address).await.map(TokioIo::new) }
    });
    let channel = tonic::transport::Endpoint::from_static("http://localhost").connect_with_connector(dial).await;
    let channel = channel.expect("the endpoint accepts");
    let mut client = SmbClient::new(channel.clone());

    let mapping = |remote_path: &str, password: String| NewSmbGlobalMappingRequest {
        remote_path: remote_path.into(),
        local_path: String::new(),
        username: r"FILESERVER\anna".into(),
        password,
    };
    for (remote, password) in [
        (r"\\fileserver\share", "wrong-secret".to_owned()),
        (r"\\fileserver", "bad-path-secret".to_owned()),
        (r"\\fileserver\share", "long-secret".repeat(1000)),
        (r"\\fileserver\share", "zero-secret\0".to_owned()),
    ] {
        let status = client.new_smb_global_mapping(mapping(remote, password)).await.expect_err(remote);
        assert!(!status.message().contains("secret"), "{}", status.message());
        let id = status.metadata().get("csi-proxy-request-id").expect("a request id").to_str().expect("digits");
        let lines = lines_with(status.message());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&format!("id={id} ")), "{}", lines[0]);
        assert!(lines[0].contains("/v1.Smb/NewSmbGlobalMapping"), "{}", lines[0]);
    }
    client
        .new_smb_global_mapping(mapping(r"\\fileserver\share", "right-secret".into()))
        .await
        .expect("the share is mapped");
    let request = RemoveSmbGlobalMappingRequest { remote_path: r"\\fileserver\share".into() };
    client.remove_smb_global_mapping(request).await.expect("the share was mapped");
    let calls = lines_with("/v1.Smb/RemoveSmbGlobalMapping");
    for event in ["the call began", "the call succeeded"] {
        let line = calls.iter().find(|line| line.contains(event)).unwrap_or_else(|| panic!("{event} in {calls:?}"));
        assert!(line.contains("DEBUG"), "{line}");
        assert!(line.contains(r#"object="remove the mapping of \\\\fileserver\\share""#), "{line}");
        assert_eq!(line.matches("id=").count(), 1, "{line}");
    }
    for path in ["/v1.Disk/ListDiskIDs", "/v1.Smb/NoSuchRpc"] {
        dynamic_client::call(&channel, path, Vec::new()).await.expect_err(path);
        let refused = lines_with("refused an RPC that is not served");
        let line = refused.iter().find(|line| line.contains(path)).unwrap_or_else(|| panic!("{path} in {refused:?}"));
        assert!(line.contains(r#"pipe="csi-proxy-smb-v1""#), "{line}");
    }
    drop((client, channel, stop));
    serving.await.expect("no panic");
    assert!(lines_with("NewSmbGlobalMapping").len() >= 5, "the log has entries for the calls");
    assert_eq!(lines_with("-secret"), Vec::<String>::new());
}
