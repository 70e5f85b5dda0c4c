//! Nodes as clouds have them: snapshots with the signature of their disk, disk numbers that change,
//! time-outs; and the state of the node before and after a driver has used it.

use std::time::{Duration, Instant};

use csi_proxy_client::{DiskNumber, DiskState};

use super::program::{Program, folder};

const VOLUME: &str = "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\nserial = \"vol-1\"\n\
                      content = \"partitioned\"\nfile_system = \"NTFS\"\n\
                      [[file]]\nkind = \"mount\"\npath = 'C:\\var\\lib\\kubelet\\m'\ndisk = 1\n\
                      [[file]]\nkind = \"file\"\npath = 'C:\\var\\lib\\kubelet\\m\\data'\n\
                      content = \"kept\"\n";

#[tokio::test]
async fn a_restored_snapshot_is_offline_until_it_comes_online_with_another_signature() {
    let program = Program::start_on(VOLUME, &["-fast"]);
    let snapshot = [
        "add-disk",
        "--size",
        "1Gi",
        "--serial",
        "snap-1",
        "--copy-of",
        "1",
    ];
    assert_eq!(program.ctl(&snapshot).ok(), "disk_numbers:\n  - 2\n");
    let disks = program.driver().disk();
    assert_eq!(
        disks.get_disk_state(DiskNumber(2)).await.expect("a state"),
        DiskState::Offline,
        "it collides"
    );
    assert_eq!(
        disks.get_disk_state(DiskNumber(1)).await.expect("a state"),
        DiskState::Online
    );
    disks
        .set_disk_state(DiskNumber(2), DiskState::Online)
        .await
        .expect("it comes online");
    assert_eq!(
        disks.get_disk_state(DiskNumber(2)).await.expect("a state"),
        DiskState::Online
    );

    let node = program.ctl(&["node"]).ok();
    let signatures: Vec<_> = node
        .lines()
        .filter(|line| line.starts_with("signature = "))
        .collect();
    assert!(
        signatures.len() == 2 && signatures[0] != signatures[1],
        "{node}"
    );
    let volumes = program
        .driver()
        .volume()
        .list_volumes_on_disk(DiskNumber(2), None)
        .await
        .expect("its volume");
    let mount = r"C:\var\lib\kubelet\snapshot";
    program
        .driver()
        .filesystem()
        .mkdir(mount)
        .await
        .expect("a directory");
    program
        .driver()
        .volume()
        .mount_volume(&volumes[0], mount)
        .await
        .expect("it is mounted");
    assert_eq!(
        program.ctl(&["cat", &format!(r"{mount}\data")]).ok(),
        "kept"
    );
}

#[tokio::test]
async fn two_disks_of_a_file_with_one_signature_collide_also_after_a_restart() {
    let signature =
        "signature = \"12345678-1234-1234-1234-123456789abc\"\ncontent = \"partitioned\"\n";
    let folder = folder();
    let node =
        format!("[[disk]]\nsize = \"1 GiB\"\n{signature}[[disk]]\nsize = \"1 GiB\"\n{signature}");
    let file = folder.path().join("node.toml");
    std::fs::write(&file, node).expect("a file");
    let flags = [
        format!("-node={}", file.display()),
        format!("-state={}", folder.path().join("state").display()),
    ];
    for _ in 0..2 {
        let program = Program::start_in(&folder, &[&flags[0], &flags[1], "-fast"]);
        let disks = program.driver().disk();
        let online = [
            disks.get_disk_state(DiskNumber(1)).await,
            disks.get_disk_state(DiskNumber(2)).await,
        ]
        .map(|state| state.expect("a state"));
        assert_eq!(online, [DiskState::Online, DiskState::Offline]);
        program.ctl(&["restart"]).ok();
        program.stop();
    }
}

