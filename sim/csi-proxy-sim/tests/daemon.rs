//! The daemon as a process: started, called, told to stop.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use api::disk::v1::PartitionDiskRequest;
use api::disk::v1::disk_client::DiskClient;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;
use transport::address::Location;

const PROGRAM: &str = env!("CARGO_BIN_EXE_csi-proxy-sim");

/// A daemon that serves in a folder of its own.
struct Daemon {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    announcement: Vec<String>,
}

impl Daemon {
    /// Starts it, and waits until it has said that it serves.
    fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut process = Command::new(PROGRAM)
            .arg(format!("-socket-folder={}", folder.join("sockets").display()))
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let announcement: Vec<String> = output
            .by_ref()
            .lines()
            .map(|line| line.expect("a line of text"))
            .take_while(|line| !line.starts_with("Press Ctrl-C"))
            .collect();
        Self { process, output, announcement }
    }

    /// What the announcement says behind `words`.
    fn says(&self, words: &str) -> String {
        let mut found = self.announcement.iter().filter_map(|line| line.trim().strip_prefix(words));
        found.next().unwrap_or_else(|| panic!("no '{words}' in {:?}", self.announcement)).to_owned()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.process.id().to_string()]).status();
        assert!(status.expect("the program kill").success());
    }

    /// Waits for its end: exit code, further output, standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).expect("text");
        self.process.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        (self.process.wait().expect("an end").code(), output, errors)
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().expect("a process")
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The flag for a node with one disk, to partition which takes an hour.
fn slow_node(folder: &Path) -> String {
    let file = folder.join("slow.toml");
    let text = "[timing]\ncreate_partition = { secs = 3600, nanos = 0 }\n[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n";
    fs::write(&file, text).expect("a file");
    format!("-node={}", file.display())
}

