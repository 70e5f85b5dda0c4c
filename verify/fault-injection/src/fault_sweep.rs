//! Every fault at every call: run with the fault, retry without it, and compare the node with a run
//! without faults.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faults::{Call, Fault, FaultAction, Outcome, Probe, Probed, Race, Record, Trace, When};
use os::{Os, OsError};
use os_sim::{Sim, Snapshot, Timing};

use crate::SETTLE_TIME;
use crate::error_codes::{UNSEEN_RETURN, errors_of, is_informative, returns_of, unseen_error_of};
use crate::identity::unchecked;
use crate::invariants::{Baseline, check_answer, check_nothing_held};
use crate::job_conflicts::JobConflicts;
use crate::request::{Answer, Request};
use crate::scenarios::Scenario;
use crate::started_node::{Driver, StartedNode};

/// Longer than any operation waits, shorter than [`SETTLE_TIME`].
const BEYOND_TIMEOUTS: Duration = Duration::from_hours(1);

/// How many times a caller makes a request while the answer is that work is still running.
const ATTEMPTS: usize = 4;

/// A fault that is injected at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The call is disturbed.
    Once(FaultAction, When),
    /// The call, and each later call of the same primitive, is disturbed until the operation has
    /// ended.
    Each(FaultAction),
    /// The job that the call starts takes longer than any operation waits.
    Slow,
    /// The disk is removed.
    RemoveDisk,
}

impl InjectedFault {
    /// Returns the code with which the disturbed call fails, or that the method returns.
    fn code(self) -> Option<u32> {
        match self {
            Self::Once(FaultAction::Fail(OsError(code)) | FaultAction::Return(code), _)
            | Self::Each(FaultAction::Fail(OsError(code)) | FaultAction::Return(code)) => {
                Some(code)
            }
            _ => None,
        }
    }
}

impl fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (action, when) = match self {
            Self::Once(action, When::Before) => (action, "before"),
            Self::Once(action, When::After) => (action, "after"),
            Self::Each(action) => (action, "each time"),
            Self::Slow => return write!(f, "slow"),
            Self::RemoveDisk => return write!(f, "disk removed"),
        };
        match action {
            FaultAction::Fail(code) => write!(f, "error {} {when}", code.0),
            FaultAction::Return(code) => write!(f, "return {code} {when}"),
            FaultAction::Delay(_) => write!(f, "delay {when}"),
            FaultAction::Die => write!(f, "crash {when}"),
            FaultAction::Go => write!(f, "nothing {when}"),
        }
    }
}

/// The result of running a scenario without faults.
pub struct ReferenceRun {
    /// The calls of the first request.
    pub calls: Vec<Call>,
    /// How many caches the first request wrote.
    flushes: usize,
    /// The answers to the first request and to its repetition.
    answers: [Answer; 2],
    /// Whether the answer to the first request was that work is still running.
    takes_long: bool,
    /// The node's final state.
    end: Snapshot,
}

impl ReferenceRun {
    /// Runs a scenario's request twice without faults. The second request must change nothing.
    pub fn new(scenario: &Scenario) -> Result<Self, Vec<String>> {
        let sim = (scenario.state.build)();
        let request = (scenario.spec.request)(&sim);
        let baseline = Baseline::of(&sim).with_formats_of(&scenario.spec);
        let trace = Arc::new(Trace::recording());
        let os = Arc::new(Probed::new(sim.process(), Arc::clone(&trace)));
        let node = StartedNode::new(&sim, os, (scenario.spec.config)(), Driver::Thread);
        let mut first = request.run(&node);
        let records = trace.take();
        let flushes = flushes(&records);
        let unchecked = unchecked(&records);
        let calls: Vec<Call> = records.into_iter().map(|record| record.call).collect();
        let mut violations = check_answer(&*request, &first, None);
        violations.extend(unchecked);
        let unknown = calls.iter().filter(|call| !call.is_known_change());
        violations
            .extend(unknown.map(|call| format!("the table of changes lacks {}", call.primitive)));
        if scenario.spec.denied && !first.is_denied() {
            violations.push(format!("it must be denied, and answered {first}"));
        }
        sim.advance(SETTLE_TIME);
        let takes_long = first.is_retryable();
        if takes_long {
            first = request_until_settled(&sim, &*request, &node);
        }
        let end = sim.snapshot();
        let second = request_until_settled(&sim, &*request, &node);
        violations.extend(check_answer(&*request, &second, None));
        if matches!(second, Answer::Succeeded(_))
            && scenario
                .spec
                .postcondition
                .is_some_and(|holds| !holds(&sim))
        {
            violations.push("it succeeded, but its postcondition does not hold".to_owned());
        }
        let changed = end.difference(&sim.snapshot());
        if !changed.is_empty() {
            violations.push(format!("the second request changed the node: {changed}"));
        }
        violations.extend(baseline.check(&sim, scenario.spec.changes, None));
        violations.extend(check_nothing_held(&sim, &node));
        if violations.is_empty() {
            Ok(Self {
                calls,
                flushes,
                answers: [first, second],
                takes_long,
                end,
            })
        } else {
            Err(violations)
        }
    }

