//! Runs the sequences of CSI drivers against the real server on a simulated node.
//!
//! All group-versions are served on Unix sockets, and every call goes over a real gRPC connection.
//! What drivers do without csi-proxy is done on the simulated node directly. The node's state is
//! checked at every step.

mod daemon;
mod expectation;
mod method;
mod node;
mod replay;
mod screen;
mod sequence;
mod short_form;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use anstyle::Style;
use api::GROUP_VERSIONS;
use csi_proxy_client::Error as ClientError;
use faults::Counts;
use os_sim::DiskView;
use prost::Message as _;
use serde_json::Value;
use server::Unfinished;
use tonic::Code;

pub use daemon::Daemon;
pub use replay::replay;
pub use screen::Screen;
pub use sequence::Sequence;

use crate::layer::known_rpcs;
use node::Performed;
use screen::{BAD, REFUSED};
use sequence::{Call, Check, ControlCall, Operation, Step, Variables};

/// The result of a sequence.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The driver.
    pub driver: String,
    /// The number of calls.
    pub calls: usize,
    /// The number of calls that failed as the driver expects.
    pub refused: usize,
    /// The number of expectations that were met, of responses and of the node's state.
    pub checks: usize,
    /// The results that were not expected.
    pub unexpected: Vec<String>,
    /// How often the daemon called the node.
    pub node_calls: Counts,
}

/// Runs all sequences, writes each call to `out`, and returns whether every result was expected.
pub fn show(out: impl Write + Send + 'static) -> Result<bool, Box<dyn Error>> {
    csi_proxy::serve::runtime()?.block_on(run_all(Screen::new(out)))
}

async fn run_all(mut screen: Screen) -> Result<bool, Box<dyn Error>> {
    let started = Instant::now();
    let sequences = Sequence::all()?;
    let daemon = Daemon::start()?;
    let rpcs: usize = GROUP_VERSIONS.iter().map(|row| row.rpcs.len()).sum();
    let about = format!(
        "{rpcs} RPCs in {} group-versions, one Unix socket for each group-version in
{}

Each line is an RPC that a CSI driver calls, as it does on Windows. \"refused\"
is an error that the driver expects. A ✓ is a checked state of the node.
(kubelet), (container), (pod) and (cloud) act on the node without csi-proxy.",
        GROUP_VERSIONS.len(),
        daemon.folder().display()
    );
    screen.heading("csi-proxy on a simulated Windows node", &about);
    screen.columns();
    let mut reports = Vec::with_capacity(sequences.len());
    for sequence in &sequences {
        screen.heading(&sequence.driver, &sequence.about);
        reports.push(run(sequence, &daemon, &mut screen).await);
    }
    let unfinished = daemon.stop().await?;
    Ok(summarize(
        &mut screen,
        &reports,
        unfinished,
        started.elapsed(),
    ))
}

/// Writes a table with a row for each driver, and the result. Returns whether every result was
/// expected.
fn summarize(
    screen: &mut Screen,
    reports: &[Report],
    unfinished: Unfinished,
    time: Duration,
) -> bool {
    screen.heading(
        "Summary",
        "calls: RPCs; refused: calls that failed as the driver expects;
Win32, WMI: calls to the node; checks: of responses and of the node's state",
    );
    screen.row(
        true,
        [
            &"driver",
            &"calls",
            &"refused",
            &"Win32",
            &"WMI",
            &"checks",
            &"unexpected",
        ],
    );
    for report in reports {
        let Report {
            driver,
            calls,
            refused,
            checks,
            ..
        } = report;
        let Counts {
            primitives, wmi, ..
        } = report.node_calls;
        let (win32, unexpected) = (primitives - wmi, report.unexpected.len());
        screen.row(
            unexpected == 0,
            [driver, calls, refused, &win32, &wmi, checks, &unexpected],
        );
    }
    let calls: usize = reports.iter().map(|report| report.calls).sum();
    let unexpected: usize = reports.iter().map(|report| report.unexpected.len()).sum();
    let is_drained = unfinished == Unfinished::default();
    if !is_drained {
        screen.result(
            false,
            &format!("The daemon stopped with unfinished work: {unfinished:?}"),
        );
    }
    let results = if unexpected == 1 { "result" } else { "results" };
    let sentence = format!(
        "{calls} calls, {unexpected} unexpected {results}, {:.2} s",
        time.as_secs_f64()
    );
    screen.result(unexpected == 0, &sentence);
    unexpected == 0 && is_drained
}

