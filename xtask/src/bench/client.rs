//! Running the Go client once against one server: one sample.

use std::fmt;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::counters::{Counters, Machine, Usage};
use super::server::Running;
use super::workload::Workload;
use crate::process::KillOnDrop;

/// The program that generates the load. Its package comment describes the protocol between it and this program.
pub(super) struct Client {
    path: PathBuf,
}

/// The report that the client prints, with its field names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Report {
    /// A float, because it is only used in divisions.
    pub(super) calls: f64,
    pub(super) seconds: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The encoded size of a response; 0 for an error.
    pub(super) response_bytes: u32,
    /// The version of grpc-go.
    pub(super) grpc: String,
}

/// One measurement of one server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) report: Report,
    /// What the server used during the measurement.
    pub(super) server: Usage,
    /// At the end, while the connection is still open.
    pub(super) threads: u32,
    pub(super) resident_mib: f64,
    pub(super) peak_mib: f64,
    /// CPU time, in seconds, of the system and of other processes than the server and the client.
    pub(super) others: f64,
    /// CPU time, in seconds, that all processors had.
    pub(super) capacity: f64,
}

impl Client {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Warms the server up and measures it.
    pub(super) fn measure(
        &self,
        server: &Running,
        workload: &Workload,
        callers: u32,
        window: Duration,
    ) -> Result<Sample, Box<dyn std::error::Error>> {
        let mut client = Process::start(
            Command::new(&self.path)
                .args(["-rpc", workload.rpc, "-path", workload.path, "-expect", workload.expect])
                .args(["-callers", &callers.to_string()])
                .args(["-window", &go_duration(window), "-warm-up", &go_duration(window / 5)])
                .arg("-socket-folder")
                .arg(&server.sockets),
        )?;
        client.expect_line("ready")?;
        let pids = [server.pid(), client.process.0.id()];
        let [server_before, client_before] = [Counters::of(pids[0])?, Counters::of(pids[1])?];
        let machine_before = Machine::read()?;
        client.signal_start()?;
        let report: Report = serde_json::from_str(&client.line()?)?;
        let machine = Machine::read()?.since(&machine_before);
        let [server_after, client_after] = [Counters::of(pids[0])?, Counters::of(pids[1])?];
        client.end()?;

        let used = server_after.since(&server_before);
        let ours = used.cpu + client_after.since(&client_before).cpu;
        Ok(Sample {
            report,
            server: used,
            threads: u32::try_from(server_after.threads())?,
            resident_mib: server_after.resident_mib,
            peak_mib: server_after.peak_mib,
            // Slightly below zero when the machine's coarser clock lags; this averages out over a round.
            others: machine.busy.as_secs_f64() - ours.as_secs_f64(),
            capacity: machine.all.as_secs_f64(),
        })
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { calls, seconds, p50_us, p99_us, .. } = &self.report;
        let cpu = self.server.cpu.as_secs_f64() * 1e6 / calls;
        let others = 100.0 * self.others / self.capacity;
        write!(
            f,
            "{:>6.0} calls/s, p50 {p50_us:.0} us, p99 {p99_us:.0} us, CPU {cpu:.1} us/call, others {others:.1} %",
            calls / seconds
        )
    }
}

/// Formats a duration for Go.
fn go_duration(duration: Duration) -> String {
    format!("{}us", duration.as_micros())
}

/// A client process.
struct Process {
    process: KillOnDrop,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(command: &mut Command) -> Result<Self, Box<dyn std::error::Error>> {
        // The client inherits standard error and reports its errors there.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the client has no standard output")?;
        Ok(Self { process: KillOnDrop(child), lines: BufReader::new(output).lines() })
    }

    fn line(&mut self) -> Result<String, Box<dyn std::error::Error>> {
        Ok(self.lines.next().ok_or("the client failed")??)
    }

    fn expect_line(&mut self, expected: &str) -> Result<(), Box<dyn std::error::Error>> {
        let line = self.line()?;
        if line == expected { Ok(()) } else { Err(format!("the client printed {line:?}, not {expected:?}").into()) }
    }

    fn signal_start(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let input = self.process.0.stdin.as_mut().ok_or("the client has no standard input")?;
        Ok(input.write_all(b"\n")?)
    }

    /// Closes the standard input of the client, which then exits.
    fn end(mut self) -> Result<(), Box<dyn std::error::Error>> {
        drop(self.process.0.stdin.take());
        let status = self.process.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the client ended with {status}").into()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Report, go_duration};

    #[test]
    fn a_report_is_read_as_the_client_writes_it() {
        let line = r#"{"calls":1000,"seconds":0.5,"p50_us":280.6,"p99_us":942.5,"response_bytes":2,"grpc":"1.85.0"}"#;
        let report: Report = serde_json::from_str(line).expect("a report");
        let expected = Report {
            calls: 1000.0,
            seconds: 0.5,
            p50_us: 280.6,
            p99_us: 942.5,
            response_bytes: 2,
            grpc: "1.85.0".into(),
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn durations_are_written_for_go() {
        assert_eq!(go_duration(Duration::from_millis(1500)), "1500000us");
    }
}
