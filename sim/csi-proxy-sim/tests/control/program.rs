//! A running csi-proxy-sim, the commands that change it, and a driver's client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use csi_proxy_client::Client;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use transport::address::Location;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_csi-proxy-sim");

/// A csi-proxy-sim that serves in a folder of the test. Dropping it ends it.
pub(crate) struct Program {
    process: Child,
    output: Option<BufReader<ChildStdout>>,
    pub(crate) announcement: Vec<String>,
    pub(crate) folder: Arc<TempDir>,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn folder() -> Arc<TempDir> {
    Arc::new(tempfile::tempdir().expect("a folder"))
}

impl Program {
    /// Starts the program on the built-in node, and waits until it has announced what it serves.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(&folder(), flags)
    }

    /// Starts the program on the node of a node file.
    pub(crate) fn start_on(node_file: &str, flags: &[&str]) -> Self {
        let folder = folder();
        let file = folder.path().join("node.toml");
        fs::write(&file, node_file).expect("a file");
        Self::start_in(
            &folder,
            &[&[&*format!("-node={}", file.display())], flags].concat(),
        )
    }

    pub(crate) fn start_in(folder: &Arc<TempDir>, flags: &[&str]) -> Self {
        Self::start_by(Command::new(PROGRAM), folder, flags)
    }

    /// Starts the program by a command that takes its arguments.
    pub(crate) fn start_by(mut command: Command, folder: &Arc<TempDir>, flags: &[&str]) -> Self {
        command
            .arg(format!(
                "-socket-folder={}",
                folder.path().join("sockets").display()
            ))
            .args(flags);
        let process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = process.expect("a process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let lines = output
            .by_ref()
            .lines()
            .map(|line| line.expect("a line of text"));
        let announcement = lines
            .take_while(|line| !line.starts_with("Press Ctrl-C"))
            .collect();
        Self {
            process,
            output: Some(output),
            announcement,
            folder: Arc::clone(folder),
        }
    }

    /// Stops reading what the program prints.
    pub(crate) fn close_output(&mut self) {
        self.output = None;
    }

    /// Closes the standard input, if it is a pipe.
    pub(crate) fn close_input(&mut self) {
        self.process.stdin = None;
    }

    /// Returns what follows `words` in the announcement.
    pub(crate) fn announced(&self, words: &str) -> String {
        let mut found = self
            .announcement
            .iter()
            .filter_map(|line| line.trim().strip_prefix(words));
        found
            .next()
            .unwrap_or_else(|| panic!("no '{words}' in {:?}", self.announcement))
            .to_owned()
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.folder.path().join("sockets")
    }

    /// Returns a client as a driver has it.
    pub(crate) fn driver(&self) -> Client {
        Client::builder().socket_folder(self.sockets()).build()
    }

    /// Connects to one of the sockets.
    pub(crate) async fn channel(&self, endpoint: &str) -> Channel {
        let address = Location::Directory(self.sockets()).address(endpoint);
        let connector = service_fn(move |_| {
            let address = address.clone();
            async move {
                transport::listener::connect(&address)
                    .await
                    .map(TokioIo::new)
            }
        });
        let channel = Endpoint::from_static("http://csi-proxy")
            .connect_with_connector(connector)
            .await;
        channel.expect("a connection")
    }

    /// Runs a command of `ctl`.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> Ended {
        ctl(&self.sockets(), arguments, "")
    }

    /// Runs a command of `ctl` with a text on its standard input.
    pub(crate) fn ctl_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        ctl(&self.sockets(), arguments, input)
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.process.id().to_string()])
            .status();
        assert!(status.expect("the program kill").success());
    }

    /// Waits until the program ends. Its output is what it has written after the announcement.
    pub(crate) fn ended(mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut stdout).expect("text");
        }
        self.process
            .stderr
            .take()
            .expect("a pipe")
            .read_to_string(&mut stderr)
            .expect("text");
        Ended {
            code: self.process.wait().expect("an end").code(),
            stdout,
            stderr,
        }
    }

    /// Tells the program to stop, waits until it has, and returns its log.
    pub(crate) fn stop(self) -> String {
        self.signal("TERM");
        let ended = self.ended();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stderr
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a command of `ctl` for the program that serves in a folder.
pub(crate) fn ctl(sockets: &Path, arguments: &[&str], input: &str) -> Ended {
    let mut command = Command::new(PROGRAM);
    command
        .args(["ctl", "--endpoint-dir"])
        .arg(sockets)
        .args(arguments);
    let process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = process.expect("a process");
    // A program that fails early does not read it.
    let _ = process
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    process.wait_with_output().expect("an end").into()
}

/// Runs the program until it ends.
pub(crate) fn run(arguments: &[&str]) -> Ended {
    Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("a process")
        .into()
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Ended {
    /// Returns standard output, and panics if the process has failed.
    pub(crate) fn ok(self) -> String {
        assert!(self.code == Some(0) && self.stderr.is_empty(), "{self:?}");
        self.stdout
    }

    /// Returns standard output, which is JSON.
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("JSON")
    }

    /// Panics unless the process failed with this exit code and with an error that has these words.
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(code), ""),
            "{self:?}"
        );
        for word in words {
            assert!(self.stderr.contains(word), "{word}: {self:?}");
        }
    }
}
