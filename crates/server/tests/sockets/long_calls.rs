//! Calls that take long, and path lookups beside them.

use std::fmt::Write as _;

use api::filesystem::v1::PathExistsRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::smb::v1::NewSmbGlobalMappingRequest;
use api::smb::v1::smb_client::SmbClient;
use api::volume::v1::FormatVolumeRequest;
use api::volume::v1::volume_client::VolumeClient;
use os_sim::Sim;
use server::Limits;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::contract::Stopped;
use super::daemon::{Daemon, HANG_TIMEOUT, until};

/// More than a pool has threads.
const MANY: usize = 24;

/// A node with [`MANY`] volumes to format and as many file servers that answer after 30 s, with its
/// clock stopped.
fn node() -> Stopped {
    let mut node = String::new();
    for number in 1..=MANY {
        let _infallible = write!(
            node,
            "[[disk]]\nnumber = {number}\nsize = \"10 GiB\"\ncontent = \"partitioned\"\n\
             [[smb_server]]\nhost = \"slow{number}\"\nanswer_takes = \"30s\"\n\
             shares = [{{ name = \"share\" }}]\n\
             users = [{{ name = \"anna\", password = \"hunter2\" }}]\n"
        );
    }
    Stopped(Sim::from_toml(&node).expect("a node").held())
}

fn mapping(server: usize) -> NewSmbGlobalMappingRequest {
    NewSmbGlobalMappingRequest {
        remote_path: format!(r"\\slow{server}\share"),
        local_path: format!(r"C:\var\lib\kubelet\pods\smb{server}"),
        username: format!(r"SLOW{server}\anna"),
        password: "hunter2".into(),
    }
}

async fn path_exists(client: &mut FilesystemClient<tonic::transport::Channel>, path: &str) -> bool {
    let call = client.path_exists(PathExistsRequest { path: path.into() });
    timeout(HANG_TIMEOUT, call)
        .await
        .expect("no lookup waits for a long call")
        .expect("an answer")
        .into_inner()
        .exists
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn path_lookups_share_no_thread_no_slot_and_no_lock_with_long_calls() {
    let sim = node();
    let limits = Limits {
        calls: 8 * MANY,
        queue_timeout: HANG_TIMEOUT,
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &sim);
    let mut long = JoinSet::new();
    for number in 1..=MANY {
        let mut smb = SmbClient::new(daemon.channel("csi-proxy-smb-v1").await);
        long.spawn(async move { smb.new_smb_global_mapping(mapping(number)).await.map(drop) });
        let mut volume = VolumeClient::new(daemon.channel("csi-proxy-volume-v1").await);
        let disk = u32::try_from(number).expect("a small number");
        let volume_id = sim.volume_on(disk).expect("it is partitioned").name();
        long.spawn(async move {
            volume
                .format_volume(FormatVolumeRequest { volume_id })
                .await
                .map(drop)
        });
    }
    // One client more than fills the slots that it may have.
    let channel = daemon.channel("csi-proxy-smb-v1").await;
    for _ in 0..8 * MANY {
        let mut smb = SmbClient::new(channel.clone());
        long.spawn(async move { smb.new_smb_global_mapping(mapping(1)).await.map(drop) });
    }

    let exhausted = |daemon: &Daemon| {
        let status = daemon.server.metrics().status();
        let pools = status
            .pools
            .iter()
            .filter(|pool| pool.busy == pool.threads && pool.waiting > 0);
        pools.count() == 2 && status.counts.waiting_for_slot > 0 && status.locks.len() >= 2 * MANY
    };
    until(|| exhausted(&daemon)).await;
    let mut one = FilesystemClient::new(daemon.channel("csi-proxy-filesystem-v1").await);
    for number in 1..=MANY {
        let mut new = FilesystemClient::new(daemon.channel("csi-proxy-filesystem-v1").await);
        for client in [&mut one, &mut new] {
            assert!(path_exists(client, r"C:\var\lib\kubelet\pods").await);
            assert!(
                !path_exists(client, &mapping(number).local_path).await,
                "it is not mapped yet"
            );
        }
    }
    // The clock is stopped.
    assert!(
        exhausted(&daemon) && long.try_join_next().is_none(),
        "no long call has ended"
    );

    until(|| {
        sim.advance(std::time::Duration::from_secs(10));
        long.try_join_next().is_some_and(|ended| {
            ended
                .expect("no panic")
                .expect("the share is mapped, or the volume is formatted");
            false
        }) || long.is_empty()
    })
    .await;
}
