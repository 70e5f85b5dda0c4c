//! The daemon as a process, on a simulated node with a disk for each client.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tempfile::TempDir;
use transport::address::Location;

use crate::metrics::Metrics;
use crate::platform;
use crate::resources::ResourceUsage;

/// An SMB server that answers immediately. Each server has a share for each client.
pub(crate) const FAST_SERVER: &str = "fast";
/// An SMB server that answers after [`DELAY`].
pub(crate) const DELAYED_SERVER: &str = "delayed";

const DELAY: Duration = Duration::from_millis(100);

const SOCKETS: &str = "sockets";
const LOG: &str = "log";

/// Part of the last line that the daemon prints when it has started.
const READY: &str = "Ctrl-C";
/// What it prints when it has ended all calls and stops.
const STOPPED: &str = "Stopped after all calls had finished.\n";

pub(crate) struct Daemon {
    process: Child,
    output: BufReader<ChildStdout>,
    metrics: Metrics,
    folder: TempDir,
}

impl Daemon {
    /// Starts the daemon on a node whose WMI is slow. Waits until it has printed all of its first
    /// lines.
    pub(crate) fn start(program: &Path, disks: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let node = folder.path().join("node.toml");
        fs::write(&node, description(disks)).expect("a file");
        let mut process = Command::new(program)
            .arg(format!(
                "-socket-folder={}",
                folder.path().join(SOCKETS).display()
            ))
            .arg(format!("-node={}", node.display()))
            .args(["-metrics-bind-address=127.0.0.1:0", "-direct"])
            .stdout(Stdio::piped())
            // A pipe would fill up, since the log is read only at the end.
            .stderr(fs::File::create(folder.path().join(LOG)).expect("a file"))
            .spawn()
            .expect("a process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut metrics = None;
        for line in output.by_ref().lines().map(|line| line.expect("text")) {
            metrics = metrics.or_else(|| Some(line.split_once("metrics at http://")?.1.to_owned()));
            if line.contains(READY) {
                break;
            }
        }
        let metrics = Metrics::at(
            metrics
                .expect("the daemon prints the address of its metrics")
                .trim_end_matches("/metrics"),
        );
        Self {
            process,
            output,
            metrics,
            folder,
        }
    }

    /// Returns where it listens.
    pub(crate) fn location(&self) -> Location {
        platform::location(&self.folder.path().join(SOCKETS))
    }

    /// Returns its metrics endpoint.
    pub(crate) fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Returns the resources that it uses now.
    pub(crate) fn resource_usage(&self) -> ResourceUsage {
        platform::resource_usage(self.process.id())
    }

    /// Waits until it has at most this many handles and threads, for at most a minute. A thread
    /// without work ends after ten seconds.
    pub(crate) async fn wait_until_at_most(&self, handles: u64, threads: u64) {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let usage = self.resource_usage();
            if usage.handles <= handles && usage.threads <= threads {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "all clients have disconnected, and the daemon still uses {usage:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Stops it, and checks its exit code, its last output and its log as far as it was stopped in
    /// order.
    pub(crate) fn stop(mut self) {
        let drained = platform::stop(&mut self.process);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let log = fs::read_to_string(self.folder.path().join(LOG)).expect("the log");
        let status = self.process.wait().expect("an exit code");
        if drained {
            assert!(status.success(), "{log}");
            assert_eq!(rest, STOPPED, "{log}");
        }
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// Kills the daemon if the test fails, and prints the end of its log.
impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        if thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
            let last: Vec<_> = log.lines().rev().take(30).collect();
            eprintln!(
                "the end of the daemon's log:\n{}",
                last.into_iter().rev().collect::<Vec<_>>().join("\n")
            );
        }
    }
}

/// Describes the simulated node.
fn description(disks: u32) -> String {
    let time = |name: &str, milliseconds: u32| format!("{name} = \"{milliseconds}ms\"\n");
    let mut text = "[timing]\n".to_owned();
    for (name, milliseconds) in [
        ("query", 20),
        ("initialize", 30),
        ("create_partition", 60),
        ("format", 120),
    ] {
        text += &time(name, milliseconds);
    }
    text += &time("volume_arrival", 15);
    for number in 1..=disks {
        write!(text, "[[disk]]\nnumber = {number}\nsize = \"1 GiB\"\n")
            .expect("writing to a string succeeds");
    }
    let shares: Vec<_> = (1..=disks)
        .map(|number| format!("{{ name = \"share{number}\" }}, "))
        .collect();
    let shares = shares.concat();
    let servers = [(FAST_SERVER, Duration::ZERO), (DELAYED_SERVER, DELAY)];
    for (host, answer) in servers {
        write!(
            text,
            "[[smb_server]]\nhost = \"{host}\"\nanswer_takes = \"{}ms\"\n\
             shares = [{shares}]\nusers = [{{ name = \"user\", password = \"password\" }}]\n",
            answer.as_millis()
        )
        .expect("writing to a string succeeds");
    }
    text
}
