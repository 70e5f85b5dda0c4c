//! The program as a process: started, called, stopped.
#![cfg(unix)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use api::disk::v1::disk_client::DiskClient;
use api::disk::v1::{ListDiskIDsRequest, PartitionDiskRequest};
use api::filesystem::v1::MkdirRequest;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::iscsi::v1alpha2::iscsi_client::IscsiClient;
use api::iscsi::v1alpha2::{AddTargetPortalRequest, TargetPortal};
use api::smb::v1::NewSmbGlobalMappingRequest;
use api::smb::v1::smb_client::SmbClient;
use api::system::v1alpha1::StartServiceRequest;
use api::system::v1alpha1::system_client::SystemClient;
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::service_fn;
use transport::address::Location;

const PROGRAM: &str = env!("CARGO_BIN_EXE_csi-proxy-sim");

/// A running program that serves in a folder of the test. Dropping it ends it.
struct Daemon {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    announcement: Vec<String>,
}

impl Daemon {
    /// Starts the program, and waits until it has announced what it serves.
    fn start(folder: &Path, flags: &[&str]) -> Self {
        Self::start_by(Command::new(PROGRAM), folder, flags)
    }

    /// Starts the program by a command that takes its arguments.
    fn start_by(mut command: Command, folder: &Path, flags: &[&str]) -> Self {
        let mut process = command
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

    /// Returns what follows `words` in the announcement.
    fn announced(&self, words: &str) -> String {
        let mut found = self.announcement.iter().filter_map(|line| line.trim().strip_prefix(words));
        found.next().unwrap_or_else(|| panic!("no '{words}' in {:?}", self.announcement)).to_owned()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.process.id().to_string()]).status();
        assert!(status.expect("the program kill").success());
    }

    /// Waits until the process ends. Returns its exit code, its further output and its standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).expect("text");
        self.process.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
        (self.process.wait().expect("an end").code(), output, errors)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Returns the names of the sockets for drivers.
fn endpoints(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder.join("sockets")).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names.filter(|name| name != "sim-control.sock").collect()
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

/// Returns the flag for a node on which partitioning its only disk takes an hour.
fn slow_node(folder: &Path) -> String {
    let file = folder.join("slow.toml");
    let text = "[timing]\ncreate_partition = \"1h\"\n[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n";
    fs::write(&file, text).expect("a file");
    format!("-node={}", file.display())
}

