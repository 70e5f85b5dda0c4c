//! Discovering, connecting and disconnecting targets through WMI.

use os::{Instance, Namespace, OsError, Returned, Secret, Uuid, Value};

use super::wmi_classes::Associated;
use super::{CONNECT_TIMEOUT, Chap, Effect, Iscsi, IscsiCode, Lun, Portal, PortalAddress, Target};
use crate::wmi::wql::{ObjectPath, Query};

const PORTAL: &str = "MSFT_iSCSITargetPortal";
const TARGET: &str = "MSFT_iSCSITarget";
const SESSION: &str = "MSFT_iSCSISession";
const USER: &str = "initiator";
const SECRET: &str = "one-way-secret";
const OWN: &str = "target-secret-";

fn network() -> Iscsi {
    let one_way = Chap::OneWay { user: USER.to_owned(), secret: SECRET.to_owned() };
    let mutual = Chap::Mutual { user: USER.to_owned(), secret: SECRET.to_owned(), target_secret: OWN.to_owned() };
    let at = PortalAddress::new("10.0.0.1", 0);
    let target = |(number, chap): (u8, Chap)| Target {
        iqn: format!("iqn.2020-01.org:t{number}"),
        portals: vec![at.clone()],
        chap,
        luns: vec![Lun { number, id: Uuid::from_u128(number.into()), size: 1 << 30 }],
    };
    let portal =
        |address: &str, reachable| Portal { address: address.to_owned(), port: 3260, reachable, slow_milliseconds: 0 };
    Iscsi {
        portals: vec![portal("10.0.0.1", true), portal("10.0.0.2", false)],
        targets: [(0, Chap::None), (1, one_way), (2, mutual)].into_iter().map(target).collect(),
        ..Iscsi::default()
    }
}

