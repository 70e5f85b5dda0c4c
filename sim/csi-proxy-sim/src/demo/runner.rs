//! Runs the sequences of CSI drivers against the real server on a simulated node.
//!
//! All group-versions are served on Unix sockets, and every call goes over a real gRPC connection. What drivers do
//! without csi-proxy is done on the simulated node directly. The node's state is checked at every step.

mod daemon;
mod expectation;
mod json_client;
mod node;
mod screen;
mod sequence;
mod short_form;
mod summary;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use api::GROUP_VERSIONS;
use faults::{Counts, Record};
use os_sim::DiskView;
use serde_json::{Map, Value};

pub use daemon::Daemon;
pub use screen::Screen;
pub use sequence::Sequence;

use sequence::{Actor, Call, Check, Operation, Step, Variables};

/// An RPC that a sequence called, and the calls that it made to the node.
#[derive(Clone, Debug)]
pub struct CalledRpc {
    /// The phase of the sequence.
    pub phase: String,
    /// The name of the RPC, without its group-version.
    pub name: &'static str,
    /// The request.
    pub request: Map<String, Value>,
    /// The calls of primitives, in the order in which they ended.
    pub node_calls: Vec<Record>,
    /// The time that passed on the node.
    pub simulated: Duration,
}

/// The result of a sequence.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The driver.
    pub driver: String,
    /// The time of each call.
    pub call_times: Vec<Duration>,
    /// The number of calls that failed as the driver expects.
    pub refused: usize,
    /// The number of expectations that were met, of responses and of the node's state.
    pub checks: usize,
    /// The results that were not expected.
    pub unexpected: Vec<String>,
    /// How often the daemon called the node.
    pub node_calls: Counts,
    /// The RPCs, in their order.
    pub rpcs: Vec<CalledRpc>,
}

impl Report {
    fn median_time(&self) -> Duration {
        let mut times = self.call_times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// Runs all sequences, writes each call to `out`, and returns whether every result was expected.
pub fn show(out: impl Write + Send + 'static) -> Result<bool, Box<dyn Error>> {
    csi_proxy::serve::runtime()?.block_on(run_all(Screen::new(out)))
}

async fn run_all(mut screen: Screen) -> Result<bool, Box<dyn Error>> {
    let started = Instant::now();
    let sequences = Sequence::all()?;
    let daemon = Daemon::start().await?;
    let rpcs: usize = GROUP_VERSIONS.iter().map(|row| row.rpcs.len()).sum();
    let group_versions = GROUP_VERSIONS.len();
    let startup = daemon.startup.as_secs_f64() * 1000.0;
    screen.heading(
        "csi-proxy on a simulated Windows node",
        &[
            &format!("{rpcs} RPCs in {group_versions} group-versions, one Unix socket for each group-version in"),
            &format!("{}, ready after {startup:.0} ms", daemon.folder().display()),
            "",
            "Each line is an RPC that a CSI driver calls, as it does on Windows. \"refused\"",
            "is an error that the driver expects. A ✓ is a checked state of the node.",
            "(kubelet), (container), (pod) and (cloud) act on the node without csi-proxy.",
        ],
    )?;
    screen.columns()?;
    let mut reports = Vec::with_capacity(sequences.len());
    for sequence in &sequences {
        screen.heading(&sequence.driver, &[&sequence.about])?;
        reports.push(run(sequence, &daemon, &mut screen).await);
    }
    let unfinished = daemon.stop().await?;
    Ok(summary::show(&mut screen, &reports, unfinished, started.elapsed())?)
}

/// Runs one sequence. Like a driver, it stops at the first call with an unexpected result.
pub async fn run(sequence: &Sequence, daemon: &Daemon, screen: &mut Screen) -> Report {
    let (counts, disks) = (daemon.counts(), daemon.sim().disks());
    let report = Report { driver: sequence.driver.clone(), ..Report::default() };
    let variables = sequence.variables.clone();
    let phase = String::new();
    let mut runner = Runner { daemon, screen, variables, phase, changed_disks: BTreeSet::new(), report };
    if runner.phases(sequence).await.is_err() {
        runner.show(|screen| screen.unexpected("the driver gives up here"));
    }
    runner.report.node_calls = daemon.counts() - &counts;
    runner.show(|screen| screen.phase("Afterwards"));
    runner.check_other_disks(&disks);
    runner.report
}

/// An unexpected result, already reported, after which the driver cannot continue.
struct GivesUp;

struct Runner<'a> {
    daemon: &'a Daemon,
    screen: &'a mut Screen,
    variables: Variables,
    /// The name of the phase.
    phase: String,
    /// The disks that the driver staged, which it may change.
    changed_disks: BTreeSet<u32>,
    report: Report,
}

impl Runner<'_> {
    async fn phases(&mut self, sequence: &Sequence) -> Result<(), GivesUp> {
        for phase in &sequence.phases {
            self.show(|screen| screen.phase(&phase.name));
            self.phase.clone_from(&phase.name);
            for step in &phase.steps {
                match self.variables.fill(step).and_then(Step::parse) {
                    Ok(Step::Call(call)) => self.call(&call).await?,
                    Ok(Step::Action(actor, operation)) => self.act(actor, &operation)?,
                    Ok(Step::Check(check)) => self.check(&check),
                    Err(error) => return Err(self.gives_up(&error)),
                }
            }
        }
        Ok(())
    }