/// Connects to an endpoint of the program that serves in `folder`.
async fn channel(folder: &Path, pipe: &str) -> Channel {
    let address = Location::Directory(folder.join("sockets")).address(pipe);
    let connector = service_fn(move |_| {
        let address = address.clone();
        async move { transport::listener::connect(&address).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://csi-proxy").connect_with_connector(connector).await;
    channel.expect("a connection")
}

async fn disks(folder: &Path) -> DiskClient<Channel> {
    DiskClient::new(channel(folder, "csi-proxy-disk-v1").await)
}

/// Starts a program with `flags` and calls PartitionDisk. Returns when the call is running.
async fn start_with_a_running_call(folder: &Path, flags: &[&str]) -> (Daemon, JoinHandle<Result<(), Status>>) {
    let flags = [flags, &["-metrics-bind-address=127.0.0.1:0"]].concat();
    let daemon = Daemon::start(folder, &flags);
    let metrics = daemon.announced("metrics at http://").trim_end_matches("/metrics").to_owned();
    assert!(get(&metrics, "/healthz").starts_with("HTTP/1.1 200"));

    let mut disks = disks(folder).await;
    let request = PartitionDiskRequest { disk_number: 1 };
    let call = tokio::spawn(async move { disks.partition_disk(request).await.map(drop) });

    let started =
        r#"grpc_server_started_total{grpc_method="PartitionDisk",grpc_service="v1.Disk",grpc_type="unary"} 1"#;
    while !get(&metrics, "/metrics").contains(started) {
        assert!(!call.is_finished(), "the call ended and was not counted");
        tokio::task::yield_now().await;
    }
    (daemon, call)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_stop_lets_a_running_call_finish() {
    let folder = folder();
    let (daemon, call) = start_with_a_running_call(folder.path(), &[]).await;
    daemon.signal("INT");
    call.await.expect("no panic").expect("the call is answered");
    let (code, output, errors) = daemon.end();
    assert_eq!((code, output.as_str()), (Some(0), "Stopped after all calls had finished.\n"), "{errors}");
    assert!(!folder.path().join("sockets/csi-proxy-disk-v1.sock").exists(), "the sockets are removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_still_running_after_the_drain_are_aborted_and_reported() {
    let folder = folder();
    let node = slow_node(folder.path());
    let (daemon, call) = start_with_a_running_call(folder.path(), &["-drain=0", &node]).await;
    daemon.signal("TERM");
    call.await.expect("no panic").expect_err("the call is aborted");
    let (code, output, errors) = daemon.end();
    assert_eq!(code, Some(0));
    let log = errors.lines().find(|line| line.contains("PartitionDisk"));
    assert!(log.is_some_and(|line| line.contains("csi-proxy stopped before the call ended")), "{errors}");
    assert_eq!(output, "Stopped before all calls had finished; calls aborted: 1, operations still running: 1.\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_without_waiting_for_running_calls() {
    let folder = folder();
    let node = slow_node(folder.path());
    let (daemon, call) = start_with_a_running_call(folder.path(), &["-drain=3600", &node]).await;
    daemon.signal("INT");
    while accepts_clients(folder.path()) {
        tokio::task::yield_now().await;
    }
    daemon.signal("INT");
    let (code, _, errors) = daemon.end();
    assert_eq!(code, Some(1));
    assert!(
        errors.ends_with("csi-proxy-sim: stopped by a second signal, without waiting for running calls\n"),
        "{errors}"
    );
    call.await.expect("no panic").expect_err("the call is aborted");
}

/// Returns whether new clients can still connect. A stopping program first removes its sockets.
fn accepts_clients(folder: &Path) -> bool {
    folder.join("sockets/csi-proxy-disk-v1.sock").exists()
}

#[test]
fn a_supervisors_signal_stops_the_program() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &[]);
    daemon.signal("TERM");
    assert_eq!(daemon.end().0, Some(0));
}

#[test]
fn contract_05b_without_a_command_it_serves_and_announces_what_and_where() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &["-groupless-pipes"]);
    let sockets = folder.path().join("sockets");
    assert_eq!(daemon.announced("sockets in "), sockets.display().to_string());
    let count = endpoints(folder.path()).len();
    let rpcs: usize = api::GROUP_VERSIONS.iter().map(|version| version.rpcs.len()).sum();
    let announced = format!("{} group-versions with {rpcs} RPCs, on ", api::GROUP_VERSIONS.len());
    assert_eq!(daemon.announced(&announced), format!("{count} endpoints"));
    assert!(count > api::GROUP_VERSIONS.len() && sockets.join("csi-proxy-v1alpha1.sock").exists());
    daemon.signal("TERM");
    daemon.end();
}

#[test]
fn groups_that_are_left_out_have_no_endpoint_and_are_announced_and_logged() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &["-api-groups=filesystem,volume"]);
    assert_eq!(daemon.announced("11 group-versions with "), "82 RPCs, on 11 endpoints");
    assert_eq!(daemon.announced("excluded by -api-groups: "), "disk, iscsi, smb, system");
    let mut sockets = endpoints(folder.path());
    sockets.retain(|socket| !is_of_files_or_volumes(socket));
    assert!(sockets.is_empty(), "{sockets:?}");
    daemon.signal("TERM");
    let (_, _, log) = daemon.end();
    assert!(log.contains("-api-groups excludes these groups: disk, iscsi, smb, system"), "{log}");
}

fn is_of_files_or_volumes(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("csi-proxy-filesystem-") || name.starts_with("csi-proxy-volume-")
}

