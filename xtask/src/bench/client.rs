//! Running the Go client once against one server: one sample.

use std::fmt;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::counters::{Counters, Machine, Usage};
use super::server::{Program, Running, Site};
use super::workload::{Connections, PING_PONG_BYTES, Workload};
use crate::Error;
use crate::process::KillOnDrop;

/// How long a client may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The program that generates the load. Its package comment describes the protocol between it and this program.
pub(super) struct Client {
    path: PathBuf,
}

/// A load: who calls what, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) workload: &'static Workload,
    pub(super) connections: Connections,
    pub(super) callers: u32,
    pub(super) window: Duration,
    /// A call that must run all the time, by the name that the client knows.
    pub(super) during: Option<&'static str>,
}

/// The report that the client prints, with its field names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Report {
    /// A float, because it is only used in divisions.
    pub(super) calls: f64,
    pub(super) seconds: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// What the client has sent and received for a call, on average.
    pub(super) sent_bytes: f64,
    pub(super) received_bytes: f64,
    /// The encoded size of a response; 0 for an error.
    pub(super) response_bytes: u32,
    /// The version of grpc-go.
    pub(super) grpc: String,
}

/// One measurement of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) report: Report,
    /// From the start of the server to its first answer.
    pub(super) first_answer: Duration,
    /// What the server used during the measurement.
    pub(super) server: Usage,
    /// What the wineserver used, if there is one: for the server and for the client.
    pub(super) wineserver: Usage,
    /// At the end, while the connection is still open.
    pub(super) threads: u32,
    pub(super) resident_mb: f64,
    pub(super) peak_mb: f64,
    /// CPU time, in seconds, of the system and of other processes than the server, the wineserver and the client.
    pub(super) others: f64,
    /// CPU time, in seconds, that all processors had.
    pub(super) capacity: f64,
}

impl Client {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Starts the server, warms it up, measures it and ends it.
    pub(super) fn measure(&self, site: &Site, program: &Program, load: &Load) -> Result<Sample, Error> {
        let mut process = self.start(site, program, load)?;
        let begin = Instant::now();
        let server = program.start(site)?;
        let explain = |error: Error| {
            let (workload, log) = (load.workload.name, server.log.display());
            format!("{} with {workload}, {} callers: {error}; the server's log is {log}", program.name, load.callers)
        };
        process.expect_line("answered").map_err(explain)?;
        let first_answer = begin.elapsed();
        let sample = process.measure(&server).map_err(explain)?;
        Ok(Sample { first_answer, ..sample })
    }

    /// Starts a client that calls the server when it can.
    pub(super) fn start(&self, site: &Site, program: &Program, load: &Load) -> Result<Process, Error> {
        let Load { workload, connections, callers, window, during } = load;
        let [request, reply] = PING_PONG_BYTES.map(|bytes| bytes.to_string());
        let mut command = site.command(program.kind, &self.path);
        command
            .args(["-rpc", workload.rpc, "-path", workload.path, "-expect", workload.expected_from(program.kind)])
            .args(["-connections", connections.name(), "-callers", &callers.to_string()])
            .args(["-window", &go_duration(*window), "-warm-up", &go_duration(*window / 5)])
            .args(["-request-bytes", &request, "-reply-bytes", &reply])
            .args(during.map(|call| format!("-during={call}")))
            .arg("-socket-folder")
            .arg(site.sockets(program));
        let mut process = Process::start(&mut command)?;
        process.expect_line("started")?;
        Ok(process)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { calls, seconds, p50_us, p99_us, .. } = &self.report;
        let cpu = |used: Usage| used.cpu.as_secs_f64() * 1e6 / calls;
        let (server, wineserver) = (cpu(self.server), cpu(self.wineserver));
        let others = 100.0 * self.others / self.capacity;
        write!(
            f,
            "{:>6.0} calls/s, p50 {p50_us:.0} us, p99 {p99_us:.0} us, CPU {server:.1} + {wineserver:.1} us/call, others \
             {others:.1} %",
            calls / seconds
        )
    }
}

/// Formats a duration for Go.
fn go_duration(duration: Duration) -> String {
    format!("{}us", duration.as_micros())
}

/// A client process.
pub(super) struct Process {
    process: KillOnDrop,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(command: &mut Command) -> Result<Self, Error> {
        // The client inherits standard error and reports its errors there.
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the client has no standard output")?;
        Ok(Self { process: KillOnDrop(child), lines: BufReader::new(output).lines() })
    }

    /// Measures the server that the client has had an answer of.
    pub(super) fn measure(mut self, server: &Running) -> Result<Sample, Error> {
        self.expect_line("ready")?;
        let of_wineserver = || server.wineserver.map(Counters::of).transpose();
        let pids = [server.pid(), self.process.0.id()];
        let [server_before, client_before] = [Counters::of(pids[0])?, Counters::of(pids[1])?];
        let wineserver_before = of_wineserver()?;
        let machine_before = Machine::read()?;
        self.signal_start()?;
        let report: Report = serde_json::from_str(&self.line()?)?;
        let machine = Machine::read()?.since(&machine_before);
        let wineserver_after = of_wineserver()?;
        let [server_after, client_after] = [Counters::of(pids[0])?, Counters::of(pids[1])?];
        self.end()?;

        let used = server_after.since(&server_before);
        let wineserver = wineserver_after.zip(wineserver_before).map(|(after, before)| after.since(&before));
        let wineserver = wineserver.unwrap_or_default();
        let ours = used.cpu + wineserver.cpu + client_after.since(&client_before).cpu;
        Ok(Sample {
            report,
            first_answer: Duration::ZERO,
            server: used,
            wineserver,
            threads: u32::try_from(server_after.threads())?,
            resident_mb: server_after.resident_mb,
            peak_mb: server_after.peak_mb,
            // Slightly below zero when the machine's coarser clock lags; this averages out over a round.
            others: machine.busy.as_secs_f64() - ours.as_secs_f64(),
            capacity: machine.all.as_secs_f64(),
        })
    }

    fn line(&mut self) -> Result<String, Error> {
        Ok(self.lines.next().ok_or("the client failed")??)
    }

    pub(super) fn expect_line(&mut self, expected: &str) -> Result<(), Error> {
        let line = self.line()?;
        if line == expected { Ok(()) } else { Err(format!("the client printed {line:?}, not {expected:?}").into()) }
    }

    fn signal_start(&mut self) -> Result<(), Error> {
        let input = self.process.0.stdin.as_mut().ok_or("the client has no standard input")?;
        Ok(input.write_all(b"\n")?)
    }

    /// Closes the standard input of the client, which then exits. Under Wine a process may hang while it exits; as the
    /// client has printed its report, it is then killed.
    fn end(mut self) -> Result<(), Error> {
        drop(self.process.0.stdin.take());
        let begin = Instant::now();
        while begin.elapsed() < EXIT_TIMEOUT {
            match self.process.0.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the client ended with {status}").into()),
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
        println!("killed a client that hung while it exited");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Report, go_duration};

    #[test]
    fn a_report_is_read_as_the_client_writes_it() {
        let line = r#"{"calls":1000,"seconds":0.5,"p50_us":280.6,"p99_us":942.5,"sent_bytes":98.5,"received_bytes":55.25,"response_bytes":2,"grpc":"1.85.0"}"#;
        let report: Report = serde_json::from_str(line).expect("a report");
        let expected = Report {
            calls: 1000.0,
            seconds: 0.5,
            p50_us: 280.6,
            p99_us: 942.5,
            sent_bytes: 98.5,
            received_bytes: 55.25,
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
