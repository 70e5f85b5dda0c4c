//! Every fault at every call: run, be struck, ask again, and look at what has become of the node.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use faults::{Call, Fault, FaultAction, Layered, Outcome, Probe, Probed, Race, Trace, When};
use os::{Os, OsError};
use os_sim::{DetachedDisk, Sim, Snapshot, Timing};
use storage_ops::{Config, Node};

use crate::code::{errors_of, is_answer, returns_of};
use crate::promise::{Before, nothing_held, words};
use crate::return_code_fault::ReturnCodeFault;
use crate::scenario::{Answer, Request, Scenario};
use crate::work::Disturbances;

/// Longer than anything that was begun can take.
const LONG: Duration = Duration::from_hours(4);

/// Longer than any operation waits, shorter than [`LONG`].
const BEYOND_PATIENCE: Duration = Duration::from_hours(1);

/// How often a caller asks again that is told that the work goes on.
const RETRIES: usize = 4;

/// What happens at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// Windows fails it.
    Fail(OsError, When),
    /// The WMI method says this.
    Return(u32, When),
    /// It takes longer than anybody waits.
    Delay(When),
    /// What it begins takes longer than anybody waits, and goes on.
    Slow,
    /// The daemon ends, and a new one begins.
    Die(When),
    /// The disk is taken away.
    Gone,
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = |moment: &When| if *moment == When::Before { "before" } else { "after" };
        match self {
            Self::Fail(code, moment) => write!(f, "error {} {}", code.0, when(moment)),
            Self::Return(code, moment) => write!(f, "return {code} {}", when(moment)),
            Self::Delay(moment) => write!(f, "delay {}", when(moment)),
            Self::Slow => write!(f, "slow"),
            Self::Die(moment) => write!(f, "death {}", when(moment)),
            Self::Gone => write!(f, "disk gone"),
        }
    }
}

/// What an undisturbed run comes to.
pub struct Undisturbed {
    /// The calls it makes.
    pub calls: Vec<Call>,
    /// What it answers, the first time and the second.
    answers: [Answer; 2],
    /// What the node is afterwards.
    end: Snapshot,
}

impl Undisturbed {
    /// Runs a scenario twice undisturbed. The second time must change nothing.
    pub fn run(scenario: &Scenario) -> Result<Self, Vec<String>> {
        let sim = (scenario.state.build)();
        let request = (scenario.asked.request)(&sim);
        let before = Before::of(&sim);
        let trace = Arc::new(Trace::recording());
        let node = Node::new(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Config::default());
        let mut first = request.run(&node);
        let calls: Vec<Call> = trace.take().into_iter().map(|record| record.call).collect();
        let mut broken = words(&*request, &first, None);
        if scenario.asked.refused && !first.is_denied() {
            broken.push(format!("it must be refused, and answered {first}"));
        }
        sim.advance(LONG);
        if first.says_later() {
            first = until_settled(&sim, &*request, &node);
        }
        let end = sim.snapshot();
        let second = until_settled(&sim, &*request, &node);
        broken.extend(words(&*request, &second, None));
        if matches!(second, Answer::Done(_)) && scenario.asked.reaches.is_some_and(|reaches| !reaches(&sim)) {
            broken.push("it says that it is done, and it is not".to_owned());
        }
        let again = end.difference(&sim.snapshot());
        if !again.is_empty() {
            broken.push(format!("the second time it changed something: {again}"));
        }
        broken.extend(before.check(&sim, scenario.asked.changes, None));
        broken.extend(nothing_held(&sim, &node));
        if broken.is_empty() { Ok(Self { calls, answers: [first, second], end }) } else { Err(broken) }
    }

    /// The blows for the call number `nth`.
    pub fn blows(&self, scenario: &Scenario, nth: usize) -> Vec<Blow> {
        let Some(call) = self.calls.get(nth) else { return Vec::new() };
        let mut blows = vec![Blow::Delay(When::Before), Blow::Delay(When::After)];
        for moment in [When::Before, When::After] {
            blows.extend(errors_of(call).iter().map(|code| Blow::Fail(*code, moment)));
            blows.extend(returns_of(call).iter().map(|code| Blow::Return(*code, moment)));
            blows.push(Blow::Die(moment));
        }
        if call.primitive.starts_with("wmi call") {
            blows.push(Blow::Slow);
        }
        if scenario.asked.disk.is_some() {
            blows.push(Blow::Gone);
        }
        blows
    }

