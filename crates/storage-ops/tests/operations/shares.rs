//! Tests of the shares of the worker threads that clients and resources have.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use faults::{Call, FaultAction, Probe, Probed};
use os::Os as _;
use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, ClientId, Config, DiskNumber, Error, Executor, GetDiskNumberByName, GetDiskState, Kind,
    ListDiskIds, ListVolumesOnDisk, NewSmbGlobalMapping, Node, Operation, Rescan, Secret, TargetPortal, UncPath,
    VolumeId,
};
use tokio::task::JoinHandle;

use crate::concurrency::ends;
use crate::executor::{Gate, OpenOnDrop, executor, settled};
use crate::setup::{GIB, add_partition, node_on, volume_on};

pub(crate) fn spawn_for<O: Operation>(
    executor: &Arc<Executor>,
    client: u64,
    operation: O,
) -> JoinHandle<Result<O::Output, Error>> {
    let executor = Arc::clone(executor);
    tokio::spawn(async move { executor.run_for(ClientId(client), operation).await })
}

fn map(remote: &str) -> NewSmbGlobalMapping {
    let (username, password) = (r"FILES\user".into(), Secret::new("pw".into()));
    NewSmbGlobalMapping { remote: UncPath::parse(remote).unwrap(), local: None, username, password }
}

