//! Two concurrent operations, switched at each pair of their calls: the node must end up as after
//! one of the two serial orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use faults::{Probe, Probed};
use os_sim::{Sim, Snapshot};
use storage_ops::Config;

use crate::SETTLE_TIME;
use crate::interleaver::{Interleaver, Schedule};
use crate::invariants::{Baseline, check_answer, check_nothing_held};
use crate::job_conflicts::JobConflicts;
use crate::request::Answer;
use crate::scenarios::MakeRequest;
use crate::started_node::{Driver, StartedNode};

/// Two operations on one node.
#[derive(Clone, Copy)]
pub struct Pair {
    /// The operations, and what distinguishes the pair from others. The cases are counted under the
    /// first word.
    pub name: &'static str,
    /// Builds the node.
    pub build: fn() -> Sim,
    /// The operations.
    pub requests: [MakeRequest; 2],
}

/// Runs both operations, one after the other, and returns the node's final state.
fn run_serially(pair: &Pair, order: [usize; 2]) -> Snapshot {
    let sim = (pair.build)();
    let requests = pair.requests.map(|request| request(&sim));
    let node = StartedNode::new(&sim, sim.process(), Config::default(), Driver::Thread);
    for which in order {
        requests[which].run(&node);
        sim.advance(SETTLE_TIME);
    }
    sim.snapshot()
}

/// Returns the final states of the two serial orders.
pub fn serial_results(pair: &Pair) -> [Snapshot; 2] {
    [run_serially(pair, [0, 1]), run_serially(pair, [1, 0])]
}

/// The result of one case.
pub struct PairResult {
    /// Whether the first operation began as many calls as it was to begin before the second
    /// started.
    pub first_reached: bool,
    /// Whether the second operation began as many calls as it was to begin before the first
    /// continued.
    pub second_reached: bool,
    /// The violations, one sentence each.
    pub violations: Vec<String>,
}

/// Runs the first operation for `first` calls, then the second for `second` calls, then the first
/// until it ends or waits, then the second.
pub fn run(pair: &Pair, serial_results: &[Snapshot; 2], first: usize, second: usize) -> PairResult {
    let sim = (pair.build)();
    let requests = pair.requests.map(|request| request(&sim));
    let baseline = Baseline::of(&sim);
    let begun = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let interleaver = Interleaver::new(
        2,
        CallLimits {
            limits: [first, second],
            begun: Arc::clone(&begun),
        },
    );
    let conflicts = JobConflicts::on(&sim);
    // The interleaver is the outer probe: whether a job is still running is checked when the thread
    // has its turn.
    let probes: Vec<Arc<dyn Probe>> =
        vec![Arc::new(interleaver.clone()), Arc::new(conflicts.clone())];
    let process = Probed::new(interleaver.wrap(sim.process()), probes);
    let node = StartedNode::new(&sim, Arc::new(process), Config::default(), Driver::Thread);
    let tasks = requests
        .iter()
        .map(|request| Box::new(|| request.run(&node)) as Box<dyn FnOnce() -> Answer + Send + '_>);
    let answers = interleaver.run(tasks.collect());
    sim.advance(SETTLE_TIME);
    let mut violations = conflicts.take();
    for (request, answer) in requests.iter().zip(&answers) {
        violations.extend(check_answer(&**request, answer, None));
    }
    violations.extend(baseline.check(&sim, &[""], None));
    violations.extend(check_nothing_held(&sim, &node));
    let end = sim.snapshot();
    if !serial_results.contains(&end) {
        let [ab, ba] = serial_results
            .each_ref()
            .map(|serial| serial.difference(&end).trim_end().replace('\n', "; "));
        violations.push(format!(
            "the final state matches neither serial order; answers: {} and {}; difference to A \
             then B: {ab}; to B then A: {ba}",
            answers[0], answers[1]
        ));
    }
    let reached = |which: usize, limit| begun[which].load(Ordering::SeqCst) >= limit;
    PairResult {
        first_reached: reached(0, first),
        second_reached: reached(1, second),
        violations,
    }
}

/// Runs each thread until its limit, in order; then each to its end.
struct CallLimits {
    limits: [usize; 2],
    /// How many calls each thread began while it was within its limit.
    begun: Arc<[AtomicUsize; 2]>,
}

impl Schedule for CallLimits {
    fn next(&mut self, ready: &[usize], begun: &[usize]) -> usize {
        // Both limits are spent once the first thread continues after the second has reached its
        // limit.
        let within = |thread: &&usize| begun[**thread] < self.limits[**thread];
        match ready.iter().find(within) {
            Some(thread) => {
                self.begun[*thread].store(begun[*thread] + 1, Ordering::SeqCst);
                *thread
            }
            None => ready[0],
        }
    }
}
