//! The examples run on the simulated node. Kubelet repeats calls, so each step is repeated.

use csi_proxy_client::Credentials;
use os_sim::Sim;

use super::daemon::{Daemon, Sockets};
use super::node::node;

#[path = "../../examples/map_share/calls.rs"]
mod map_share;
#[path = "../../examples/stage_volume/calls.rs"]
mod stage_volume;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_run_on_the_built_in_node() {
    let (sim, sockets) = (Sim::default_node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    for _ in 0..2 {
        stage_volume::run(&sockets.client()).await.unwrap();
        map_share::run(&sockets.client()).await.unwrap();
    }
    sim.invariants().expect("the invariants of the node hold");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_stages_publishes_and_unstages_a_disk() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let client = sockets.client();
    let (staging, target) = (r"C:\var\lib\kubelet\plugins\x\globalmount", r"C:\var\lib\kubelet\pods\y\mount");
    for _ in 0..2 {
        let stats = stage_volume::stage(&client, "vol0abc", staging).await.unwrap();
        assert!(stats.total_bytes > 9 << 30);
    }
    for _ in 0..2 {
        stage_volume::publish(&client, staging, target).await.unwrap();
    }
    let published = client.volume().get_volume_id_from_target_path(target).await.unwrap();
    assert_eq!(published, sim.volume_on(1).expect("it was partitioned").name());
    for _ in 0..2 {
        stage_volume::unpublish(&client, target).await.unwrap();
    }
    for _ in 0..2 {
        stage_volume::unstage(&client, staging).await.unwrap();
    }
    assert!(!client.filesystem().path_exists(staging).await.unwrap());
    sim.invariants().expect("the invariants of the node hold");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_maps_and_unmaps_a_share() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let client = sockets.client();
    let (share, staging) = (r"\\fileserver\share", r"C:\var\lib\kubelet\plugins\smb\x\globalmount");
    let credentials = Credentials { username: r"FILESERVER\anna", password: "hunter2" };
    for _ in 0..2 {
        map_share::stage(&client, share, credentials, staging).await.unwrap();
    }
    assert!(client.filesystem().is_symlink(staging).await.unwrap());
    for _ in 0..2 {
        map_share::unstage(&client, share, staging).await.unwrap();
    }
    assert!(!client.filesystem().path_exists(staging).await.unwrap());
}
