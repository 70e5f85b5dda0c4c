//! The examples run on the simulated node. Kubelet repeats calls, so each step is repeated, also
//! after faults and crashes.

use std::sync::Arc;

use csi_proxy_client::{Client, Credentials, DiskNumber, DiskState};
use faults::{Call, Fault, FaultAction, Probed, When};
use os::OsError;
use os_sim::Sim;
use storage_ops::{Config, Node};

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

const SERIAL: &str = "vol0abc_00000001.";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\x\globalmount";
const TARGET: &str = r"C:\var\lib\kubelet\pods\y\mount";

/// The calls of kubelet for a volume on disk 1, in their order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Stage,
    Publish,
    Unpublish,
    Unstage,
}

const STEPS: [Step; 4] = [Step::Stage, Step::Publish, Step::Unpublish, Step::Unstage];

impl Step {
    async fn run(self, client: &Client) -> Result<(), stage_volume::Error> {
        match self {
            Self::Stage => stage_volume::stage(client, SERIAL, STAGING).await.map(drop),
            Self::Publish => stage_volume::publish(client, STAGING, TARGET).await,
            Self::Unpublish => stage_volume::unpublish(client, TARGET).await,
            Self::Unstage => stage_volume::unstage(client, SERIAL, STAGING).await,
        }
    }

    /// Returns the state of the node after the step: where the volume can be reached, and whether
    /// its disk is online.
    async fn end(client: &Client) -> ([bool; 2], DiskState) {
        let mut reached = [false; 2];
        for (path, is_there) in [STAGING, TARGET].into_iter().zip(&mut reached) {
            *is_there = client
                .volume()
                .get_volume_id_from_target_path(path)
                .await
                .is_ok();
        }
        (
            reached,
            client.disk().get_disk_state(DiskNumber(1)).await.unwrap(),
        )
    }

    fn expected_end(self) -> ([bool; 2], DiskState) {
        match self {
            Self::Stage | Self::Unpublish => ([true, false], DiskState::Online),
            Self::Publish => ([true, true], DiskState::Online),
            Self::Unstage => ([false, false], DiskState::Offline),
        }
    }
}

/// Disturbs each call of Windows that `matches` in each step, one at a time, and lets kubelet
/// repeat the step.
async fn disturb_each_primitive(matches: fn(&Call) -> bool, when: When, action: FaultAction) {
    for (at, step) in STEPS.into_iter().enumerate() {
        for nth in 0.. {
            let sim = os_sim::node().disk(10 << 30).serial(SERIAL).build();
            {
                let (_daemon, client) =
                    Daemon::in_memory(Node::new(sim.process(), Config::default()));
                for earlier in &STEPS[..at] {
                    earlier.run(&client).await.unwrap();
                }
            }
            let fault = Arc::new(Fault::at(nth, when, action).among(matches));
            let process = Arc::new(Probed::new(sim.process(), Arc::clone(&fault)));
            let (daemon, client) = Daemon::in_memory(Node::new(process, Config::default()));
            let disturbed = step.run(&client).await;
            daemon.stop().await;
            let Some(call) = fault.last_hit() else {
                assert!(nth > 0, "{step:?} makes no calls");
                break;
            };
            let (_daemon, client) = Daemon::in_memory(Node::new(sim.process(), Config::default()));
            let repeated = step.run(&client).await;
            assert!(
                repeated.is_ok(),
                "{step:?} {action:?} {call:?}: {disturbed:?}, then {repeated:?}"
            );
            let end = Step::end(&client).await;
            assert_eq!(
                end,
                step.expected_end(),
                "{step:?} {action:?} {call:?}: {disturbed:?}"
            );
            sim.invariants().expect("the invariants of the node hold");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_step_ends_well_whichever_primitive_failed() {
    disturb_each_primitive(
        |_| true,
        When::Before,
        FaultAction::Fail(OsError::ACCESS_DENIED),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_step_ends_well_wherever_csi_proxy_crashed() {
    // A crash after a call that changes nothing is one after the change before it.
    disturb_each_primitive(|call| call.mutates, When::After, FaultAction::Die).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_with_contents_at_the_target_is_not_removed() {
    let sim = node();
    let (_daemon, client) = Daemon::in_memory(Node::new(sim.process(), Config::default()));
    stage_volume::stage(&client, SERIAL, STAGING).await.unwrap();
    let inner = format!(r"{TARGET}\inner");
    client.filesystem().mkdir(&inner).await.unwrap();
    stage_volume::publish(&client, STAGING, TARGET)
        .await
        .unwrap_err();
    stage_volume::unpublish(&client, TARGET).await.unwrap_err();
    assert!(client.filesystem().path_exists(&inner).await.unwrap());
    client.filesystem().rmdir(&inner).await.unwrap();
    stage_volume::publish(&client, STAGING, TARGET)
        .await
        .unwrap();
}

#[tokio::test]
async fn no_disk_or_one_of_two_with_the_serial_number_is_formatted() {
    let sim = os_sim::node()
        .disk(1 << 30)
        .serial("vol-1")
        .disk(1 << 30)
        .serial("vol-1")
        .disk(1 << 30)
        .serial("vol-10")
        .build();
    let (_daemon, client) = Daemon::in_memory(Node::new(sim.process(), Config::default()));
    for serial in ["vol-1", "vol-"] {
        stage_volume::stage(&client, serial, STAGING)
            .await
            .unwrap_err();
    }
    assert!((1..=3).all(|disk| sim.volume_on(disk).is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_maps_and_unmaps_a_share() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let client = sockets.client();
    let (share, staging) = (
        r"\\fileserver\share",
        r"C:\var\lib\kubelet\plugins\smb\x\globalmount",
    );
    let credentials = Credentials {
        username: r"FILESERVER\anna",
        password: "hunter2",
    };
    for _ in 0..2 {
        map_share::stage(&client, share, credentials, staging)
            .await
            .unwrap();
    }
    assert!(client.filesystem().is_symlink(staging).await.unwrap());
    for _ in 0..2 {
        map_share::unstage(&client, share, staging).await.unwrap();
    }
    assert!(!client.filesystem().path_exists(staging).await.unwrap());
}
