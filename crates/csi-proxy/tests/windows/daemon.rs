//! A daemon that a test starts. All daemons have the same pipes, so there is one at a time.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hyper_util::rt::TokioIo;
use tokio::sync::{Mutex, MutexGuard};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use transport::address::Location;

use crate::PROGRAM;

/// Waits for exclusive use of the pipes, the service, and WMI, which Wine does not lock.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// A daemon that serves. Dropping it kills the process.
pub(crate) struct Daemon {
    pub(crate) process: Child,
    announcement: Vec<String>,
}

impl Daemon {
    /// Starts a daemon, and waits until it has announced what it serves.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut process = spawn(flags);
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        let lines = output.lines().map(|line| line.expect("a line of text"));
        let announcement: Vec<String> = lines
            .take_while(|line| !line.starts_with("Press Ctrl-C"))
            .collect();
        if announcement.is_empty() {
            let mut errors = String::new();
            process
                .stderr
                .take()
                .expect("a pipe")
                .read_to_string(&mut errors)
                .expect("text");
            panic!("{flags:?}: {errors}");
        }
        Self {
            process,
            announcement,
        }
    }

    pub(crate) fn announcement(&self) -> String {
        self.announcement.join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        self.process.wait().expect("an end");
    }
}

/// Starts a daemon that may fail to serve.
pub(crate) fn spawn(flags: &[&str]) -> Child {
    let mut command = Command::new(PROGRAM);
    command
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("a process")
}

/// Connects to a group-version by its pipe's name, such as `csi-proxy-disk-v1`.
pub(crate) async fn connect(pipe: &str) -> Channel {
    let address = Location::NamedPipes.address(pipe);
    let connector = service_fn(move |_| {
        let address = address.clone();
        async move {
            transport::listener::connect(&address)
                .await
                .map(TokioIo::new)
        }
    });
    Endpoint::from_static("http://csi-proxy")
        .connect_with_connector(connector)
        .await
        .expect("a connection")
}

/// A directory on drive C:. Dropping it removes the directory.
pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let path = PathBuf::from(format!(r"C:\csi-proxy-test\{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self { path }
    }

    pub(crate) fn join(&self, name: &str) -> String {
        self.path.join(name).to_str().expect("text").to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
