//! Many callers at once, of which a third cancel at some moment: results are right, and nothing is left behind.

use std::sync::Arc;

use os_sim::Sim;
use storage_ops::{
    Config, DiskNumber, Error, Executor, Kind, ListVolumesOnDisk, Mkdir, Node, Operation, PartitionDisk, PathExists,
    Rmdir, SetDiskState,
};

use crate::setup::{GIB, path};

const CALLERS: u64 = 16;
const ROUNDS: u64 = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_that_cancel_at_any_moment_leave_nothing_behind_and_disturb_no_other() {
    let sim: Sim = os_sim::node().disk(GIB).disk(GIB).build();
    let executor = Arc::new(Executor::new(Arc::new(Node::new(sim.process(), Config::default()))));
    let mut callers = tokio::task::JoinSet::new();
    for number in 0..CALLERS {
        let executor = Arc::clone(&executor);
        callers.spawn(async move { Caller { executor, number, random: Random(number + 1) }.call_and_cancel().await });
    }
    let cancelled: u64 = callers.join_all().await.into_iter().sum();
    assert!(cancelled > CALLERS, "{cancelled} calls were cancelled");
    executor.idle().await;
    assert_eq!((executor.running(), executor.node().locked_objects()), (0, 0));
    for disk in [1, 2].map(DiskNumber) {
        executor.run(PartitionDisk { disk }).await.unwrap();
        executor.run(SetDiskState { disk, online: true }).await.unwrap();
        assert_eq!(executor.run(ListVolumesOnDisk { disk, partition: 0 }).await.unwrap().len(), 1);
    }
}

struct Caller {
    executor: Arc<Executor>,
    number: u64,
    random: Random,
}

impl Caller {
    /// Makes and removes a directory of its own and changes disks that others use too. Returns how many of its calls it
    /// cancelled.
    async fn call_and_cancel(mut self) -> u64 {
        let mut cancelled = 0;
        let own = path(&format!(r"\pods\{}", self.number));
        for _ in 0..ROUNDS {
            cancelled += u64::from(self.call(Rmdir { path: own.clone(), force: true, context: None }).await);
            // A request that was cancelled changes nothing after the next one on the same path has begun.
            self.executor.run(Mkdir { path: own.clone(), context: None }).await.unwrap();
            assert!(self.executor.run(PathExists { path: own.clone(), context: None }).await.unwrap());
            let disk = DiskNumber(1 + u32::from(self.random.below(2) == 0));
            let online = self.random.below(2) == 0;
            cancelled += u64::from(match self.random.below(4) {
                0 => self.call(PartitionDisk { disk }).await,
                1 => self.call(SetDiskState { disk, online }).await,
                2 => self.call(ListVolumesOnDisk { disk, partition: 0 }).await,
                _ => self.call(Rmdir { path: path(r"\pods\shared"), force: true, context: None }).await,
            });
        }
        cancelled
    }

    /// Runs `operation`, and cancels every third one after a while. Returns whether it was cancelled.
    async fn call(&mut self, operation: impl Operation) -> bool {
        let yields = if self.random.below(3) == 0 { self.random.below(30) } else { u64::MAX };
        tokio::select! {
            result = self.executor.run(operation) => {
                let kind = result.as_ref().err().map(Error::kind);
                assert!(!matches!(kind, Some(Kind::Cancelled | Kind::Internal)), "{result:?}");
                false
            }
            () = yield_times(yields) => true,
        }
    }
}

async fn yield_times(times: u64) {
    if times == u64::MAX {
        return std::future::pending().await;
    }
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
