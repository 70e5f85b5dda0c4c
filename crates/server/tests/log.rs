//! What is logged about calls. This is a test binary by itself because a process has only one log.
#![cfg(unix)]

#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "sockets/channels.rs"]
mod channels;
#[expect(dead_code, reason = "the other tests use all of it")]
#[path = "sockets/daemon.rs"]
mod daemon;

use std::fs;
use std::sync::Arc;

use api::smb::v1::smb_client::SmbClient;
use api::smb::v1::{NewSmbGlobalMappingRequest, RemoveSmbGlobalMappingRequest};
use daemon::Daemon;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_29_a_failure_is_logged_once_with_its_number_and_without_secrets() {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let lines_with = |word: &str| -> Vec<String> {
        let log = fs::read_to_string(log.path()).expect("the log");
        log.lines()
            .filter(|line| line.contains(word))
            .map(str::to_owned)
            .collect()
    };
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(Arc::new(log.reopen().expect("the file")))
        .init();

    let sim = os_sim::node()
        .smb_server("fileserver")
        .share("share")
        .user("anna", "right-secret")
        .build();
    let daemon = Daemon::on(&sim);
    let channel = daemon.channel("csi-proxy-smb-v1").await;
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
        let status = client
            .new_smb_global_mapping(mapping(remote, password))
            .await
            .expect_err(remote);
        assert!(!status.message().contains("secret"), "{}", status.message());
        let id = status
            .metadata()
            .get("csi-proxy-request-id")
            .expect("a request id")
            .to_str()
            .expect("digits");
        let lines = lines_with(status.message());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&format!("id={id} ")), "{}", lines[0]);
        assert!(
            lines[0].contains("/v1.Smb/NewSmbGlobalMapping"),
            "{}",
            lines[0]
        );
    }
    client
        .new_smb_global_mapping(mapping(r"\\fileserver\share", "right-secret".into()))
        .await
        .expect("the share is mapped");
    let request = RemoveSmbGlobalMappingRequest {
        remote_path: r"\\fileserver\share".into(),
    };
    client
        .remove_smb_global_mapping(request)
        .await
        .expect("the share was mapped");
    let calls = lines_with("/v1.Smb/RemoveSmbGlobalMapping");
    for event in ["the call began", "the call succeeded"] {
        let line = calls
            .iter()
            .find(|line| line.contains(event))
            .unwrap_or_else(|| panic!("{event} in {calls:?}"));
        assert!(line.contains("DEBUG"), "{line}");
        assert!(
            line.contains(r#"object="remove the mapping of \\\\fileserver\\share""#),
            "{line}"
        );
        assert_eq!(line.matches("id=").count(), 1, "{line}");
    }
    for path in ["/v1.Disk/ListDiskIDs", "/v1.Smb/NoSuchRpc"] {
        dynamic_client::call(&channel, path, Vec::new())
            .await
            .expect_err(path);
        let refused = lines_with("refused an RPC that is not served");
        let line = refused
            .iter()
            .find(|line| line.contains(path))
            .unwrap_or_else(|| panic!("{path} in {refused:?}"));
        assert!(line.contains(r#"pipe="csi-proxy-smb-v1""#), "{line}");
    }
    drop((client, channel));
    let (serving, _folder) = daemon.stop();
    serving.await.expect("no panic");
    assert!(
        lines_with("NewSmbGlobalMapping").len() >= 5,
        "the log has entries for the calls"
    );
    assert_eq!(lines_with("-secret"), Vec::<String>::new());
}
