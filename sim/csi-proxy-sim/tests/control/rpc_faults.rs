//! Faults of RPCs, and calls that wait until they are released.

use csi_proxy_client::{Client, Credentials, DiskNumber, ErrorKind};
use tonic::Code;

use super::program::Program;

const DIRECTORY: &str = r"C:\var\lib\kubelet\plugins\csi";

async fn exists(client: &Client) -> bool {
    client
        .filesystem()
        .path_exists(DIRECTORY)
        .await
        .expect("an answer")
}

#[tokio::test]
async fn an_rpc_fails_with_the_status_before_or_after_its_effect() {
    let program = Program::start_on("", &[]);
    let driver = program.driver();
    for (after, has_effect) in [(None, false), (Some("--after"), true)] {
        let inject = [
            "inject",
            "--rpc",
            "filesystem/Mkdir",
            "--status",
            "FAILED_PRECONDITION",
            "--count",
            "1",
        ];
        program
            .ctl(&inject.into_iter().chain(after).collect::<Vec<_>>())
            .ok();
        let error = driver
            .filesystem()
            .mkdir(DIRECTORY)
            .await
            .expect_err("the fault");
        assert_eq!(error.kind(), ErrorKind::FailedPrecondition, "{error}");
        assert_eq!(exists(&driver).await, has_effect);
        driver
            .filesystem()
            .mkdir(DIRECTORY)
            .await
            .expect("only one call fails");
        program.ctl(&["rm", DIRECTORY]).ok();
    }
}

#[tokio::test]
async fn every_error_code_reaches_the_driver() {
    let program = Program::start_on("", &[]);
    let disks = program.channel("csi-proxy-disk-v1").await;
    for code in 1..=16 {
        program
            .ctl(&[
                "inject",
                "--rpc",
                "disk/v1/Rescan",
                "--status",
                &code.to_string(),
                "--count",
                "1",
            ])
            .ok();
        let called = dynamic_client::call(&disks, "/v1.Disk/Rescan", Vec::new()).await;
        assert_eq!(called.expect_err("the fault").code(), Code::from_i32(code));
    }
}

#[tokio::test]
async fn the_nth_call_with_a_path_in_its_request_is_cut_and_others_are_not() {
    let program = Program::start_on("", &[]);
    let inject = [
        "inject",
        "--rpc",
        "filesystem/*",
        "--object",
        r"\plugins\CSI",
        "--skip",
        "1",
        "--count",
        "1",
        "--cut",
    ];
    program.ctl(&inject).ok();
    let driver = program.driver();
    driver
        .filesystem()
        .mkdir(r"C:\var\lib\kubelet\plugins\other")
        .await
        .expect("another path");
    driver
        .filesystem()
        .mkdir(DIRECTORY)
        .await
        .expect("the first call");
    let cut = driver
        .filesystem()
        .mkdir(DIRECTORY)
        .await
        .expect_err("the second call");
    assert_eq!(cut.kind(), ErrorKind::Unavailable, "{cut}");
    driver
        .filesystem()
        .mkdir(DIRECTORY)
        .await
        .expect("the driver connects again");
    let faults = program.ctl(&["faults", "-o", "json"]).json();
    assert_eq!(
        (&faults[0]["hits"], &faults[0]["rpc"]),
        (&1.into(), &"filesystem/*".into())
    );
    assert_eq!(
        faults[0]["last_hit"],
        format!("filesystem/v1/Mkdir {DIRECTORY}")
    );
}

