//! Callers that call, cancel and retry at the same time, and what must hold whatever the schedule.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use shuttle::rand::{Rng as _, thread_rng};
use shuttle::{future, thread};

use crate::error::OperationResult;
use crate::executor::Executor;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::scheduling::locks::{LockKey, Locks};
use crate::scheduling::pool_kind::PoolKind;
use crate::sync::lock;
use crate::types::DiskNumber;

/// A caller that never cancels.
const PATIENT: usize = usize::MAX;

/// Brings an object into existence, or removes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Set {
    object: u32,
    exists: bool,
}

impl Operation for Set {
    type Output = ();
    const NAME: &'static str = "Set";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("change object {}", self.object)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Disk(DiskNumber(self.object))]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        if run.node.exists(self.object) == self.exists {
            return Ok(());
        }
        thread::yield_now();
        run.context.begin_mutation()?;
        run.node.begin_change(self.object);
        thread::yield_now();
        run.node.end_change(self.object, self.exists);
        Ok(())
    }
}

/// Returns how often an object had been changed when the run began. Another request may share the
/// result only while this one is queued.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Count {
    object: u32,
}

impl Operation for Count {
    type Output = u64;
    const NAME: &'static str = "Count";
    const POOL: PoolKind = PoolKind::System;
    const COALESCE: Coalesce = Coalesce::Queued;

    fn describe(&self) -> String {
        format!("count the changes of object {}", self.object)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<u64> {
        let changes = run.node.changes(self.object);
        thread::yield_now();
        Ok(changes)
    }
}

/// Begins to change an object on a thread of one pool, and ends it on a thread of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ThroughTwoPools {
    object: u32,
    pools: [PoolKind; 2],
    /// Whether Windows answers in the second pool only when the gate of the node is open.
    hangs: bool,
}

impl Operation for ThroughTwoPools {
    type Output = ();
    const NAME: &'static str = "ThroughTwoPools";
    const POOL: PoolKind = PoolKind::Disks;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("change object {} in two steps", self.object)
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Disk(DiskNumber(self.object))]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        run.context.enter(self.pools[0]).await;
        run.context.begin_mutation()?;
        run.node.begin_change(self.object);
        run.context.enter(self.pools[1]).await;
        if self.hangs {
            run.node.gate.pass();
        }
        thread::yield_now();
        run.node.end_change(self.object, true);
        Ok(())
    }
}

/// Returns whether an object exists, on a thread of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Exists<const IS_FILE: bool> {
    object: u32,
}

impl<const IS_FILE: bool> Operation for Exists<IS_FILE> {
    type Output = bool;
    const NAME: &'static str = "Exists";
    const POOL: PoolKind = if IS_FILE {
        PoolKind::Files
    } else {
        PoolKind::Disks
    };

    fn describe(&self) -> String {
        format!("check whether object {} exists", self.object)
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<bool> {
        thread::yield_now();
        Ok(run.node.exists(self.object))
    }
}

/// Changes the disk that a volume is on: disk 2 once [`Move`] has moved it, and disk 1 until then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OnVolume {
    caller: u32,
}

impl OnVolume {
    fn disk(node: &Node) -> u32 {
        if node.exists(MOVED) { 2 } else { 1 }
    }
}

impl Operation for OnVolume {
    type Output = ();
    const NAME: &'static str = "OnVolume";
    const POOL: PoolKind = PoolKind::System;
    const COALESCE: Coalesce = Coalesce::InFlight;
    const LOOKS_UP_LOCKS: bool = true;

    fn describe(&self) -> String {
        "change the disk of the volume".into()
    }

    async fn look_up_lock_keys(&self, run: Run<'_>) -> OperationResult<Vec<LockKey>> {
        let disk = Self::disk(run.node);
        thread::yield_now();
        Ok(vec![LockKey::Disk(DiskNumber(disk))])
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let disk = Self::disk(run.node);
        assert!(
            run.context.locked_disk() == Some(DiskNumber(disk)),
            "the volume is on disk {disk}, and another disk is locked"
        );
        run.context.begin_mutation()?;
        run.node.begin_change(disk);
        thread::yield_now();
        run.node.end_change(disk, true);
        Ok(())
    }
}

/// Moves the volume to disk 2.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Move;

