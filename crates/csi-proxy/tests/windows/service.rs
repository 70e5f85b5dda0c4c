//! The daemon as the service `csiproxy`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use api::disk::v1::PartitionDiskRequest;
use api::disk::v1::disk_client::DiskClient;
use tokio::task::JoinHandle;
use tonic::Status;
use windows_service::service::ServiceAccess;
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use crate::PROGRAM;
use crate::daemon::{Scratch, connect, skipped_by_wine, turn};
use crate::service_control::{Installed, RUNNING, START_PENDING, STOP_PENDING, STOPPED};

/// What Windows says of a service whose process is gone without a word.
const PROCESS_ABORTED: u32 = 1067;

fn csi_proxy(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().expect("a process")
}

/// The process that the service runs in.
fn process_id() -> String {
    let status = csi_proxy(&["service", "status"]);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    let digits =
        text.split_once("in process ").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect());
    digits.unwrap_or_else(|| panic!("it runs: {status:?}"))
}

/// Flags for a node on which partitioning disk 1 takes so many seconds, with metrics at the address.
fn slow_node(scratch: &Scratch, seconds: u32) -> (String, String) {
    let file = scratch.join("node.toml");
    let text = format!(
        "[timing]\ncreate_partition = {{ secs = {seconds}, nanos = 0 }}\n[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n"
    );
    fs::write(&file, text).expect("a file");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").to_string();
    (format!("-node={file} -metrics-bind-address={free}"), free)
}