    async fn call(&mut self, call: &Call) -> Result<(), GivesUp> {
        let (method, about) = (&call.method, short_form::request(&call.request));
        let request = method.request(&Value::Object(call.request.clone())).map_err(|error| self.gives_up(&error))?;
        self.daemon.take_calls();
        let (started, began) = (Instant::now(), self.daemon.sim().now());
        let response = self.daemon.client().call(method, &request).await;
        let time = started.elapsed();
        self.report.call_times.push(time);
        self.report.rpcs.push(CalledRpc {
            phase: self.phase.clone(),
            name: method.name(),
            request: call.request.clone(),
            node_calls: self.daemon.take_calls(),
            simulated: self.daemon.sim().now() - began,
        });

        let problem = match (&response, &call.fails) {
            (Ok(response), None) => match self.accept(call, response) {
                Ok(()) => {
                    let response = short_form::response(response);
                    self.show(|screen| screen.answered(method, &about, &response, time));
                    return Ok(());
                }
                Err(problem) => format!("{}: {problem}", method.name()),
            },
            (Err(status), Some(reason)) if json_client::is_answer(status) && status.message().contains(reason) => {
                self.report.refused += 1;
                self.report.checks += 1;
                self.show(|screen| screen.refused(method, &about, reason, time));
                return Ok(());
            }
            (Err(status), None) => {
                format!("{} failed with {:?}: {}", method.name(), status.code(), status.message())
            }
            (Ok(response), Some(reason)) => {
                format!("{} must fail with '{reason}', but returned {response}", method.name())
            }
            (Err(status), Some(reason)) => {
                let (code, message) = (status.code(), status.message());
                format!("{} must fail with '{reason}', but failed with {code:?}: {message}", method.name())
            }
        };
        self.show(|screen| screen.failed(method, &about, time));
        Err(self.gives_up(&problem))
    }

    /// Compares a response with what the driver expects, and sets the variables that later steps use.
    fn accept(&mut self, call: &Call, response: &Value) -> Result<(), String> {
        if let Some(want) = &call.want {
            expectation::check(response, want)?;
            self.report.checks += 1;
        }
        for (name, path) in &call.keep {
            let value = expectation::at(response, path).ok_or_else(|| format!("the response has no {path}"))?;
            self.variables.set(name, expectation::text(value));
        }
        if let Some(find) = &call.find {
            self.variables.set(&find.keep, find.key(response)?);
            self.report.checks += 1;
        }
        Ok(())
    }

    fn act(&mut self, actor: Actor, operation: &Operation) -> Result<(), GivesUp> {
        let performed = node::perform(self.daemon.sim(), operation);
        let name = format!("({actor}) {}", performed.name);
        let (result, expected) = performed
            .result
            .map_err(|error| self.gives_up(&format!("{name} of {} failed: {error}", performed.about)))?;
        self.show(|screen| screen.action(&name, &performed.about, &result));
        if !expected {
            return Err(self.gives_up(&format!("{name} of {} returned {result}", performed.about)));
        }
        self.report.checks += usize::from(!result.is_empty());
        if let (Operation::GrowDisk { keep: Some(name), .. }, Some(size)) = (operation, performed.size) {
            self.variables.set(name, size.to_string());
        }
        Ok(())
    }

    fn check(&mut self, check: &Check) {
        if let Check::Staged { disk, .. } = check {
            self.changed_disks.insert(*disk);
        }
        for (what, holds) in node::check(self.daemon.sim(), check) {
            self.must_hold(&what, holds);
        }
    }

    /// Checks that the disks of other drivers have not changed, and that the node is consistent.
    fn check_other_disks(&mut self, before: &[DiskView]) {
        let others = |disks: &[DiskView]| -> Vec<DiskView> {
            disks.iter().filter(|disk| !self.changed_disks.contains(&disk.number)).cloned().collect()
        };
        let unchanged = others(before) == others(&self.daemon.sim().disks());
        self.must_hold("all other disks are unchanged", unchanged);
        match self.daemon.sim().invariants() {
            Ok(()) => self.must_hold("the node is consistent", true),
            Err(error) => self.must_hold(&format!("the node is consistent: {error}"), false),
        }
    }

    fn must_hold(&mut self, what: &str, holds: bool) {
        if holds {
            self.report.checks += 1;
            self.show(|screen| screen.holds(what));
        } else {
            self.report.unexpected.push(what.to_owned());
            self.show(|screen| screen.unexpected(&format!("does not hold: {what}")));
        }
    }

    fn gives_up(&mut self, problem: &str) -> GivesUp {
        self.report.unexpected.push(problem.to_owned());
        self.show(|screen| screen.unexpected(problem));
        GivesUp
    }

    fn show(&mut self, write: impl FnOnce(&mut Screen) -> io::Result<()>) {
        // A closed output, such as a pipe into `head`, does not change the result.
        let _ = write(self.screen);
    }
}
