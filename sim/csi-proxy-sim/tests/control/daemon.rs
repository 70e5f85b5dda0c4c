//! The program as a process: started, called, stopped.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use csi_proxy_client::{DiskNumber, Error, ErrorKind, TargetPortal};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::program::{PROGRAM, Program, folder, run};

/// Returns the names of the sockets for drivers.
fn endpoints(program: &Program) -> Vec<String> {
    let entries = fs::read_dir(program.sockets()).expect("the folder");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    names.filter(|name| name != "sim-control.sock").collect()
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Starts a program on a node on which it takes this long to partition disk 1, and calls
/// PartitionDisk. Returns when the call is running.
async fn start_with_a_running_call(
    time: &str,
    drain: &str,
) -> (Program, JoinHandle<Result<(), Error>>) {
    let node = format!(
        "[timing]\ncreate_partition = \"{time}\"\n[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n"
    );
    let program = Program::start_on(&node, &[drain, "-metrics-bind-address=127.0.0.1:0"]);
    let metrics = program
        .announced("metrics at http://")
        .trim_end_matches("/metrics")
        .to_owned();
    assert!(get(&metrics, "/healthz").starts_with("HTTP/1.1 200"));

    let driver = program.driver();
    let call = tokio::spawn(async move { driver.disk().partition_disk(DiskNumber(1)).await });
    let started = r#"grpc_server_started_total{grpc_method="PartitionDisk",grpc_service="v1.Disk",grpc_type="unary"} 1"#;
    while !get(&metrics, "/metrics").contains(started) {
        assert!(!call.is_finished(), "the call ended and was not counted");
        tokio::task::yield_now().await;
    }
    (program, call)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_stop_lets_a_running_call_finish() {
    let (program, call) = start_with_a_running_call("500ms", "-drain=30").await;
    let sockets = program.sockets();
    program.signal("INT");
    call.await.expect("no panic").expect("the call is answered");
    let ended = program.ended();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Stopped after all calls had finished.\n"),
        "{ended:?}"
    );
    for socket in ["csi-proxy-disk-v1.sock", "sim-control.sock"] {
        assert!(!sockets.join(socket).exists(), "{socket} is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_still_running_after_the_drain_are_aborted_and_reported() {
    let (program, call) = start_with_a_running_call("1h", "-drain=0").await;
    program.signal("TERM");
    call.await
        .expect("no panic")
        .expect_err("the call is aborted");
    let ended = program.ended();
    let log = ended
        .stderr
        .lines()
        .find(|line| line.contains("PartitionDisk"));
    assert!(
        log.is_some_and(|line| line.contains("csi-proxy stopped before the call ended")),
        "{ended:?}"
    );
    let output =
        "Stopped before all calls had finished; calls aborted: 1, operations still running: 1.\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_without_waiting_for_running_calls() {
    let (program, call) = start_with_a_running_call("1h", "-drain=3600").await;
    program.signal("INT");
    // A stopping program first removes its sockets.
    while program.sockets().join("csi-proxy-disk-v1.sock").exists() {
        tokio::task::yield_now().await;
    }
    program.signal("INT");
    let ended = program.ended();
    assert_eq!(ended.code, Some(1));
    // The log of the aborted call can follow.
    let reason = "csi-proxy-sim: stopped by a second signal, without waiting for running calls";
    assert!(ended.stderr.lines().any(|line| line == reason), "{ended:?}");
    call.await
        .expect("no panic")
        .expect_err("the call is aborted");
}

#[test]
fn contract_05b_without_a_command_it_serves_and_announces_what_and_where() {
    let program = Program::start(&["-groupless-pipes"]);
    assert_eq!(
        program.announced("sockets in "),
        program.sockets().display().to_string()
    );
    let count = endpoints(&program).len();
    let rpcs: usize = api::GROUP_VERSIONS
        .iter()
        .map(|version| version.rpcs.len())
        .sum();
    let announced = format!(
        "{} group-versions with {rpcs} RPCs, on ",
        api::GROUP_VERSIONS.len()
    );
    assert_eq!(program.announced(&announced), format!("{count} endpoints"));
    assert!(
        count > api::GROUP_VERSIONS.len()
            && program.sockets().join("csi-proxy-v1alpha1.sock").exists()
    );
}

#[test]
fn groups_that_are_left_out_have_no_endpoint_and_are_announced_and_logged() {
    let program = Program::start(&["-api-groups=filesystem,volume"]);
    assert_eq!(
        program.announced("11 group-versions with "),
        "82 RPCs, on 11 endpoints"
    );
    assert_eq!(
        program.announced("excluded by -api-groups: "),
        "disk, iscsi, smb, system"
    );
    for name in endpoints(&program) {
        assert!(
            name.starts_with("csi-proxy-filesystem-") || name.starts_with("csi-proxy-volume-"),
            "{name}"
        );
    }
    let log = program.stop();
    assert!(
        log.contains("-api-groups excludes these groups: disk, iscsi, smb, system"),
        "{log}"
    );
}

#[tokio::test]
async fn a_service_is_started_only_if_the_flag_lists_it() {
    for flags in [&[][..], &["-services=msiscsi,other"]] {
        Program::start(flags)
            .driver()
            .system()
            .start_service("MSiSCSI")
            .await
            .expect("it is started");
    }
    let program = Program::start(&["-services=none"]);
    let refused = program
        .driver()
        .system()
        .start_service("MSiSCSI")
        .await
        .expect_err("it is refused");
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    let reason = "cannot start the service MSiSCSI: csi-proxy's flag -services does not list the \
                  service MSiSCSI";
    assert_eq!(refused.message(), reason);
}

#[test]
fn with_logtostderr_false_the_log_is_appended_to_the_file_alone() {
    let folder = folder();
    let log = folder.path().join("logs/csi-proxy.log");
    let flags = [
        &*format!("-log_file={}", log.display()),
        "-logtostderr=false",
        "-v=5",
    ];
    for starts in 1..=2 {
        assert_eq!(
            Program::start_in(&folder, &flags).stop(),
            "",
            "standard error"
        );
        let text = fs::read_to_string(&log).expect("the log");
        assert_eq!(
            text.lines()
                .filter(|line| line.contains("] serving endpoints="))
                .count(),
            starts,
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[tokio::test]
async fn a_log_file_is_written_without_further_flags_and_has_each_failure_once() {
    let folder = folder();
    let log = folder.path().join("csi-proxy.log");
    let program = Program::start_in(&folder, &[&format!("-log_file={}", log.display())]);
    program
        .driver()
        .disk()
        .partition_disk(DiskNumber(4711))
        .await
        .expect_err("no such disk");
    for text in [program.stop(), fs::read_to_string(&log).expect("the log")] {
        let lines = text
            .lines()
            .filter(|line| line.contains("cannot partition disk 4711: "))
            .count();
        assert_eq!(lines, 1, "{text}");
    }
}

#[tokio::test]
async fn outages_are_warnings_and_mistakes_of_callers_are_not() {
    let node = "[[smb_server]]\nhost = \"down\"\nreachable = false\nshares = \
                [{ name = \"share\", guest = true }]\n\
                [[iscsi_portal]]\naddress = \"10.0.0.9\"\nreachable = false\n\
                [[service]]\nname = \"MSiSCSI\"\ndisplay_name = \"iSCSI\"\nstate = \"running\"\n";
    let program = Program::start_on(node, &["-fast", "-v=2", "-logtostderr", "false"]);
    let driver = program.driver();
    for remote in [r"\\down\share", "share"] {
        driver
            .smb()
            .new_smb_global_mapping(remote, None, None)
            .await
            .expect_err(remote);
    }
    driver
        .iscsi()
        .add_target_portal(&TargetPortal::new("10.0.0.9"))
        .await
        .expect_err("the portal is down");
    for path in [r"new\relative", r"C:\new\outside"] {
        driver.filesystem().mkdir(path).await.expect_err(path);
    }
    let log = program.stop();
    for (words, level) in [
        (r"cannot map \\down\share", "W"),
        ("10.0.0.9", "W"),
        (r"C:\new\outside is not in a working directory", "W"),
        (r"new\relative", "I"),
        ("the remote path", "I"),
    ] {
        let failed: Vec<_> = log
            .lines()
            .filter(|line| line.contains("code=") && line.contains(words))
            .collect();
        assert!(
            failed.len() == 1 && failed[0].starts_with(level),
            "{words}: {failed:?} in {log}"
        );
    }
    assert!(
        log.contains(r#"object="create the directory C:\\new\\outside""#),
        "{log}"
    );
    assert!(
        log.contains("] 'false' is not a flag; ignoring it and everything after it"),
        "{log}"
    );
}

#[test]
fn a_second_program_in_the_same_folder_names_the_endpoint_that_is_taken() {
    let first = Program::start(&[]);
    let second = run(&[&format!("-socket-folder={}", first.sockets().display())]);
    second.fails(1, &["sim-control.sock: another daemon is listening there"]);
}

#[test]
fn the_node_of_a_file_is_served_and_an_invalid_file_is_explained() {
    let program = Program::start_on("[[disk]]\nsize = \"1 GiB\"\n", &[]);
    let file = program.folder.path().join("node.toml");
    let announced = format!("serves the simulated node of {}", file.display());
    assert!(
        program.announcement[0].ends_with(&announced),
        "{:?}",
        program.announcement
    );
    fs::write(&file, "[[disk]]\nsize = \"large\"\n").expect("a file");
    run(&[&format!("-node={}", file.display())]).fails(1, &["node.toml", "line 2", "large"]);
}

/// Starts the program with a limit on open files.
fn start_limited(limit: &str, folder: &Arc<TempDir>, flags: &[&str]) -> Program {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        &format!("ulimit {limit} && exec \"$0\" \"$@\""),
        PROGRAM,
    ]);
    Program::start_by(shell, folder, flags)
}

#[tokio::test]
async fn with_few_descriptors_idle_connections_do_not_keep_a_client_waiting() {
    let program = start_limited("-n 150", &folder(), &[]);
    let socket = program.sockets().join("csi-proxy-disk-v1.sock");
    let idle: Vec<_> = (0..300)
        .map(|_| UnixStream::connect(&socket).expect("it is accepted"))
        .collect();
    program
        .driver()
        .disk()
        .list_disk_ids()
        .await
        .expect("it is answered");
    drop(idle);
    let log = program.stop();
    let lowered =
        "lowered -max-connections from 1024 to 37: the limit on open files allows no more";
    assert!(log.contains(lowered), "{log}");
}

#[test]
fn a_low_limit_on_descriptors_is_raised_if_the_system_allows_it() {
    let log = start_limited("-S -n 150", &folder(), &["-max-connections=100"]).stop();
    assert!(log.contains("serving") && !log.contains("lowered"), "{log}");
}

#[test]
fn output_that_is_no_longer_read_is_not_an_error() {
    for command in ["help", "demo"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(PROGRAM)
            .arg(command)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output();
        let output = output.expect("a process");
        assert!(output.status.success(), "{command}: {}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
    }
}
