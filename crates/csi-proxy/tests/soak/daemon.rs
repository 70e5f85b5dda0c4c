//! The daemon as a process, on a node with a disk for each client.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use pipe::address::Place;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) struct Daemon {
    process: Child,
    output: BufReader<ChildStdout>,
    metrics: String,
    folder: TempDir,
}

impl Daemon {
    /// Starts it on a node where WMI takes its time, and one SMB server takes `slow`.
    pub(crate) fn start(disks: u32, slow: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let node = folder.path().join("node.toml");
        fs::write(&node, description(disks, slow)).expect("a file");
        let mut process = Command::new(env!("CARGO_BIN_EXE_csi-proxy"))
            .arg(format!("-socket-folder={}", folder.path().join("sockets").display()))
            .arg(format!("-node={}", node.display()))
            .args(["-metrics-bind-address=127.0.0.1:0", "-max-silence=2"])
            .stdout(Stdio::piped())
            // A log that nobody reads would fill its pipe.
            .stderr(fs::File::create(folder.path().join("log")).expect("a file"))
            .spawn()
            .expect("a process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut metrics = None;
        for line in output.by_ref().lines().map(|line| line.expect("text")) {
            metrics = metrics.or_else(|| Some(line.split_once("metrics at http://")?.1.to_owned()));
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        let metrics = metrics.expect("it says where").trim_end_matches("/metrics").to_owned();
        Self { process, output, metrics, folder }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn place(&self) -> Place {
        Place::Folder(self.folder.path().join("sockets"))
    }

    /// Its counts, once all that it has begun has ended.
    pub(crate) async fn metrics(&self) -> String {
        loop {
            let text = self.get().await;
            let sum = |metric: &str| {
                let counts = text.lines().filter(|line| line.starts_with(metric));
                counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
            };
            if sum("grpc_server_started_total{") == sum("grpc_server_handled_total{") {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn get(&self) -> String {
        let mut stream = TcpStream::connect(&self.metrics).await.expect("a connection");
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.metrics);
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    }

    /// Tells it to stop, which it does in order.
    pub(crate) fn stop(mut self) {
        let status = Command::new("kill").args(["-s", "TERM", &self.process.id().to_string()]).status();
        assert!(status.expect("the program kill").success());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("text");
        let log = fs::read_to_string(self.folder.path().join("log")).expect("the log");
        assert!(self.process.wait().expect("an end").success(), "{log}");
        assert_eq!(rest, "Stopped; nothing was cut off.\n", "{log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// A daemon that a failed test leaves behind ends with it.
impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}

fn description(disks: u32, slow: Duration) -> String {
    let time = |name: &str, milliseconds: u32| format!("{name} = {{ secs = 0, nanos = {milliseconds}000000 }}\n");
    let mut text = "[timing]\n".to_owned();
    for (name, milliseconds) in [("query", 5), ("initialize", 30), ("create_partition", 60), ("format", 120)] {
        text += &time(name, milliseconds);
    }
    text += &time("volume_arrival", 15);
    for number in 1..=disks {
        write!(text, "[[disk]]\nnumber = {number}\nsize = \"1 GiB\"\n").expect("a string takes all");
    }
    let user = "users = [{ name = \"user\", password = \"password\" }]";
    write!(
        text,
        "[[smb_server]]\nhost = \"fileserver\"\nshares = [{{ name = \"share\" }}]\n{user}\n\
         [[smb_server]]\nhost = \"slow\"\nslow_milliseconds = {}\nshares = [{{ name = \"share\" }}]\n{user}\n",
        slow.as_millis()
    )
    .expect("a string takes all");
    text
}