#[tokio::test]
async fn a_password_chooses_no_call_and_is_in_no_list() {
    let program = Program::start(&["-fast"]);
    program
        .ctl(&[
            "inject", "--rpc", "smb/*", "--object", "hunter2", "--status", "Aborted",
        ])
        .ok();
    program
        .ctl(&["inject", "--rpc", "smb/*", "--status", "Aborted", "--after"])
        .ok();
    let credentials = Credentials {
        username: r"EXAMPLE\user",
        password: "hunter2",
    };
    let smb = program.driver().smb();
    smb.new_smb_global_mapping(r"\\fileserver\share", None, Some(credentials))
        .await
        .expect_err("the second fault");
    let faults = program.ctl(&["faults", "-o", "json"]).json();
    assert_eq!(
        (&faults[0]["hits"], &faults[1]["hits"]),
        (&0.into(), &1.into())
    );
    assert!(
        !faults[1]["last_hit"]
            .as_str()
            .expect("a call")
            .contains("hunter2"),
        "{faults}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_held_until_its_fault_is_cleared_before_or_after_its_effect() {
    let program = Program::start_on("", &[]);
    for (id, how, has_effect) in [
        ("1", &["--rpc", "filesystem/Mkdir"][..], false),
        ("2", &["--rpc", "filesystem/Mkdir", "--after"], true),
        (
            "3",
            &["--primitive", "open_child", "--object", "plugins\\csi"],
            false,
        ),
    ] {
        program
            .ctl(&[&["inject", "--hold", "--count", "1"], how].concat())
            .ok();
        let driver = program.driver();
        let call = tokio::spawn(async move { driver.filesystem().mkdir(DIRECTORY).await });
        assert_eq!(program.ctl(&["wait-fault", id]).ok(), "hits: 1\n");
        assert!(!call.is_finished());
        let found = program.ctl(&["stat", DIRECTORY]);
        assert_eq!(found.code == Some(0), has_effect, "{how:?}: {found:?}");
        program.ctl(&["clear-faults", id]).ok();
        call.await.expect("no panic").expect("the call goes on");
        program.ctl(&["rm", DIRECTORY]).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_call_is_released_too() {
    let program = Program::start_on("[[disk]]\nsize = \"1 GiB\"\n", &[]);
    for how in [&["--rpc", "disk/*"][..], &["--disk", "1"]] {
        program
            .ctl(&[&["inject", "--delay", "1h"], how].concat())
            .ok();
        let driver = program.driver();
        let call = tokio::spawn(async move { driver.disk().get_disk_stats(DiskNumber(1)).await });
        let id = program.ctl(&["faults", "-o", "json"]).json()[0]["id"].to_string();
        program.ctl(&["wait-fault", &id]).ok();
        program.ctl(&["clear-faults"]).ok();
        call.await.expect("no panic").expect("the call goes on");
    }
}

#[tokio::test]
async fn waiting_for_a_fault_ends_with_its_deadline_or_its_removal() {
    let program = Program::start_on("", &[]);
    program
        .ctl(&["wait-fault", "7"])
        .fails(4, &["no fault has the id 7"]);
    program.ctl(&["inject", "--rpc", "*", "--cut"]).ok();
    program
        .ctl(&["--timeout", "100ms", "wait-fault", "1"])
        .fails(5, &["no answer in time"]);
}

#[tokio::test]
async fn faults_of_one_rpc_disturb_one_call_after_the_other_and_leave_the_control_api_alone() {
    let program = Program::start_on("", &[]);
    let disks = program.channel("csi-proxy-disk-v1").await;
    program
        .ctl(&[
            "inject", "--rpc", "*", "--status", "Aborted", "--count", "1",
        ])
        .ok();
    program
        .ctl(&[
            "inject",
            "--rpc",
            "disk/Rescan",
            "--status",
            "Internal",
            "--count",
            "1",
        ])
        .ok();
    program.ctl(&["add-disk", "--size", "1Gi"]).ok();
    for code in [Code::Aborted, Code::Internal] {
        let called = dynamic_client::call(&disks, "/v1.Disk/Rescan", Vec::new()).await;
        assert_eq!(called.expect_err("the fault").code(), code);
    }
    dynamic_client::call(&disks, "/v1.Disk/Rescan", Vec::new())
        .await
        .expect("no fault is left");
}

#[tokio::test]
async fn a_probability_with_a_seed_disturbs_the_same_calls_in_each_run() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let program = Program::start_on("", &[]);
        program
            .ctl(&[
                "inject",
                "--rpc",
                "disk/Rescan",
                "--status",
                "Aborted",
                "--probability",
                "0.5",
                "--seed",
                "3",
            ])
            .ok();
        let disks = program.channel("csi-proxy-disk-v1").await;
        let mut failed = Vec::new();
        for _ in 0..16 {
            failed.push(
                dynamic_client::call(&disks, "/v1.Disk/Rescan", Vec::new())
                    .await
                    .is_err(),
            );
        }
        assert!(
            failed.contains(&true) && failed.contains(&false),
            "{failed:?}"
        );
        runs.push(failed);
    }
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn a_fault_that_could_never_happen_is_refused() {
    let program = Program::start_on(
        "[[service]]\nname = \"MSiSCSI\"\ndisplay_name = \"iSCSI\"\n",
        &[],
    );
    for (how, reason) in [
        (
            &["--code", "5", "--primitive", "wmi call MSFT_Volume.Formatt"][..],
            "no primitive is called",
        ),
        (
            &["--code", "5", "--primitive", "control DISK_GET"],
            "no primitive is called",
        ),
        (
            &[
                "--code",
                "5",
                "--primitive",
                "service start",
                "--object",
                "Spooler",
            ],
            "no service of the node is called",
        ),
        (
            &["--status", "Aborted", "--rpc", "volume/Mount"],
            "no RPC is called",
        ),
        (
            &["--status", "Aborted", "--primitive", "open"],
            "needs an RPC",
        ),
        (
            &["--code", "5", "--rpc", "volume/MountVolume"],
            "an RPC fails with a status",
        ),
        (
            &["--cut", "--rpc", "volume/MountVolume", "--disk", "0"],
            "neither a primitive nor a disk",
        ),
        (
            &[
                "--crash",
                "--count",
                "1",
                "--rpc",
                "disk/*",
                "--probability",
                "2",
            ],
            "between 0 and 1",
        ),
    ] {
        program
            .ctl(&[&["inject"], how].concat())
            .fails(1, &[reason]);
    }
    program
        .ctl(&["inject", "--code", "5", "--disk", "77"])
        .fails(4, &["no disk has the number 77"]);
    program
        .ctl(&[
            "inject",
            "--code",
            "5",
            "--primitive",
            "service start",
            "--object",
            "msiscsi",
        ])
        .ok();
}

#[tokio::test]
async fn without_the_layer_no_fault_of_an_rpc_happens() {
    let program = Program::start_on("", &["-direct"]);
    program
        .ctl(&["inject", "--rpc", "*", "--status", "Aborted"])
        .ok();
    program
        .driver()
        .disk()
        .rescan()
        .await
        .expect("the daemon answers");
}
