//! Tests of operations that ask all devices of a node on which some do not answer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use faults::{Call, FaultAction, Layer, Layered, Probe, Probed};
use os::abi::{BusType, STORAGE_PORT_INTERFACE};
use os::{Os, OsError, OsResult, U16String, Uuid};
use os_sim::{DiskDescription, Sim};
use storage_ops::inspect::Inspector;
use storage_ops::{
    Config, DiskNumber, Error, ErrorKind, Executor, GetDiskNumberByName, ListDiskIds, Node,
    Operation, PartitionDisk, Rescan, VolumeId,
};

use crate::executor::settled;
use crate::quotas::spawn_for;
use crate::setup::{
    GIB, NoProbe, PARTITION, add_partition, node_on, partitioned_disk, raw_disk, set_online,
    traced, volume_on, volumes_of,
};

const EXTENTS: &str = "control VOLUME_GET_VOLUME_DISK_EXTENTS";
const UPDATE: &str = "control DISK_UPDATE_PROPERTIES";
const PROPERTY: &str = "control STORAGE_QUERY_PROPERTY";

/// A call of a primitive on an object whose name contains a text.
type HungCall = (&'static str, String);

/// A node of which some calls hang, on a clock that [`Self::run`] advances.
struct HangingNode {
    sim: Sim,
    os: Arc<dyn Os>,
    executor: Arc<Executor>,
    hangs: Arc<Hangs>,
}

/// A probe by which calls hang.
struct Hangs {
    process: Arc<Sim>,
    calls: Mutex<Vec<HungCall>>,
    is_over: AtomicBool,
    begun: AtomicUsize,
    running: AtomicUsize,
    /// The objects whose caches were written.
    flushed: Mutex<Vec<String>>,
}

impl Probe for Hangs {
    fn before(&self, call: &Call) -> FaultAction {
        if call.primitive == "flush" {
            self.flushed.lock().unwrap().push(call.object.clone());
        }
        if !self
            .calls
            .lock()
            .unwrap()
            .iter()
            .any(|(primitive, object)| call.primitive == *primitive && call.object.contains(object))
        {
            return FaultAction::Go;
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.running.fetch_add(1, Ordering::SeqCst);
        while !self.is_over.load(Ordering::SeqCst) {
            self.process.clock().sleep(Duration::from_secs(1));
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        FaultAction::Go
    }
}

impl HangingNode {
    fn new(sim: Sim, calls: Vec<HungCall>) -> Self {
        let sim = sim.held();
        let hangs = Arc::new(Hangs {
            process: sim.process(),
            calls: Mutex::new(calls),
            is_over: AtomicBool::new(false),
            begun: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            flushed: Mutex::default(),
        });
        let os: Arc<dyn Os> = Arc::new(Probed::new(sim.process(), Arc::clone(&hangs)));
        let executor = Arc::new(Executor::new(Arc::new(Node::new(
            Arc::clone(&os),
            Config::default(),
        ))));
        Self {
            sim,
            os,
            executor,
            hangs,
        }
    }

    /// Reads the node on another thread while time passes.
    fn inspect<R: Send + 'static>(&self, read: fn(&Inspector) -> R) -> R {
        let inspector = Inspector::new(Arc::clone(&self.os), &Config::default());
        let reading = thread::spawn(move || read(&inspector));
        // It must end long before.
        for _ in 0..20_000 {
            if reading.is_finished() {
                break;
            }
            self.sim.advance(Duration::from_millis(500));
            thread::sleep(Duration::from_millis(1));
        }
        assert!(reading.is_finished(), "the reading hangs");
        reading.join().unwrap()
    }

    /// Returns whether a request has written the cache of `volume`.
    fn has_flushed(&self, volume: VolumeId) -> bool {
        self.hangs
            .flushed
            .lock()
            .unwrap()
            .iter()
            .any(|object| object.contains(&guid(&volume)))
    }

    /// Runs `count` equal requests of different connections at once, while time passes.
    async fn run_many<O: Operation + Clone>(
        &self,
        count: u64,
        operation: O,
    ) -> Vec<Result<O::Output, Error>> {
        let requests: Vec<_> = (0..count)
            .map(|connection| spawn_for(&self.executor, connection, operation.clone()))
            .collect();
        // It must end long before.
        for _ in 0..20_000 {
            if requests.iter().all(tokio::task::JoinHandle::is_finished) {
                break;
            }
            self.sim.advance(Duration::from_millis(500));
            settled().await;
            thread::sleep(Duration::from_millis(1));
        }
        let mut results = Vec::new();
        for request in requests {
            assert!(request.is_finished(), "a request hangs");
            results.push(request.await.unwrap());
        }
        results
    }

    async fn run<O: Operation + Clone>(&self, operation: O) -> Result<O::Output, Error> {
        self.run_many(1, operation).await.remove(0)
    }

    /// Returns how many calls have hung, and how many of them still do.
    fn count(&self) -> (usize, usize) {
        (
            self.hangs.begun.load(Ordering::SeqCst),
            self.hangs.running.load(Ordering::SeqCst),
        )
    }

    /// Makes the calls end that hang, and lets later ones pass.
    fn end_hangs(&self) {
        self.hangs.calls.lock().unwrap().clear();
        self.hangs.is_over.store(true, Ordering::SeqCst);
        while self.count().1 > 0 {
            self.sim.advance(Duration::from_secs(1));
            thread::yield_now();
        }
    }
}

/// When a test fails, the runtime waits for the requests that hang.
impl Drop for HangingNode {
    fn drop(&mut self) {
        self.hangs.is_over.store(true, Ordering::SeqCst);
        if thread::panicking() {
            let sim = self.sim.clone();
            thread::spawn(move || {
                loop {
                    sim.advance(Duration::from_secs(1));
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
    }
}

fn guid(volume: &VolumeId) -> String {
    volume
        .to_string()
        .split(['{', '}'])
        .nth(1)
        .unwrap()
        .to_owned()
}

/// Returns the calls that hang of these volumes.
fn extents_of(volumes: &[VolumeId]) -> Vec<HungCall> {
    volumes
        .iter()
        .map(|volume| (EXTENTS, guid(volume)))
        .collect()
}

/// A node with three disks, of which disk 1 is on NVMe.
fn with_nvme() -> Sim {
    raw_disk()
        .bus(BusType::NVME)
        .page83_ascii("pvc-1")
        .disk(GIB)
        .page83_ascii("pvc-2")
        .build()
}

fn of_nvme(primitive: &'static str) -> HungCall {
    (primitive, "nvme#disk".to_owned())
}

/// A node with a volume on disk 1, which does not answer, and one on disk 2. Disk 3 has no
/// partition.
fn with_hung_volume() -> HangingNode {
    let sim = partitioned_disk().disk(GIB).partitioned().disk(GIB).build();
    let volume = volume_on(&node_on(&sim), 1);
    HangingNode::new(sim, extents_of(&[volume]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_does_not_answer_blocks_no_listing_and_is_listed_when_it_answers() {
    let node = HangingNode::new(with_nvme(), vec![of_nvme(PROPERTY)]);
    for ids in node.run_many(50, ListDiskIds).await {
        assert_eq!(ids.unwrap().len(), 2, "without one of three");
    }
    let (begun, running) = node.count();
    // As many as the share of the threads for all operations on all disks.
    assert!(running == begun && (1..=5).contains(&begun), "{begun}");
    for ids in node.run_many(50, ListDiskIds).await {
        assert_eq!(ids.unwrap().len(), 2, "without one of three");
    }
    assert_eq!(node.count(), (begun, running), "it is not asked again");
    node.end_hangs();
    while node.run(ListDiskIds).await.unwrap().len() < 3 {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_unavailable_while_a_disk_that_may_have_it_does_not_answer() {
    let node = HangingNode::new(with_nvme(), vec![of_nvme(PROPERTY)]);
    for name in ["pvc-1", "pvc-2", "pvc-3"] {
        let error = node
            .run(GetDiskNumberByName { name: name.into() })
            .await
            .unwrap_err();
        assert!(
            error.kind() == ErrorKind::Unavailable && error.to_string().contains("disk 1"),
            "{error}"
        );
    }
    node.end_hangs();
    while node
        .run(GetDiskNumberByName {
            name: "pvc-2".into(),
        })
        .await
        != Ok(DiskNumber(2))
    {}
    assert_eq!(
        node.run(GetDiskNumberByName {
            name: "pvc-1".into()
        })
        .await,
        Ok(DiskNumber(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_of_the_node_that_does_not_answer_hides_no_name() {
    let sim = raw_disk().bus(BusType::NVME).page83_ascii("pvc-1").build();
    let process = sim.process();
    let paths = process.device_interfaces(os::abi::DISK_INTERFACE).unwrap();
    let own = paths
        .iter()
        .map(|path| path.to_string_lossy())
        .find(|path| !path.contains("nvme#disk"))
        .unwrap();
    let own = own.trim_start_matches(r"\\?\").to_owned();
    let node = HangingNode::new(sim, Vec::new());
    let find = GetDiskNumberByName {
        name: "pvc-1".into(),
    };
    assert_eq!(node.run(find.clone()).await, Ok(DiskNumber(1)));
    // Its number is known of the first request.
    node.hangs.calls.lock().unwrap().push(("open", own));
    for _ in 0..2 {
        assert_eq!(node.run(find.clone()).await, Ok(DiskNumber(1)));
    }
    assert_eq!(node.count(), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_that_do_not_answer_are_each_asked_once() {
    let sim = os_sim::node()
        .disk(4 * GIB)
        .gpt()
        .disk(GIB)
        .partitioned()
        .build();
    for _ in 0..20 {
        add_partition(&sim, None, 20 << 20);
    }
    sim.advance(Duration::from_mins(1));
    let volumes = node_on(&sim).run(&volumes_of(1)).unwrap();
    let node = HangingNode::new(sim, extents_of(&volumes));
    for _ in 0..5 {
        assert_eq!(node.run(volumes_of(2)).await.unwrap().len(), 1);
        assert_eq!(node.count(), (20, 20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_does_not_answer_is_flushed_before_its_disk_is_taken_offline() {
    let node = with_hung_volume();
    let volume = volume_on(&node_on(&node.sim), 1);
    node.run(set_online(1, false)).await.unwrap();
    assert!(node.sim.disk(1).unwrap().offline);
    assert_eq!(node.count(), (1, 1));
    assert!(node.has_flushed(volume), "the storage provider knows it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_does_not_answer_hides_none_of_its_volumes() {
    let sim = raw_disk()
        .bus(BusType::NVME)
        .partitioned()
        .disk(GIB)
        .build();
    let volume = volume_on(&node_on(&sim), 1);
    let node = HangingNode::new(sim, vec![of_nvme(PROPERTY)]);
    assert_eq!(
        node.run(ListDiskIds).await.unwrap().len(),
        2,
        "without one of three"
    );
    assert_eq!(node.run(volumes_of(1)).await.unwrap(), [volume]);
    node.run(PARTITION).await.unwrap();
    node.run(set_online(1, false)).await.unwrap();
    assert!(node.has_flushed(volume));
    assert_eq!(node.executor.node().fallbacks(), []);
    assert_eq!(node.count(), (1, 1));
}

#[test]
fn the_other_readings_of_a_node_on_which_a_device_does_not_answer_are_returned() {
    let sim = partitioned_disk().disk(GIB).build();
    let volume = volume_on(&node_on(&sim), 1);
    // The device that is opened for the later queries.
    let mut calls = vec![(PROPERTY, "PhysicalDrive2".to_owned())];
    calls.extend(extents_of(&[volume]));
    let node = HangingNode::new(sim, calls);
    let (disks, error) = node.inspect(|inspector| inspector.disks().unwrap());
    assert_eq!(
        (disks.len(), error),
        (2, Some(OsError::SEM_TIMEOUT)),
        "without one of three"
    );
    let volumes = node.inspect(|inspector| inspector.volumes().unwrap());
    let late: Vec<_> = volumes
        .iter()
        .filter(|readings| readings.disks.is_err())
        .collect();
    assert!(
        late.len() == 1 && late[0].id == volume && volumes.len() > 1,
        "{volumes:?}"
    );
    assert_eq!(
        late[0].disks.as_ref().unwrap_err().code(),
        Some(OsError::SEM_TIMEOUT)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_that_does_not_answer_keeps_no_lock_of_another_disk() {
    let node = with_hung_volume();
    for online in [false, true] {
        node.run(set_online(2, online)).await.unwrap();
        assert_eq!(node.sim.disk(2).unwrap().offline, !online);
    }
    node.run(PartitionDisk {
        disk: DiskNumber(3),
    })
    .await
    .unwrap();
    assert_eq!(node.run(volumes_of(3)).await.unwrap().len(), 1);
    assert_eq!(node.executor.node().locked_objects(), 0);
    assert_eq!(node.count(), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_does_not_answer_blocks_no_rescan() {
    let node = HangingNode::new(with_nvme(), vec![of_nvme(UPDATE)]);
    for _ in 0..2 {
        for scan in node.run_many(10, Rescan).await {
            scan.unwrap();
        }
        assert_eq!(node.count(), (1, 1), "the second scan leaves it out");
        assert_eq!(node.executor.node().locked_objects(), 0);
    }
    node.end_hangs();
    node.hangs.is_over.store(false, Ordering::SeqCst);
    node.hangs.calls.lock().unwrap().push(of_nvme(UPDATE));
    while node.count() != (2, 1) {
        node.run(Rescan).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rescan_leaves_out_a_storage_port_that_does_not_answer() {
    /// A node with a further storage port.
    struct TwoPorts;
    impl Layer for TwoPorts {
        fn device_interfaces(&self, node: &dyn Os, class: Uuid) -> OsResult<Vec<U16String>> {
            let mut found = node.device_interfaces(class)?;
            if class == STORAGE_PORT_INTERFACE {
                found.insert(0, "hung port".into());
            }
            Ok(found)
        }
    }

    let sim = os_sim::node().build();
    sim.attach_disk(&DiskDescription::new(GIB), false).unwrap();
    let mut node = HangingNode::new(sim, vec![("reenumerate", "hung port".to_owned())]);
    node.os = Arc::new(Layered::around(Arc::clone(&node.os), TwoPorts));
    node.executor = Arc::new(Executor::new(Arc::new(Node::new(
        Arc::clone(&node.os),
        Config::default(),
    ))));
    node.run(Rescan).await.unwrap();
    assert!(node.sim.disk(1).is_some(), "the other port was scanned");
    assert_eq!(
        (node.count(), node.executor.node().locked_objects()),
        ((1, 1), 0)
    );
}

#[test]
fn a_rescan_updates_no_disk_that_is_a_mounted_file() {
    let sim = raw_disk().disk(GIB).vhd().build();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&Rescan).unwrap();
    assert_eq!(
        trace.counts().of(UPDATE),
        2,
        "the disk of the system and the other one"
    );
}
