//! Two operations at once, at every pair of calls: the node ends up as after one of the two serial orders.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use faults::{Probe, Probed};
use os_sim::{Sim, Snapshot};
use storage_ops::{Config, Node};

use crate::promise::{Before, nothing_held, words};
use crate::scenario::{Answer, Ask};
use crate::stage::{Schedule, Stage};
use crate::work::Disturbances;

/// Two operations on a node.
#[derive(Clone, Copy)]
pub struct Pair {
    /// What they are, `A with B, on ...`.
    pub name: &'static str,
    /// The name of the first.
    pub operation: &'static str,
    /// The node before.
    pub build: fn() -> Sim,
    /// The operations.
    pub requests: [Ask; 2],
}

/// Both operations, one after the other.
fn serial(pair: &Pair, order: [usize; 2]) -> Snapshot {
    let sim = (pair.build)();
    let requests = pair.requests.map(|request| request(&sim));
    let node = Node::new(sim.process(), Config::default());
    for which in order {
        requests[which].run(&node);
        sim.advance(LONG);
    }
    sim.snapshot()
}

const LONG: Duration = Duration::from_hours(4);

/// What the two serial orders come to.
pub fn serial_ends(pair: &Pair) -> [Snapshot; 2] {
    [serial(pair, [0, 1]), serial(pair, [1, 0])]
}

/// What came of one interleaving.
pub struct Outcome {
    /// Whether the first began all the calls that it was to begin before the second began.
    pub first_reached: bool,
    /// Whether the second began all the calls that it was to begin before the first went on.
    pub second_reached: bool,
    /// What was broken.
    pub broken: Vec<String>,
}

/// Runs the first operation for `first` calls, then the second for `second`, then the first to its end or until it
/// waits, and so on.
pub fn run(pair: &Pair, ends: &[Snapshot; 2], first: usize, second: usize) -> Outcome {
    let sim = (pair.build)();
    let requests = pair.requests.map(|request| request(&sim));
    let before = Before::of(&sim);
    let begun = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let stage = Stage::new(2, Held { limits: [first, second], begun: Arc::clone(&begun) });
    let disturbances = Disturbances::on(&sim);
    // The stage first: what counts is what goes on when the turn has come.
    let probes: Vec<Arc<dyn Probe>> = vec![Arc::new(stage.clone()), Arc::new(disturbances.clone())];
    let process = Probed::new(stage.over(sim.process()), probes);
    let node = Node::new(Arc::new(process), Config::default());
    let parts =
        requests.iter().map(|request| Box::new(|| request.run(&node)) as Box<dyn FnOnce() -> Answer + Send + '_>);
    let answers = stage.run(parts.collect());
    sim.advance(LONG);
    let mut broken = disturbances.take();
    for (request, answer) in requests.iter().zip(&answers) {
        broken.extend(words(&**request, answer, None));
    }
    broken.extend(before.check(&sim, &[""], None));
    broken.extend(nothing_held(&sim, &node));
    let end = sim.snapshot();
    if !ends.contains(&end) {
        let [ab, ba] = ends.each_ref().map(|serial| serial.difference(&end).trim_end().replace('\n', "; "));
        broken
            .push(format!("answers {} and {}; against A then B: {ab}; against B then A: {ba}", answers[0], answers[1]));
    }
    let reached = |which: usize, limit| begun[which].load(Ordering::SeqCst) >= limit;
    Outcome { first_reached: reached(0, first), second_reached: reached(1, second), broken }
}

/// Each thread up to its limit, in turn; then each to its end.
struct Held {
    limits: [usize; 2],
    /// How many calls each had begun while it was within its limit.
    begun: Arc<[AtomicUsize; 2]>,
}

impl Schedule for Held {
    fn next(&mut self, ready: &[usize], begun: &[usize]) -> usize {
        // Once the first goes on after the second was held, the limits are over.
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