    fn is_expected(&self, answer: &Answer) -> bool {
        self.answers.contains(answer)
    }
}

/// Asks as a driver does, again and again as long as the answer is that the work goes on.
fn until_settled(sim: &Sim, request: &dyn Request, node: &Node) -> Answer {
    let mut answer = request.run(node);
    sim.advance(LONG);
    for _ in 1..RETRIES {
        if !answer.says_later() {
            break;
        }
        answer = request.run(node);
        sim.advance(LONG);
    }
    answer
}

/// Runs one case and says what was broken.
pub fn run(scenario: &Scenario, undisturbed: &Undisturbed, nth: usize, blow: Blow) -> Vec<String> {
    let sim = (scenario.state.build)();
    let request = (scenario.asked.request)(&sim);
    let case = Case {
        sim: &sim,
        request: &*request,
        scenario,
        undisturbed,
        before: Before::of(&sim),
        disturbances: Disturbances::on(&sim),
    };
    case.run(nth, blow)
}

struct Case<'a> {
    sim: &'a Sim,
    request: &'a dyn Request,
    scenario: &'a Scenario,
    undisturbed: &'a Undisturbed,
    before: Before,
    disturbances: Disturbances,
}

impl Case<'_> {
    fn run(&self, nth: usize, blow: Blow) -> Vec<String> {
        let gone = Arc::new(Mutex::new(None));
        let mut node = Node::new(self.struck(nth, blow, &gone), Config::default());
        let answer = self.request.run(&node);
        let died = matches!(blow, Blow::Die(_));
        if died {
            drop(node);
            node = Node::new(self.sim.process(), Config::default());
        }
        let missing = gone.lock().unwrap_or_else(PoisonError::into_inner).take();
        let missing_number = missing.as_ref().and(self.scenario.asked.disk);
        let mut broken = self.before.check(self.sim, self.scenario.asked.changes, missing_number);
        // The answer of a dead process reaches nobody.
        if !died || matches!(answer, Answer::Panicked(_)) {
            broken.extend(self.answered(nth, blow, &answer));
        }
        if missing.is_none() && !died && matches!(answer, Answer::Done(_)) && !self.is_misled(nth, blow) {
            broken.extend(self.succeeded(&answer));
            if self.undisturbed.calls[nth].primitive == "flush" && matches!(blow, Blow::Fail(_, When::Before)) {
                // Nothing on the node tells what is still in a cache.
                broken.push("it says that it is done, but the cache was not written".to_owned());
            }
        }
        if let Some(missing) = missing {
            broken.extend(self.without_the_disk(&node));
            self.sim.reattach_disk(missing, true);
            self.sim.advance(LONG);
        }
        broken.extend(self.again(&node));
        broken.extend(self.disturbances.take());
        broken
    }

    /// Whether the blow is one that the operation takes for an answer and not for a failure.
    fn is_misled(&self, nth: usize, blow: Blow) -> bool {
        match blow {
            Blow::Fail(OsError(code), _) | Blow::Return(code, _) => is_answer(&self.undisturbed.calls[nth], code),
            _ => false,
        }
    }

    /// Checks the words of the answer to a struck run: a failure names the code that it failed for.
    fn answered(&self, nth: usize, blow: Blow, answer: &Answer) -> Vec<String> {
        let code = match blow {
            // A failure that would have come anyway has its own code, and a method that goes on has none yet.
            _ if self.is_misled(nth, blow) || self.undisturbed.is_expected(answer) => None,
            Blow::Return(_, When::After) if answer.says_later() => None,
            Blow::Fail(OsError(code), _) | Blow::Return(code, _) => Some(code),
            _ => None,
        };
        words(self.request, answer, code)
    }

    /// Checks that a success is one: whoever is told of it does not ask again.
    fn succeeded(&self, answer: &Answer) -> Vec<String> {
        let mut broken = Vec::new();
        if !self.undisturbed.is_expected(answer) && !self.scenario.asked.leaves_out {
            broken.push(format!("it answered {answer}; undisturbed {}", self.undisturbed.answers[0]));
        }
        self.sim.advance(LONG);
        if let Some(difference) = self.difference() {
            broken.push(format!("it says that it is done, but: {difference}"));
        }
        broken
    }

    /// What tells the node from what it is after an undisturbed run.
    fn difference(&self) -> Option<String> {
        let now = self.sim.snapshot();
        let differs = || self.undisturbed.end.difference(&now).trim_end().replace('\n', "; ");
        (now != self.undisturbed.end).then(differs)
    }

    /// The node as the process to be struck sees it.
    fn struck(&self, nth: usize, blow: Blow, gone: &Arc<Mutex<Option<DetachedDisk>>>) -> Arc<dyn Os> {
        let process: Arc<dyn Os> = self.sim.process();
        let nth_call = u64::try_from(nth).unwrap_or(u64::MAX);
        let at = |moment, verdict| Arc::new(Fault::at(nth_call, moment, verdict)) as Arc<dyn Probe>;
        let probe = match blow {
            Blow::Fail(code, moment) => at(moment, FaultAction::Fail(code)),
            Blow::Delay(moment) => at(moment, FaultAction::Delay(BEYOND_PATIENCE)),
            Blow::Die(moment) => at(moment, FaultAction::Die),
            Blow::Slow => Arc::new(Slowness { sim: self.sim.clone(), nth: nth_call }),
            Blow::Gone => {
                let (sim, gone, disk) = (self.sim.clone(), Arc::clone(gone), self.scenario.asked.disk);
                let take = move || {
                    let detached = disk.and_then(|disk| sim.detach_disk(disk));
                    *gone.lock().unwrap_or_else(PoisonError::into_inner) = detached;
                };
                Arc::new(Race::before(nth_call, take))
            }
            Blow::Return(code, moment) => {
                let earlier = &self.undisturbed.calls[..nth];
                let methods = earlier.iter().filter(|call| call.primitive.starts_with("wmi call")).count();
                let override_code = ReturnCodeFault::new(u64::try_from(methods).unwrap_or(u64::MAX), code, moment);
                let process = Arc::new(Layered::around(process, override_code));
                return Arc::new(Probed::new(process, self.disturbances.clone()));
            }
        };
        let probes: Vec<Arc<dyn Probe>> = vec![Arc::new(self.disturbances.clone()), probe];
        Arc::new(Probed::new(process, probes))
    }

    /// Asks while the disk is away: any answer will do, as long as nothing else suffers.
    fn without_the_disk(&self, node: &Node) -> Vec<String> {
        let answer = self.request.run(node);
        let mut broken = words(self.request, &answer, None);
        broken.extend(self.before.check(self.sim, self.scenario.asked.changes, self.scenario.asked.disk));
        broken
    }

    /// Asks again, without a fault, and compares with the undisturbed run.
    fn again(&self, node: &Node) -> Vec<String> {
        let answer = until_settled(self.sim, self.request, node);
        let mut broken = words(self.request, &answer, None);
        if !self.undisturbed.is_expected(&answer) {
            let [first, second] = &self.undisturbed.answers;
            broken.push(format!("the retry answered {answer}; undisturbed {first}, then {second}"));
        }
        if let Some(difference) = self.difference() {
            broken.push(format!("the end is another one: {difference}"));
        }
        broken.extend(self.before.check(self.sim, self.scenario.asked.changes, None));
        broken.extend(nothing_held(self.sim, node));
        broken
    }
}

/// A probe that makes what one call begins take very long.
struct Slowness {
    sim: Sim,
    nth: u64,
}

impl Slowness {
    fn set(&self, call: &Call, span: Option<Duration>) {
        if call.sequence != self.nth {
            return;
        }
        self.sim.set_timing(|timing| {
            let plain = Timing::default();
            timing.initialize = span.unwrap_or(plain.initialize);
            timing.create_partition = span.unwrap_or(plain.create_partition);
            timing.format = span.unwrap_or(plain.format);
            timing.resize = span.unwrap_or(plain.resize);
            timing.set_online = span.unwrap_or(plain.set_online);
            timing.rescan = span.unwrap_or(plain.rescan);
        });
    }
}

impl Probe for Slowness {
    fn before(&self, call: &Call) -> FaultAction {
        self.set(call, Some(BEYOND_PATIENCE));
        FaultAction::Go
    }

    fn after(&self, call: &Call, _outcome: Outcome) -> FaultAction {
        self.set(call, None);
        FaultAction::Go
    }
}