    /// Returns the faults for the call number `nth`.
    pub fn faults(&self, scenario: &Scenario, nth: usize) -> Vec<InjectedFault> {
        let Some(call) = self.calls.get(nth) else {
            return Vec::new();
        };
        let delay = FaultAction::Delay(BEYOND_TIMEOUTS);
        let mut faults = vec![
            InjectedFault::Once(delay, When::Before),
            InjectedFault::Once(delay, When::After),
        ];
        let unseen = FaultAction::Fail(unseen_error_of(call));
        for when in [When::Before, When::After] {
            let errors = errors_of(call).iter().map(|code| FaultAction::Fail(*code));
            let returns = returns_of(call)
                .iter()
                .map(|code| FaultAction::Return(*code));
            let actions = errors.chain(returns).chain([unseen, FaultAction::Die]);
            faults.extend(actions.map(|action| InjectedFault::Once(action, when)));
        }
        if self.calls[..nth]
            .iter()
            .all(|earlier| earlier.primitive != call.primitive)
        {
            faults.push(InjectedFault::Each(unseen));
        }
        if call.primitive.starts_with("wmi call") {
            faults.push(InjectedFault::Slow);
            let returns = returns_of(call).iter().chain([&UNSEEN_RETURN]);
            faults.extend(returns.map(|code| InjectedFault::Each(FaultAction::Return(*code))));
            let unseen = FaultAction::Return(UNSEEN_RETURN);
            faults
                .extend([When::Before, When::After].map(|when| InjectedFault::Once(unseen, when)));
        }
        if scenario.spec.disk.is_some() {
            faults.push(InjectedFault::RemoveDisk);
        }
        faults
    }

    fn is_expected(&self, answer: &Answer) -> bool {
        self.answers.contains(answer)
    }
}

/// Makes a request as a driver does, again as long as the answer is that work is still running.
fn request_until_settled(sim: &Sim, request: &dyn Request, node: &StartedNode) -> Answer {
    let mut answer = request.run(node);
    sim.advance(SETTLE_TIME);
    for _ in 1..ATTEMPTS {
        if !answer.is_retryable() {
            break;
        }
        answer = request.run(node);
        sim.advance(SETTLE_TIME);
    }
    answer
}

/// Runs one case and returns the violations.
pub fn run(
    scenario: &Scenario,
    reference: &ReferenceRun,
    nth: usize,
    fault: InjectedFault,
    driver: Driver,
) -> Vec<String> {
    let sim = (scenario.state.build)();
    let request = (scenario.spec.request)(&sim);
    let case = Case {
        sim: &sim,
        request: &*request,
        scenario,
        reference,
        driver,
        baseline: Baseline::of(&sim).with_formats_of(&scenario.spec),
        conflicts: JobConflicts::on(&sim),
        trace: Arc::new(Trace::recording()),
        seen: Arc::new(Trace::recording()),
    };
    case.run(nth, fault)
}