/// Returns what the program answers to a request to start the service MSiSCSI.
async fn start_service(folder: &Path) -> Result<(), Status> {
    let mut services = SystemClient::new(channel(folder, "csi-proxy-system-v1alpha1").await);
    services.start_service(StartServiceRequest { name: "MSiSCSI".into() }).await.map(drop)
}

#[tokio::test]
async fn a_service_is_started_only_if_the_flag_lists_it() {
    for (flags, is_allowed) in [(&[][..], true), (&["-services=msiscsi,other"], true), (&["-services=none"], false)] {
        let folder = folder();
        let daemon = Daemon::start(folder.path(), flags);
        match start_service(folder.path()).await {
            Ok(()) => assert!(is_allowed, "{flags:?}"),
            Err(refused) => {
                assert_eq!((refused.code(), is_allowed), (Code::PermissionDenied, false), "{refused}");
                let reason =
                    "cannot start the service MSiSCSI: csi-proxy's flag -services does not list the service MSiSCSI";
                assert_eq!(refused.message(), reason);
            }
        }
        daemon.signal("TERM");
        daemon.end();
    }
}

#[test]
fn with_logtostderr_false_the_log_is_appended_to_the_file_alone() {
    let folder = folder();
    let log = folder.path().join("logs/csi-proxy.log");
    let flags = [format!("-log_file={}", log.display()), "-logtostderr=false".to_owned(), "-v=5".to_owned()];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for starts in 1..=2 {
        let daemon = Daemon::start(folder.path(), &flags);
        daemon.signal("TERM");
        assert_eq!(daemon.end().2, "", "standard error");
        let text = fs::read_to_string(&log).expect("the log");
        assert_eq!(text.lines().filter(|line| line.contains("INFO serving endpoints=")).count(), starts, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn a_log_file_is_written_without_further_flags_and_has_each_failure_once() {
    let folder = folder();
    let log = folder.path().join("csi-proxy.log");
    let daemon = Daemon::start(folder.path(), &[&format!("-log_file={}", log.display())]);
    let request = PartitionDiskRequest { disk_number: 4711 };
    disks(folder.path()).await.partition_disk(request).await.expect_err("no such disk");
    daemon.signal("TERM");
    let (_, _, errors) = daemon.end();
    for text in [errors, fs::read_to_string(&log).expect("the log")] {
        let lines = text.lines().filter(|line| line.contains("cannot partition disk 4711: ")).count();
        assert_eq!(lines, 1, "{text}");
    }
}

#[tokio::test]
async fn outages_are_warnings_and_mistakes_of_callers_are_not() {
    let folder = folder();
    let file = folder.path().join("node.toml");
    let text = "[[smb_server]]\nhost = \"down\"\nreachable = false\nshares = [{ name = \"share\", guest = true }]\n\
                [[iscsi_portal]]\naddress = \"10.0.0.9\"\nreachable = false\n\
                [[service]]\nname = \"MSiSCSI\"\ndisplay_name = \"iSCSI\"\nstate = \"running\"\n";
    fs::write(&file, text).expect("a file");
    let daemon = Daemon::start(folder.path(), &["-fast", "-v=2", &format!("-node={}", file.display())]);
    let mut smb = SmbClient::new(channel(folder.path(), "csi-proxy-smb-v1").await);
    let mut mapping = NewSmbGlobalMappingRequest { remote_path: r"\\down\share".into(), ..Default::default() };
    smb.new_smb_global_mapping(mapping.clone()).await.expect_err("the server is down");
    mapping.remote_path = "share".into();
    smb.new_smb_global_mapping(mapping).await.expect_err("no server");
    let mut iscsi = IscsiClient::new(channel(folder.path(), "csi-proxy-iscsi-v1alpha2").await);
    let target_portal = Some(TargetPortal { target_address: "10.0.0.9".into(), target_port: 3260 });
    iscsi.add_target_portal(AddTargetPortalRequest { target_portal }).await.expect_err("the portal is down");
    let mut files = FilesystemClient::new(channel(folder.path(), "csi-proxy-filesystem-v1").await);
    for path in [r"new\relative", r"C:\new\outside"] {
        files.mkdir(MkdirRequest { path: path.into() }).await.expect_err(path);
    }
    daemon.signal("TERM");
    let (_, _, errors) = daemon.end();
    for (words, level) in [
        (r"cannot map \\down\share", " WARN "),
        ("10.0.0.9", " WARN "),
        (r"C:\new\outside is not in a working directory", " WARN "),
        (r"new\relative", " INFO "),
        ("the remote path", " INFO "),
    ] {
        let failed: Vec<_> = errors.lines().filter(|line| line.contains("code=") && line.contains(words)).collect();
        assert!(failed.len() == 1 && failed[0].contains(level), "{words}: {failed:?} in {errors}");
    }
    // The object of a call has paths in the form of the messages.
    let object = r#"object="create the directory C:\new\outside""#;
    assert!(errors.contains(object), "{errors}");
}

#[test]
fn without_a_log_file_the_log_is_written_to_standard_error() {
    let folder = folder();
    let daemon = Daemon::start(folder.path(), &["-logtostderr", "false"]);
    daemon.signal("TERM");
    let (_, _, errors) = daemon.end();
    assert!(errors.contains("INFO serving"), "{errors}");
    assert!(errors.contains("WARN 'false' is not a flag; ignoring it and everything after it"), "{errors}");
}

#[test]
fn a_second_program_in_the_same_folder_names_the_endpoint_that_is_taken() {
    let folder = folder();
    let first = Daemon::start(folder.path(), &[]);
    let second = run(&[&format!("-socket-folder={}", folder.path().join("sockets").display())]);
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1));
    assert!(message.contains("sim-control.sock: another daemon is listening there"), "{message}");
    first.signal("TERM");
    first.end();
}

#[test]
fn the_node_of_a_file_is_served_and_an_invalid_file_is_explained() {
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
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(message.contains("node.toml") && message.contains("line 2") && message.contains("large"), "{message}");
}

/// Starts the program with a limit on open files.
fn start_limited(limit: &str, folder: &Path, flags: &[&str]) -> Daemon {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), PROGRAM]);
    Daemon::start_by(shell, folder, flags)
}