fn add(address: &str) -> AddTargetPortal {
    AddTargetPortal { portal: TargetPortal::parse(address, 0).unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn contract_05_calls_to_a_slow_server_do_not_delay_a_mapping_on_another_server() {
    let sim = os_sim::node().smb_server("files").share("one").user("user", "pw").build();
    let gate = Gate::closed(|call| call.is_wmi() && call.object.contains("slow"));
    let (executor, _) = executor(&sim, &gate);
    let _open_on_drop = OpenOnDrop(gate.clone());
    // All of one driver, which has one connection.
    let slow: Vec<_> = (0..400).map(|n| spawn_for(&executor, 1, map(&format!(r"\\slow\share{n}")))).collect();
    gate.reached_by(5).await;
    settled().await;
    executor.run_for(ClientId(1), map(r"\\files\one")).await.unwrap();
    gate.open();
    for one in slow {
        assert!(one.await.unwrap().is_err(), "there is no such server");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_with_calls_to_dead_portals_do_not_keep_others_out() {
    let sim = os_sim::node().disk(GIB).iscsi_portal("10.0.0.1", 3260).build();
    let gate = Gate::closed(|call| call.is_wmi() && call.object.contains("10.9."));
    let (executor, _) = executor(&sim, &gate);
    let _open_on_drop = OpenOnDrop(gate.clone());
    let dead = |client, count| (0..count).map(move |n| (client, add(&format!("10.9.{client}.{n}"))));
    let dead: Vec<_> = dead(1, 250).chain(dead(2, 30)).map(|(client, add)| spawn_for(&executor, client, add)).collect();
    gate.reached_by(10).await;
    settled().await;
    for _ in 0..28 {
        executor.run_for(ClientId(3), Rescan).await.unwrap();
    }
    executor.run_for(ClientId(3), add("10.0.0.1")).await.unwrap();
    executor.run_for(ClientId(4), storage_ops::ListTargetPortals).await.unwrap();
    gate.open();
    for one in dead {
        drop(one.await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_of_a_lost_disk_do_not_delay_those_of_another() {
    let sim = os_sim::node().disk(GIB).disk(GIB).build();
    let gate = Gate::closed(|call| call.object.contains("PhysicalDrive1"));
    let (executor, _) = executor(&sim, &gate);
    let _open_on_drop = OpenOnDrop(gate.clone());
    let state_of = |client, disk| spawn_for(&executor, client, GetDiskState { disk: DiskNumber(disk) });
    let lost: Vec<_> = (0..300).map(|client| state_of(client, 1)).collect();
    gate.reached_by(5).await;
    settled().await;
    assert!(state_of(1, 2).await.unwrap().unwrap());
    gate.open();
    for one in lost {
        drop(one.await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_does_not_answer_delays_no_listing_for_long() {
    static QUERIES: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let sim = os_sim::node().disk(GIB).partitioned().disk(GIB).partitioned().build();
    // The first query of a volume and the first one of a disk hang.
    let hung = sim.process().volumes().unwrap()[0].to_string_lossy();
    let other = if volume_on(&node_on(&sim), 2).to_string() == hung { 1 } else { 2 };
    let gate = Gate::closed(|call| match &*call.primitive {
        "control VOLUME_GET_VOLUME_DISK_EXTENTS" => QUERIES[0].fetch_add(1, Ordering::SeqCst) == 0,
        "control STORAGE_QUERY_PROPERTY" => QUERIES[1].fetch_add(1, Ordering::SeqCst) == 0,
        _ => false,
    });
    let (executor, _) = executor(&sim, &gate);
    let _open_on_drop = OpenOnDrop(gate.clone());
    let list = |disk| ListVolumesOnDisk { disk: DiskNumber(disk), partition: 0 };
    let volumes = spawn_for(&executor, 1, list(3 - other));
    let ids = spawn_for(&executor, 1, ListDiskIds);
    gate.reached_by(2).await;
    sim.advance(Duration::from_secs(10));
    for client in 0..50 {
        assert_eq!(executor.run_for(ClientId(client), list(other)).await.unwrap().len(), 1);
        assert_eq!(executor.run_for(ClientId(client), ListDiskIds).await.unwrap().len(), 2, "without one of three");
    }
    gate.open();
    assert_eq!(volumes.await.unwrap().unwrap().len(), 1);
    assert_eq!(ids.await.unwrap().unwrap().len(), 3);
}

/// A node with three disks, one of them on NVMe.
fn with_nvme() -> Sim {
    os_sim::node().disk(GIB).bus(os::abi::BusType::NVME).disk(GIB).build()
}

fn is_query_of_nvme(call: &Call) -> bool {
    call.primitive == "control STORAGE_QUERY_PROPERTY" && call.object.contains("nvme#disk")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_does_not_answer_delays_listings_for_seconds_and_keeps_one_thread() {
    let sim = with_nvme().held();
    let gate = Gate::closed(is_query_of_nvme);
    let (executor, _) = executor(&sim, &gate);
    let _open_on_drop = OpenOnDrop(gate.clone());
    let mut listings: Vec<_> = (0..50).map(|client| spawn_for(&executor, client, ListDiskIds)).collect();
    gate.reached_by(1).await;
    assert!(!ends(&listings[0]).await);
    assert_eq!(gate.count(), 1, "the others wait without asking");
    sim.advance(Duration::from_secs(6));
    while listings.len() > 1 {
        settled().await;
        for one in listings.extract_if(.., |one| one.is_finished()) {
            assert_eq!(one.await.unwrap().unwrap().len(), 2, "without one of three");
        }
    }
    assert_eq!(gate.count(), 1);
    let error = executor.run(GetDiskNumberByName { name: "pvc-x".into() }).await.unwrap_err();
    assert!(error.kind() == Kind::Unavailable && error.to_string().contains("disk 1"), "{error}");
    gate.open();
    assert_eq!(listings.remove(0).await.unwrap().unwrap().len(), 3);
}

/// A disk that answers slowly. All answers together take less time than after which a query counts as hanging: simulated
/// time also passes for a thread that asks another disk and does not run at the moment. (The tests of `device_queries` have
/// a device that takes a second for each of fifty answers.)
struct SlowAnswers(Sim);

impl Probe for SlowAnswers {
    fn before(&self, call: &Call) -> FaultAction {
        if is_query_of_nvme(call) {
            self.0.process().clock().sleep(Duration::from_millis(40));
        }
        FaultAction::Go
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_listing_lacks_a_disk_that_answers_slowly() {
    let sim = with_nvme();
    let node = Node::new(Arc::new(Probed::new(sim.process(), SlowAnswers(sim.clone()))), Config::default());
    let executor = Arc::new(Executor::new(Arc::new(node)));
    let listings: Vec<_> = (0..50).map(|client| spawn_for(&executor, client, ListDiskIds)).collect();
    for one in listings {
        assert_eq!(one.await.unwrap().unwrap().len(), 3);
    }
}

/// The GUIDs of the volumes that do not answer.
static HUNG: OnceLock<Vec<String>> = OnceLock::new();

#[tokio::test(flavor = "multi_thread")]
async fn volumes_that_do_not_answer_keep_one_thread_for_their_disk() {
    let sim = os_sim::node().disk(4 * GIB).gpt().disk(GIB).partitioned().build();
    for _ in 0..20 {
        add_partition(&sim, None, 20 << 20);
    }
    sim.advance(Duration::from_mins(1));
    let sim = sim.held();
    let gate = Gate::closed(|call| {
        let is_query = call.primitive == "control VOLUME_GET_VOLUME_DISK_EXTENTS";
        is_query && HUNG.get().is_some_and(|hung| hung.iter().any(|guid| call.object.contains(guid)))
    });
    let (executor, _) = executor(&sim, &gate);
    let _open_on_drop = OpenOnDrop(gate.clone());
    let list = |client, disk| spawn_for(&executor, client, ListVolumesOnDisk { disk: DiskNumber(disk), partition: 0 });
    let volumes = list(0, 1).await.unwrap().unwrap();
    assert_eq!(volumes.len(), 20);
    let guid = |volume: &VolumeId| volume.to_string().split(['{', '}']).nth(1).unwrap().to_owned();
    HUNG.set(volumes.iter().map(guid).collect()).unwrap();
    let hung = list(1, 2);
    gate.reached_by(1).await;
    sim.advance(Duration::from_secs(6));
    for client in 2..20 {
        assert_eq!(list(client, 2).await.unwrap().unwrap().len(), 1);
    }
    assert_eq!(gate.count(), 1);
    gate.open();
    assert_eq!(hung.await.unwrap().unwrap().len(), 1);
}
