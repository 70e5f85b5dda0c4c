//! The answers of the Go program, some group-versions only, one TCP endpoint, and recorded calls.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use csi_proxy_client::{Credentials, DiskNumber, DiskState, ErrorKind, Symlink};
use csi_proxy_sim::control_api::{ListDisksRequest, SimulationClient};
use tonic::Code;
use tonic::transport::Endpoint;

use super::program::{Ended, PROGRAM, Program, folder, run};

const NODE: &str = "[[disk]]\nsize = \"1 GiB\"\nread_only = true\noffline = true\n\
                    [[disk]]\nsize = \"1 GiB\"\ncontent = \"partitioned\"\nfile_system = \"NTFS\"\n\
                    [[file]]\nkind = \"mount\"\npath = 'C:\\var\\lib\\kubelet\\m'\ndisk = 2\n\
                    [[file]]\nkind = \"file\"\npath = 'C:\\var\\lib\\kubelet\\m\\data'\ncontent = \
                    \"kept\"\n";

#[tokio::test]
async fn like_the_go_program_every_error_is_unknown_and_a_volume_is_formatted_again() {
    let texts = [
        (
            "-like-go",
            ").Target, output: , error: <nil>",
            "because it does not exist",
        ),
        (
            "-like-go=1.3",
            "not a mounted folder",
            "The system cannot find the file specified.",
        ),
    ];
    for (flag, of_directory, of_nothing) in texts {
        let program = Program::start_on(NODE, &["-fast", flag]);
        let driver = program.driver();
        let error = driver
            .disk()
            .get_disk_stats(DiskNumber(7))
            .await
            .expect_err("no such disk");
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
        let channel = program.channel("csi-proxy-volume-v1").await;
        for (path, text) in [
            (r"C:\var\lib\kubelet\plugins", of_directory),
            (r"C:\var\lib\kubelet\nothing", of_nothing),
        ] {
            // Field 1 is the path.
            let request = [
                &[10, u8::try_from(path.len()).expect("it is short")],
                path.as_bytes(),
            ]
            .concat();
            let called =
                dynamic_client::call(&channel, "/v1.Volume/GetVolumeIDFromTargetPath", request)
                    .await;
            let status = called.expect_err("nothing is mounted");
            assert!(
                status.code() == Code::Unknown && status.message().contains(text),
                "{status}"
            );
        }
        let error = driver
            .disk()
            .partition_disk(DiskNumber(1))
            .await
            .expect_err("the disk is offline");
        assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");

        driver
            .disk()
            .set_disk_state(DiskNumber(1), DiskState::Online)
            .await
            .expect("it comes online");
        let state = program.ctl(&["disks", "-o", "json"]).json()[1]["state"].clone();
        assert_eq!(state, "Read-only");
        assert_eq!(
            program.ctl(&["cat", r"C:\var\lib\kubelet\m\data"]).ok(),
            "kept"
        );
        let volume = driver
            .volume()
            .list_volumes_on_disk(DiskNumber(2), None)
            .await
            .expect("a volume");
        driver
            .volume()
            .format_volume(&volume[0])
            .await
            .expect("it is formatted");
        program
            .ctl(&["cat", r"C:\var\lib\kubelet\m\data"])
            .fails(4, &["cannot find"]);
    }
}

#[tokio::test]
async fn like_the_go_program_data_is_lost_that_windows_cannot_mount() {
    let disk =
        |keys: &str| format!("[[disk]]\nsize = \"1 GiB\"\ncontent = \"partitioned\"\n{keys}\n");
    let node = [
        "file_system = \"NTFS\"\nvolume = \"locked\"",
        "file_system = \"NTFS\"\nvolume = \"unmountable\"",
        "file_system = \"FAT32\"",
    ]
    .map(disk);
    let program = Program::start_on(&node.concat(), &["-fast", "-like-go"]);
    let volumes = program.driver().volume();
    let mut simulation = SimulationClient::new(program.channel("sim-control").await);
    for (number, is_seen) in [(1, false), (2, false), (3, true)] {
        let found = volumes.list_volumes_on_disk(DiskNumber(number), None);
        let volume = found.await.expect("a volume").remove(0);
        let formatted = volumes.is_volume_formatted(&volume).await;
        assert_eq!(formatted.expect("an answer"), is_seen, "disk {number}");
        volumes
            .format_volume(&volume)
            .await
            .expect("it is formatted");
        let listed = simulation.list_disks(ListDisksRequest {}).await;
        let listed = listed.expect("a list").into_inner().disks;
        let disk = listed.iter().find(|disk| disk.number == number);
        let disk = disk.expect("the disk");
        assert_eq!(disk.volumes[0].file_system, "NTFS", "{disk:?}");
        assert!(
            volumes
                .is_volume_formatted(&volume)
                .await
                .expect("an answer")
        );
    }
}

