//! The status of a server: calls in progress, and the last failures.

use std::time::Duration;

use api::disk::v1::disk_client::DiskClient;
use api::disk::v1::{GetDiskStatsRequest, PartitionDiskRequest};
use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::smb::v1::smb_client::SmbClient;
use tonic::Code;

use super::contract::{finish_operations, mapped, slow_mapping, slow_node};
use super::daemon::{Daemon, until};
use super::node::node;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_lists_running_calls_and_failures_without_users_and_passwords() {
    let sim = slow_node();
    let daemon = Daemon::on(&sim);
    let status = || daemon.server.metrics().status();
    assert!(status().calls.is_empty() && status().rpcs.is_empty() && status().failures.is_empty());

    let mut smb = SmbClient::new(daemon.channel("csi-proxy-smb-v1").await);
    let request = slow_mapping();
    let (user, password) = (request.username.clone(), request.password.clone());
    assert!(!user.is_empty() && !password.is_empty());
    let mapping = tokio::spawn(async move { smb.new_smb_global_mapping(request).await });
    until(|| sim.running_jobs() == 1).await;
    let mut files = FilesystemClient::new(daemon.channel("csi-proxy-filesystem-v1").await);
    let bad = files
        .path_exists(PathExistsRequest {
            path: r"D:\elsewhere".into(),
        })
        .await
        .expect_err("it is outside");

    let found = status();
    let [call] = found.calls.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(
        (call.rpc, call.state.as_str(), call.has_caller),
        ("/v1.Smb/NewSmbGlobalMapping", "running", true)
    );
    assert!(
        call.call.is_some() && call.connection.is_some() && call.object.starts_with(r"map \\"),
        "{call:?}"
    );
    assert!(
        found
            .locks
            .iter()
            .any(|lock| lock.held_by == [call.call.unwrap()]),
        "{:?}",
        found.locks
    );
    let [failure] = found.failures.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(
        (failure.rpc, failure.count),
        ("/v1.Filesystem/PathExists", 1)
    );
    assert_eq!(failure.message, bad.message());
    let id = bad
        .metadata()
        .get("csi-proxy-request-id")
        .expect("a number")
        .to_str()
        .expect("digits");
    assert_eq!(failure.call.to_string(), id);
    let rpcs: Vec<_> = found
        .rpcs
        .iter()
        .map(|rpc| (rpc.rpc, rpc.started, rpc.succeeded, rpc.failed))
        .collect();
    assert_eq!(
        rpcs,
        [
            ("/v1.Filesystem/PathExists", 1, 0, 1),
            ("/v1.Smb/NewSmbGlobalMapping", 1, 0, 0)
        ]
    );
    assert!(
        found
            .pools
            .iter()
            .any(|pool| pool.name == "remote" && pool.busy == 1),
        "{:?}",
        found.pools
    );
    let json = serde_json::to_string(&found).expect("JSON");
    assert!(
        !json.contains(&user.replace('\\', r"\\")) && !json.contains(&password),
        "{json}"
    );

    finish_operations(&daemon.executor, &sim).await;
    mapped(mapping).await;
    let after = status();
    assert!(
        after.calls.is_empty() && after.locks.is_empty(),
        "{after:?}"
    );
    let summary = after
        .rpcs
        .iter()
        .find(|rpc| rpc.rpc.contains("Mapping"))
        .expect("it was called");
    assert!(
        summary.succeeded == 1 && summary.mean_seconds.is_some(),
        "{summary:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_about_what_does_not_exist_is_no_failure() {
    let daemon = Daemon::on(&node());
    let mut disks = DiskClient::new(daemon.channel("csi-proxy-disk-v1").await);
    let query = disks
        .get_disk_stats(GetDiskStatsRequest { disk_number: 99 })
        .await
        .expect_err("it does not exist");
    let change = disks
        .partition_disk(PartitionDiskRequest { disk_number: 99 })
        .await
        .expect_err("it does not exist");
    assert_eq!([query.code(), change.code()], [Code::NotFound; 2]);
    let status = daemon.server.metrics().status();
    let listed: Vec<_> = status
        .failures
        .into_iter()
        .map(|failure| failure.rpc)
        .collect();
    assert_eq!(listed, ["/v1.Disk/PartitionDisk"]);
    let failed: Vec<_> = status
        .rpcs
        .iter()
        .map(|rpc| (rpc.rpc, rpc.succeeded, rpc.failed))
        .collect();
    assert_eq!(
        failed,
        [
            ("/v1.Disk/PartitionDisk", 0, 1),
            ("/v1.Disk/GetDiskStats", 1, 0)
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_ends_at_its_deadline_is_never_cancelled_by_the_caller_and_names_its_object() {
    let sim = slow_node();
    let daemon = Daemon::on(&sim);
    let client = SmbClient::new(daemon.channel("csi-proxy-smb-v1").await);
    // The client and the daemon notice at nearly the same time that the deadline has passed.
    let calls: Vec<_> = (0..16)
        .map(|_| {
            let mut client = client.clone();
            let mut mapping = slow_mapping();
            mapping.local_path.push('\u{202e}');
            let mut request = tonic::Request::new(mapping);
            request.set_timeout(Duration::from_millis(300));
            tokio::spawn(async move { client.new_smb_global_mapping(request).await })
        })
        .collect();
    for call in calls {
        call.await
            .expect("no panic")
            .expect_err("the server is slow");
    }
    let failures = || daemon.server.metrics().status().failures;
    until(|| failures().iter().map(|failure| failure.count).sum::<u64>() == 16).await;
    let [failure] = &failures()[..] else {
        panic!("{:?}", failures())
    };
    assert_eq!(failure.code, "DeadlineExceeded");
    let message = r"cannot map \\slow\share at C:\var\lib\kubelet\pods\smb\u{202e}: the caller's deadline of 300.0ms has passed; ";
    assert!(failure.message.starts_with(message), "{}", failure.message);
    finish_operations(&daemon.executor, &sim).await;
}
