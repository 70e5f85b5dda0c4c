//! The iSCSI initiator: `ISCSI`.

use std::time::Duration;

use os::{
    Access, Instance, Namespace, NtPath, Open, Options, OsError, Secret, ServiceAccess, U16String,
    Value,
};

use super::network::{
    PORTAL, SESSION, TARGET, add_portal, address, connected_target, invoke, iscsi, known, log_out,
    login, object_path, portal, query_in, select, sessions, target, text,
};
use crate::fact::Fact;
use crate::network::TargetKind;
use crate::node::TestNode;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("ISCSI-01", |node| {
        let target = target(node, TargetKind::Open);
        add_portal(node, &target);
        let path = portal(node, &target.portal)
            .expect("the portal is listed")
            .path;
        for method in ["Update", "Remove"] {
            assert_eq!(
                iscsi(node, &path, method, &address(&target.portal)),
                Ok(0),
                "{method}"
            );
        }
        assert!(portal(node, &target.portal).is_none());
    }),
    Fact::new("ISCSI-02", |node| {
        let target = target(node, TargetKind::Open);
        add_portal(node, &target);
        assert_eq!(iscsi(node, TARGET, "Connect", &login(&target)), Ok(0));
        let session = sessions(node, &target).remove(0);
        assert_eq!(log_out(node, &target, &session), Ok(0));
        let chap = [("ChapSecret", secret("a-secret-of-19"))];
        assert_eq!(
            iscsi(node, TARGET, "SetCHAPSecret", &chap),
            Err(OsError::WBEM_INVALID_METHOD)
        );
        assert_eq!(iscsi(node, SESSION, "SetCHAPSecret", &chap), Ok(0));
    }),
    Fact::new("ISCSI-03", |node| {
        let target = target(node, TargetKind::Chap);
        add_portal(node, &target);
        let with = |name: &str| {
            let mut arguments = login(&target);
            arguments.retain(|(argument, _)| *argument != "AuthenticationType");
            arguments.push(("AuthenticationType", text(name)));
            iscsi(node, TARGET, "Connect", &arguments)
        };
        // The target does not know the two others.
        assert_eq!(with("NONE"), Err(OsError::ISDSC_AUTHENTICATION_FAILURE));
        assert_eq!(
            with("MUTUALCHAP"),
            Err(OsError::ISDSC_AUTHENTICATION_FAILURE)
        );
        assert_eq!(with("ONEWAYCHAP"), Ok(0));
    }),
    Fact::new("ISCSI-04", |node| {
        let target = target(node, TargetKind::Open);
        add_portal(node, &target);
        let mut arguments = login(&target);
        arguments.push(("IsPersistent", Value::Bool(true)));
        assert_eq!(iscsi(node, TARGET, "Connect", &arguments), Ok(0));
        node.restart();
        let restored = sessions(node, &target);
        assert_eq!(
            (restored.len(), restored[0].bool("IsPersistent")),
            (1, Some(true))
        );
        assert_eq!(iscsi(node, &restored[0].path, "Register", &[]), Ok(0));
        node.restart();
        assert_eq!(sessions(node, &target).len(), 2);
    }),
    Fact::new("ISCSI-05", a_second_login_is_refused),
    Fact::new("ISCSI-06", |node| {
        let target = connected_target(node);
        let session = sessions(node, &target).remove(0);
        let how = Open::existing(Access::GENERIC_READ, Options::empty());
        let disk = node
            .os()
            .open(&NtPath::disk(disks(node, &session.path)[0]), &how)
            .expect("the disk opens");
        assert_eq!(
            log_out(node, &target, &session),
            Err(OsError::ISDSC_DEVICE_BUSY_ON_SESSION)
        );
        drop(disk);
        assert_eq!(log_out(node, &target, &session), Ok(0));
        assert!(sessions(node, &target).is_empty());
    }),
    Fact::new("ISCSI-07", |node| {
        let (target, silent) = (target(node, TargetKind::Chap), node.silent_iscsi_portal());
        assert_eq!(
            iscsi(node, PORTAL, "New", &address(&silent)),
            Err(OsError::ISDSC_CONNECTION_FAILED)
        );
        assert_eq!(
            iscsi(node, TARGET, "Connect", &login(&target)),
            Err(OsError::ISDSC_TARGET_NOT_FOUND)
        );
        add_portal(node, &target);
        let mut wrong = login(&target);
        wrong.retain(|(name, _)| *name != "ChapSecret");
        wrong.push(("ChapSecret", secret("not-the-secret")));
        assert_eq!(
            iscsi(node, TARGET, "Connect", &wrong),
            Err(OsError::ISDSC_AUTHENTICATION_FAILURE)
        );
        assert_eq!(iscsi(node, TARGET, "Connect", &login(&target)), Ok(0));
        let session = sessions(node, &target).remove(0);
        assert_eq!(log_out(node, &target, &session), Ok(0));
        assert_eq!(
            log_out(node, &target, &session),
            Err(OsError::ISDSC_INVALID_SESSION_ID)
        );

        without_service(node, || {
            let chap = [("ChapSecret", secret("a-secret-of-15b"))];
            assert_eq!(
                iscsi(node, PORTAL, "New", &address(&target.portal)),
                Err(OsError::ISDSC_SERVICE_NOT_RUNNING)
            );
            assert_eq!(
                iscsi(node, SESSION, "SetCHAPSecret", &chap),
                Err(OsError::ISDSC_SERVICE_NOT_RUNNING)
            );
        });
    }),
    Fact::new("ISCSI-08", |node| {
        let target = target(node, TargetKind::Open);
        for method in ["Update", "Remove"] {
            let called = iscsi(node, PORTAL, method, &address(&target.portal));
            assert_eq!(called, Err(OsError::ISDSC_PORTAL_NOT_FOUND), "{method}");
        }
    }),
    Fact::new("ISCSI-10", a_second_login_is_refused),
    Fact::new("ISCSI-11", |node| {
        let target = connected_target(node);
        assert_eq!(sessions(node, &target)[0].bool("IsPersistent"), Some(false));
        node.restart();
        assert!(sessions(node, &target).is_empty());
    }),
    Fact::new("ISCSI-13", |node| {
        let silent = node.silent_iscsi_portal();
        assert_eq!(
            iscsi(node, PORTAL, "New", &address(&silent)),
            Err(OsError::ISDSC_CONNECTION_FAILED)
        );
        let path = portal(node, &silent).expect("the portal is listed").path;
        assert_eq!(iscsi(node, &path, "Remove", &address(&silent)), Ok(0));
    }),
    Fact::new("ISCSI-14", |node| {
        let target = connected_target(node);
        let path = portal(node, &target.portal)
            .expect("the portal is listed")
            .path;
        assert!(reported(node, &path).contains(&target.iqn));
        let session = &sessions(node, &target)[0];
        assert_eq!(disks(node, &session.path).len(), 1);
        let identifiers = |object: &str, association: &str| -> Vec<String> {
            let rows = connections(node, object, association);
            rows.iter()
                .filter_map(|row| row.text("ConnectionIdentifier"))
                .map(str::to_owned)
                .collect()
        };
        let of_session = identifiers(&session.path, "MSFT_iSCSISessionToiSCSIConnection");
        let target = known(node, &target).expect("the target is listed").path;
        assert_eq!(
            (
                of_session.len(),
                identifiers(&target, "MSFT_iSCSITargetToiSCSIConnection")
            ),
            (1, of_session)
        );
    }),
    Fact::new("ISCSI-15", |node| {
        let target = target(node, TargetKind::Open);
        add_portal(node, &target);
        let is_connected = || {
            known(node, &target)
                .expect("the target is listed")
                .bool("IsConnected")
        };
        assert_eq!(is_connected(), Some(false));
        assert_eq!(iscsi(node, TARGET, "Connect", &login(&target)), Ok(0));
        assert_eq!(is_connected(), Some(true));
        let start = node.stop_iscsi_portal(&target.portal);
        node.os().clock().sleep(MARGIN);
        assert_eq!(is_connected(), Some(false));
        start();
        node.os().clock().sleep(MARGIN);
        assert_eq!(is_connected(), Some(true));
        assert_eq!(log_out(node, &target, &sessions(node, &target)[0]), Ok(0));
        assert_eq!(is_connected(), Some(false));
    }),
    Fact::new("ISCSI-16", |node| {
        let target = connected_target(node);
        let session = sessions(node, &target).remove(0);
        for method in ["Register", "Unregister"] {
            assert_eq!(iscsi(node, &session.path, method, &[]), Ok(0), "{method}");
        }
        node.restart();
        assert!(sessions(node, &target).is_empty());
    }),
    Fact::new("ISCSI-17", |node| {
        let target = connected_target(node);
        assert_eq!(
            iscsi(node, PORTAL, "Remove", &address(&target.portal)),
            Ok(0)
        );
        assert_eq!(
            known(node, &target)
                .expect("the target is listed")
                .bool("IsConnected"),
            Some(true)
        );
    }),
    Fact::new("ISCSI-20", |node| {
        target(node, TargetKind::Open);
        without_service(node, || {
            for class in [PORTAL, TARGET, SESSION] {
                let found = query_in(node, Namespace::Storage, &format!("SELECT * FROM {class}"));
                assert_eq!(
                    found.err(),
                    Some(OsError::ISDSC_SERVICE_NOT_RUNNING),
                    "{class}"
                );
            }
        });
    }),
    Fact::new("ISCSI-21", |node| {
        let target = connected_target(node);
        let path = known(node, &target).expect("the target is listed").path;
        let connection = connections(node, &path, "MSFT_iSCSITargetToiSCSIConnection").remove(0);
        assert_eq!(
            connection.text("TargetAddress"),
            Some(&*target.portal.address)
        );
        assert_eq!(
            connection.u32("TargetPortNumber"),
            Some(target.portal.port.into())
        );
    }),
    Fact::new("ISCSI-22", |node| {
        for (kind, name) in [(TargetKind::Open, "NONE"), (TargetKind::Chap, "ONEWAYCHAP")] {
            let target = target(node, kind);
            if portal(node, &target.portal).is_none() {
                add_portal(node, &target);
            }
            assert_eq!(iscsi(node, TARGET, "Connect", &login(&target)), Ok(0));
            let shown = sessions(node, &target).remove(0);
            let shown = shown.text("AuthenticationType").expect("an authentication");
            assert!(shown.eq_ignore_ascii_case(name), "{shown}");
        }
    }),
    Fact::new("ISCSI-23", |node| {
        let target = connected_target(node);
        let paths = [
            (
                portal(node, &target.portal),
                object_path(PORTAL, "TargetPortalAddress", &target.portal.address),
            ),
            (
                known(node, &target),
                object_path(TARGET, "NodeAddress", &target.iqn),
            ),
        ];
        for (row, path) in paths {
            assert_eq!(row.map(|row| row.path), Some(path));
        }
        let session = sessions(node, &target).remove(0);
        let identifier = session.text("SessionIdentifier").expect("an identifier");
        assert_eq!(
            session.path,
            object_path(SESSION, "SessionIdentifier", identifier)
        );
    }),
    Fact::new("ISCSI-26", |node| {
        let target = target(node, TargetKind::Open);
        add_portal(node, &target);
        let returned = invoke(node, Namespace::Storage, TARGET, "Connect", &login(&target))
            .expect("the login succeeds");
        let Some(Value::Object(created)) = returned.out.get("CreatediSCSISession") else {
            panic!("{returned:?}")
        };
        let identifier = created.text("SessionIdentifier").expect("an identifier");
        let path = object_path(SESSION, "SessionIdentifier", identifier);
        assert_eq!(
            numbers(&related(
                node,
                &path,
                "MSFT_iSCSISessionToDisk",
                "MSFT_Disk"
            )),
            disks(node, &path)
        );
    }),
    Fact::new("ISCSI-27", |node| {
        let target = target(node, TargetKind::Open);
        let path = object_path(PORTAL, "TargetPortalAddress", &target.portal.address);
        assert_eq!(reported(node, &path), [""; 0]);
        let path = object_path(TARGET, "NodeAddress", &target.iqn);
        assert_eq!(
            connections(node, &path, "MSFT_iSCSITargetToiSCSIConnection"),
            []
        );
    }),
    Fact::new("ISCSI-28", |node| {
        let target = connected_target(node);
        let disk = disks(node, &sessions(node, &target)[0].path)[0];
        let start = node.stop_iscsi_portal(&target.portal);
        node.os().clock().sleep(MARGIN);
        assert_eq!(iscsi_disks(node), [disk]);
        node.os().clock().sleep(MARGIN * 2);
        assert_eq!(iscsi_disks(node), []);
        start();
        node.os().clock().sleep(MARGIN);
        assert_eq!(disks(node, &sessions(node, &target)[0].path).len(), 1);
    }),
    Fact::new("ISCSI-29", |node| {
        let target = connected_target(node);
        let session = sessions(node, &target).remove(0);
        let start = node.stop_iscsi_portal(&target.portal);
        node.os().clock().sleep(MARGIN);
        let lost = sessions(node, &target).remove(0);
        assert_eq!(
            (&lost.path, lost.bool("IsConnected")),
            (&session.path, Some(false))
        );
        let path = known(node, &target).expect("the target is listed").path;
        for (object, association) in [
            (&session.path, "MSFT_iSCSISessionToiSCSIConnection"),
            (&path, "MSFT_iSCSITargetToiSCSIConnection"),
        ] {
            assert_eq!(connections(node, object, association), []);
        }
        start();
        node.os().clock().sleep(MARGIN);
        let restored = sessions(node, &target).remove(0);
        assert_eq!(
            (&restored.path, restored.bool("IsConnected")),
            (&session.path, Some(true))
        );
    }),
    Fact::new("ISCSI-30", |node| {
        let target = connected_target(node);
        let disk = related(
            node,
            &sessions(node, &target)[0].path,
            "MSFT_iSCSISessionToDisk",
            "MSFT_Disk",
        );
        let start = node.stop_iscsi_portal(&target.portal);
        node.os().clock().sleep(MARGIN);
        let session = &sessions(node, &target)[0].path;
        let found = related(node, session, "MSFT_iSCSISessionToDisk", "MSFT_Disk");
        assert_eq!(numbers(&found), numbers(&disk));
        assert_eq!(log_out(node, &target, &sessions(node, &target)[0]), Ok(0));
        assert!(sessions(node, &target).is_empty());
        assert_eq!(iscsi_disks(node), []);
        start();
    }),
    Fact::new("ISCSI-31", |node| {
        let target = connected_target(node);
        let disk = disks(node, &sessions(node, &target)[0].path);
        assert_eq!(iscsi_disks(node), disk);
    }),
];

