//! Disks and servers that come, go and change while the node runs.

use csi_proxy_client::{DiskNumber, DiskState, ErrorKind};
use serde_json::Value;

use super::program::Program;

const GIB: u64 = 1 << 30;
const DISK: &str =
    "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\ncontent = \"partitioned\"\nfile_system = \"NTFS\"\n";
const NEW_DISK: &str = "[[disk]]\nsize = \"1 GiB\"\n";

fn disks(program: &Program) -> Value {
    program.ctl(&["disks", "-o", "json"]).json()
}

#[tokio::test]
async fn a_disk_that_is_plugged_in_is_found_by_its_identifiers() {
    let program = Program::start_on("", &[]);
    let disks = program.driver().disk();
    let set = r#"page83={ ascii = "Google  pvc-1" }"#;
    let added = program.ctl(&[
        "add-disk",
        "--size",
        "2Gi",
        "--serial",
        "vol-1",
        "--set",
        "offline=true",
        "--set",
        set,
    ]);
    assert_eq!(added.ok(), "disk_numbers:\n  - 1\n");
    let ids = disks.list_disk_ids().await.expect("a list");
    assert_eq!(
        (
            ids[&DiskNumber(1)].serial_number.as_str(),
            ids[&DiskNumber(1)].page83.as_str()
        ),
        ("vol-1", "Google  pvc-1")
    );
    assert_eq!(
        disks.get_disk_state(DiskNumber(1)).await.expect("a state"),
        DiskState::Offline
    );

    let added = program
        .ctl_with_input(&["add", "-", "--undetected", "-o", "json"], NEW_DISK)
        .json();
    assert_eq!(added["disk_numbers"][0], 2);
    assert!(
        !disks
            .list_disk_ids()
            .await
            .expect("a list")
            .contains_key(&DiskNumber(2))
    );
    disks.rescan().await.expect("a rescan");
    assert!(
        disks
            .list_disk_ids()
            .await
            .expect("a list")
            .contains_key(&DiskNumber(2))
    );
}

#[tokio::test]
async fn a_disk_that_is_unplugged_is_gone_and_comes_back_with_what_is_on_it() {
    let program = Program::start_on(DISK, &[]);
    let driver = program.driver();
    let volumes = driver
        .volume()
        .list_volumes_on_disk(DiskNumber(1), None)
        .await
        .expect("a list");
    program
        .ctl_with_input(&["add", "-", "--undetected"], NEW_DISK)
        .ok();
    let handle = program.ctl(&["unplug", "1"]).ok();
    let handle = handle.trim().strip_prefix("handle: ").expect("a handle");
    assert_eq!(
        driver
            .disk()
            .get_disk_stats(DiskNumber(1))
            .await
            .expect_err("no disk")
            .kind(),
        ErrorKind::NotFound
    );
    let table = program.ctl(&["disks"]).ok();
    let rows: Vec<String> = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        rows[0],
        "DISK STATE HANDLE SIZE SERIAL NUMBER TABLE MOUNTED AT"
    );
    assert!(
        rows[1].starts_with("0 Online - 128Gi ") && rows[1].ends_with(r" gpt C:\"),
        "{table}"
    );
    assert!(rows[2].starts_with("2 Undetected - 1.00Gi "), "{table}");
    assert!(
        rows[3].starts_with(&format!("- Unplugged {handle} 1.00Gi ")),
        "{table}"
    );

    assert_eq!(program.ctl(&["plug", handle]).ok(), "disk_number: 1\n");
    // Its volume arrives some time after it.
    let mut found = driver
        .volume()
        .list_volumes_on_disk(DiskNumber(1), None)
        .await;
    while found.is_err() {
        found = driver
            .volume()
            .list_volumes_on_disk(DiskNumber(1), None)
            .await;
    }
    assert_eq!(found.expect("a list"), volumes);
    program
        .ctl(&["plug", handle])
        .fails(4, &["no unplugged disk has the handle"]);
    program
        .ctl(&["unplug", "0"])
        .fails(1, &["Windows runs from it"]);
    program.ctl(&["unplug", "9"]).fails(
        4,
        &[
            "no disk has the number 9\n",
            "hint:  `csi-proxy-sim ctl disks`",
        ],
    );
}

