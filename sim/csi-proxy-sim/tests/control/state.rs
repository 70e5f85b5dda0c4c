//! A node that survives the end of the program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use csi_proxy_client::{Credentials, DiskNumber, VolumeId};
use tempfile::TempDir;

use super::program::{Program, folder, run};

const DISK: &str = "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n";
const MOUNT: &str = r"C:\var\lib\kubelet\plugins\mount";

/// Starts the program on the node that is kept in the folder, else on the node of a node file.
fn start(folder: &Arc<TempDir>, node_file: &str) -> Program {
    let [state, node] = ["state.toml", "node.toml"].map(|name| folder.path().join(name));
    fs::write(&node, node_file).expect("a file");
    let flags = [
        format!("-state={}", state.display()),
        format!("-node={}", node.display()),
    ];
    Program::start_in(folder, &[&flags[0], &flags[1], "-fast"])
}

/// Returns the volume on disk 1, which arrives some time after its partition or the start of the
/// program.
async fn volume(program: &Program) -> VolumeId {
    loop {
        if let Ok(volumes) = program
            .driver()
            .volume()
            .list_volumes_on_disk(DiskNumber(1), None)
            .await
        {
            return volumes[0].clone();
        }
    }
}

#[tokio::test]
async fn a_node_that_is_kept_has_its_volumes_mounts_and_files_after_a_restart() {
    let folder = folder();
    let program = start(&folder, DISK);
    let driver = program.driver();
    driver
        .disk()
        .partition_disk(DiskNumber(1))
        .await
        .expect("a partition");
    let id = volume(&program).await;
    driver
        .volume()
        .format_volume(&id)
        .await
        .expect("a file system");
    driver.filesystem().mkdir(MOUNT).await.expect("a directory");
    driver
        .volume()
        .mount_volume(&id, MOUNT)
        .await
        .expect("a mount point");
    assert_eq!(program.ctl(&["save"]).ok(), "");
    program
        .ctl(&["add-disk", "--size", "2Gi", "--serial", "vol-2"])
        .ok();

    // What happened after the last request is kept too.
    program.stop();
    let state = folder.path().join("state.toml");
    assert_eq!(
        fs::metadata(&state)
            .expect("the state")
            .permissions()
            .mode()
            & 0o777,
        0o600,
        "it has passwords"
    );
    let program = start(&folder, "");
    let driver = program.driver();
    assert_eq!(volume(&program).await, id);
    assert_eq!(
        driver
            .volume()
            .get_volume_id_from_target_path(MOUNT)
            .await
            .expect("a volume"),
        id
    );
    assert_eq!(
        driver.disk().list_disk_ids().await.expect("a list")[&DiskNumber(2)].serial_number,
        "vol-2"
    );
}

#[tokio::test]
async fn a_share_that_is_mapped_can_be_used_after_a_restart() {
    const LINK: &str = r"C:\var\lib\kubelet\plugins\link";
    let server = "[[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\" }]\n\
                  users = [{ name = \"user\", password = \"password\" }]\n";
    let folder = folder();
    let program = start(&folder, server);
    program
        .driver()
        .filesystem()
        .mkdir(r"C:\var\lib\kubelet\plugins")
        .await
        .expect("a directory");
    let user = Some(Credentials {
        username: r"files\user",
        password: "password",
    });
    program
        .driver()
        .smb()
        .new_smb_global_mapping(r"\\files\share", Some(LINK), user)
        .await
        .expect("a mapping");
    program.stop();

    let program = start(&folder, "");
    // Windows logs on with the credentials that it has stored.
    program.ctl(&["ls", LINK]).ok();
    program
        .driver()
        .smb()
        .remove_smb_global_mapping(r"\\files\share")
        .await
        .expect("removed");
    // The share accepts no guests.
    program
        .ctl(&["ls", LINK])
        .fails(1, &["cannot list the directory"]);
}

#[test]
fn a_damaged_state_is_refused_in_a_sentence() {
    let folder = folder();
    let state = folder.path().join("state.toml");
    fs::write(&state, DISK).expect("a file");
    let reason = "is damaged: its end is missing; remove the file to start anew";
    let words = format!("the state in {} {reason}", state.display());
    run(&[&format!("-state={}", state.display())]).fails(1, &[&words]);
    assert_eq!(
        fs::read_to_string(&state).expect("the file"),
        DISK,
        "it is left as it is"
    );
}

#[test]
fn the_node_is_printed_as_a_node_file_that_can_be_served() {
    let program = Program::start_on(DISK, &[]);
    // The messages that tonic accepts by default are smaller.
    program
        .ctl_with_input(&["write", r"C:\first"], &"x".repeat(3 << 20))
        .ok();
    program
        .ctl_with_input(&["write", r"C:\second"], &"x".repeat(3 << 20))
        .ok();
    let node = program.ctl(&["node"]).ok();
    assert!(Program::start_on(&node, &[]).ctl(&["node"]).ok() == node);
    program
        .ctl(&["save"])
        .fails(1, &["csi-proxy-sim was started without -state"]);
    assert_eq!(run(&["print-node"]).ok(), os_sim::Sim::default_node_file());
}
