//! Tests of the executor with many callers.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::concurrency::spawn;
use crate::setup::{PARTITION, exists, is_link, map_at, ntfs, raw_disk};
use faults::{Call, FaultAction, Outcome, Probe, Probed, Trace};
use os_sim::Sim;
use storage_ops::{Config, Executor, NewSmbGlobalMapping, Node, Rescan};

/// Blocks some calls until it is opened. A test that ends opens it too: otherwise the runtime would
/// wait for the calls.
pub(crate) struct Gate(Arc<Blocks>);

/// The probe of a gate.
pub(crate) struct Blocks {
    calls: BlockedCalls,
    /// Whether the gate is open, and how many calls have reached it.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

enum BlockedCalls {
    /// Each call that matches, before the node answers it.
    Before(fn(&Call) -> bool),
    /// The first call that matches, after the node has answered it.
    FirstAfter(fn(&Call, Outcome) -> bool),
}

impl Gate {
    /// Returns a gate that blocks each call that matches, before the node answers it.
    pub(crate) fn closed(blocks: fn(&Call) -> bool) -> Self {
        Self::new(BlockedCalls::Before(blocks))
    }

    /// Returns a gate that blocks the first call that matches, after the node has answered it.
    pub(crate) fn closed_after(blocks: fn(&Call, Outcome) -> bool) -> Self {
        Self::new(BlockedCalls::FirstAfter(blocks))
    }

    fn new(calls: BlockedCalls) -> Self {
        Self(Arc::new(Blocks {
            calls,
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    pub(crate) fn probe(&self) -> Arc<Blocks> {
        Arc::clone(&self.0)
    }

    pub(crate) fn open(&self) {
        self.0.state.lock().unwrap().0 = true;
        self.0.changed.notify_all();
    }

    /// Waits until `count` calls are blocked.
    pub(crate) async fn reached_by(&self, count: usize) {
        let gate = self.probe();
        tokio::task::spawn_blocking(move || {
            drop(
                gate.changed
                    .wait_while(gate.state.lock().unwrap(), |state| state.1 < count)
                    .unwrap(),
            );
        })
        .await
        .unwrap();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Blocks {
    fn block(&self, mut state: MutexGuard<'_, (bool, usize)>) {
        state.1 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.0).unwrap());
    }
}

impl Probe for Blocks {
    fn before(&self, call: &Call) -> FaultAction {
        if let BlockedCalls::Before(blocks) = self.calls
            && blocks(call)
        {
            self.block(self.state.lock().unwrap());
        }
        FaultAction::Go
    }

    fn after(&self, call: &Call, outcome: Outcome) -> FaultAction {
        if let BlockedCalls::FirstAfter(blocks) = self.calls
            && blocks(call, outcome)
        {
            let state = self.state.lock().unwrap();
            if state.1 == 0 {
                self.block(state);
            }
        }
        FaultAction::Go
    }
}

pub(crate) fn executor(sim: &Sim, gate: &Gate) -> (Arc<Executor>, Arc<Trace>) {
    let trace = Arc::new(Trace::recording());
    let probed = Probed::new(
        Arc::new(Probed::new(sim.process(), gate.probe())),
        Arc::clone(&trace),
    );
    (
        Arc::new(Executor::new(Arc::new(Node::new(
            Arc::new(probed),
            Config::default(),
        )))),
        trace,
    )
}

pub(crate) fn map(local: &str) -> NewSmbGlobalMapping {
    map_at(r"\\files\one", r"FILES\user", "pw", local)
}

#[tokio::test(flavor = "multi_thread")]
async fn links_to_a_dead_server_or_a_lost_disk_do_not_delay_local_paths() {
    let plugins = r"C:\var\lib\kubelet\plugins";
    let sim = ntfs()
        .mounted(&format!(r"{plugins}\v"))
        .symlink(&format!(r"{plugins}\share"), r"\\files\one\")
        .symlink(&format!(r"{plugins}\chain"), &format!(r"{plugins}\share"))
        .build();
    let gate = Gate::closed(|call| {
        call.object.contains("UNC")
            || call.object.ends_with("below")
            || call.object.starts_with(r"\??\Volume")
    });
    let (executor, _) = executor(&sim, &gate);
    let mut all = tokio::task::JoinSet::new();
    let below = [r"\plugins\share\below", r"\plugins\chain\below"];
    for link in [r"\plugins\share", r"\plugins\v", below[0], below[1]].repeat(50) {
        let executor = Arc::clone(&executor);
        // The paths below the links do not exist, but only the target of a link can report that.
        all.spawn(
            async move { executor.run(is_link(link)).await.is_ok() || below.contains(&link) },
        );
    }
    // A share of the threads for remote paths and one of those for disks.
    gate.reached_by(10).await;
    assert!(executor.run(exists(r"\pods")).await.unwrap());
    gate.open();
    assert_eq!(all.join_all().await, vec![true; 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rescans_requested_while_one_runs_share_the_next_one() {
    let (sim, gate) = (
        raw_disk().build(),
        Gate::closed(|call| call.primitive == "reenumerate"),
    );
    let (executor, trace) = executor(&sim, &gate);
    let mut all = vec![spawn(&executor, Rescan)];
    gate.reached_by(1).await;
    all.extend((0..50).map(|_| spawn(&executor, Rescan)));
    // All requests must be queued before the first can end.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    gate.open();
    for one in all {
        one.await.unwrap().unwrap();
    }
    let scans = trace
        .counts()
        .of("wmi call MSFT_StorageSetting.UpdateHostStorageCache");
    assert!((2..51).contains(&scans), "{scans}");
}

/// Requests a partition on disk 1; aborting the task cancels the request.
fn partition(executor: &Arc<Executor>) -> tokio::task::JoinHandle<Result<(), storage_ops::Error>> {
    spawn(executor, PARTITION)
}

/// Lets all tasks of a runtime with one thread run until they are blocked.
pub(crate) async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn layout(call: &Call) -> bool {
    call.primitive == "control DISK_GET_DRIVE_LAYOUT_EX"
}

#[tokio::test]
async fn a_caller_that_cancels_before_the_first_change_leaves_the_node_unchanged() {
    // Another node may have mounted a disk that is partitioned and offline.
    for sim in [raw_disk().build(), ntfs().offline().build()] {
        let gate = Gate::closed(layout);
        let (executor, _) = executor(&sim, &gate);
        let before = sim.snapshot();
        let request = partition(&executor);
        gate.reached_by(1).await;
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        gate.open();
        executor.idle().await;
        assert_eq!(sim.snapshot(), before);
    }
}

#[tokio::test]
async fn a_request_that_waits_for_a_lock_is_cancelled_at_once_with_its_caller() {
    let (sim, gate) = (
        raw_disk().build(),
        Gate::closed(|call| call.primitive == "reenumerate"),
    );
    let (executor, trace) = executor(&sim, &gate);
    let running = spawn(&executor, Rescan);
    gate.reached_by(1).await;
    let queued = spawn(&executor, Rescan);
    settled().await;
    assert_eq!(executor.running(), 2);
    queued.abort();
    settled().await;
    assert_eq!(executor.running(), 1, "the other still holds the lock");
    gate.open();
    running.await.unwrap().unwrap();
    assert_eq!(executor.node().locked_objects(), 0);
    assert_eq!(
        trace
            .counts()
            .of("wmi call MSFT_StorageSetting.UpdateHostStorageCache"),
        1
    );
}
