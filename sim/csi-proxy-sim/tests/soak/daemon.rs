//! The daemon as a process, on a node with a disk for each client.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use tempfile::TempDir;
use transport::address::Location;

use crate::metrics::Metrics;
use crate::size::Size;
use crate::system;

/// Servers with a share for each client and one more: one that answers at once, one after a while, one hardly ever.
pub(crate) const QUICK_SERVER: &str = "quick";
pub(crate) const TARDY_SERVER: &str = "tardy";
pub(crate) const SLOW_SERVER: &str = "slow";

const TARDY: Duration = Duration::from_millis(100);

const SOCKETS: &str = "sockets";
const LOG: &str = "log";

pub(crate) struct Daemon {
    process: Child,
    output: BufReader<ChildStdout>,
    metrics: Metrics,
    folder: TempDir,
}

impl Daemon {
    /// Starts it on a node where WMI takes its time, and one SMB server takes `slow` over each answer.
    pub(crate) fn start(disks: u32, slow: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let node = folder.path().join("node.toml");
        fs::write(&node, description(disks, slow)).expect("a file");
        let mut process = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"))
            .arg(format!("-socket-folder={}", folder.path().join(SOCKETS).display()))
            .arg(format!("-node={}", node.display()))
            .args(["-metrics-bind-address=127.0.0.1:0", "-max-silence=2"])
            .stdout(Stdio::piped())
            // A log that nobody reads would fill its pipe.
            .stderr(fs::File::create(folder.path().join(LOG)).expect("a file"))
            .spawn()
            .expect("a process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut metrics = None;
        for line in output.by_ref().lines().map(|line| line.expect("text")) {
            metrics = metrics.or_else(|| Some(line.split_once("metrics at http://")?.1.to_owned()));
            if line.starts_with("Press Ctrl-C") {
                break;
            }
        }
        let metrics = Metrics::at(metrics.expect("it says where").trim_end_matches("/metrics"));
        Self { process, output, metrics, folder }
    }

    pub(crate) fn place(&self) -> Location {
        system::place(&self.sockets())
    }

    /// The folder of its sockets, where those are files.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.folder.path().join(SOCKETS)
    }

    /// What counts its calls.
    pub(crate) fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// What it has of the system now.
    pub(crate) fn size(&self) -> Size {
        system::size(self.process.id())
    }

    /// Waits until it has no more handles than that, which it has a minute for.
    pub(crate) async fn shrinks_to(&self, handles: u64) {
        let give_up = Instant::now() + Duration::from_mins(1);
        loop {
            let size = self.size();
            if size.handles <= handles {
                return;
            }
            assert!(Instant::now() < give_up, "all clients are gone, and it still has {size:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Ends it, in order where a test can have that.
    pub(crate) fn stop(mut self) {
        let in_order = system::stop(&mut self.process);
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let log = fs::read_to_string(self.folder.path().join(LOG)).expect("the log");
        let status = self.process.wait().expect("an end");
        if in_order {
            assert!(status.success(), "{log}");
            assert_eq!(rest, "Stopped after all calls had finished.\n", "{log}");
        }
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// A daemon that a failed test leaves behind ends with it, and leaves its last words.
impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        if thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
            let last: Vec<_> = log.lines().rev().take(30).collect();
            eprintln!("the daemon's log ends so:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}

fn description(disks: u32, slow: Duration) -> String {
    let time = |name: &str, milliseconds: u32| format!("{name} = {{ secs = 0, nanos = {milliseconds}000000 }}\n");
    let mut text = "[timing]\n".to_owned();
    for (name, milliseconds) in [("query", 20), ("initialize", 30), ("create_partition", 60), ("format", 120)] {
        text += &time(name, milliseconds);
    }
    text += &time("volume_arrival", 15);
    for number in 1..=disks {
        write!(text, "[[disk]]\nnumber = {number}\nsize = \"1 GiB\"\n").expect("a string takes all");
    }
    let shares: Vec<_> = (1..=disks).map(|number| format!("{{ name = \"share{number}\" }}, ")).collect();
    let shares = shares.concat();
    let servers = [(QUICK_SERVER, Duration::ZERO), (TARDY_SERVER, TARDY), (SLOW_SERVER, slow)];
    for (host, answer) in servers {
        write!(
            text,
            "[[smb_server]]\nhost = \"{host}\"\nslow_milliseconds = {}\n\
             shares = [{shares}{{ name = \"share\" }}]\nusers = [{{ name = \"user\", password = \"password\" }}]\n",
            answer.as_millis()
        )
        .expect("a string takes all");
    }
    text
}
