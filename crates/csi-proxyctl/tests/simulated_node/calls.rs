//! `call`, and the commands of the operations.

use serde_json::{Value, json};
use tempfile::tempdir;

use super::daemon::{Daemon, Sockets};
use super::node::node;
use super::program::{file, run, run_with_input};

fn called(sockets: &Sockets, rpc: &str, request: &str) -> Value {
    serde_json::from_str(&run(sockets, &["call", rpc, request]).ok()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rpc_of_every_version_can_be_called() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    let list = run(&sockets, &["call", "--list"]).ok();
    let rpcs: usize = api::GROUP_VERSIONS
        .iter()
        .map(|version| version.rpcs.len())
        .sum();
    assert_eq!(list.lines().count(), rpcs);
    let json: Vec<String> =
        serde_json::from_str(&run(&sockets, &["call", "--list", "-o", "json"]).ok()).unwrap();
    assert_eq!(json.join("\n") + "\n", list);
    for target in list.lines() {
        let call = run(&sockets, &["call", target, "{}"]);
        assert!(
            [Some(0), Some(1), Some(2), Some(4)].contains(&call.code),
            "{target}: {call:?}"
        );
        let (api, rpc) = target.rsplit_once('/').expect("a name");
        let (group, version) = api.split_once('/').expect("a version");
        let service = format!("{version}.{}{}", group[..1].to_uppercase(), &group[1..]);
        assert_eq!(daemon.calls(&service, rpc), 1, "{target}: {call:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_responses_are_json() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let size = json!({ "total_bytes": 10_737_418_240_i64 });
    assert_eq!(
        called(&sockets, "disk/v1/GetDiskStats", r#"{ "disk_number": 1 }"#),
        size
    );
    assert_eq!(
        called(&sockets, "disk/GetDiskStats", r#"{ "diskNumber": 1 }"#),
        size
    );
    assert_eq!(
        called(&sockets, "GetDiskStats", r#"{ "diskNumber": 1 }"#),
        size
    );
    assert_eq!(
        called(&sockets, "disk/v1beta1/DiskStats", r#"{ "diskID": "1" }"#),
        json!({ "diskSize": 10_737_418_240_i64 })
    );
    let folder = tempdir().unwrap();
    let at_file = format!(
        "@{}",
        file(folder.path(), "request.json", br#"{ "disk_number": 1 }"#)
    );
    assert_eq!(called(&sockets, "disk/v1/GetDiskStats", &at_file), size);
    let from_input = run_with_input(
        &sockets,
        &["call", "disk/v1/GetDiskStats", "-"],
        r#"{ "disk_number": 1 }"#,
    );
    assert_eq!(
        serde_json::from_str::<Value>(&from_input.ok()).unwrap(),
        size
    );
    let yaml = run(
        &sockets,
        &["call", "system/v1alpha1/GetBIOSSerialNumber", "-o", "yaml"],
    )
    .ok();
    assert_eq!(yaml, "serial_number: VMware-56 4d 4e 0e\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_response_is_nothing_unless_a_form_is_asked_for() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    assert_eq!(run(&sockets, &["disk", "rescan"]).ok(), "");
    assert_eq!(
        run(&sockets, &["disk", "rescan", "-o", "json"]).ok(),
        "{}\n"
    );
    assert_eq!(run(&sockets, &["call", "disk/v1/Rescan"]).ok(), "{}\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_work_with_each_version_that_has_them() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    for (version, number) in [
        ("v1", "1"),
        ("v1beta3", "1"),
        ("v1beta2", "1"),
        ("v1alpha1", "1"),
    ] {
        run(
            &sockets,
            &[
                "disk",
                "partition",
                "--disk",
                number,
                "--api-version",
                version,
            ],
        )
        .ok();
        assert_eq!(daemon.calls(&format!("{version}.Disk"), "PartitionDisk"), 1);
    }
    let list = run(
        &sockets,
        &["volume", "list-on-disk", "--disk", "1", "-o", "json"],
    )
    .ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    run(&sockets, &["disk", "set-state", "--disk", "1", "--offline"]).ok();
    assert_eq!(
        run(&sockets, &["disk", "get-state", "--disk", "1"]).ok(),
        "is_online: false\n"
    );
    run(&sockets, &["disk", "set-state", "--disk", "1", "--online"]).ok();
    let volume = list["volume_ids"][0].as_str().expect("a volume");
    let guid = volume
        .trim_start_matches(r"\\?\Volume{")
        .trim_end_matches(r"}\");
    run(&sockets, &["volume", "format", "--volume", guid]).ok();
    assert_eq!(
        run(&sockets, &["volume", "is-formatted", "--volume", volume]).ok(),
        "formatted: true\n"
    );
    let stats = run(
        &sockets,
        &[
            "volume",
            "VolumeStats",
            "--volume",
            volume,
            "--api-version=v1beta1",
        ],
    )
    .ok();
    assert!(stats.contains("volumeSize: "), "{stats}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_version_with_the_same_messages_is_used_if_the_newest_is_not_served() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    sockets.hide("csi-proxy-disk-v1");
    assert_eq!(
        run(&sockets, &["disk", "get-state", "--disk", "1"]).ok(),
        "is_online: true\n"
    );
    assert_eq!(daemon.calls("v1beta3.Disk", "GetDiskState"), 1);
    let explicit = run(
        &sockets,
        &["disk", "get-state", "--disk", "1", "--api-version", "v1"],
    );
    assert_eq!(explicit.code, Some(6), "{explicit:?}");
}
