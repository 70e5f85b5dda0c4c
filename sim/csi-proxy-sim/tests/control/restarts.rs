//! Restarts of the node and of the daemon.

use csi_proxy_client::{DiskNumber, ErrorKind};

use super::faults::wait_for_hit;
use super::program::Program;

const DISK: &str = "[[disk]]\nsize = \"1 GiB\"\n";
const DIRECTORY: &str = r"C:\var\lib\kubelet\plugins\csi";

#[tokio::test]
async fn a_restart_of_the_node_keeps_its_files_and_detects_its_disks() {
    let program = Program::start_on("", &[]);
    let driver = program.driver();
    driver
        .filesystem()
        .mkdir(DIRECTORY)
        .await
        .expect("a directory");
    program
        .ctl_with_input(&["add", "-", "--undetected"], DISK)
        .ok();

    assert_eq!(program.ctl(&["restart", "--daemon-only"]).ok(), "");
    assert!(
        !driver
            .disk()
            .list_disk_ids()
            .await
            .expect("a list")
            .contains_key(&DiskNumber(1)),
        "Windows has not restarted"
    );
    assert_eq!(program.ctl(&["restart"]).ok(), "");
    assert!(
        driver
            .disk()
            .list_disk_ids()
            .await
            .expect("a list")
            .contains_key(&DiskNumber(1))
    );
    assert!(
        driver
            .filesystem()
            .path_exists(DIRECTORY)
            .await
            .expect("an answer")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_cuts_off_calls_in_progress() {
    let program = Program::start_on(DISK, &[]);
    program
        .ctl(&["inject", "--primitive", "wmi call *", "--delay", "1h"])
        .ok();
    let driver = program.driver();
    let call = tokio::spawn(async move { driver.disk().partition_disk(DiskNumber(1)).await });
    wait_for_hit(&program);
    program.ctl(&["restart", "--daemon-only"]).ok();
    let cut_off = call
        .await
        .expect("no panic")
        .expect_err("the call is cut off");
    assert_eq!(cut_off.kind(), ErrorKind::Unavailable, "{cut_off}");
    program.ctl(&["clear-faults"]).ok();
    program
        .driver()
        .disk()
        .partition_disk(DiskNumber(1))
        .await
        .expect("the new daemon answers");
}
