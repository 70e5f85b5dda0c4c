//! The daemon as the service `csiproxy`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{self, Command, Output};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use api::GROUP_VERSIONS;
use api::system::v1alpha1::StartServiceRequest;
use api::system::v1alpha1::system_client::SystemClient;
use os_win32::pipe::{self, Listener, Security};
use os_win32::{file_security, system};
use tokio::task::JoinHandle;
use tonic::Status;
use windows_service::service::{Service, ServiceAccess, ServiceControlAccept, ServiceExitCode};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use crate::PROGRAM;
use crate::daemon::{Scratch, connect, turn};
use crate::service_control::{Installed, RUNNING, START_PENDING, STOP_PENDING, STOPPED};
use crate::skip::skipped_by_wine;

/// The exit code that Windows reports for a service whose process ended without reporting that it
/// stopped.
const PROCESS_ABORTED: ServiceExitCode = ServiceExitCode::Win32(1067);

/// Returns the last line of the output, after the line that names the service.
fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    last.to_owned()
}

fn csi_proxy(arguments: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(arguments)
        .output()
        .expect("a process")
}

/// Runs the program, and returns what it prints.
fn said(arguments: &[&str]) -> String {
    let Output { stdout, stderr, .. } = csi_proxy(arguments);
    String::from_utf8([stdout, stderr].concat()).expect("UTF-8")
}

/// Returns the id of the process that the service runs in.
fn process_id() -> String {
    let status = said(&["service", "status"]);
    let digits = status
        .split_once("in process ")
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
    digits.unwrap_or_else(|| panic!("the service is not running: {status:?}"))
}

fn sc_start(service: &str) {
    Command::new(system::program("sc.exe").expect("a path"))
        .args(["start", service])
        .output()
        .expect("sc.exe");
}

/// Opens the service to query its status.
fn open(service: &Installed) -> Service {
    let manager = ServiceManager::local_computer(None::<&str>, ServiceManagerAccess::CONNECT);
    let manager = manager.expect("the manager");
    let service = manager.open_service(service.name(), ServiceAccess::QUERY_STATUS);
    service.expect("the service")
}

/// An address for metrics that is free at this moment, and the flag for it.
fn free_address() -> (String, String) {
    let address = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .to_string();
    (format!("-metrics-bind-address={address}"), address)
}

fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Calls StartService for `slow`, and returns when the call is running.
async fn start_through_the_daemon(
    slow: &Installed,
    metrics_address: &str,
) -> JoinHandle<Result<(), Status>> {
    let mut system = SystemClient::new(connect("csi-proxy-system-v1alpha1").await);
    let request = StartServiceRequest {
        name: slow.name().into(),
    };
    let call = tokio::spawn(async move { system.start_service(request).await.map(drop) });
    let started = r#"grpc_server_started_total{grpc_method="StartService",grpc_service="v1alpha1.System",grpc_type="unary"} 1"#;
    while !metrics(metrics_address).contains(started) {
        assert!(!call.is_finished(), "the call ended and was not counted");
        tokio::task::yield_now().await;
    }
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_service_can_be_started_again() {
    let _turn = turn().await;
    let scratch = Scratch::new("service");
    let log = scratch.join(r"logs\csi-proxy.log");
    let service = Installed::csiproxy(&format!("-log_file={log} -logtostderr=false -v=5"));
    for starts in 1..=2 {
        service.start();
        connect("csi-proxy-volume-v1").await;
        service.stop();
        assert_eq!(service.reach(STOPPED).exit_code, ServiceExitCode::NO_ERROR);
        let text = fs::read_to_string(&log).expect("the log");
        assert_eq!(
            text.lines()
                .filter(|line| line.ends_with("] stopped"))
                .count(),
            starts,
            "{text}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_service_reports_progress_and_stops_when_the_drain_time_is_over() {
    let _turn = turn().await;
    let Some(slow) = Installed::idle("csi-proxy-test-slower", Duration::from_secs(15), &[]) else {
        return;
    };
    let (flag, metrics) = free_address();
    let service = Installed::csiproxy(&format!("-drain=5 {flag}"));
    service.start();
    let call = start_through_the_daemon(&slow, &metrics).await;
    service.stop();
    service.wait_for(|status| status.state == STOP_PENDING && status.checkpoint > 1);
    assert_eq!(service.reach(STOPPED).exit_code, ServiceExitCode::NO_ERROR);
    call.await
        .expect("no panic")
        .expect_err("the call is aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_service_can_be_started_again() {
    let _turn = turn().await;
    let service = Installed::csiproxy("");
    service.start();
    let killed = Command::new(system::program("taskkill.exe").expect("a path"))
        .args(["/f", "/pid", &process_id()])
        .output()
        .expect("taskkill.exe");
    assert!(killed.status.success(), "{killed:?}");
    if !service.is_noticed_to_have_ended() {
        return skipped_by_wine(
            "the service control manager does not notice that a service's process has ended",
        );
    }
    service.start();
    connect("csi-proxy-volume-v1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_ends_without_reporting_that_it_stopped() {
    let _turn = turn().await;
    let scratch = Scratch::new("error");
    let log = scratch.join("csi-proxy.log");
    let service = Installed::csiproxy(&format!(
        "-log_file={log} -logtostderr=false -metrics-bind-address=nowhere"
    ));
    // The start fails, and leaves only a log. While another service starts, there is no log either.
    let mut tries = 0..20;
    while !Path::new(&log).exists() && tries.next().is_some() {
        sc_start(service.name());
        thread::sleep(Duration::from_millis(500));
    }
    let is_noticed = service.is_noticed_to_have_ended();
    let text = fs::read_to_string(&log).expect("the log");
    assert!(
        text.contains("] the service failed error=\"cannot listen at nowhere"),
        "{text}"
    );
    let status = service.wait_for(|_| true);
    if !is_noticed {
        assert_eq!(
            status.state, START_PENDING,
            "it has not reported that it stopped"
        );
        return skipped_by_wine(
            "the service control manager does not notice that a service's process has ended",
        );
    }
    assert_eq!(status.exit_code, PROCESS_ABORTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_installs_and_uninstalls_the_service() {
    let _turn = turn().await;
    let scratch = Scratch::new("install");
    let log = scratch.join("a file with blanks.log");
    assert_eq!(
        said(&["service", "status"]),
        "csi-proxy: service csiproxy is not installed\n"
    );

    let installed = csi_proxy(&[
        "service",
        "install",
        &format!("-log_file={log}"),
        "-logtostderr=false",
    ]);
    let service = Installed::adopt("csiproxy");
    if !installed.status.success() {
        let why = String::from_utf8_lossy(&installed.stderr).into_owned();
        assert!(
            why.contains("cannot set the restart after an error: ")
                && why.ends_with("(os error 124)\n"),
            "{why}"
        );
        skipped_by_wine("a service has no flag for failure actions (124)");
    }
    let twice = said(&["service", "install"]);
    assert!(
        twice.contains("service csiproxy is already installed"),
        "{twice}"
    );

    service.start();
    let status = said(&["service", "status"]);
    assert!(
        status.starts_with("csiproxy: running in process "),
        "{status}"
    );
    assert!(
        status.contains("starts with Windows") && status.contains("-windows-service"),
        "{status}"
    );
    assert!(
        fs::read_to_string(&log)
            .expect("the log")
            .contains("] serving ")
    );

    assert_eq!(service.wait_for(|_| true).state, RUNNING);
    assert_eq!(
        last_line(&csi_proxy(&["service", "uninstall"])),
        "Service csiproxy is removed."
    );
    assert!(service.status().is_none());
}

/// The path of the program, as Windows names it: Wine's tests have the path of Linux.
fn program() -> String {
    if PROGRAM.starts_with('/') {
        format!("Z:{}", PROGRAM.replace('/', r"\"))
    } else {
        PROGRAM.to_owned()
    }
}

/// Returns what `service find` prints.
fn found() -> serde_json::Value {
    let output = csi_proxy(&["service", "find"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns what a command prints on standard error.
fn refused(arguments: &[&str]) -> String {
    let output = csi_proxy(arguments);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

// As the operator of OpenShift names the service.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_another_name_is_found_by_the_pipes_that_it_serves() {
    let _turn = turn().await;
    let service = Installed::create("csi-proxy", &format!("{PROGRAM} -windows-service"));
    let twice = refused(&["service", "install"]);
    assert!(
        twice.contains("service csi-proxy, which starts ")
            && twice.contains(
                " is installed already; replace its program, or remove the service with 'csi-proxy \
                 service uninstall' first"
            ),
        "{twice}"
    );
    service.start();
    let json = found();
    assert_eq!(json["name"], "csi-proxy");
    assert!(
        json["program"]
            .as_str()
            .expect("a path")
            .eq_ignore_ascii_case(&program()),
        "{json}"
    );
    assert_eq!(
        (&json["wrapper"], &json["dependents"]),
        (&().into(), &serde_json::json!([]))
    );
    let status = String::from_utf8(csi_proxy(&["service", "status"]).stdout).expect("UTF-8");
    assert!(
        status.starts_with("csi-proxy: running in process "),
        "{status}"
    );
    let removed = String::from_utf8(csi_proxy(&["service", "uninstall"]).stdout).expect("UTF-8");
    assert!(
        removed.ends_with("Service csi-proxy is removed.\n"),
        "{removed}"
    );
    let first = format!("Removing service csi-proxy, which starts {}.", program());
    assert!(
        removed.to_lowercase().starts_with(&first.to_lowercase()),
        "{removed}"
    );
    assert_eq!(found(), serde_json::Value::Null);
}

// As nssm starts the program on AKS, where the service Kubelet depends on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_found_behind_its_wrapper_which_is_never_touched() {
    let _turn = turn().await;
    let Some(service) = Installed::idle("csi-proxy", Duration::ZERO, &[]) else {
        return;
    };
    service.wrap(&program());
    service.start();
    let pipe = format!(r"\\.\pipe\{}", GROUP_VERSIONS[0].pipe());
    let give_up = Instant::now() + Duration::from_mins(1);
    while pipe::owner(&pipe).is_err() {
        assert!(
            Instant::now() < give_up,
            "the program behind the wrapper does not serve"
        );
        thread::sleep(Duration::from_millis(50));
    }
    let json = found();
    assert_eq!(json["name"], "csi-proxy");
    assert!(
        json["program"]
            .as_str()
            .expect("a path")
            .eq_ignore_ascii_case(&program()),
        "{json}"
    );
    let wrapper = json["wrapper"].as_str().expect("a path");
    assert!(wrapper.ends_with("idle_service.exe"), "{json}");
    let flags = refused(&["service", "flags", "-v=2"]);
    assert!(
        flags.contains(&format!(
            "service csi-proxy keeps its flags, because its wrapper has them; with nssm: {wrapper} \
             set csi-proxy AppParameters FLAGS"
        )),
        "{flags}"
    );
    let status = String::from_utf8(csi_proxy(&["service", "status"]).stdout).expect("UTF-8");
    assert!(status.contains("\n  which starts "), "{status}");

    {
        let kubelet = Installed::idle(
            "csi-proxy-test-kubelet",
            Duration::ZERO,
            &["depend=", "csi-proxy"],
        );
        assert!(kubelet.is_some());
        let found = found();
        if found["dependents"] == serde_json::json!([]) {
            skipped_by_wine("QueryServiceConfig returns no dependencies");
        } else {
            assert_eq!(
                found["dependents"],
                serde_json::json!(["csi-proxy-test-kubelet"])
            );
            let kept = refused(&["service", "uninstall"]);
            assert!(
                kept.contains(
                    "is needed by: csi-proxy-test-kubelet; Windows would not start these without it"
                ),
                "{kept}"
            );
        }
    }
    let removed = String::from_utf8(csi_proxy(&["service", "uninstall"]).stdout).expect("UTF-8");
    assert!(
        removed.ends_with("Service csi-proxy is removed.\n"),
        "{removed}"
    );
    assert!(Path::new(wrapper).exists() && Path::new(PROGRAM).exists());
}

// Any account can create a pipe of csi-proxy's while no process serves it.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_not_csi_proxy_is_named_and_its_service_stays() {
    let _turn = turn().await;
    let service = Installed::csiproxy("");
    let path = format!(r"\\.\pipe\{}", GROUP_VERSIONS[0].pipe());
    let security = Arc::new(Security::administrators().expect("a descriptor"));
    let mut squatter = Listener::bind(&path, security).expect("a pipe");
    let squatting = tokio::spawn(async move { while squatter.accept().await.is_ok() {} });
    let own = process::id();
    for task in ["uninstall", "status", "flags", "find", "install"] {
        let why = refused(&["service", task]);
        assert!(
            why.contains(&format!("the pipes are served by process {own}, "))
                && why.contains("which is not csi-proxy"),
            "{task}: {why}"
        );
    }
    squatting.abort();
    assert_eq!(service.wait_for(|_| true).state, STOPPED);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flags_of_the_service_are_shown_and_replaced_and_its_program_stays() {
    let _turn = turn().await;
    let flags = |words: &[&str]| said(&[&["service", "flags"], words].concat());
    assert_eq!(flags(&[]), "csi-proxy: service csiproxy is not installed\n");
    assert_eq!(
        said(&["service", "uninstall"]),
        "Service csiproxy is not installed.\n"
    );
    let scratch = Scratch::new("flags");
    let log = scratch.join(r"a b\x.log");
    let before = r"C:\Program Files\a b\csi-proxy.exe -v 5 -windows-service";
    let service = Installed::create_with("csiproxy", before, &["start=", "demand"]);
    assert_eq!(flags(&[]), format!("{before}\n"));
    let after = format!(
        r#""C:\Program Files\a b\csi-proxy.exe" -windows-service -drain=7 "-log_file={log}""#
    );
    let log_file = format!("-log_file={log}");
    let wanted = ["-drain=7", &*log_file];
    // The program does not exist, and so nobody knows who may replace it.
    let refused = flags(&[&wanted[..], &["-require-safe-folders"]].concat());
    assert!(refused.contains("csiproxy keeps its flags: "), "{refused}");
    let refused = flags(&["-require-safe-folders"]);
    assert!(refused.contains("csiproxy is not safe: "), "{refused}");
    let changed = flags(&wanted);
    assert!(
        changed.contains("\nWarning: ") && changed.contains(&format!("\nchanged to {after}\n")),
        "{changed}"
    );
    assert_eq!(flags(&wanted), format!("{after}\n"), "nothing changes");
    assert!(flags(&["-nonsense"]).contains("unknown flag -nonsense"));
    let status = said(&["service", "status"]);
    assert!(
        status.starts_with(&format!("csiproxy: stopped, starts on demand\n  {after}\n")),
        "{status}"
    );
    assert_eq!(service.wait_for(|_| true).state, STOPPED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_starting_is_uninstalled_when_it_has_started() {
    let _turn = turn().await;
    let Some(service) = Installed::idle("csiproxy", Duration::from_secs(3), &[]) else {
        return;
    };
    let start = thread::spawn(|| sc_start("csiproxy"));
    service.wait_for(|status| status.state == START_PENDING || status.state == RUNNING);
    assert_eq!(
        last_line(&csi_proxy(&["service", "uninstall"])),
        "Service csiproxy is removed."
    );
    start.join().expect("no panic");
    assert!(service.status().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_service_lets_a_running_call_finish_and_is_uninstalled_when_it_has_stopped() {
    let _turn = turn().await;
    let Some(slow) = Installed::idle("csi-proxy-test-slow", Duration::from_secs(2), &[]) else {
        return;
    };
    let (flag, metrics) = free_address();
    let service = Installed::csiproxy(&flag);
    service.start();
    let call = start_through_the_daemon(&slow, &metrics).await;
    service.stop();
    assert_eq!(
        last_line(&csi_proxy(&["service", "uninstall"])),
        "Service csiproxy is removed."
    );
    call.await.expect("no panic").expect("the call is answered");
    assert!(service.status().is_none());
}

/// kubelet stops pods in its handler of the pre-shutdown control, and their volumes are unmounted
/// then.
#[tokio::test(flavor = "multi_thread")]
async fn the_service_serves_until_shutdown_and_does_not_stop_at_pre_shutdown() {
    let _turn = turn().await;
    let service = Installed::csiproxy("");
    service.start();
    let open = open(&service);
    let accepted = open.query_status().expect("a status").controls_accepted;
    let expected = ServiceControlAccept::STOP
        | ServiceControlAccept::SHUTDOWN
        | ServiceControlAccept::PARAM_CHANGE;
    assert_eq!(accepted, expected);
}

/// Returns the SIDs in the access control list of a folder, without those of LocalSystem and
/// Administrators.
fn other_accounts(folder: &str) -> Vec<String> {
    let descriptor =
        file_security::security_descriptor(Path::new(folder)).expect("the folder exists");
    let entries = descriptor.entries.expect("a list");
    let accounts = entries.into_iter().map(|entry| entry.sid.to_string());
    accounts
        .filter(|sid| !["S-1-5-18", "S-1-5-32-544"].contains(&sid.as_str()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_folder_in_which_others_may_write_is_warned_of_or_refused() {
    let _turn = turn().await;
    let scratch = Scratch::new("open-folder");
    let (open, logs) = (scratch.join("open"), scratch.join(r"open\logs"));
    let everyone_too = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;WD)";
    file_security::create_folder(Path::new(&open), everyone_too).expect("a folder");
    if other_accounts(&open) != ["S-1-1-0"] {
        skipped_by_wine("a folder has the access that its Unix mode expresses, within the umask");
    }
    let log = format!(r"-log_file={logs}\csi-proxy.log");

    let why = said(&["service", "install", "-require-safe-folders", &log]);
    assert!(
        why.starts_with("csi-proxy: service csiproxy is not installed: "),
        "{why}"
    );
    let is_warning = |text: &str| {
        text.contains(&format!("may rename or replace {open} or a folder in it"))
            && text.contains(&other_accounts(&open)[0])
    };
    assert!(is_warning(&why), "{why}");
    assert_eq!(
        said(&["service", "status"]),
        "csi-proxy: service csiproxy is not installed\n"
    );

    let text = said(&["service", "install", &log]);
    let _service = Installed::adopt("csiproxy");
    assert!(is_warning(&text) && text.contains("icacls"), "{text}");
    // What the installation has created is for administrators only.
    if let [owner] = &other_accounts(&logs)[..]
        && owner.starts_with("S-1-5-21-")
    {
        return skipped_by_wine("the user who owns a folder has an entry in its list");
    }
    assert_eq!(other_accounts(&logs), [] as [&str; 0]);
    assert!(!text.contains(&logs), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_sc_created_makes_its_log_folder_for_administrators_only() {
    let _turn = turn().await;
    let scratch = Scratch::new("service-log-folder");
    let [restricted, inheriting, logs] =
        ["restricted", "inheriting", "logs"].map(|name| scratch.join(name));
    file_security::create_folder(
        Path::new(&restricted),
        "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
    )
    .expect("a folder");
    fs::create_dir(&inheriting).expect("a folder");
    if other_accounts(&restricted) == other_accounts(&inheriting) {
        skipped_by_wine("all folders have the same access list");
    }
    let service = Installed::csiproxy(&format!(
        r"-log_file={logs}\csi-proxy.log -logtostderr=false"
    ));
    service.start();
    assert_eq!(other_accounts(&logs), other_accounts(&restricted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_service_can_be_installed_again_once_no_program_has_it_open() {
    let _turn = turn().await;
    let service = Installed::csiproxy("");
    let open = open(&service);
    let removed = csi_proxy(&["service", "uninstall"]);
    let report = "Service csiproxy is marked for deletion; Windows removes it when the last \
                  program that has it open (such as services.msc) closes it.";
    assert_eq!(last_line(&removed), report, "{removed:?}");

    let install = thread::spawn(|| said(&["service", "install"]));
    thread::sleep(Duration::from_secs(1)); // time for a first attempt, which must fail
    drop(open);
    let installed = install.join().expect("no panic");
    // Wine has no failure flag, so that installing reports an error although the service is
    // installed.
    assert!(installed.contains("csiproxy is installed"), "{installed}");
    assert_eq!(service.wait_for(|_| true).state, STOPPED);
}