struct Case<'a> {
    sim: &'a Sim,
    request: &'a dyn Request,
    scenario: &'a Scenario,
    reference: &'a ReferenceRun,
    driver: Driver,
    baseline: Baseline,
    conflicts: JobConflicts,
    /// The calls with the outcomes that the node gave them.
    trace: Arc<Trace>,
    /// The calls with the outcomes that the operation saw.
    seen: Arc<Trace>,
}

impl Case<'_> {
    fn run(&self, nth: usize, fault: InjectedFault) -> Vec<String> {
        let removed = Arc::new(Mutex::new(None));
        let started =
            |os| StartedNode::new(self.sim, os, (self.scenario.spec.config)(), self.driver);
        let mut node = started(self.faulty_os(nth, fault, &removed));
        let answer = self.request.run(&node);
        if matches!(answer, Answer::Hung(_)) {
            return check_answer(self.request, &answer, None);
        }
        let crashed = matches!(fault, InjectedFault::Once(FaultAction::Die, _));
        // The retry runs without the fault.
        if crashed || matches!(fault, InjectedFault::Each(_)) {
            drop(node);
            node = started(self.sim.process());
        }
        let missing = os::lock(&removed).take();
        let missing_number = missing.as_ref().and(self.scenario.spec.disk);
        let mut violations =
            self.baseline
                .check(self.sim, self.scenario.spec.changes, missing_number);
        // No caller receives the answer of a process that has ended.
        if !crashed || matches!(answer, Answer::Panicked(_)) {
            violations.extend(self.check_error_code(nth, fault, &answer));
        }
        if missing.is_none()
            && !crashed
            && matches!(answer, Answer::Succeeded(_))
            && !self.is_informative(nth, fault)
        {
            violations.extend(self.check_success(&answer));
            // A snapshot does not show whether a cache holds unwritten data, so the flushes are
            // counted. An operation may repeat a failed flush, and SetDiskState takes a disk
            // offline even if every flush fails.
            if !matches!(fault, InjectedFault::Each(_))
                && self.reference.calls[nth].primitive == "flush"
                && flushes(&self.trace.take()) < self.reference.flushes
            {
                violations.push("it succeeded, but the cache was not written".to_owned());
            }
        }
        if let Some(missing) = missing {
            violations.extend(self.check_without_disk(&node));
            self.sim.plug_disk(missing, true);
            self.sim.advance(SETTLE_TIME);
        }
        violations.extend(self.check_retry(&node));
        violations.extend(unchecked(&self.seen.take()));
        violations.extend(self.conflicts.take());
        violations
    }

    /// Returns whether the operation may treat the fault's code as information and not as a
    /// failure.
    fn is_informative(&self, nth: usize, fault: InjectedFault) -> bool {
        fault
            .code()
            .is_some_and(|code| is_informative(&self.reference.calls[nth], code))
    }

    /// Checks the answer to a request with a fault: an error must name the code that caused it.
    fn check_error_code(&self, nth: usize, fault: InjectedFault, answer: &Answer) -> Vec<String> {
        // Two kinds of answers need not name the fault's code: an error that also occurs in the
        // reference run has its own code, and the answer that a method is still running has no code
        // yet.
        let is_after_work = matches!(
            fault,
            InjectedFault::Once(FaultAction::Return(_), When::After)
        );
        let is_unnamed = self.is_informative(nth, fault)
            || self.reference.is_expected(answer)
            || (answer.is_retryable() && (is_after_work || self.reference.takes_long));
        check_answer(self.request, answer, fault.code().filter(|_| !is_unnamed))
    }

    /// Checks that a success is complete, since the caller will not retry.
    fn check_success(&self, answer: &Answer) -> Vec<String> {
        let mut violations = Vec::new();
        if !self.reference.is_expected(answer) && !self.scenario.spec.may_omit {
            violations.push(format!(
                "it answered {answer}; without a fault {}",
                self.reference.answers[0]
            ));
        }
        self.sim.advance(SETTLE_TIME);
        let is_left = self.scenario.spec.may_leave && self.baseline.is_state_of(self.sim);
        if let Some(difference) = self.difference().filter(|_| !is_left) {
            violations.push(format!("it succeeded, but the node differs: {difference}"));
        }
        violations
    }

    /// Returns how the node differs from its final state in the reference run.
    fn difference(&self) -> Option<String> {
        let now = self.sim.snapshot();
        let differs = || {
            self.reference
                .end
                .difference(&now)
                .trim_end()
                .replace('\n', "; ")
        };
        (now != self.reference.end).then(differs)
    }

    /// Returns the node's OS with the fault.
    fn faulty_os(
        &self,
        nth: usize,
        fault: InjectedFault,
        removed: &Arc<Mutex<Option<u64>>>,
    ) -> Arc<dyn Os> {
        let process: Arc<dyn Os> = self.sim.process();
        let nth_call = u64::try_from(nth).unwrap_or(u64::MAX);
        let probe: Arc<dyn Probe> = match fault {
            InjectedFault::Once(action, when) => Arc::new(Fault::at(nth_call, when, action)),
            InjectedFault::Each(action) => {
                let primitive = self.reference.calls[nth].primitive.clone();
                let is_same =
                    move |call: &Call| call.sequence >= nth_call && call.primitive == primitive;
                Arc::new(Fault::each(is_same, When::Before, action))
            }
            InjectedFault::Slow => {
                let (before, after) = (self.sim.clone(), self.sim.clone());
                let slow: Arc<dyn Probe> = Arc::new(Race::before(nth_call, move || {
                    slow_down(&before, BEYOND_TIMEOUTS);
                }));
                let end = Race::before(nth_call + 1, move || {
                    after.set_timing(|timing| *timing = Timing::default());
                });
                Arc::new(vec![slow, Arc::new(end)])
            }
            InjectedFault::RemoveDisk => {
                let (sim, removed, disk) = (
                    self.sim.clone(),
                    Arc::clone(removed),
                    self.scenario.spec.disk,
                );
                let remove = move || {
                    let detached = disk.and_then(|disk| sim.unplug_disk(disk));
                    *os::lock(&removed) = detached;
                };
                Arc::new(Race::before(nth_call, remove))
            }
        };
        let probes: Vec<Arc<dyn Probe>> = vec![
            self.seen.clone(),
            Arc::new(self.conflicts.clone()),
            probe,
            self.trace.clone(),
        ];
        Arc::new(Probed::new(process, probes))
    }

    /// Makes the request while the disk is removed. It may fail, but must not change anything else.
    fn check_without_disk(&self, node: &StartedNode) -> Vec<String> {
        let answer = self.request.run(node);
        let mut violations = check_answer(self.request, &answer, None);
        violations.extend(self.baseline.check(
            self.sim,
            self.scenario.spec.changes,
            self.scenario.spec.disk,
        ));
        violations
    }

    /// Retries without a fault, and compares with the reference run.
    fn check_retry(&self, node: &StartedNode) -> Vec<String> {
        let answer = request_until_settled(self.sim, self.request, node);
        let mut violations = check_answer(self.request, &answer, None);
        if !self.reference.is_expected(&answer) {
            let [first, second] = &self.reference.answers;
            violations.push(format!(
                "the retry answered {answer}; without a fault {first}, then {second}"
            ));
        }
        if let Some(difference) = self.difference() {
            violations.push(format!("after the retry the node differs: {difference}"));
        }
        violations.extend(
            self.baseline
                .check(self.sim, self.scenario.spec.changes, None),
        );
        violations.extend(check_nothing_held(self.sim, node));
        violations
    }
}

/// Returns how many caches were written.
fn flushes(records: &[Record]) -> usize {
    let is_written = |record: &&Record| match &*record.call.primitive {
        "flush" => record.outcome == Outcome::Done,
        "wmi call MSFT_Volume.Flush" => record.outcome == Outcome::Returned(0),
        _ => false,
    };
    records.iter().filter(is_written).count()
}

/// Makes the jobs that start from now on take this long.
pub(crate) fn slow_down(sim: &Sim, job_takes: Duration) {
    sim.set_timing(|timing| {
        timing.initialize = job_takes;
        timing.create_partition = job_takes;
        timing.format = job_takes;
        timing.resize = job_takes;
        timing.set_online = job_takes;
        timing.rescan = job_takes;
    });
}
