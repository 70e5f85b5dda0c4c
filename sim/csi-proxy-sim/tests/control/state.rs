//! A node that survives the end of the program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use csi_proxy_client::Credentials;
use csi_proxy_sim::control_api::{AddRequest, GetNodeRequest, ListDirectoryRequest, SaveStateRequest};
use tempfile::TempDir;
use tonic::Code;

use super::program::Program;

const DISK: &str = "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n";
const MOUNT: &str = r"C:\var\lib\kubelet\plugins\mount";

fn flags(folder: &TempDir) -> [String; 3] {
    let at = |name: &str| folder.path().join(name).display().to_string();
    [format!("-state={}", at("state.toml")), format!("-node={}", at("node.toml")), "-fast".to_owned()]
}

/// Returns the volume on disk 1, which arrives some time after its partition or the start of the program.
async fn volume(program: &Program) -> String {
    loop {
        if let Ok(volumes) = program.driver().volume().list_volumes_on_disk(1, None).await {
            return volumes[0].clone();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_kept_has_its_volumes_mounts_and_files_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("node.toml"), DISK).expect("a file");
    let flags = flags(&folder);
    let mut program = Program::start_with(folder, &flags).await;
    let driver = program.driver();
    driver.disk().partition_disk(1).await.expect("a partition");
    let id = volume(&program).await;
    driver.volume().format_volume(&id).await.expect("a file system");
    driver.filesystem().mkdir(MOUNT).await.expect("a directory");
    driver.volume().mount_volume(&id, MOUNT).await.expect("a mount point");
    program.simulation.save_state(SaveStateRequest {}).await.expect("it is written");
    let plugged =
        AddRequest { node_file: "[[disk]]\nsize = \"2 GiB\"\nserial = \"vol-2\"\n".into(), undetected: false };
    program.simulation.add(plugged).await.expect("a disk");

    // What happened after the last request is kept too.
    let folder = program.stop();
    let state = folder.path().join("state.toml");
    assert_eq!(fs::metadata(&state).expect("the state").permissions().mode() & 0o777, 0o600, "it has passwords");
    let program = Program::start_with(folder, &flags).await;
    let driver = program.driver();
    assert_eq!(volume(&program).await, id);
    assert_eq!(driver.volume().get_volume_id_from_target_path(MOUNT).await.expect("a volume"), id);
    assert_eq!(driver.disk().list_disk_ids().await.expect("a list")[&2].serial_number, "vol-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_that_is_mapped_can_be_used_after_a_restart() {
    const LINK: &str = r"C:\var\lib\kubelet\plugins\link";
    let server = "[[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\" }]\n\
                  users = [{ name = \"user\", password = \"password\" }]\n";
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("node.toml"), server).expect("a file");
    let flags = flags(&folder);
    let program = Program::start_with(folder, &flags).await;
    program.driver().filesystem().mkdir(r"C:\var\lib\kubelet\plugins").await.expect("a directory");
    let user = Some(Credentials { username: r"files\user", password: "password" });
    program.driver().smb().new_smb_global_mapping(r"\\files\share", Some(LINK), user).await.expect("a mapping");

    let mut program = Program::start_with(program.stop(), &flags).await;
    let request = || ListDirectoryRequest { path: LINK.to_owned() };
    program.files.list_directory(request()).await.expect("Windows logs on with the credentials that it has stored");
    program.driver().smb().remove_smb_global_mapping(r"\\files\share").await.expect("removed");
    program.files.list_directory(request()).await.expect_err("the share accepts no guests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_state_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state.toml");
    fs::write(&state, DISK).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim")).args(flags(&folder)).output().expect("a process");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    let reason = "is damaged: its end is missing; remove the file to start anew";
    assert!(message.contains(&format!("the state in {} {reason}", state.display())), "{message}");
    assert_eq!(fs::read_to_string(&state).expect("the file"), DISK, "it is left as it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_printed_as_a_node_file_that_can_be_served() {
    let mut program = Program::start(DISK).await;
    let node = program.simulation.get_node(GetNodeRequest {}).await.expect("a node").into_inner().node_file;
    let mut again = Program::start(&node).await;
    let same = again.simulation.get_node(GetNodeRequest {}).await.expect("a node").into_inner().node_file;
    assert_eq!(same, node);
    let refused = again.simulation.save_state(SaveStateRequest {}).await.expect_err("without -state");
    assert_eq!(refused.code(), Code::FailedPrecondition);
}

#[test]
fn print_node_prints_the_built_in_node() {
    let output = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim")).arg("print-node").output().expect("a process");
    assert_eq!(String::from_utf8_lossy(&output.stdout), os_sim::Sim::default_node_file());
}