#[tokio::test]
async fn with_few_descriptors_idle_connections_do_not_keep_a_client_waiting() {
    let folder = folder();
    let daemon = start_limited("-n 150", folder.path(), &[]);
    let mut idle = Vec::new();
    for _ in 0..300 {
        let socket = folder.path().join("sockets/csi-proxy-disk-v1.sock");
        idle.push(std::os::unix::net::UnixStream::connect(socket).expect("it is accepted"));
    }
    disks(folder.path()).await.list_disk_ids(ListDiskIDsRequest {}).await.expect("it is answered");
    daemon.signal("TERM");
    let (code, _, log) = daemon.end();
    assert_eq!(code, Some(0));
    let lowered = "lowered -max-connections from 1024 to 37: the limit on open files allows no more";
    assert!(log.contains(lowered), "{log}");
}

#[test]
fn a_low_limit_on_descriptors_is_raised_if_the_system_allows_it() {
    let folder = folder();
    let daemon = start_limited("-S -n 150", folder.path(), &["-max-connections=100"]);
    daemon.signal("TERM");
    let (_, _, log) = daemon.end();
    assert!(log.contains("serving") && !log.contains("lowered"), "{log}");
}

#[test]
fn output_that_is_no_longer_read_is_not_an_error() {
    for command in ["help", "demo"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(PROGRAM).arg(command).stdout(writer).stderr(Stdio::piped()).output();
        let output = output.expect("a process");
        assert!(output.status.success(), "{command}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
    }
}

#[test]
fn an_unknown_flag_is_refused_in_one_sentence_with_exit_code_2() {
    let refused = run(&["-nonsense"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(message, "csi-proxy-sim: unknown flag -nonsense (see 'csi-proxy-sim help')\n");
    assert!(refused.stdout.is_empty());
}