#[tokio::test]
async fn a_restart_gives_each_disk_the_number_of_another() {
    let node = (1..=3).map(|disk| {
        format!("[[disk]]\nnumber = {disk}\nsize = \"1 GiB\"\nserial = \"vol-{disk}\"\n")
    });
    let program = Program::start_on(&node.collect::<String>(), &[]);
    let mut seen = Vec::new();
    for seed in ["0", "1"] {
        program.ctl(&["restart", "--renumber", "--seed", seed]).ok();
        let ids = program
            .driver()
            .disk()
            .list_disk_ids()
            .await
            .expect("a list");
        let serials: Vec<_> = (1..=3)
            .map(|disk| ids[&DiskNumber(disk)].serial_number.clone())
            .collect();
        let mut sorted = serials.clone();
        sorted.sort();
        assert_eq!(sorted, ["vol-1", "vol-2", "vol-3"]);
        seen.push(serials);
    }
    assert!(
        (0..3).all(|disk| seen[0][disk] != format!("vol-{}", disk + 1)),
        "{seen:?}"
    );
    assert!(
        (0..3).all(|disk| seen[0][disk] != seen[1][disk]),
        "{seen:?}"
    );
    program
        .ctl(&["restart", "--renumber", "--daemon-only"])
        .fails(2, &["cannot be used with"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_takes_as_long_as_the_node_file_says_and_once_if_the_share_is_mapped() {
    let node = "[timing]\nsmb_timeout = \"20s\"\niscsi_timeout = \"700ms\"\n\
                [[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\", guest = true }]\n\
                [[iscsi_portal]]\naddress = \"10.0.0.9\"\nreachable = false\n\
                [[service]]\nname = \"MSiSCSI\"\ndisplay_name = \"iSCSI\"\nstate = \"running\"\n";
    let program = Program::start_on(node, &[]);
    let driver = program.driver();
    driver
        .smb()
        .new_smb_global_mapping(r"\\files\share", None, None)
        .await
        .expect("it is mapped");
    program.ctl(&["stop", "--smb-server", "files"]).ok();
    let smb = program.driver();
    let call = tokio::spawn(async move {
        smb.smb()
            .new_smb_global_mapping(r"\\files\share", None, None)
            .await
    });
    let mut seconds = 0;
    while !call.is_finished() {
        program.ctl(&["advance", "5s"]).ok();
        seconds += 5;
    }
    call.await.expect("no panic").expect_err("an outage");
    assert!((20..40).contains(&seconds), "{seconds}");
    let begin = Instant::now();
    driver
        .iscsi()
        .add_target_portal(&csi_proxy_client::TargetPortal::new("10.0.0.9"))
        .await
        .expect_err("an outage");
    assert!(
        begin.elapsed() >= Duration::from_millis(700) && begin.elapsed() < Duration::from_secs(10)
    );
}

/// What drivers read of the disks of clouds: the serial number, the page-83 identifier, and
/// adapter, bus, target and LUN.
const CLOUD_DISKS: &str = "\
aws vol0123456789abcdef0_00000001., , 3::0:1
aws AWS6AAE6AB0AA7F_00000001., , 3::0:2
azure , 60022480000000000000000000000016, 0:0:0:1
azure , 6002248000000000000000000000001f, 1:0:0:1
azure , 60022480000000000000000000000025, 3::0:2
azure E6D8_6642_50D8_47BD_916E_AF1B_0000_0000., 6002248000000000000000000000002b, 0:12606208::
azure SIM0000000000049, 60022480000000000000000000000031, no location
gce                     , Google  pvc-5f0e6c7a-0b8d-4d2e-9f3c-1a2b3c4d5e6f, 0::1:0
gce 10CC_9636_B6E3_CE3B_0000_0000_0000_0000., eui.10cc9636b6e3ce3b, 3::0:2
vsphere 6000c292a560cfee7485ca30dd209394, 6000c292a560cfee7485ca30dd209394, 0::2:0
vsphere , 6000c29a98d05e384a43f0ef189aaf5a, no location";

#[tokio::test]
async fn drivers_find_the_disks_of_each_cloud() {
    let mut found = Vec::new();
    for cloud in ["aws", "azure", "gce", "vsphere"] {
        let file = format!("-node={}/clouds/{cloud}.toml", env!("CARGO_MANIFEST_DIR"));
        let program = Program::start(&[&file, "-fast"]);
        let disks = program.driver().disk();
        let locations = disks.list_disk_locations().await.expect("the locations");
        for (disk, ids) in disks
            .list_disk_ids()
            .await
            .expect("the identifiers")
            .into_iter()
            .skip(1)
        {
            let location = locations
                .get(&disk)
                .map(|at| [&*at.adapter, &at.bus, &at.target, &at.lun].join(":"));
            let location = location.unwrap_or_else(|| "no location".to_owned());
            found.push(format!(
                "{cloud} {}, {}, {location}",
                ids.serial_number, ids.page83
            ));
        }
    }
    assert_eq!(found.join("\n"), CLOUD_DISKS);
}

#[tokio::test]
async fn a_node_is_compared_with_its_earlier_state() {
    let program = Program::start_on(VOLUME, &["-fast"]);
    let before = program.ctl(&["node"]).ok();
    assert_eq!(program.ctl_with_input(&["diff", "-"], &before).ok(), "");
    let driver = program.driver();
    driver
        .disk()
        .set_disk_state(DiskNumber(1), DiskState::Offline)
        .await
        .expect("offline");
    driver
        .filesystem()
        .mkdir(r"C:\var\lib\kubelet\left")
        .await
        .expect("a directory");
    program.ctl(&["rm", "-r", r"C:\var\lib\kubelet\m"]).ok();
    let differs = program.ctl_with_input(&["diff", "-"], &before);
    let lines = [
        "disk 1: offline: false -> true",
        r"file C:\var\lib\kubelet\m: removed",
        r"file C:\var\lib\kubelet\left: added",
    ];
    assert_eq!(
        (differs.code, differs.stdout.lines().collect::<Vec<_>>()),
        (Some(1), lines.to_vec()),
        "{differs:?}"
    );
    assert!(
        differs.stderr.contains("the node differs in 3 ways"),
        "{differs:?}"
    );
}

#[test]
fn what_is_on_disks_is_compared_on_request_and_passwords_are_not_shown() {
    let server =
        "[[smb_server]]\nhost = \"files\"\nusers = [{ name = \"user\", password = \"old\" }]\n";
    let program = Program::start_on(&format!("{VOLUME}{server}"), &["-fast"]);
    let before = program.ctl(&["node"]).ok();
    program
        .ctl_with_input(&["write", r"C:\var\lib\kubelet\m\data"], "new")
        .ok();
    assert_eq!(program.ctl_with_input(&["diff", "-"], &before).ok(), "");
    program
        .ctl_with_input(
            &["set-smb-password", "files", "user", "--password-file", "-"],
            "new",
        )
        .ok();
    let differs = program
        .ctl_with_input(&["diff", "--with-data", "-"], &before)
        .stdout;
    assert!(
        differs.contains(r"}\data: content: kept -> new"),
        "{differs}"
    );
    assert!(
        differs.contains("smb_server files: users user: password: changed\n"),
        "{differs}"
    );
}
