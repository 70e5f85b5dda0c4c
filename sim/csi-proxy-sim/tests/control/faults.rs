//! Faults that are injected while the program runs.

use csi_proxy_client::{DiskNumber, ErrorKind};
use serde_json::Value;

use super::program::Program;

const DISKS: &str =
    "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n[[disk]]\nnumber = 2\nsize = \"1 GiB\"\n";

/// ERROR_IO_DEVICE.
const IO_DEVICE: &str = "1117";

/// Returns the first fault.
fn fault(program: &Program) -> Value {
    program.ctl(&["faults", "-o", "json"]).json()[0].take()
}

/// Waits until the first fault has disturbed a call.
pub(crate) fn wait_for_hit(program: &Program) {
    while fault(program)["hits"] == 0 {}
}

#[test]
fn faults_are_listed_and_cleared() {
    let program = Program::start_on(DISKS, &[]);
    let format = [
        "inject",
        "--primitive",
        "wmi call MSFT_Volume.Format",
        "--count",
        "1",
        "--code",
        "0x80041001",
    ];
    assert_eq!(program.ctl(&format).ok(), "id: 1\n");
    assert_eq!(
        program
            .ctl(&["inject", "--disk", "1", "--delay", "1h", "--after"])
            .ok(),
        "id: 2\n"
    );
    assert_eq!(
        program
            .ctl(&["inject", "--object", "nosuch", "--crash", "--count", "1"])
            .ok(),
        "id: 3\n"
    );
    texts::golden!("faults.txt", program.ctl(&["faults"]).ok());
    assert_eq!(program.ctl(&["clear-faults", "2"]).ok(), "");
    program
        .ctl(&["clear-faults", "2"])
        .fails(4, &["no fault has the id 2"]);
    assert_eq!(program.ctl(&["clear-faults"]).ok(), "");
    assert_eq!(program.ctl(&["faults", "-o", "json"]).ok(), "[]\n");
}

#[tokio::test]
async fn a_fault_disturbs_as_many_calls_as_it_is_told_and_is_counted() {
    let program = Program::start_on(DISKS, &[]);
    let disks = program.driver().disk();
    disks.list_disk_ids().await.expect("a list");
    let call = [
        "--primitive",
        "device_interfaces",
        "--skip",
        "1",
        "--count",
        "1",
        "--code",
        IO_DEVICE,
    ];
    program.ctl(&[&["inject"], &call[..]].concat()).ok();
    disks
        .list_disk_ids()
        .await
        .expect("the first call is skipped");
    let failed = disks
        .list_disk_ids()
        .await
        .expect_err("the second call fails");
    assert!(failed.to_string().contains("(1117)"), "{failed}");
    disks.list_disk_ids().await.expect("no more calls fail");

    let fault = fault(&program);
    assert_eq!(
        (fault["id"].as_u64(), fault["hits"].as_u64()),
        (Some(1), Some(1))
    );
    assert!(
        fault["last_hit"]
            .as_str()
            .expect("a call")
            .starts_with("device_interfaces"),
        "{fault}"
    );
    let called = program.ctl(&["primitives", "-o", "json"]).json();
    let mut rows = called.as_array().expect("rows").iter();
    let of_disks = rows
        .find(|row| row["primitive"] == "device_interfaces")
        .expect("it was called");
    assert!(of_disks["calls"].as_u64() >= Some(4), "{of_disks}");
}

#[tokio::test]
async fn a_fault_of_a_disk_spares_the_others_until_it_is_cleared() {
    let program = Program::start_on(DISKS, &[]);
    let disks = program.driver().disk();
    program
        .ctl(&[
            "inject",
            "--disk",
            "1",
            "--primitive",
            "control *",
            "--code",
            IO_DEVICE,
        ])
        .ok();
    disks
        .get_disk_stats(DiskNumber(1))
        .await
        .expect_err("the disk fails");
    disks
        .get_disk_stats(DiskNumber(2))
        .await
        .expect("the other disk works");
    program.ctl(&["clear-faults", "1"]).ok();
    disks
        .get_disk_stats(DiskNumber(1))
        .await
        .expect("the disk works again");
}

#[tokio::test]
async fn a_crash_ends_the_daemon_which_starts_again() {
    let program = Program::start_on(DISKS, &[]);
    let disks = program.driver().disk();
    program
        .ctl(&[
            "inject",
            "--primitive",
            "device_interfaces",
            "--crash",
            "--count",
            "1",
        ])
        .ok();
    // The client may repeat the call, which only reads, at the new daemon.
    if let Err(error) = disks.list_disk_ids().await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert_eq!(fault(&program)["hits"], 1);
    let mut answered = disks.list_disk_ids().await;
    while answered.is_err() {
        answered = disks.list_disk_ids().await;
    }
}