/// Runs one sequence. Like a driver, it stops at the first call with an unexpected result.
pub async fn run(sequence: &Sequence, daemon: &Daemon, screen: &mut Screen) -> Report {
    let (counts, disks) = (daemon.counts(), daemon.sim().disks());
    let report = Report {
        driver: sequence.driver.clone(),
        ..Report::default()
    };
    let variables = sequence.variables.clone();
    let has_file_system = |disk: &u32| {
        let volume = daemon.sim().volume_on(*disk);
        volume.is_some_and(|volume| volume.file_system.is_some())
    };
    let numbers = disks.iter().map(|disk| disk.number);
    let mut runner = Runner {
        daemon,
        screen,
        variables,
        formatted_before: numbers.filter(has_file_system).collect(),
        changed_disks: BTreeSet::new(),
        report,
    };
    if let Err(problem) = runner.phases(sequence).await {
        runner.screen.check(&problem, false);
        runner.screen.check("the driver gives up here", false);
        runner.report.unexpected.push(problem);
    }
    runner.report.node_calls = daemon.counts() - &counts;
    runner.screen.phase("Afterwards");
    // A recorded sequence does not say which disks are its own.
    if daemon.control.is_none() {
        runner.check_other_disks(&disks);
    }
    runner.report
}

struct Runner<'a> {
    daemon: &'a Daemon,
    screen: &'a mut Screen,
    variables: Variables,
    /// The disks whose volumes had a file system before the sequence.
    formatted_before: BTreeSet<u32>,
    /// The disks that the driver staged, which it may change.
    changed_disks: BTreeSet<u32>,
    report: Report,
}

