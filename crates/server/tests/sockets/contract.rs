//! The contract of calls: which calls wait for each other, what continues without its caller, what
//! old versions return.

use std::fmt::Debug;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use api::smb::v1::NewSmbGlobalMappingRequest;
use api::smb::v1::smb_client::SmbClient;
use api::volume::v1::FormatVolumeRequest;
use api::volume::v1::volume_client::VolumeClient;
use api::{GROUP_VERSIONS, Group, GroupVersion};
use os_sim::Sim;
use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_json::{Value, json};
use storage_ops::{Config, Executor, HostPath, Node};
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use super::daemon::{Daemon, Setup, until};
use super::frames::Client;
use super::good_input;
use super::transport::path_exists;

/// A node whose clock is stopped. When the test ends, its clock runs again, so that nothing hangs.
pub(crate) struct Stopped(pub(crate) Sim);

impl Deref for Stopped {
    type Target = Sim;

    fn deref(&self) -> &Sim {
        &self.0
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let sim = self.0.clone();
        std::thread::spawn(move || {
            loop {
                sim.advance(Duration::from_secs(10));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

/// A node with a disk and a file server that takes 30 s for each request, with its clock stopped.
pub(crate) fn slow_node() -> Stopped {
    let node = r#"
        [[disk]]
        size = "10 GiB"
        content = "partitioned"

        [[smb_server]]
        host = "slow"
        answer_takes = "30s"
        shares = [{ name = "share" }]
        users = [{ name = "anna", password = "hunter2" }]
    "#;
    Stopped(Sim::from_toml(node).expect("a node").held())
}

pub(crate) fn slow_mapping() -> NewSmbGlobalMappingRequest {
    NewSmbGlobalMappingRequest {
        remote_path: r"\\slow\share".into(),
        local_path: r"C:\var\lib\kubelet\pods\smb".into(),
        username: r"SLOW\anna".into(),
        password: "hunter2".into(),
    }
}

/// Begins the mapping on a connection of its own, and waits until it runs.
pub(crate) async fn begin_slow_mapping(
    daemon: &Daemon,
    sim: &Sim,
) -> JoinHandle<Result<(), Status>> {
    let mut smb = SmbClient::new(daemon.channel("csi-proxy-smb-v1").await);
    let mapping = tokio::spawn(async move {
        let answer = smb.new_smb_global_mapping(slow_mapping()).await;
        answer.map(drop)
    });
    until(|| sim.running_jobs() == 1).await;
    mapping
}

/// Asserts that the mapping succeeds.
pub(crate) async fn mapped<T: Debug>(mapping: JoinHandle<Result<T, Status>>) {
    mapping
        .await
        .expect("no panic")
        .expect("the share is mapped");
}

/// Advances the simulated clock until no operation runs.
pub(crate) async fn finish_operations(executor: &Executor, sim: &Sim) {
    until(|| {
        sim.advance(Duration::from_secs(10));
        executor.running() == 0
    })
    .await;
}

/// Calls an RPC, such as `disk/v1/Rescan`.
async fn call(daemon: &Daemon, rpc: &str, request: Value) -> Result<Value, Status> {
    let [group, version, rpc] = rpc.split('/').collect::<Vec<_>>()[..] else {
        panic!("{rpc}")
    };
    let mut rows = GROUP_VERSIONS.iter();
    let row = rows.find(|row| row.group.name() == group && row.version == version);
    let row = row.expect("it is in the table");
    let rpc = &dynamic_client::rpcs(row)[rpc];
    rpc.call(&daemon.channel(row.pipe()).await, &rpc.request(&request))
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_05_a_slow_mapping_delays_no_other_call() {
    let sim = slow_node();
    let daemon = Daemon::on(&sim);
    let channel = daemon.channel("csi-proxy-smb-v1").await;
    let mappings: Vec<_> = (0..32)
        .map(|_| {
            let mut client = SmbClient::new(channel.clone());
            tokio::spawn(async move { client.new_smb_global_mapping(slow_mapping()).await })
        })
        .collect();
    until(|| sim.running_jobs() == 1).await;
    for _ in 0..50 {
        assert!(path_exists(&daemon).await);
    }
    assert!(
        call(&daemon, "disk/v1/GetDiskStats", json!({"disk_number": 1}))
            .await
            .is_ok()
    );
    assert!(
        mappings.iter().all(|mapping| !mapping.is_finished()),
        "the clock is stopped"
    );
    finish_operations(&daemon.executor, &sim).await;
    for mapping in mappings {
        mapped(mapping).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_05_calls_of_one_connection_run_concurrently() {
    let sim = slow_node();
    let daemon = Daemon::groupless(&sim);
    let channel = daemon.channel("csi-proxy-v1").await;
    let mut smb = SmbClient::new(channel.clone());
    let mapping = tokio::spawn(async move { smb.new_smb_global_mapping(slow_mapping()).await });
    until(|| sim.running_jobs() == 1).await;
    let rows = dynamic_client::rpcs(
        GroupVersion::find(Group::Filesystem, "v1").expect("it is in the table"),
    );
    let rpc = &rows["PathExists"];
    let request = rpc.request(&json!({"path": r"C:\var\lib\kubelet"}));
    assert_eq!(
        rpc.call(&channel, &request).await.expect("it answers")["exists"],
        true
    );
    assert!(!mapping.is_finished());
    finish_operations(&daemon.executor, &sim).await;
    mapped(mapping).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_06_a_change_that_has_begun_finishes_without_its_caller_and_a_retry_joins_it() {
    let sim = slow_node();
    let daemon = Daemon::on(&sim);
    let volume = sim.volume_on(1).expect("disk 1 is partitioned");
    let format = async |channel| {
        VolumeClient::new(channel)
            .format_volume(FormatVolumeRequest {
                volume_id: volume.name(),
            })
            .await
    };
    let first = daemon.channel("csi-proxy-volume-v1").await;
    tokio::select! {
        answer = format(first) => panic!("the clock is stopped: {answer:?}"),
        () = until(|| sim.running_jobs() == 1) => {}
    }
    daemon
        .counted("grpc_server_handled_total{grpc_code=\"Canceled\",grpc_method=\"FormatVolume\"")
        .await;
    assert_eq!(
        (daemon.executor.running(), sim.running_jobs()),
        (1, 1),
        "it continues"
    );

    let second = daemon.channel("csi-proxy-volume-v1").await;
    let retry = async {
        format(second).await.expect("the volume is formatted");
    };
    let rest = async {
        let started = r#"grpc_server_started_total{grpc_method="FormatVolume",grpc_service="v1.Volume",grpc_type="unary"} 2"#;
        until(|| daemon.server.metrics().render().contains(started)).await;
        finish_operations(&daemon.executor, &sim).await;
    };
    tokio::join!(retry, rest);
    assert_eq!(sim.volume(volume.id).map(|volume| volume.formats), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_06_a_deadline_ends_the_call_but_not_the_operation() {
    let sim = slow_node();
    let daemon = Daemon::on(&sim);
    let volume = sim.volume_on(1).expect("disk 1 is partitioned");
    let request = FormatVolumeRequest {
        volume_id: volume.name(),
    }
    .encode_to_vec();
    // Not tonic's client, which would enforce the deadline itself.
    let mut client = Client::at(&daemon, "csi-proxy-volume-v1").await;
    assert_eq!(
        client
            .call_within("/v1.Volume/FormatVolume", b"x", "2S", &request)
            .await,
        Ok(())
    );
    daemon
        .counted(
            "grpc_server_handled_total{grpc_code=\"DeadlineExceeded\",grpc_method=\"FormatVolume\"",
        )
        .await;
    assert_eq!(daemon.executor.running(), 1, "it continues");
    finish_operations(&daemon.executor, &sim).await;
    assert_eq!(sim.volume(volume.id).map(|volume| volume.formats), Some(1));
}

#[tokio::test]
async fn contract_07_failures_have_a_fitting_code_and_a_request_id() {
    let sim = good_input::node();
    let external = sim.external();
    external
        .mkdir_all(r"C:\var\lib\kubelet\pods\full")
        .expect("a directory");
    external
        .write(r"C:\var\lib\kubelet\pods\full\file", b"")
        .expect("a file");
    let daemon = Daemon::on(&sim);
    let path = |path: &str| json!({"path": path});
    let link =
        |target: &str| json!({"source_path": r"C:\var\lib\kubelet\pods", "target_path": target});
    for (rpc, request, code) in [
        ("PathExists", path(""), Code::InvalidArgument),
        ("PathExists", path(r"C:\Windows"), Code::PermissionDenied),
        (
            "Rmdir",
            path(r"C:\var\lib\kubelet\pods\none"),
            Code::NotFound,
        ),
        (
            "Rmdir",
            path(r"C:\var\lib\kubelet\pods\full"),
            Code::FailedPrecondition,
        ),
        (
            "CreateSymlink",
            link(r"C:\var\lib\kubelet\pods\full"),
            Code::AlreadyExists,
        ),
    ] {
        let status = call(&daemon, &format!("filesystem/v1/{rpc}"), request)
            .await
            .expect_err(rpc);
        assert_eq!(status.code(), code, "{rpc}: {}", status.message());
        assert!(
            status.metadata().get("csi-proxy-request-id").is_some(),
            "{rpc}"
        );
    }
}

#[tokio::test]
async fn contract_22_an_unknown_field_of_format_volume_is_refused_and_others_are_ignored() {
    let sim = os_sim::node().disk(10 << 30).partitioned().build();
    let daemon = Daemon::on(&sim);
    let volume_id = sim.volume_on(1).expect("disk 1 is partitioned").name();
    let known = FormatVolumeRequest { volume_id }.encode_to_vec();
    // A text with the name of another file system, a number, and an empty group, each in field 2;
    // and a text in a field with a long number, before the known field.
    let mut unknown = [b"\x12\x05FAT32", &b"\x10\x01"[..], b"\x13\x14"]
        .map(|field| (2, [&known[..], field].concat()))
        .to_vec();
    unknown.push((2000, [b"\x82\x7d\x01x", &known[..]].concat()));
    let versions = GROUP_VERSIONS
        .iter()
        .filter(|row| row.group == Group::Volume);
    for row in versions {
        let rpcs = dynamic_client::rpcs(row);
        let channel = daemon.channel(row.pipe()).await;
        let call = async |name: &str, request: &[u8]| {
            let rpc = &rpcs[name];
            let numbers: Vec<_> = rpc.request.fields().map(|field| field.number()).collect();
            assert_eq!(numbers, [1], "{name}");
            let request = DynamicMessage::decode(rpc.request.clone(), request).expect("a message");
            rpc.call(&channel, &request).await
        };
        for (number, request) in &unknown {
            let status = call("FormatVolume", request).await.expect_err("unknown");
            texts::seen!(status.message());
            assert_eq!(status.code(), Code::InvalidArgument);
            assert!(
                status.message().contains(&format!("the number {number}")),
                "{status}"
            );
            let formatted = call("IsVolumeFormatted", request).await.expect("an answer");
            assert_eq!(formatted["formatted"], json!(false), "{}", row.pipe());
        }
    }
    let row = GROUP_VERSIONS.iter().find(|row| row.group == Group::Volume);
    let row = row.expect("a version");
    let rpc = &dynamic_client::rpcs(row)["FormatVolume"];
    let request = DynamicMessage::decode(rpc.request.clone(), &known[..]).expect("a message");
    rpc.call(&daemon.channel(row.pipe()).await, &request)
        .await
        .expect("the volume is formatted");
}

#[tokio::test]
async fn contract_10_paths_without_a_drive_are_on_the_drive_of_the_kubelet_directory() {
    let sim = os_sim::node()
        .disk(10 << 30)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\k\mnt")
        .build();
    let kubelet = HostPath::parse(r"C:\k").expect("a path");
    let config = Config::default().with(|c| c.kubelet_dir = kubelet);
    let daemon = Setup::default().at(Node::new(sim.process(), config));
    let id = sim.volume_on(1).expect("disk 1 is partitioned").name();
    for path in [r"\k\mnt", "/k/mnt", "c:/k/mnt/"] {
        let answer = call(
            &daemon,
            "volume/v1/GetVolumeIDFromTargetPath",
            json!({"target_path": path}),
        )
        .await;
        assert_eq!(answer.expect(path)["volume_id"], json!(id));
        let answer = call(
            &daemon,
            "filesystem/v1beta1/IsMountPoint",
            json!({"path": path}),
        )
        .await;
        assert_eq!(
            answer.expect(path),
            json!({"error": "", "is_mount_point": true})
        );
    }
    let strict = call(
        &daemon,
        "filesystem/v1/PathExists",
        json!({"path": r"\k\mnt"}),
    )
    .await;
    assert_eq!(strict.expect_err("no drive").code(), Code::InvalidArgument);
}

#[tokio::test]
async fn contract_16_a_mounted_vhdx_is_not_listed_and_a_lun_is_a_bare_number() {
    let sim = os_sim::node()
        .disk(10 << 30)
        .disk(10 << 30)
        .vhd()
        .disk(10 << 30)
        .location("Integrated : Bus 12606208 : Device 0 : Function 0 : Adapter 0")
        .build();
    let daemon = Daemon::on(&sim);
    let answer = call(&daemon, "disk/v1beta1/ListDiskLocations", json!({}))
        .await
        .expect("a list");
    let location = |adapter: &str, bus: &str, target: &str, lun: &str| json!({"Adapter": adapter, "Bus": bus, "Target": target, "LUNID": lun});
    let expected = json!({"disk_locations": {
        "0": location("0", "", "0", "0"),
        "1": location("3", "", "0", "1"),
        "3": location("0", "12606208", "", ""),
    }});
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn contract_17_old_versions_have_exactly_two_identifiers() {
    let sim = os_sim::node()
        .disk(10 << 30)
        .no_page83()
        .serial("vol0abc_00000001.")
        .build();
    let daemon = Daemon::on(&sim);
    for version in ["v1beta2", "v1beta1"] {
        let answer = call(&daemon, &format!("disk/{version}/ListDiskIDs"), json!({}))
            .await
            .expect("a list");
        let identifiers =
            json!({"identifiers": {"page83": "", "serialNumber": "vol0abc_00000001."}});
        assert_eq!(answer["diskIDs"]["1"], identifiers);
    }
}

#[tokio::test]
async fn contract_27_the_size_in_old_versions_is_the_total_size() {
    let sim = os_sim::node()
        .disk(10 << 30)
        .partitioned()
        .formatted("NTFS")
        .build();
    let daemon = Daemon::on(&sim);
    let volume = sim.volume_on(1).expect("disk 1 is partitioned");
    let request = json!({"volume_id": volume.name()});
    let new = call(&daemon, "volume/v1/GetVolumeStats", request.clone())
        .await
        .expect("numbers");
    assert_eq!(new["total_bytes"], json!(volume.total.to_string()));
    for version in ["v1beta1", "v1beta2"] {
        let old = call(
            &daemon,
            &format!("volume/{version}/VolumeStats"),
            request.clone(),
        )
        .await
        .expect("numbers");
        assert_eq!(
            old,
            json!({"volumeSize": new["total_bytes"], "volumeUsedSize": new["used_bytes"]})
        );
    }
}

#[tokio::test]
async fn contract_31_path_contexts_restrict_only_if_their_directories_are_configured() {
    let (plugins, pods) = (r"C:\var\lib\kubelet\plugins", r"C:\var\lib\kubelet\pods");
    let sim = os_sim::node().build();
    let configured = |path: &str| Some(HostPath::parse(path).expect("a path"));
    let config = Config::default().with(|c| {
        c.plugin_dir = configured(plugins);
        c.pod_dir = configured(pods);
    });
    let (lax, strict) = (
        Daemon::on(&sim),
        Setup::default().at(Node::new(sim.process(), config)),
    );
    for (context, mine, other) in [("PLUGIN", plugins, pods), ("POD", pods, plugins)] {
        let outcome = async |daemon: &Daemon, path: &str| {
            let request = json!({"path": path, "context": context});
            let answer = call(daemon, "filesystem/v1beta1/PathExists", request).await;
            answer
                .map(|answer| answer["exists"].clone())
                .map_err(|status| status.code())
        };
        assert_eq!(
            outcome(&strict, &format!(r"{mine}\x")).await,
            Ok(json!(false))
        );
        assert_eq!(
            outcome(&strict, &format!(r"{other}\x")).await,
            Err(Code::PermissionDenied)
        );
        assert_eq!(
            outcome(&lax, &format!(r"{other}\x")).await,
            Ok(json!(false))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contract_31_a_disk_number_as_volume_id_means_the_first_volume_of_the_disk_only_in_resize_volume()
 {
    let sim = os_sim::node()
        .disk(10 << 30)
        .partitioned()
        .formatted("NTFS")
        .grown_to(20 << 30)
        .build();
    let daemon = Daemon::on(&sim);
    let before = sim.volume_on(1).expect("disk 1 is partitioned").total;
    call(&daemon, "volume/v1/ResizeVolume", json!({"volume_id": "1"}))
        .await
        .expect("it grows");
    assert!(sim.volume_on(1).expect("the volume still exists").total > before);
    let status = call(
        &daemon,
        "volume/v1/GetVolumeStats",
        json!({"volume_id": "1"}),
    )
    .await;
    assert_eq!(
        status.expect_err("no volume id").code(),
        Code::InvalidArgument
    );
}

/// A probe that panics in a primitive, without a message on the terminal.
struct Defect(&'static str);

impl faults::Probe for Defect {
    fn before(&self, call: &faults::Call) -> faults::FaultAction {
        if call.primitive == self.0 {
            resume_unwind(Box::new("a deliberate defect"));
        }
        faults::FaultAction::Go
    }
}

#[tokio::test]
async fn after_a_panic_in_an_operation_the_status_is_internal_and_the_server_keeps_serving() {
    let sim = good_input::node();
    let os = faults::Probed::new(sim.process(), Defect("device_interfaces"));
    let daemon = Setup::default().at(Node::new(Arc::new(os), Config::default()));
    for _ in 0..40 {
        let status = call(&daemon, "disk/v1/ListDiskIDs", json!({}))
            .await
            .expect_err("it panics");
        assert_eq!(status.code(), Code::Internal);
        assert!(
            status
                .message()
                .ends_with("a defect in csi-proxy stopped the operation; see the log"),
            "{status}"
        );
    }
    assert!(path_exists(&daemon).await);
    assert_eq!(daemon.executor.running(), 0);
}