fn metrics(address: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Partitions disk 1, and returns when that is under way.
async fn partition(metrics_address: &str) -> JoinHandle<Result<(), Status>> {
    let mut disks = DiskClient::new(connect("csi-proxy-disk-v1").await);
    let request = PartitionDiskRequest { disk_number: 1 };
    let call = tokio::spawn(async move { disks.partition_disk(request).await.map(drop) });
    let begun = r#"grpc_server_started_total{grpc_method="PartitionDisk",grpc_service="v1.Disk",grpc_type="unary"} 1"#;
    while !metrics(metrics_address).contains(begun) {
        assert!(!call.is_finished(), "the call ended and was not counted");
        tokio::task::yield_now().await;
    }
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn it_starts_and_stops_and_starts_again() {
    let _turn = turn().await;
    let scratch = Scratch::new("service");
    let log = scratch.join(r"logs\csi-proxy.log");
    let service = Installed::csiproxy(&format!("-log_file={log} -logtostderr=false -v=5"));
    for starts in 1..=2 {
        service.start();
        connect("csi-proxy-volume-v1").await;
        service.stop();
        assert_eq!(service.reach(STOPPED).exit_code, 0);
        let text = fs::read_to_string(&log).expect("the log");
        assert_eq!(text.lines().filter(|line| line.ends_with("INFO stopped")).count(), starts, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn told_to_stop_it_lets_a_call_end() {
    let _turn = turn().await;
    let scratch = Scratch::new("drain");
    let (flags, metrics) = slow_node(&scratch, 2);
    let service = Installed::csiproxy(&flags);
    service.start();
    let call = partition(&metrics).await;
    service.stop();
    call.await.expect("no panic").expect("the call is answered");
    assert_eq!(service.reach(STOPPED).exit_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_calls_drain_it_says_so_and_when_their_time_is_over_it_stops() {
    let _turn = turn().await;
    let scratch = Scratch::new("cut-off");
    let (flags, metrics) = slow_node(&scratch, 3600);
    let service = Installed::csiproxy(&format!("-drain=5 {flags}"));
    service.start();
    let call = partition(&metrics).await;
    service.stop();
    service.wait_for(|status| status.state == STOP_PENDING && status.checkpoint > 1);
    assert_eq!(service.reach(STOPPED).exit_code, 0);
    call.await.expect("no panic").expect_err("the call is cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_it_can_be_started_again() {
    let _turn = turn().await;
    let service = Installed::csiproxy("");
    service.start();
    let killed = Command::new("taskkill.exe").args(["/f", "/pid", &process_id()]).output().expect("taskkill.exe");
    assert!(killed.status.success(), "{killed:?}");
    if !service.is_found_gone() {
        return skipped_by_wine("the service control manager does not see that a service's process is gone");
    }
    service.start();
    connect("csi-proxy-volume-v1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_error_it_is_gone_without_having_stopped() {
    let _turn = turn().await;
    let scratch = Scratch::new("error");
    let log = scratch.join("csi-proxy.log");
    let service = Installed::csiproxy(&format!("-log_file={log} -logtostderr=false -metrics-bind-address=nowhere"));
    // It is started in vain, but for the log; while another service starts, it is not even that.
    let mut tries = 0..20;
    while !Path::new(&log).exists() && tries.next().is_some() {
        Command::new("sc.exe").args(["start", service.name()]).output().expect("sc.exe");
        thread::sleep(Duration::from_millis(500));
    }
    let is_found_gone = service.is_found_gone();
    let text = fs::read_to_string(&log).expect("the log");
    assert!(text.contains("ERROR the service ends error=cannot listen at nowhere"), "{text}");
    let status = service.wait_for(|_| true);
    if !is_found_gone {
        assert_eq!(status.state, START_PENDING, "it has told of no end");
        return skipped_by_wine("the service control manager does not see that a service's process is gone");
    }
    assert_eq!(status.exit_code, PROCESS_ABORTED);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_installs_itself_and_goes() {
    let _turn = turn().await;
    let scratch = Scratch::new("install");
    let log = scratch.join("a folder with blanks.log");
    let absent = csi_proxy(&["service", "status"]);
    assert_eq!(String::from_utf8_lossy(&absent.stderr), "csi-proxy: there is no service csiproxy\n");

    let installed = csi_proxy(&["service", "install", &format!("-log_file={log}"), "-logtostderr=false"]);
    let service = Installed::adopt("csiproxy");
    if !installed.status.success() {
        let why = String::from_utf8_lossy(&installed.stderr).into_owned();
        skipped_by_wine(why.trim_end().trim_start_matches("csi-proxy: "));
    }
    let twice = csi_proxy(&["service", "install"]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("there is a service csiproxy already"), "{twice:?}");

    service.start();
    let status = String::from_utf8_lossy(&csi_proxy(&["service", "status"]).stdout).into_owned();
    assert!(status.starts_with("csiproxy: running in process "), "{status}");
    assert!(status.contains("starts with Windows") && status.contains("-windows-service"), "{status}");
    assert!(fs::read_to_string(&log).expect("the log").contains("INFO serving"));

    assert_eq!(service.wait_for(|_| true).state, RUNNING);
    let removed = csi_proxy(&["service", "uninstall"]);
    assert_eq!(String::from_utf8_lossy(&removed.stdout), "The service csiproxy is removed.\n", "{removed:?}");
    assert!(service.status().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_while_a_program_has_it_open_it_can_be_installed_when_that_closes_it() {
    let _turn = turn().await;
    let service = Installed::csiproxy("");
    let manager = ServiceManager::local_computer(None::<&str>, ServiceManagerAccess::CONNECT).expect("the manager");
    let open = manager.open_service(service.name(), ServiceAccess::QUERY_STATUS).expect("the service");
    let removed = csi_proxy(&["service", "uninstall"]);
    let said = "The service csiproxy is deleted, and gone when the last program closes it ('services.msc'?).\n";
    assert_eq!(String::from_utf8_lossy(&removed.stdout), said, "{removed:?}");

    let install = thread::spawn(|| csi_proxy(&["service", "install"]));
    thread::sleep(Duration::from_secs(1)); // for a first try, which is in vain
    drop(open);
    let installed = install.join().expect("no panic");
    // Wine has no failure flag, and then says so, of a service that is there.
    let said = [installed.stdout, installed.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains("csiproxy is installed"), "{}", String::from_utf8_lossy(&said));
    assert_eq!(service.wait_for(|_| true).state, STOPPED);
}