#[tokio::test]
async fn like_the_go_program_a_link_that_exists_is_an_error() {
    let server =
        "[[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\", guest = true }]\n";
    let program = Program::start_on(server, &["-fast", "-like-go"]);
    let (files, smb) = (program.driver().filesystem(), program.driver().smb());
    let [directory, path, share] =
        ["directory", "link", "share"].map(|name| format!(r"C:\var\lib\kubelet\plugins\{name}"));
    files.mkdir(&directory).await.expect("a directory");
    for is_first in [true, false] {
        let link = Symlink {
            leads_to: &directory,
            path: &path,
        };
        let linked = files.create_symlink(link).await;
        let mapped = smb
            .new_smb_global_mapping(r"\\files\share", Some(&share), None)
            .await;
        for made in [linked, mapped] {
            let Err(error) = made else {
                assert!(is_first, "a second link is an error");
                continue;
            };
            assert!(!is_first && error.kind() == ErrorKind::Unknown, "{error}");
            let text = "Cannot create a file when that file already exists.";
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}

#[tokio::test]
async fn like_the_go_program_a_disk_without_volumes_has_an_empty_list() {
    let program = Program::start_on(
        "[[disk]]\nsize = \"1 GiB\"\ncontent = \"gpt\"\n",
        &["-fast", "-like-go"],
    );
    let volumes = program
        .driver()
        .volume()
        .list_volumes_on_disk(DiskNumber(1), None)
        .await
        .expect("a list");
    assert!(volumes.is_empty());
}

#[tokio::test]
async fn only_the_group_versions_of_the_flag_are_open() {
    let program = Program::start_on("", &["-api-versions=disk/v1beta3,volume/v1"]);
    let mut sockets: Vec<_> = fs::read_dir(program.sockets())
        .expect("the folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    sockets.sort();
    assert_eq!(
        sockets,
        [
            "csi-proxy-disk-v1beta3.sock",
            "csi-proxy-volume-v1.sock",
            "sim-control.sock"
        ]
    );
    assert_eq!(
        program.announced("-api-versions opens only "),
        "disk/v1beta3, volume/v1"
    );
    program
        .driver()
        .disk()
        .list_disk_ids()
        .await
        .expect("the client falls back");
    program.ctl(&["restart"]).ok();
    assert_eq!(
        fs::read_dir(program.sockets()).expect("the folder").count(),
        3
    );
    run(&["-direct", "-like-go"])
        .fails(1, &["-direct cannot be combined with -record or -like-go"]);
    run(&["-api-versions=disk/v1", "-groupless-pipes"])
        .fails(1, &["-api-versions cannot be combined"]);
    run(&["-api-versions=disk/v9"]).fails(2, &["no group-version is called \"disk/v9\""]);
}

#[tokio::test]
async fn one_tcp_endpoint_serves_all_group_versions_and_the_control_api() {
    let program = Program::start_on("", &["-listen=127.0.0.1:0"]);
    let address = format!(
        "http://{}",
        program.announced("all endpoints and the control API at ")
    );
    let endpoint = Endpoint::from_shared(address).expect("an address");
    let channel = endpoint.connect().await.expect("a connection");
    for path in [
        "/v1.Disk/Rescan",
        "/v1beta1.Disk/Rescan",
        "/csi_proxy_sim.v1.Simulation/GetNode",
    ] {
        dynamic_client::call(&channel, path, Vec::new())
            .await
            .unwrap_or_else(|status| panic!("{path}: {status}"));
    }
    let unknown = dynamic_client::call(&channel, "/v9.Disk/Rescan", Vec::new())
        .await
        .expect_err("no such service");
    assert_eq!(unknown.code(), Code::Unimplemented);
    program
        .ctl(&["inject", "--rpc", "disk/v1/Rescan", "--cut", "--count", "1"])
        .ok();
    dynamic_client::call(&channel, "/v1.Disk/Rescan", Vec::new())
        .await
        .expect_err("the answer is lost");
    program.ctl(&["restart"]).ok();
    let channel = endpoint.connect().await.expect("a connection");
    dynamic_client::call(&channel, "/v1.Disk/Rescan", Vec::new())
        .await
        .expect("the daemon serves again");
}

/// Records a driver that stages a volume and meets an error, with changes of the node, and returns
/// the file.
async fn record(folder: &tempfile::TempDir) -> String {
    let file = folder.path().join("recorded.json");
    let program = Program::start(&["-fast", &format!("-record={}", file.display())]);
    let driver = program.driver();
    program
        .ctl(&["add-disk", "--size", "1Gi", "--serial", "vol-1"])
        .ok();
    let directory = r"C:\var\lib\kubelet\plugins\globalmount";
    driver
        .disk()
        .partition_disk(DiskNumber(9))
        .await
        .expect("a partition");
    let volumes = driver
        .volume()
        .list_volumes_on_disk(DiskNumber(9), None)
        .await
        .expect("a volume");
    driver
        .volume()
        .format_volume(&volumes[0])
        .await
        .expect("a file system");
    driver
        .filesystem()
        .mkdir(directory)
        .await
        .expect("a directory");
    driver
        .volume()
        .mount_volume(&volumes[0], directory)
        .await
        .expect("a mount");
    driver
        .disk()
        .get_disk_stats(DiskNumber(77))
        .await
        .expect_err("no such disk");
    let credentials = Credentials {
        username: r"EXAMPLE\user",
        password: "password",
    };
    driver
        .smb()
        .new_smb_global_mapping(r"\\fileserver\share", None, Some(credentials))
        .await
        .expect("a mapping");
    let shared = "[[smb_server]]\nhost = \"second\"\nshares = [{ name = \"share\" }]\n\
                  users = [{ name = \"other\", password = \"hunter2\" }]\n";
    let added = folder.path().join("added.toml");
    fs::write(&added, shared).expect("a file");
    program.ctl(&["add", added.to_str().expect("UTF-8")]).ok();
    // The replay repeats what Windows answers, and nothing of what the layer has done to a call.
    program
        .ctl(&[
            "inject",
            "--rpc",
            "disk/GetDiskStats",
            "--status",
            "Aborted",
            "--count",
            "1",
        ])
        .ok();
    driver
        .disk()
        .get_disk_stats(DiskNumber(9))
        .await
        .expect_err("the fault of the RPC");
    program
        .ctl(&[
            "inject",
            "--rpc",
            "disk/GetDiskStats",
            "--status",
            "Internal",
            "--after",
            "--count",
            "1",
        ])
        .ok();
    driver
        .disk()
        .get_disk_stats(DiskNumber(9))
        .await
        .expect_err("the answer is lost");
    program
        .ctl(&[
            "inject",
            "--disk",
            "9",
            "--primitive",
            "control *",
            "--code",
            "1117",
        ])
        .ok();
    driver
        .disk()
        .get_disk_stats(DiskNumber(9))
        .await
        .expect_err("the fault of the primitive");
    program.ctl(&["clear-faults", "3"]).ok();
    program.ctl(&["inject", "--rpc", "disk/*", "--hold"]).ok();
    program.ctl(&["clear-faults"]).ok();
    driver
        .disk()
        .get_disk_stats(DiskNumber(9))
        .await
        .expect("no fault is left");
    program.ctl(&["unplug", "77"]).fails(4, &[]);
    program.ctl(&["restart"]).ok();
    assert_eq!(
        driver
            .volume()
            .get_volume_id_from_target_path(directory)
            .await
            .expect("an id"),
        volumes[0]
    );
    program.stop();
    fs::read_to_string(file).expect("the file")
}

fn replay(folder: &tempfile::TempDir, text: &str, flags: &[&str]) -> Ended {
    let file = folder.path().join("replayed.json");
    fs::write(&file, text).expect("a file");
    Command::new(PROGRAM)
        .args(["replay", "-fast"])
        .args(flags)
        .arg(file)
        .env("CSI_PROXY_SIM_PASSWORD", "password")
        .output()
        .expect("a process")
        .into()
}

#[tokio::test]
async fn recorded_calls_are_replayed_against_ours_and_against_the_go_program() {
    let folder = folder();
    let recorded = record(&folder).await;
    let file = folder.path().join("recorded.json").metadata();
    assert_eq!(file.expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(
        recorded.contains("$volumeA") && !recorded.contains("Volume{"),
        "{recorded}"
    );
    assert!(
        !recorded.contains("\"password\":\"password\"") && recorded.contains("$password"),
        "{recorded}"
    );
    assert!(
        !recorded.contains("hunter2") && !recorded.contains("page83"),
        "{recorded}"
    );
    for flags in [&[][..], &["-like-go"]] {
        let replayed = replay(&folder, &recorded, flags);
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        assert!(
            replayed.stdout.contains("0 unexpected results"),
            "{replayed:?}"
        );
    }
    let replayed = replay(
        &folder,
        &recorded.replace("\"diskNumber\":77", "\"diskNumber\":1"),
        &[],
    );
    assert!(
        replayed.code == Some(1) && replayed.stdout.contains("GetDiskStats must fail with"),
        "{replayed:?}"
    );
}

#[test]
fn a_file_that_cannot_be_replayed_is_named() {
    let folder = folder();
    run(&["replay"]).fails(1, &["give the files to replay"]);
    replay(&folder, "{}", &[]).fails(1, &["replayed.json: missing field"]);
    let unknown =
        r#"{ "driver": "", "about": "", "variables": { "chapSecret": "" }, "phases": [] }"#;
    replay(&folder, unknown, &[]).fails(
        1,
        &["replayed.json: the variable chapSecret has no value, and CSI_PROXY_SIM_CHAPSECRET is not set"],
    );
}
