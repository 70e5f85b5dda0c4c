//! SMB shares, iSCSI targets and services of a node.

use std::time::Duration;

use os::{
    Access, CallStatus, Disposition, Instance, MethodCall, Namespace, NtPath, Open, Options, Os, OsError, OsResult,
    PathForm, Secret, U16String, Value,
};
use os_sim::{Sim, node};

const GIB: u64 = 1 << 30;
const IQN: &str = "iqn.2026-01.io.k8s.csi:disk";

fn call(os: &dyn Os, namespace: Namespace, path: &str, method: &str, arguments: &[(&str, Value)]) -> OsResult<u32> {
    let deadline = os.clock().now() + Duration::from_mins(1);
    match os.wmi().call(&MethodCall::new(namespace, path, method, arguments), deadline)? {
        CallStatus::Done(returned) => Ok(returned.code),
        CallStatus::StillRunning(_) => panic!("{method} takes more than a minute"),
    }
}

fn query(os: &dyn Os, namespace: Namespace, wql: &str) -> Vec<Instance> {
    os.wmi().query(namespace, wql, os.clock().now()).unwrap()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn map(os: &dyn Os, password: &str) -> OsResult<u32> {
    let credential = Value::Secret(Secret::new(format!(r"SERVER\\user:{password}")));
    let arguments =
        [("RemotePath", text(r"\\server\share")), ("RequirePrivacy", Value::Bool(true)), ("Credential", credential)];
    call(os, Namespace::Smb, "MSFT_SmbGlobalMapping", "Create", &arguments)
}

fn shares() -> Sim {
    node().smb_server("server").share("share").user("user", "pass:word").build()
}

#[test]
fn a_share_can_be_used_while_it_is_mapped() {
    let node = shares();
    let external = node.external();
    assert_eq!(external.write(r"\\server\share\file", "x"), Err(OsError::LOGON_FAILURE));
    assert_eq!(map(&node, "wrong"), Err(OsError::LOGON_FAILURE));
    assert_eq!(map(&node, "pass:word"), Ok(0));
    external.write(r"\\server\share\Dir\..\file", "x").unwrap();
    external.symlink(r"C:\var\lib\kubelet\link", r"\\SERVER\share\").unwrap();
    assert_eq!(external.read(r"C:\var\lib\kubelet\link\file").unwrap(), b"x");
    assert_eq!(external.read_link(r"C:\var\lib\kubelet\link").unwrap(), r"\\SERVER\share\");

    let path = NtPath::from_win32(&U16String::from_str(r"C:\var\lib\kubelet\link\file"));
    let file = node.open(&path, &Open::existing(Access::READ_ATTRIBUTES, Options::empty())).unwrap();
    let dos = file.final_path(PathForm::Dos).unwrap().to_string().unwrap();
    assert_eq!(dos, r"\\?\UNC\server\share\file");
    assert_eq!(file.final_path(PathForm::VolumeGuid), Err(OsError::PATH_NOT_FOUND));
    drop(file);

    let row = &query(&node, Namespace::Smb, "SELECT * FROM MSFT_SmbGlobalMapping")[0];
    assert_eq!(call(&node, Namespace::Smb, &row.path, "Remove", &[("Force", Value::Bool(true))]), Ok(0));
    assert!(!external.target_exists(r"C:\var\lib\kubelet\link\file"));
    node.invariants().unwrap();
}

#[test]
fn opening_a_file_on_an_unreachable_server_takes_the_timeout() {
    let node = Sim::from_toml("[[smb_server]]\nhost = 'dead'\nreachable = false\nshares = [{ name = 's' }]").unwrap();
    let before = node.now();
    let path = NtPath::from_win32(&U16String::from_str(r"\\dead\s\file"));
    let opened = node.open(&path, &Open::existing(Access::READ_ATTRIBUTES, Options::empty()));
    assert_eq!(opened.err(), Some(OsError::BAD_NETPATH));
    assert!(node.now() - before >= Duration::from_secs(10));
}

#[test]
fn mapping_a_share_of_an_unreachable_server_continues_after_the_deadline() {
    let node = Sim::from_toml("[[smb_server]]\nhost = 'server'\nreachable = false").unwrap();
    let remote = [("RemotePath", text(r"\\server\share"))];
    let soon = node.now() + Duration::from_secs(10);
    let status =
        node.wmi().call(&MethodCall::new(Namespace::Smb, "MSFT_SmbGlobalMapping", "Create", &remote), soon).unwrap();
    assert!(matches!(status, CallStatus::StillRunning(_)));
    assert_eq!((node.now(), node.running_jobs()), (soon, 1));
    assert_eq!(call(&node, Namespace::Smb, "MSFT_SmbGlobalMapping", "Create", &remote), Err(OsError::BAD_NETPATH));
}

#[test]
fn a_restart_disconnects_mappings_and_closes_handles() {
    let node = shares();
    map(&node, "pass:word").unwrap();
    let how = Open {
        disposition: Disposition::Create,
        ..Open::existing(Access::WRITE_DATA | Access::DELETE, Options::NON_DIRECTORY)
    };
    let file = node.open(&NtPath::from_win32(&U16String::from_str(r"\\server\share\f")), &how).unwrap();
    node.reboot();
    assert_eq!(node.open_handles(), 0);
    assert_eq!(file.set(os::FileInfo::Disposition, &[1]), Err(OsError::INVALID_HANDLE));
    let row = &query(&node, Namespace::Smb, "SELECT * FROM MSFT_SmbGlobalMapping")[0];
    assert_eq!(row.u32("Status"), Some(2));
    node.invariants().unwrap();
}

fn log_in(os: &dyn Os) {
    let at = [("TargetPortalAddress", text("10.0.0.1")), ("TargetPortalPortNumber", Value::U32(3260))];
    assert_eq!(call(os, Namespace::Storage, "MSFT_iSCSITargetPortal", "New", &at), Ok(0));
    let [address, port] = at;
    let login = [("NodeAddress", text(IQN)), address, port, ("AuthenticationType", text("NONE"))];
    assert_eq!(call(os, Namespace::Storage, "MSFT_iSCSITarget", "Connect", &login), Ok(0));
}

#[test]
fn the_disks_of_a_target_are_attached_during_its_session() {
    let node = node().iscsi_portal("10.0.0.1", 0).target(IQN).lun(GIB).build();
    log_in(&node);
    let disk = node.disk(1).expect("the disk of the target");
    assert_eq!((disk.bus, disk.offline, disk.read_only), (9, true, true));
    let session = &query(&node, Namespace::Storage, "SELECT * FROM MSFT_iSCSISession")[0];
    let wql = format!("ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_iSCSISessionToDisk", session.path);
    let disks = query(&node, Namespace::Storage, &wql);
    assert_eq!(disks.iter().map(|disk| disk.u32("Number")).collect::<Vec<_>>(), [Some(1)]);

    assert_eq!(call(&node, Namespace::Storage, &disks[0].path, "Online", &[]), Ok(0));
    let writable = [("IsReadOnly", Value::Bool(false))];
    assert_eq!(call(&node, Namespace::Storage, &disks[0].path, "SetAttributes", &writable), Ok(0));
    let gpt = [("PartitionStyle", Value::U32(2))];
    assert_eq!(call(&node, Namespace::Storage, &disks[0].path, "Initialize", &gpt), Ok(0));
    let target = &query(&node, Namespace::Storage, "SELECT * FROM MSFT_iSCSITarget")[0];
    assert_eq!(call(&node, Namespace::Storage, &target.path, "Disconnect", &[]), Ok(0));
    assert!(node.disk(1).is_none());
    log_in(&node);
    assert_eq!(node.disk(1).unwrap().layout, "gpt", "it is the same logical unit");
    node.invariants().unwrap();
}

#[test]
fn the_error_of_a_description_has_the_line_but_not_its_content() {
    let error = Sim::from_toml("[[smb_server]]\nhost = 'h'\nusers = [{ name = 'u', pasword = 'hunter2' }]");
    let error = error.expect_err("a field is misspelt").to_string();
    assert!(error.contains("line 3") && !error.contains("hunter2"), "{error}");
}