fn value(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn portal(iscsi: &mut Iscsi, method: &str, address: &str, port: u32) -> Returned {
    let arguments = [("TargetPortalAddress", value(address)), ("TargetPortalPortNumber", Value::U32(port))];
    iscsi.call(&ObjectPath::class(PORTAL), method, &arguments).expect("an answer").0
}

fn connect(iscsi: &mut Iscsi, iqn: &str, kind: &str, secret: &str) -> (Returned, Vec<Effect>) {
    let arguments = [
        ("NodeAddress", value(iqn)),
        ("TargetPortalAddress", value("10.0.0.1")),
        ("TargetPortalPortNumber", Value::U32(3260)),
        ("AuthenticationType", value(kind)),
        ("ChapUsername", value(USER)),
        ("ChapSecret", Value::Secret(Secret::new(secret.to_owned()))),
    ];
    iscsi.call(&ObjectPath::class(TARGET), "Connect", &arguments).expect("an answer")
}

fn set_secret(iscsi: &mut Iscsi, secret: &str) -> u32 {
    let arguments = [("ChapSecret", Value::Secret(Secret::new(secret.to_owned())))];
    iscsi.call(&ObjectPath::class(SESSION), "SetCHAPSecret", &arguments).expect("an answer").0.code
}

fn rows(iscsi: &Iscsi, class: &str) -> Vec<Instance> {
    iscsi.rows(class).expect("a class of the initiator")
}

fn related(iscsi: &Iscsi, object: &str, association: &str, result: &str) -> Associated {
    let text = format!("ASSOCIATORS OF {{{object}}} WHERE AssocClass = {association} ResultClass = {result}");
    let Ok(Query::Associators(query)) = Query::parse(Namespace::Storage, &text) else { panic!("{text}") };
    iscsi.associated(&query).expect("an association of the initiator")
}

#[test]
fn a_portal_is_added_listed_and_removed() {
    let mut iscsi = network();
    assert!(rows(&iscsi, PORTAL).is_empty());
    let new = portal(&mut iscsi, "New", "10.0.0.1", 0);
    assert_eq!(new.code, 0);
    let Some(Value::Object(created)) = new.out.get("CreatedTargetPortal") else { panic!("no portal") };
    assert_eq!(created.u32("TargetPortalPortNumber"), Some(3260), "0 is the default port");
    assert_eq!(rows(&iscsi, PORTAL).len(), 1);
    assert_eq!(portal(&mut iscsi, "New", "10.0.0.1", 3260).code, 0, "again");
    assert_eq!(rows(&iscsi, PORTAL).len(), 1);

    let own: ObjectPath = rows(&iscsi, PORTAL)[0].path.parse().expect("a path");
    assert_eq!(iscsi.call(&own, "Update", &[]).expect("an answer").0.code, 0);
    assert_eq!(iscsi.call(&own, "Remove", &[]).expect("an answer").0.code, 0);
    assert!(rows(&iscsi, PORTAL).is_empty() && rows(&iscsi, TARGET).is_empty());
    assert_eq!(portal(&mut iscsi, "Remove", "10.0.0.1", 3260).code, IscsiCode::NOT_FOUND.0);
}

#[test]
fn adding_a_portal_that_does_not_answer_fails_after_the_timeout() {
    let mut iscsi = network();
    let arguments = [("TargetPortalAddress", value("10.0.0.2"))];
    assert_eq!(iscsi.duration(&ObjectPath::class(PORTAL), "New", &arguments), CONNECT_TIMEOUT);
    assert_eq!(portal(&mut iscsi, "New", "10.0.0.2", 0).code, IscsiCode::CONNECTION_FAILED.0);
    assert!(rows(&iscsi, PORTAL).is_empty());
}

#[test]
fn targets_are_discovered_through_their_portal() {
    let mut iscsi = network();
    let unknown = connect(&mut iscsi, "iqn.2020-01.org:t0", "NONE", "");
    assert_eq!((unknown.0.code, unknown.1), (IscsiCode::TARGET_NOT_FOUND.0, Vec::new()));
    portal(&mut iscsi, "New", "10.0.0.1", 0);
    let path = rows(&iscsi, PORTAL)[0].path.clone();
    let found = related(&iscsi, &path, "MSFT_iSCSITargetToiSCSITargetPortal", TARGET);
    assert_eq!(found, Associated::Objects(rows(&iscsi, TARGET)));
    assert_eq!(rows(&iscsi, TARGET).len(), 3);

    iscsi.targets.pop();
    assert_eq!(rows(&iscsi, TARGET).len(), 3, "the list is not updated without a discovery");
    portal(&mut iscsi, "Update", "10.0.0.1", 0);
    assert_eq!(rows(&iscsi, TARGET).len(), 2);
}

#[test]
fn connecting_attaches_the_logical_units_and_disconnecting_detaches_them() {
    let mut iscsi = network();
    let iqn = "iqn.2020-01.org:t0".to_owned();
    let luns = iscsi.targets[0].luns.clone();
    portal(&mut iscsi, "New", "10.0.0.1", 0);
    let (returned, effects) = connect(&mut iscsi, &iqn, "NONE", "");
    assert_eq!((returned.code, effects), (0, vec![Effect::Attach { iqn: iqn.clone(), luns: luns.clone() }]));
    assert!(iscsi.is_connected(&iqn));
    assert_eq!(connect(&mut iscsi, &iqn, "NONE", "").0.code, IscsiCode::SESSION_ALREADY_EXISTS.0);

    let target = rows(&iscsi, TARGET).remove(0);
    assert_eq!(target.bool("IsConnected"), Some(true));
    let Associated::Objects(sessions) = related(&iscsi, &target.path, "MSFT_iSCSITargetToiSCSISession", SESSION) else {
        panic!("sessions are objects")
    };
    let disks = related(&iscsi, &sessions[0].path, "MSFT_iSCSISessionToDisk", "MSFT_Disk");
    assert_eq!(disks, Associated::Disks(vec![luns[0].id]));
    let connection = "MSFT_iSCSIConnection";
    let Associated::Objects(connections) =
        related(&iscsi, &target.path, "MSFT_iSCSITargetToiSCSIConnection", connection)
    else {
        panic!("connections are objects")
    };
    assert_eq!(related(&iscsi, &connections[0].path, "MSFT_iSCSIConnectionToDisk", "MSFT_Disk"), disks);

    let path: ObjectPath = target.path.parse().expect("a path");
    let session = [("SessionIdentifier", value(sessions[0].text("SessionIdentifier").expect("an identifier")))];
    let (returned, effects) = iscsi.call(&path, "Disconnect", &session).expect("an answer");
    assert_eq!((returned.code, effects), (0, vec![Effect::Detach { iqn: iqn.clone(), luns }]));
    assert!(!iscsi.is_connected(&iqn));
    assert_eq!(iscsi.call(&path, "Disconnect", &session).expect("an answer").0.code, IscsiCode::INVALID_SESSION_ID.0);
}

#[test]
fn a_login_needs_the_authentication_of_both_sides() {
    let mut iscsi = network();
    portal(&mut iscsi, "New", "10.0.0.1", 0);
    let denied = IscsiCode::AUTHENTICATION_FAILURE.0;
    for (target, kind, secret, code) in [
        ("t0", "ONEWAYCHAP", SECRET, denied),
        ("t1", "NONE", "", denied),
        ("t1", "ONEWAYCHAP", "wrong", denied),
        ("t1", "MUTUALCHAP", SECRET, denied),
        ("t1", "CHAP", SECRET, IscsiCode::INVALID_PARAMETER.0),
        ("t1", "OneWayChap", SECRET, 0),
        ("t2", "MUTUALCHAP", SECRET, denied),
    ] {
        assert_eq!(
            connect(&mut iscsi, &format!("iqn.2020-01.org:{target}"), kind, secret).0.code,
            code,
            "{target} {kind}"
        );
    }
    assert_eq!(set_secret(&mut iscsi, "short"), IscsiCode::INVALID_PARAMETER.0);
    assert_eq!(set_secret(&mut iscsi, "not-that-one"), 0);
    assert_eq!(connect(&mut iscsi, "iqn.2020-01.org:t2", "MUTUALCHAP", SECRET).0.code, denied);
    assert_eq!(set_secret(&mut iscsi, OWN), 0);
    assert_eq!(connect(&mut iscsi, "iqn.2020-01.org:t2", "MUTUALCHAP", SECRET).0.code, 0);
}

#[test]
fn only_a_persistent_session_is_opened_again_after_a_reboot() {
    let mut iscsi = network();
    portal(&mut iscsi, "New", "10.0.0.1", 0);
    connect(&mut iscsi, "iqn.2020-01.org:t0", "NONE", "");
    connect(&mut iscsi, "iqn.2020-01.org:t1", "ONEWAYCHAP", SECRET);
    let sessions = rows(&iscsi, SESSION);
    assert_eq!(sessions[1].bool("IsPersistent"), Some(false));
    let session: ObjectPath = sessions[1].path.parse().expect("a path");
    assert_eq!(iscsi.call(&session, "Register", &[]).expect("an answer").0.code, 0);

    let attached: Vec<_> =
        iscsi.reboot().into_iter().filter(|effect| matches!(effect, Effect::Attach { .. })).collect();
    assert_eq!(attached.len(), 1);
    assert!(!iscsi.is_connected("iqn.2020-01.org:t0") && iscsi.is_connected("iqn.2020-01.org:t1"));

    let session: ObjectPath = rows(&iscsi, SESSION)[0].path.parse().expect("a path");
    assert_eq!(iscsi.call(&session, "Unregister", &[]).expect("an answer").0.code, 0);
    iscsi.reboot();
    assert!(rows(&iscsi, SESSION).is_empty());
}

#[test]
fn a_connected_target_is_listed_after_its_portal_was_removed() {
    let mut iscsi = network();
    portal(&mut iscsi, "New", "10.0.0.1", 0);
    connect(&mut iscsi, "iqn.2020-01.org:t0", "NONE", "");
    portal(&mut iscsi, "Remove", "10.0.0.1", 0);
    let names: Vec<_> =
        rows(&iscsi, TARGET).iter().filter_map(|row| row.text("NodeAddress").map(str::to_owned)).collect();
    assert_eq!(names, ["iqn.2020-01.org:t0"]);
}

#[test]
fn no_secret_is_printed() {
    let mut iscsi = network();
    portal(&mut iscsi, "New", "10.0.0.1", 0);
    assert_eq!(set_secret(&mut iscsi, "initiators-own"), 0);
    connect(&mut iscsi, "iqn.2020-01.org:t1", "ONEWAYCHAP", SECRET);
    let printed = format!("{iscsi:?}");
    for secret in [SECRET, OWN, "initiators-own"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn an_unknown_method_or_class_is_rejected() {
    let mut iscsi = network();
    assert_eq!(iscsi.call(&ObjectPath::class(TARGET), "Format", &[]).err(), Some(OsError::WBEM_INVALID_METHOD));
    assert_eq!(iscsi.call(&ObjectPath::class("MSFT_Disk"), "New", &[]).err(), Some(OsError::WBEM_INVALID_CLASS));
    assert_eq!(iscsi.rows("MSFT_Disk"), None);
}