/// A client of the daemon that serves in `folder`.
async fn disks(folder: &Path) -> DiskClient<Channel> {
    let address = Location::Directory(folder.join("sockets")).address("csi-proxy-disk-v1").expect("an address");
    let connector = service_fn(move |_| {
        let address = address.clone();
        async move { transport::listener::connect(&address).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await;
    DiskClient::new(channel.expect("a connection"))
}

/// Starts a daemon with `flags` and a call that takes a while, and returns once that is under way.
async fn start_with_a_call_under_way(folder: &Path, flags: &[&str]) -> (Daemon, JoinHandle<Result<(), Status>>) {
    let flags = [flags, &["-metrics-bind-address=127.0.0.1:0"]].concat();
    let daemon = Daemon::start(folder, &flags);
    let metrics = daemon.says("metrics at http://").trim_end_matches("/metrics").to_owned();
    assert!(get(&metrics, "/healthz").starts_with("HTTP/1.1 200"));

    let mut disks = disks(folder).await;
    let request = PartitionDiskRequest { disk_number: 1 };
    let call = tokio::spawn(async move { disks.partition_disk(request).await.map(drop) });

    let begun = r#"grpc_server_started_total{grpc_method="PartitionDisk",grpc_service="v1.Disk",grpc_type="unary"} 1"#;
    while !get(&metrics, "/metrics").contains(begun) {
        assert!(!call.is_finished(), "the call ended and was not counted");
        tokio::task::yield_now().await;
    }
    (daemon, call)
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_it_finishes_what_it_has_begun() {
    let folder = folder();
    let (daemon, call) = start_with_a_call_under_way(folder.path(), &[]).await;
    daemon.signal("INT");
    call.await.expect("no panic").expect("the call is answered");
    let (code, output, errors) = daemon.end();
    assert_eq!((code, output.as_str()), (Some(0), "Stopped after all calls had finished.\n"), "{errors}");
    assert!(!folder.path().join("sockets/csi-proxy-disk-v1.sock").exists(), "the sockets go with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_in_time_is_cut_off_and_told() {
    let folder = folder();
    let node = slow_node(folder.path());
    let (daemon, call) = start_with_a_call_under_way(folder.path(), &["-drain=0", &node]).await;
    daemon.signal("TERM");
    call.await.expect("no panic").expect_err("the call is cut off");
    let (code, output, _) = daemon.end();
    assert_eq!(code, Some(0));
    assert_eq!(output, "Stopped before all calls had finished: 1 calls aborted, 1 operations still running.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_twice_it_does_not_wait() {
    let folder = folder();
    let node = slow_node(folder.path());
    let (daemon, call) = start_with_a_call_under_way(folder.path(), &["-drain=3600", &node]).await;
    daemon.signal("INT");
    while daemon_listens(folder.path()) {
        tokio::task::yield_now().await;
    }
    daemon.signal("INT");
    let (code, _, errors) = daemon.end();
    assert_eq!(code, Some(1));
    assert!(
        errors.ends_with("csi-proxy-sim: stopped by a second signal, without waiting for running calls\n"),
        "{errors}"
    );
    call.await.expect("no panic").expect_err("the call is cut off");
}

/// Whether new clients still find the daemon: the first it does when told to stop is to close that door.
fn daemon_listens(folder: &Path) -> bool {
    folder.join("sockets/csi-proxy-disk-v1.sock").exists()
}

#[test]
fn told_to_stop_by_its_supervisor_it_ends_as_well() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    daemon.signal("TERM");
    assert_eq!(daemon.end().0, Some(0));
}

#[test]
fn contract_05b_started_bare_it_serves_and_says_what_and_where() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &["-groupless-pipes"]);
    let sockets = folder.path().join("sockets");
    assert_eq!(daemon.says("sockets in "), sockets.display().to_string());
    let count = fs::read_dir(&sockets).expect("the folder").count();
    assert_eq!(daemon.says("23 group-versions with 139 RPCs, on "), format!("{count} endpoints"));
    assert!(count > 23 && sockets.join("csi-proxy-v1alpha1.sock").exists());
    daemon.signal("TERM");
    daemon.end();
}

#[test]
fn with_a_log_file_alone_it_appends_to_that_and_is_silent() {
    let folder = folder();
    let log = folder.path().join("logs/csi-proxy.log");
    let flags = [format!("-log_file={}", log.display()), "-logtostderr=false".to_owned(), "-v=5".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for starts in 1..=2 {
        let daemon = Daemon::start(folder.path(), &flags);
        daemon.signal("TERM");
        assert_eq!(daemon.end().2, "", "standard error");
        let text = fs::read_to_string(&log).expect("the log");
        assert_eq!(text.lines().filter(|line| line.contains("INFO serving endpoints=23")).count(), starts, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn a_named_log_file_is_written_in_any_case_and_has_each_failure_once() {
    let folder = folder();
    let log = folder.path().join("csi-proxy.log");
    let daemon = Daemon::start(folder.path(), &[&format!("-log_file={}", log.display())]);
    let request = PartitionDiskRequest { disk_number: 4711 };
    disks(folder.path()).await.partition_disk(request).await.expect_err("there is no such disk");
    daemon.signal("TERM");
    let (_, _, errors) = daemon.end();
    for text in [errors, fs::read_to_string(&log).expect("the log")] {
        let told = text.lines().filter(|line| line.contains("cannot partition disk 4711: ")).count();
        assert_eq!(told, 1, "{text}");
    }
}

#[test]
fn without_a_file_it_logs_to_standard_error() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &["-logtostderr", "false"]);
    daemon.signal("TERM");
    let (_, _, errors) = daemon.end();
    assert!(errors.contains("INFO serving"), "{errors}");
    assert!(errors.contains("WARN ignoring the command line from 'false' on"), "{errors}");
}

#[test]
fn a_second_daemon_in_the_same_place_names_the_endpoint_that_is_taken() {
    let folder = folder();
    let first = Daemon::start(folder.path(), &[]);
    let second = run(&[&format!("-socket-folder={}", folder.path().join("sockets").display())]);
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(said.contains("cannot serve csi-proxy-disk-v1: ") && said.contains("another daemon"), "{said}");
    first.signal("TERM");
    first.end();
}

#[test]
fn a_node_of_ones_own_is_served_and_a_bad_one_is_explained() {
    let folder = folder();
    let file = folder.path().join("node.toml");
    fs::write(&file, "[[disk]]\nsize = \"1 GiB\"\n").expect("a file");
    let flag = format!("-node={}", file.display());
    let daemon = Daemon::start(folder.path(), &[&flag]);
    assert!(daemon.announcement[0].ends_with(&format!("serves the simulated node of {}", file.display())));
    daemon.signal("TERM");
    daemon.end();

    fs::write(&file, "[[disk]]\nsize = \"large\"\n").expect("a file");
    let refused = run(&[&flag]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("node.toml") && said.contains("line 2") && said.contains("large"), "{said}");
}

#[test]
fn an_unknown_flag_is_one_sentence_and_exit_code_2() {
    let refused = run(&["-nonsense"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(said, "csi-proxy-sim: unknown flag -nonsense (see 'csi-proxy-sim help')\n");
    assert!(refused.stdout.is_empty());
}