/// The loss of a connection and a new connection are noticed within this time. It is half the time
/// for which Windows holds requests to the disks of a session without a connection.
const MARGIN: Duration = Duration::from_secs(30);

/// Returns the numbers of the disks on the bus iSCSI.
fn iscsi_disks(node: &dyn TestNode) -> Vec<u32> {
    let wql = "SELECT Number FROM MSFT_Disk WHERE BusType = 9";
    numbers(&select(node, Namespace::Storage, wql))
}

fn a_second_login_is_refused(node: &dyn TestNode) {
    let target = connected_target(node);
    assert_eq!(
        iscsi(node, TARGET, "Connect", &login(&target)),
        Err(OsError::ISDSC_TARGET_ALREADY_LOGGED_IN)
    );
    assert_eq!(sessions(node, &target).len(), 1);
}

fn secret(text: &str) -> Value {
    Value::Secret(Secret::new(text.to_owned()))
}

/// Returns the numbers of the disks of a session.
fn disks(node: &dyn TestNode, session: &str) -> Vec<u32> {
    let connections = connections(node, session, "MSFT_iSCSISessionToiSCSIConnection");
    let found = connections
        .iter()
        .flat_map(|row| related(node, &row.path, "MSFT_iSCSIConnectionToDisk", "MSFT_Disk"));
    numbers(&found.collect::<Vec<_>>())
}