impl Runner<'_> {
    /// Runs the phases. The error is an unexpected result after which the driver cannot continue.
    async fn phases(&mut self, sequence: &Sequence) -> Result<(), String> {
        for phase in &sequence.phases {
            self.screen.phase(&phase.name);
            for step in &phase.steps {
                match Step::parse(self.variables.fill(step)?)? {
                    Step::Call(call) => self.call(&call).await?,
                    Step::Control(call) => self.control(&call).await?,
                    Step::Action(actor, operation, fails) => {
                        self.act(&actor, &operation, fails.as_deref())?;
                    }
                    Step::Check(check) => self.check(&check),
                }
            }
        }
        Ok(())
    }

    async fn call(&mut self, call: &Call) -> Result<(), String> {
        let (method, json) = (&call.method.0, Value::Object(call.request.clone()));
        let (request, about) = (method.request(&json)?, &*short_form::values(&json));
        let started = Instant::now();
        let response = method.call(&self.daemon.client, &request).await;
        let time = started.elapsed();
        self.report.calls += 1;
        let expected: Vec<&str> = [&call.code, &call.fails]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match response {
            Ok(response) if expected.is_empty() => {
                self.screen.call(
                    method,
                    (about, &short_form::values(&response)),
                    Style::new(),
                    time,
                );
                self.accept(call, &response)
                    .map_err(|problem| format!("{}: {problem}", method.name()))
            }
            Err(error) if !expected.is_empty() && self.is_expected(call, &error) => {
                self.report.refused += 1;
                self.screen.call(method, (about, "refused"), REFUSED, time);
                match (&call.fails, &call.code) {
                    (Some(text), _) if !text.is_empty() => {
                        self.must_hold(&format!("the error contains \"{text}\""), true);
                    }
                    (_, Some(code)) => self.must_hold(&format!("the code is {code}"), true),
                    (_, None) => self.report.checks += 1,
                }
                Ok(())
            }
            response => {
                self.screen.call(method, (about, "unexpected"), BAD, time);
                let outcome = match response {
                    Ok(response) => format!("returned {response}"),
                    Err(error) => format!("failed with {:?}: {}", error.kind(), error.message()),
                };
                let must = match expected.join(", ") {
                    reasons if expected.is_empty() => reasons,
                    reasons => format!("must fail with '{reasons}', but "),
                };
                Err(format!("{} {must}{outcome}", method.name()))
            }
        }
    }

    /// Returns whether a call fails as it must. Every code of the csi-proxy written in Go is
    /// Unknown.
    fn is_expected(&self, call: &Call, error: &ClientError) -> bool {
        let found = format!("{:?}", Code::from_i32(error.grpc_code()));
        let has_code =
            |code: &String| found == *code || self.daemon.is_like_go && found == "Unknown";
        // Only an answer of the daemon has a call number.
        let has_text = |reason: &String| {
            error.call_number().is_some() && error.message().contains(reason.as_str())
        };
        call.code.as_ref().is_none_or(has_code) && call.fails.as_ref().is_none_or(has_text)
    }

    /// Compares a response with what the driver expects, and sets the variables that later steps
    /// use.
    fn accept(&mut self, call: &Call, response: &Value) -> Result<(), String> {
        if let Some(want) = &call.want {
            expectation::check(response, want)?;
            self.report.checks += 1;
        }
        for (name, path) in &call.keep {
            let value = expectation::at(response, path)
                .ok_or_else(|| format!("the response has no {path}"))?;
            self.variables.set(name, expectation::text(value));
        }
        if let Some(find) = &call.find {
            self.variables.set(&find.keep, find.key(response)?);
            self.report.checks += 1;
        }
        Ok(())
    }

    /// Changes the node as a test has done while it was recorded.
    async fn control(&mut self, call: &ControlCall) -> Result<(), String> {
        let name = &call.control;
        let control = self
            .daemon
            .control
            .as_ref()
            .ok_or("only `csi-proxy-sim replay` has the control API")?;
        let rpc = known_rpcs::find(&format!("/csi_proxy_sim.v1.{name}"));
        let rpc = &rpc
            .ok_or_else(|| format!("unknown RPC {name} of the control API"))?
            .rpc;
        let request = rpc.try_request(&Value::Object(call.request.clone()));
        let request = request.map_err(|error| format!("{name}: {error}"))?;
        self.screen.action(&format!("(test) {name}"), "", "");
        let called = dynamic_client::call(control, rpc.path, request.encode_to_vec()).await;
        called
            .map(drop)
            .map_err(|status| format!("{name} failed: {}", status.message()))
    }

    fn act(
        &mut self,
        actor: &str,
        operation: &Operation,
        fails: Option<&str>,
    ) -> Result<(), String> {
        let Performed {
            name,
            about,
            result,
        } = node::perform(self.daemon.sim(), operation);
        let name = format!("({actor}) {name}");
        let (result, is_expected) = match (result, fails) {
            (Err(error), Some(reason)) => {
                let is_expected = error.contains(reason);
                (error, is_expected)
            }
            (Err(error), None) => return Err(format!("{name} of {about} failed: {error}")),
            (Ok(_), Some(reason)) => {
                return Err(format!("{name} of {about} must fail with '{reason}'"));
            }
            (Ok(result), None) => result,
        };
        self.screen.action(&name, &about, &result);
        if !is_expected {
            return Err(format!("{name} of {about} returned {result}"));
        }
        self.report.checks += usize::from(!result.is_empty());
        if let Operation::GrowDisk {
            disk,
            keep: Some(name),
        } = operation
        {
            self.variables
                .set(name, node::size_of(self.daemon.sim(), disk.0).to_string());
        }
        Ok(())
    }

    fn check(&mut self, check: &Check) {
        let (what, holds) = node::check(self.daemon.sim(), &self.formatted_before, check);
        self.must_hold(&what, holds);
        if let Check::Staged { disk, .. } = check {
            self.changed_disks.insert(disk.0);
            self.check(&Check::FormattedOnce { disk: *disk });
        }
    }

    /// Checks that the disks of other drivers have not changed, and that the node is consistent.
    fn check_other_disks(&mut self, before: &[DiskView]) {
        let others = |disks: &[DiskView]| -> Vec<DiskView> {
            disks
                .iter()
                .filter(|disk| !self.changed_disks.contains(&disk.number))
                .cloned()
                .collect()
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
            self.screen.check(what, true);
        } else {
            self.report.unexpected.push(what.to_owned());
            self.screen.check(&format!("does not hold: {what}"), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unexpected_result_fails_the_demo() {
        let mut screen = Screen::new(std::io::sink());
        let mut reports = [Report::default(), Report::default()];
        assert!(summarize(
            &mut screen,
            &reports,
            Unfinished::default(),
            Duration::ZERO
        ));
        reports[0].unexpected.push("the disk is offline".to_owned());
        assert!(!summarize(
            &mut screen,
            &reports,
            Unfinished::default(),
            Duration::ZERO
        ));
    }
}