impl Operation for Move {
    type Output = ();
    const NAME: &'static str = "Move";
    const POOL: PoolKind = PoolKind::Wmi;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        "move the volume".into()
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        [1, 2].map(|disk| LockKey::Disk(DiskNumber(disk))).into()
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        run.context.begin_mutation()?;
        run.node.begin_change(MOVED);
        thread::yield_now();
        run.node.end_change(MOVED, true);
        Ok(())
    }
}

/// The object that exists if the volume is on disk 2.
const MOVED: u32 = 100;

fn executor() -> Arc<Executor> {
    let executor = Arc::new(Executor::new(Arc::new(Node::default())));
    executor.node().set_executor(Arc::downgrade(&executor));
    executor
}

/// Polls `wait` at most `polls` times more than the first, and then cancels it.
async fn poll_times<T>(wait: impl Future<Output = T>, mut polls: usize) -> Option<T> {
    let mut wait = pin!(wait);
    poll_fn(|context| {
        if let Poll::Ready(value) = wait.as_mut().poll(context) {
            return Poll::Ready(Some(value));
        }
        if polls == 0 {
            return Poll::Ready(None);
        }
        if polls != PATIENT {
            polls -= 1;
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}

/// Calls, and cancels after `polls` polls. Returns whether the operation succeeded.
async fn call<O: Operation>(executor: &Arc<Executor>, operation: O, polls: usize) -> bool {
    match poll_times(executor.run(operation), polls).await {
        Some(Err(error)) => panic!("a caller that waits was refused: {error}"),
        Some(Ok(_)) => true,
        None => false,
    }
}

/// Waits for all callers and until the executor is idle, and checks that nothing is left behind.
async fn settle(executor: &Arc<Executor>, callers: Vec<future::JoinHandle<()>>) {
    for caller in callers {
        caller
            .await
            .expect("a caller panics only in a failed check");
    }
    executor.idle().await;
    executor.node().assert_at_rest();
    assert_eq!(executor.node().locks.len(), 0, "locks were left behind");
    assert_eq!(lock(&executor.jobs).len(), 0, "jobs were left behind");
}

/// Some callers of the same change cancel, others wait. The drain relies on the count of running
/// jobs.
pub fn cancelled_and_retried() {
    let executor = executor();
    let callers = [(1, 0), (1, 1), (1, PATIENT), (2, 2)].map(|(object, polls)| {
        let executor = Arc::clone(&executor);
        future::spawn(async move {
            let created = call(
                &executor,
                Set {
                    object,
                    exists: true,
                },
                polls,
            )
            .await;
            assert!(
                !created || executor.node().exists(object),
                "the result came before the change"
            );
        })
    });
    future::block_on(settle(&executor, callers.into()));
    assert_eq!(
        executor.node().changes(1),
        1,
        "the caller that waited got its change, and equal requests shared it"
    );
}

/// While one caller has an object created, another one removes it and creates it again.
pub fn opposite_changes() {
    let executor = executor();
    let one = Arc::clone(&executor);
    let one = future::spawn(async move {
        call(
            &one,
            Set {
                object: 1,
                exists: true,
            },
            PATIENT,
        )
        .await;
    });
    let other = Arc::clone(&executor);
    let other = future::spawn(async move {
        call(
            &other,
            Set {
                object: 1,
                exists: false,
            },
            PATIENT,
        )
        .await;
        call(
            &other,
            Set {
                object: 1,
                exists: true,
            },
            PATIENT,
        )
        .await;
        assert!(
            other.node().exists(1),
            "answered by a job from before the opposite change"
        );
    });
    future::block_on(settle(&executor, vec![one, other]));
}

/// One caller counts the changes of an object, while another one changes it and then counts too.
pub fn results_of_queued_jobs() {
    let executor = executor();
    let counter = Arc::clone(&executor);
    let counter = future::spawn(async move {
        call(&counter, Count { object: 1 }, PATIENT).await;
    });
    let changer = Arc::clone(&executor);
    let changer = future::spawn(async move {
        call(
            &changer,
            Set {
                object: 1,
                exists: true,
            },
            PATIENT,
        )
        .await;
        let counted = changer
            .run(Count { object: 1 })
            .await
            .expect("few callers are never refused");
        assert!(counted >= 1, "the result is older than its request");
    });
    future::block_on(settle(&executor, vec![counter, changer]));
}

/// More callers than any pool has threads, in the middle of their changes, go from one pool to
/// another: half of them in one direction, and half in the other. The scheduler chooses the pools.
pub fn two_pools() {
    let executor = executor();
    let choose = || PoolKind::ALL[thread_rng().gen_range(0..PoolKind::COUNT)];
    let (one, other) = (choose(), choose());
    let callers: Vec<_> = (1..=6)
        .map(|object| {
            let executor = Arc::clone(&executor);
            let pools = if object % 2 == 0 {
                [one, other]
            } else {
                [other, one]
            };
            let operation = ThroughTwoPools {
                object,
                pools,
                hangs: false,
            };
            future::spawn(async move {
                assert!(call(&executor, operation, PATIENT).await);
            })
        })
        .collect();
    future::block_on(settle(&executor, callers));
}

/// WMI does not answer in the middle of more changes than its pool has threads. A file and another
/// disk are queried meanwhile.
pub fn hung_wmi() {
    let executor = executor();
    let callers: Vec<_> = (1..=3)
        .map(|object| {
            let executor = Arc::clone(&executor);
            let operation = ThroughTwoPools {
                object,
                pools: [PoolKind::Disks, PoolKind::Wmi],
                hangs: true,
            };
            future::spawn(async move {
                assert!(call(&executor, operation, PATIENT).await);
            })
        })
        .collect();
    let other = Arc::clone(&executor);
    let reader = future::spawn(async move {
        assert!(call(&other, Exists::<true> { object: 9 }, PATIENT).await);
        assert!(call(&other, Exists::<false> { object: 9 }, PATIENT).await);
        other.node().gate.open();
    });
    future::block_on(settle(
        &executor,
        callers.into_iter().chain([reader]).collect(),
    ));
}

/// Two callers change the disk of a volume, which a third caller moves to another disk.
pub fn moving_volume() {
    let executor = executor();
    let mut callers: Vec<_> = [1, 2]
        .map(|caller| {
            let executor = Arc::clone(&executor);
            future::spawn(async move {
                call(&executor, OnVolume { caller }, PATIENT).await;
            })
        })
        .into();
    let mover = Arc::clone(&executor);
    callers.push(future::spawn(async move {
        call(&mover, Move, PATIENT).await;
    }));
    future::block_on(settle(&executor, callers));
    assert_eq!(
        executor.node().changes(1) + executor.node().changes(2),
        2,
        "each caller made its change"
    );
}

/// Requests for overlapping sets of locks, some of which are cancelled. A guard is dropped on
/// another thread.
pub fn locks_alone() {
    let locks = Locks::default();
    let owners: Arc<Mutex<BTreeMap<u32, usize>>> = Arc::default();
    let granted: Arc<Mutex<Vec<usize>>> = Arc::default();
    let sets: [(&[u32], usize); 5] = [
        (&[0, 1], PATIENT),
        (&[1, 2], 1),
        (&[2, 0], PATIENT),
        (&[0], 0),
        (&[0, 1, 2], 2),
    ];
    // All requests join the queues here, in their order.
    let requests = sets.map(|(set, polls)| {
        let keys = set
            .iter()
            .map(|disk| LockKey::Disk(DiskNumber(*disk)))
            .collect();
        (set, polls, locks.acquire(keys))
    });
    let mut callers = Vec::new();
    for (number, (set, polls, request)) in requests.into_iter().enumerate() {
        let (owners, granted) = (Arc::clone(&owners), Arc::clone(&granted));
        callers.push(future::spawn(async move {
            let Some(guard) = poll_times(request, polls).await else {
                return;
            };
            granted.lock().unwrap().push(number);
            for disk in set {
                let before = owners.lock().unwrap().insert(*disk, number);
                assert_eq!(before, None, "disk {disk} is locked twice");
            }
            let holder = thread::spawn(move || {
                thread::yield_now();
                owners.lock().unwrap().retain(|_, owner| *owner != number);
                drop(guard);
            });
            holder.join().unwrap();
        }));
    }
    future::block_on(async {
        for caller in callers {
            caller
                .await
                .expect("a caller panics only in a failed check");
        }
    });
    assert_eq!(locks.len(), 0, "locks were left behind");
    let granted = granted.lock().unwrap();
    for (at, number) in granted.iter().enumerate() {
        for later in &granted[at + 1..] {
            let overlap = sets[*number]
                .0
                .iter()
                .any(|disk| sets[*later].0.contains(disk));
            assert!(
                number < later || !overlap,
                "request {number} overtook request {later}"
            );
        }
    }
}