fn numbers(disks: &[Instance]) -> Vec<u32> {
    disks
        .iter()
        .map(|disk| disk.u32("Number").expect("a number"))
        .collect()
}

/// Returns the names of the targets of a portal.
fn reported(node: &dyn TestNode, portal: &str) -> Vec<String> {
    let targets = related(node, portal, "MSFT_iSCSITargetToiSCSITargetPortal", TARGET);
    targets
        .iter()
        .filter_map(|row| row.text("NodeAddress"))
        .map(str::to_owned)
        .collect()
}

/// Returns the connections of a session or target.
fn connections(node: &dyn TestNode, object: &str, association: &str) -> Vec<Instance> {
    related(node, object, association, "MSFT_iSCSIConnection")
}

fn related(node: &dyn TestNode, object: &str, association: &str, class: &str) -> Vec<Instance> {
    let classes = format!("AssocClass = {association} ResultClass = {class}");
    select(
        node,
        Namespace::Storage,
        &format!("ASSOCIATORS OF {{{object}}} WHERE {classes}"),
    )
}

/// Runs a check while the service of the initiator is stopped.
fn without_service(node: &dyn TestNode, check: impl FnOnce()) {
    let name = U16String::from_str("MSiSCSI");
    let service = |access| {
        node.os()
            .open_service(&name, access)
            .expect("the service opens")
    };
    service(ServiceAccess::Stop)
        .stop()
        .expect("the service stops");
    super::service::wait_for(
        node,
        &*service(ServiceAccess::Query),
        super::service::STOPPED,
    );
    check();
    service(ServiceAccess::Start)
        .start()
        .expect("the service starts");
    super::service::wait_for(
        node,
        &*service(ServiceAccess::Query),
        super::service::RUNNING,
    );
}
