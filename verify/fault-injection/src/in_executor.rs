//! Runs an operation in the daemon's executor, on a runtime that all cases share.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use os_sim::Sim;
use storage_ops::{BLOCKING_THREADS, ErrorKind, Executor, Operation, RequestState};
use tokio::runtime::{Builder, Runtime};

use crate::request::Answer;

/// Longer than any operation takes in real time, so that an executor that hangs does not stop the
/// other cases.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long, in real time, an operation waits for a lock before simulated time advances.
const LOCK_WAIT: Duration = Duration::from_millis(1);

/// How far simulated time advances while an operation waits for a lock.
const LOCK_STEP: Duration = Duration::from_mins(1);

/// What the error of an operation says that panicked.
const DEFECT: &str = "a defect in csi-proxy stopped the operation";

/// As the daemon's runtime: reads of local files run on its threads if one of them remains free.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .expect("a runtime")
});

/// Runs `operation` to its end, and waits until the executor is idle. Fails if that takes longer
/// than [`PATIENCE`].
pub(crate) fn run<O: Operation>(executor: &Arc<Executor>, sim: &Sim, operation: O) -> Answer {
    run_within(PATIENCE, executor, sim, operation)
}

fn run_within<O: Operation>(
    patience: Duration,
    executor: &Arc<Executor>,
    sim: &Sim,
    operation: O,
) -> Answer {
    let (sender, receiver) = channel();
    let running = Arc::clone(executor);
    RUNTIME.spawn(async move {
        let result = running.run(operation).await;
        running.idle().await;
        drop(running);
        // Nobody receives the result of an executor that took too long.
        let _ = sender.send(result);
    });
    let began = Instant::now();
    let mut answer = None;
    while began.elapsed() < patience {
        if let Some(answer) = answer.take_if(|_| Arc::strong_count(executor) == 1) {
            return answer;
        }
        if answer.is_some() {
            // A job that has ended is about to release the executor, and with it the node.
            thread::yield_now();
            continue;
        }
        match receiver.recv_timeout(LOCK_WAIT) {
            Ok(Err(error))
                if error.kind() == ErrorKind::Internal && error.to_string().contains(DEFECT) =>
            {
                answer = Some(Answer::Panicked(error.to_string()));
            }
            Ok(result) => answer = Some(Answer::from(result)),
            Err(RecvTimeoutError::Timeout) => {
                // A call that outlives its operation holds the lock.
                if waits_for_lock(executor) {
                    sim.advance(LOCK_STEP);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Answer::Panicked("the executor ended without a result".to_owned());
            }
        }
    }
    Answer::Hung(format!("{:?}", executor.activity().requests))
}

fn waits_for_lock(executor: &Executor) -> bool {
    let requests = executor.activity().requests;
    let waits = |state| matches!(state, RequestState::WaitingForLock(_));
    requests.into_iter().any(|request| waits(request.state))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use faults::{Layer, Layered};
    use os::{Os, OsResult, U16String};
    use storage_ops::{Config, Executor, ListVolumesOnDisk, Node};

    use super::run_within;
    use crate::request::Answer;

    /// Waits until the sender is dropped, and then panics.
    struct Defective(Mutex<Receiver<()>>);

    impl Layer for Defective {
        fn volumes(&self, _node: &dyn Os) -> OsResult<Vec<U16String>> {
            let _ = os::lock(&self.0).recv();
            panic!("a defect, made for this test");
        }
    }

    #[test]
    fn an_executor_that_hangs_or_whose_operation_panics_is_reported() {
        let sim = os_sim::node().disk(1 << 30).partitioned().build();
        let (sender, receiver) = channel();
        let os = Layered::around(sim.process(), Defective(Mutex::new(receiver)));
        let node = Arc::new(Node::new(Arc::new(os), Config::default()));
        let executor = Arc::new(Executor::new(node));
        let list = || ListVolumesOnDisk {
            disk: storage_ops::DiskNumber(1),
            partition: 0,
        };
        let patience = Duration::from_millis(50);
        let answer = run_within(patience, &executor, &sim, list());
        assert!(
            matches!(&answer, Answer::Hung(requests) if requests.contains("Running(Disks)")),
            "{answer}"
        );
        drop(sender);
        let answer = run_within(Duration::MAX, &executor, &sim, list());
        assert!(matches!(answer, Answer::Panicked(_)), "{answer}");
    }
}
