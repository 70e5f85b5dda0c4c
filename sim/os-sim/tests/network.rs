//! SMB servers and iSCSI targets of a node.

use std::time::Duration;

use os::{
    CallStatus, Instance, MethodCall, Namespace, Os, OsError, OsResult, Secret, ServiceAccess,
    U16String, Value,
};
use os_sim::{Sim, node};

const GIB: u64 = 1 << 30;
const IQN: &str = "iqn.2026-01.io.k8s.csi:disk";

fn call(
    os: &dyn Os,
    namespace: Namespace,
    path: &str,
    method: &str,
    arguments: &[(&str, Value)],
) -> OsResult<u32> {
    let deadline = os.clock().now() + Duration::from_mins(1);
    match os.wmi().call(
        &MethodCall::new(namespace, path, method, arguments),
        deadline,
    )? {
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

#[test]
fn a_call_to_a_server_that_does_not_answer_takes_the_timeout_and_continues_after_the_deadline() {
    let server = "[[smb_server]]\nhost = 'server'\nreachable = false\n";
    let portal = "[[iscsi_portal]]\naddress = '10.0.0.2'\nreachable = false\n";
    let node = Sim::from_toml(&format!("{server}{portal}")).unwrap();
    let remote = [("RemotePath", text(r"\\server\share"))];
    let soon = node.now() + Duration::from_secs(10);
    let status = node
        .wmi()
        .call(
            &MethodCall::new(Namespace::Smb, "MSFT_SmbGlobalMapping", "Create", &remote),
            soon,
        )
        .unwrap();
    assert!(matches!(status, CallStatus::StillRunning(_)));
    assert_eq!((node.now(), node.running_jobs()), (soon, 1));
    assert_eq!(
        call(
            &node,
            Namespace::Smb,
            "MSFT_SmbGlobalMapping",
            "Create",
            &remote
        ),
        Err(OsError::BAD_NETPATH)
    );
    let after_server = node.now();
    assert_eq!(after_server - soon, Duration::from_secs(30));
    let portal = [("TargetPortalAddress", text("10.0.0.2"))];
    let added = call(
        &node,
        Namespace::Storage,
        "MSFT_iSCSITargetPortal",
        "New",
        &portal,
    );
    assert_eq!(added, Err(OsError::ISDSC_CONNECTION_FAILED));
    assert_eq!(node.now() - after_server, Duration::from_secs(15));
}

/// Maps a share of the server `files`, which has the user `CORP\jürgen` with the password `pw`.
fn map(os: &dyn Os, share: &str, user: &str, privacy: bool) -> OsResult<u32> {
    let credential = format!("{}:pw", user.replace('\\', r"\\"));
    let arguments = [
        ("RemotePath", text(&format!(r"\\files\{share}"))),
        ("Credential", Value::Secret(Secret::new(credential))),
        ("RequirePrivacy", Value::Bool(privacy)),
    ];
    let class = "MSFT_SmbGlobalMapping";
    call(os, Namespace::Smb, class, "Create", &arguments)
}

/// Returns a node with that server, which has these further keys.
fn with_server(keys: &str) -> Sim {
    let server = format!("[[smb_server]]\nhost = 'files'\n{keys}\n");
    let shares = "shares = [{ name = 'Größe' }, { name = 'Οδός' }, { name = 'straße' }]\n";
    let users = "users = [{ name = 'CORP\\jürgen', password = 'pw' }]\n";
    Sim::from_toml(&format!("{server}{shares}{users}")).unwrap()
}

#[test]
fn a_server_without_encryption_accepts_a_mapping_that_does_not_require_it() {
    let node = with_server("encryption = false");
    let user = r"CORP\jürgen";
    assert_eq!(
        map(&node, "Größe", user, true),
        Err(OsError::NETWORK_ACCESS_DENIED)
    );
    assert_eq!(map(&node, "Größe", user, false), Ok(0));
}

#[test]
fn names_of_shares_and_accounts_have_no_case() {
    let node = with_server("");
    let upper = r"corp\JÜRGEN";
    assert_eq!(map(&node, "GRÖßE", upper, true), Ok(0));
    assert_eq!(map(&node, "ΟΔΌΣ", r"CORP\Jürgen", true), Ok(0));
    assert_eq!(map(&node, "οδόσ", upper, true), Err(OsError(85)));
    for other in ["STRASSE", "Grosse"] {
        assert_eq!(map(&node, other, upper, true), Err(OsError::BAD_NET_NAME));
    }
    let other = map(&node, "straße", r"CORP\JUERGEN", true);
    assert_eq!(other, Err(OsError::SESSION_CREDENTIAL_CONFLICT));
    for path in [r"\\FILES\GRÖßE", r"\\files\größe\", r"\\files\ΟΔΌΣ"] {
        assert!(node.external().exists(path), "{path}");
    }
}

#[test]
fn while_the_workstation_service_is_stopped_no_share_is_mapped_or_opened() {
    let file = "[[service]]\nname = 'LanmanWorkstation'\ndisplay_name = 'Workstation'\n\
                   state = 'running'\n[[smb_server]]\nhost = 'files'\n\
                   shares = [{ name = 'share', guest = true }, { name = 'other', guest = true }]\n";
    let node = Sim::from_toml(file).unwrap();
    let map = |share: &str| {
        let remote = [("RemotePath", text(&format!(r"\\files\{share}")))];
        let class = "MSFT_SmbGlobalMapping";
        call(&node, Namespace::Smb, class, "Create", &remote)
    };
    let name = U16String::from_str("LanmanWorkstation");
    let service = |access| node.open_service(&name, access).unwrap();
    assert_eq!(map("share"), Ok(0));
    service(ServiceAccess::Stop).stop().unwrap();
    assert_eq!(map("other"), Err(OsError::WKSTA_NOT_STARTED));
    assert_eq!(
        node.external().read(r"\\files\share\x"),
        Err(OsError::BAD_NETPATH)
    );
    service(ServiceAccess::Start).start().unwrap();
    assert_eq!(map("other"), Ok(0));
    assert!(node.external().exists(r"\\files\share"));
}

#[test]
fn a_session_follows_a_redirected_login_and_loses_its_connection_with_that_portal() {
    let target = format!(
        "[[iscsi_portal]]\naddress = '10.0.0.1'\n[[iscsi_portal]]\naddress = '10.0.0.2'\n\
         [[iscsi_target]]\niqn = '{IQN}'\nportals = [{{ address = '10.0.0.1' }}]\n\
         redirects_to = {{ address = '10.0.0.2' }}\nluns = [{{ number = 0, size = '1 GiB' }}]\n"
    );
    let node = Sim::from_toml(&target).unwrap();
    log_in(&node);
    let connections = || {
        let wql = "SELECT * FROM MSFT_iSCSIConnection";
        let rows = query(&node, Namespace::Storage, wql);
        let address = |row: &Instance| row.text("TargetAddress").map(str::to_owned);
        rows.iter().filter_map(address).collect::<Vec<_>>()
    };
    assert_eq!(connections(), ["10.0.0.2"]);
    assert!(node.set_portal_reachable("10.0.0.1", 3260, false));
    assert_eq!(connections(), ["10.0.0.2"]);
    assert!(node.set_portal_reachable("10.0.0.2", 3260, false));
    assert!(connections().is_empty());
    let unknown = target.replace("to = { address = '10.0.0.2'", "to = { address = '10.0.0.3'");
    let error = Sim::from_toml(&unknown).expect_err("no such portal");
    assert!(
        error
            .to_string()
            .contains("no iscsi_portal has the address 10.0.0.3")
    );
}

fn log_in(os: &dyn Os) {
    let at = [
        ("TargetPortalAddress", text("10.0.0.1")),
        ("TargetPortalPortNumber", Value::U32(3260)),
    ];
    assert_eq!(
        call(os, Namespace::Storage, "MSFT_iSCSITargetPortal", "New", &at),
        Ok(0)
    );
    let [address, port] = at;
    let login = [
        ("NodeAddress", text(IQN)),
        address,
        port,
        ("AuthenticationType", text("NONE")),
    ];
    assert_eq!(
        call(
            os,
            Namespace::Storage,
            "MSFT_iSCSITarget",
            "Connect",
            &login
        ),
        Ok(0)
    );
}

#[test]
fn the_disks_of_a_target_are_attached_during_its_session() {
    let node = node()
        .iscsi_portal("10.0.0.1", 0)
        .target(IQN)
        .lun(GIB)
        .build();
    log_in(&node);
    let disk = node.disk(1).expect("the disk of the target");
    assert_eq!((disk.bus, disk.offline, disk.read_only), (9, true, true));
    let connection = &query(
        &node,
        Namespace::Storage,
        "SELECT * FROM MSFT_iSCSIConnection",
    )[0];
    let wql = format!(
        "ASSOCIATORS OF {{{}}} WHERE AssocClass = MSFT_iSCSIConnectionToDisk",
        connection.path
    );
    let disks = query(&node, Namespace::Storage, &wql);
    assert_eq!(
        disks
            .iter()
            .map(|disk| disk.u32("Number"))
            .collect::<Vec<_>>(),
        [Some(1)]
    );

    assert_eq!(
        call(&node, Namespace::Storage, &disks[0].path, "Online", &[]),
        Ok(0)
    );
    let writable = [("IsReadOnly", Value::Bool(false))];
    assert_eq!(
        call(
            &node,
            Namespace::Storage,
            &disks[0].path,
            "SetAttributes",
            &writable
        ),
        Ok(0)
    );
    let gpt = [("PartitionStyle", Value::U32(2))];
    assert_eq!(
        call(
            &node,
            Namespace::Storage,
            &disks[0].path,
            "Initialize",
            &gpt
        ),
        Ok(0)
    );
    let target = &query(&node, Namespace::Storage, "SELECT * FROM MSFT_iSCSITarget")[0];
    assert_eq!(
        call(&node, Namespace::Storage, &target.path, "Disconnect", &[]),
        Ok(0)
    );
    assert!(node.disk(1).is_none());
    log_in(&node);
    assert_eq!(
        node.disk(1).unwrap().layout,
        "gpt",
        "it is the same logical unit"
    );
    node.invariants().unwrap();
}

#[test]
fn the_disks_of_two_sessions_are_detached_with_the_last_session() {
    let node = node()
        .iscsi_portal("10.0.0.1", 0)
        .target(IQN)
        .lun(GIB)
        .build();
    log_in(&node);
    let sessions = || query(&node, Namespace::Storage, "SELECT * FROM MSFT_iSCSISession");
    for _ in 0..2 {
        assert_eq!(
            call(
                &node,
                Namespace::Storage,
                &sessions()[0].path,
                "Register",
                &[]
            ),
            Ok(0)
        );
    }
    node.reboot();
    assert_eq!(
        (sessions().len(), node.disks().len()),
        (2, 2),
        "disk 0 and the disk of the target"
    );
    let target = &query(&node, Namespace::Storage, "SELECT * FROM MSFT_iSCSITarget")[0].path;
    for left in [2, 1] {
        let session = [(
            "SessionIdentifier",
            text(
                sessions()[0]
                    .text("SessionIdentifier")
                    .expect("an identifier"),
            ),
        )];
        assert_eq!(
            call(&node, Namespace::Storage, target, "Disconnect", &session),
            Ok(0)
        );
        assert_eq!(node.disks().len(), left);
    }
}

#[test]
fn a_session_whose_portal_stops_keeps_its_disks_for_the_hold_time_and_connects_again() {
    let node = node()
        .iscsi_portal("10.0.0.1", 0)
        .target(IQN)
        .lun(GIB)
        .build()
        .fast();
    log_in(&node);
    // The identifier of the session, whether it and its target are connected, the number of its
    // connections, and the number of the node's disks.
    let seen = || {
        let rows = |class: &str| {
            query(
                &node,
                Namespace::Storage,
                &format!("SELECT * FROM MSFT_iSCSI{class}"),
            )
        };
        let session = rows("Session").remove(0);
        (
            session.text("SessionIdentifier").unwrap().to_owned(),
            session.bool("IsConnected"),
            rows("Target")[0].bool("IsConnected"),
            rows("Connection").len(),
            node.disks().len(),
        )
    };
    let connected = seen();
    let (identifier, ..) = connected.clone();
    let lost = |disks| (identifier.clone(), Some(false), Some(false), 0, disks);
    assert_eq!(
        connected,
        (identifier.clone(), Some(true), Some(true), 1, 2)
    );
    let stop = || assert!(node.set_portal_reachable("10.0.0.1", 3260, false));
    let start = || assert!(node.set_portal_reachable("10.0.0.1", 3260, true));

    stop();
    node.advance(Duration::from_secs(59));
    assert_eq!(seen(), lost(2));
    start();
    assert_eq!(seen(), connected);
    // The time begins anew.
    stop();
    node.advance(Duration::from_secs(59));
    assert_eq!(seen(), lost(2));
    node.advance(Duration::from_secs(1));
    assert_eq!(seen(), lost(1));
    start();
    assert_eq!(seen(), connected);

    node.set_iscsi_hold_time(Duration::from_mins(20));
    stop();
    node.advance(Duration::from_mins(19));
    assert_eq!(seen(), lost(2));
    let target = &query(&node, Namespace::Storage, "SELECT * FROM MSFT_iSCSITarget")[0];
    assert_eq!(
        call(&node, Namespace::Storage, &target.path, "Disconnect", &[]),
        Ok(0)
    );
    assert_eq!(node.disks().len(), 1);
    node.advance(Duration::from_mins(1));
    node.invariants().unwrap();
}

#[test]
fn the_error_of_a_description_has_the_line_but_not_its_content() {
    let error =
        Sim::from_toml("[[smb_server]]\nhost = 'h'\nusers = [{ name = 'u', pasword = 'hunter2' }]");
    let error = error.expect_err("a field is misspelt").to_string();
    assert!(
        error.contains("line 3") && !error.contains("hunter2"),
        "{error}"
    );
}