#[tokio::test]
async fn a_disk_that_has_grown_shows_its_new_size_after_a_rescan() {
    let program = Program::start_on(DISK, &[]);
    let sizes = || {
        [
            &disks(&program)[1]["size_bytes"],
            &disks(&program)[1]["size_seen_bytes"],
        ]
        .map(Value::as_u64)
    };
    assert_eq!(program.ctl(&["grow", "1", "2Gi"]).ok(), "");
    assert_eq!(sizes(), [Some(2 * GIB), Some(GIB)]);
    program.driver().disk().rescan().await.expect("a rescan");
    assert_eq!(sizes(), [Some(2 * GIB); 2]);
    program
        .ctl(&["grow", "1", "1Gi"])
        .fails(1, &["error: disk 1 has 2147483648 bytes already"]);
    program
        .ctl(&["grow", "1", "3221225984"])
        .fails(1, &["must be a multiple of 4096 bytes"]);
    program
        .ctl(&["grow", "9", "1Gi"])
        .fails(4, &["no disk has the number 9"]);

    let new = program
        .ctl_with_input(&["add", "-", "--undetected", "-o", "json"], NEW_DISK)
        .json();
    assert_eq!(new["disk_numbers"][0], 2);
    program.ctl(&["grow", "2", "3Gi"]).ok();
    program.ctl(&["unplug", "2"]).ok();
    let unplugged = &disks(&program)[2];
    assert_eq!(
        (
            unplugged["state"].as_str(),
            unplugged["size_bytes"].as_u64()
        ),
        (Some("Unplugged"), Some(3 * GIB))
    );
}

#[test]
fn an_addition_that_fails_changes_nothing() {
    let program = Program::start_on("", &[]);
    let before = disks(&program);
    for (more, reason) in [
        ("[[disk]]\nsize = \"1 GiB\"\nnumber = 0\n", "the number 0"),
        (
            "[[file]]\nkind = \"file\"\npath = 'X:\\file'\n",
            r"cannot create X:\file",
        ),
        ("sise = 1\n", "line 3: unknown field `sise`"),
    ] {
        program
            .ctl_with_input(&["add", "-"], &format!("{NEW_DISK}{more}"))
            .fails(1, &[reason]);
    }
    let serial = format!("bios_serial = \"x\"\n{NEW_DISK}");
    program
        .ctl_with_input(&["add", "-"], &serial)
        .fails(1, &["bios_serial cannot be added"]);
    program
        .ctl(&["add-disk", "--size", "1Gi", "--set", "colour=1"])
        .fails(1, &["line 3: unknown field `colour`"]);
    assert_eq!(disks(&program), before);
}

#[test]
fn servers_that_are_added_can_be_stopped_and_started() {
    let program = Program::start_on("", &[]);
    let add = |node_file: &str| program.ctl_with_input(&["add", "-"], node_file);
    let smb = "[[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\" }]\n\
               users = [{ name = \"user\", password = \"old\" }]\n";
    let portal = "[[iscsi_portal]]\naddress = \"10.0.0.10\"\n\
                  [[iscsi_target]]\niqn = \"iqn.2026-01.io.k8s:a\"\n\
                  portals = [{ address = \"10.0.0.10\" }]\n\
                  luns = [{ number = 0, size = 1073741824 }]\n";
    add(&format!("{smb}{portal}")).ok();
    let target = |address: &str| {
        format!("[[iscsi_target]]\niqn = \"iqn.b\"\nportals = [{{ address = \"{address}\" }}]\n")
    };
    add(&target("10.0.0.11")).fails(
        1,
        &["iscsi_target 1: no iscsi_portal has the address 10.0.0.11, port 3260"],
    );
    add(&target("10.0.0.10")).ok();
    add(smb).fails(1, &["the node already has the SMB server files"]);

    for server in [["--smb-server", "files"], ["--iscsi-portal", "10.0.0.10"]] {
        for command in ["stop", "start"] {
            assert_eq!(program.ctl(&[&[command], &server[..]].concat()).ok(), "");
        }
    }
    program
        .ctl(&["stop", "--iscsi-portal", "10.0.0.1"])
        .fails(4, &["no iSCSI portal 10.0.0.1:3260", "`ctl node` shows"]);
    let password = |user: &str| {
        program.ctl_with_input(
            &["set-smb-password", "files", user, "--password-file", "-"],
            "new\n",
        )
    };
    assert_eq!(password("user").ok(), "");
    password("other").fails(
        4,
        &["the SMB server files or its user other does not exist"],
    );
}
